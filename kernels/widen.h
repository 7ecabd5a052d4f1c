/* widen.h - plain rows of any type to f32, exactly, and back (round to nearest even). */
#ifndef GALLEY_KERNELS_WIDEN_H
#define GALLEY_KERNELS_WIDEN_H

#include <stddef.h>

#include "kernels/tensor.h"

/* src may be unaligned. */
typedef void widen_fn(float *dst, const void *src, enum dtype type, size_t n);
widen_fn widen_ref, widen_avx2, widen_avx512;

/* dst[i * stride] = src[i] in the given type; stride in elements. */
void narrow_strided(void *dst, size_t stride, enum dtype type, const float *src, size_t n);

#endif
