/* quant.h - block-quantised rows: the layouts of GGUF, decoding and encoding.
 *
 * Blocks are little-endian and packed (ggml's definitions; element orders are written at each
 * decoder in ref/quant_*.c).  Decoding is exact where the format's value is a float product:
 * every value is computed as ggml's dequantize_row_* does, one rounding per operation, so a decoded
 * tensor equals gguf-py's bit for bit.  This is the slow, plain definition: kernels that multiply
 * by packed weights have their own contract in qgemm.h. */
#ifndef GALLEY_KERNELS_QUANT_H
#define GALLEY_KERNELS_QUANT_H

#include <stddef.h>

#include "kernels/tensor.h"

/* y[0..n) from whole blocks of any dtype, dense ones included.  src may be unaligned. */
void quant_decode(float *y, const void *src, enum dtype t, size_t n);

/* One row x[0..n) into whole blocks.  importance: [n], how much the square error of each column
 * matters (an imatrix; NULL: x's own squares where the format's search weights by them).  NaN and
 * infinity are the caller's to refuse. */
void quant_encode(void *dst, const float *x, const float *importance, enum dtype t, size_t n);

/* The name as users write it (q4_k, Q4_K, q8_0, f16 ...); DTYPE_COUNT when there is none. */
enum dtype quant_dtype_named(const char *name);

#endif
