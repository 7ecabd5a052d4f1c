/* gemm.h - c = x w over column panels: the one matrix product of Galley.
 *
 * Order, the contract every implementation keeps: each element of c is one chain of fused
 * multiply-adds over k ascending,
 *     acc = 0;  acc = fma(x[r][k], w[k][j], acc) for k = 0, 1, ...;  c = acc + bias[j]
 * (no add without a bias).  Vector lanes run across j, never across k, and a product may be
 * cut along k because `more` carries on from the stored f32.  So rows, tiles, threads and
 * instruction sets cannot change a bit.  Against exact arithmetic the error of an element is
 * at most k * 2^-24 * (sum |x w| + |bias|).
 *
 * Packed weights: panels of GEMM_NR columns, [n / GEMM_NR][k][GEMM_NR], the last one padded
 * with zeros.  f32 and f16 keep the column order; a bf16 row of 32 is stored as the pairs
 * (0, 16), (1, 17) ... (15, 31), so that one shift and one mask widen a vector. */
#ifndef GALLEY_KERNELS_GEMM_H
#define GALLEY_KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/tensor.h"

#define GEMM_NR 32  /* columns per panel: two AVX-512 or four AVX2 vectors */
#define GEMM_KC 512 /* k per pass: a widened panel slice is 64 KiB, inside any L2 */

/* Where column j (0..GEMM_NR-1) lies in a packed row. */
static inline int gemm_place(int j, enum dtype type)
{
    return type != DTYPE_BF16 ? j : j < GEMM_NR / 2 ? 2 * j : 2 * (j - GEMM_NR / 2) + 1;
}

struct gemm_tile {
    float *c; /* [rows][n], c_ld floats from row to row; overlaps nothing */
    size_t c_ld;
    const float *x; /* [rows][k] */
    size_t x_ld;
    /* Column j of row k: w[(j / GEMM_NR) * panel + k * w_ld + j % GEMM_NR], in elements.
     * 16-bit weights are padded to whole panels; of f32 nothing beyond n is read. */
    const void *w;
    enum dtype w_type;
    size_t w_ld, panel;
    const float *bias; /* [n], added after the last k; NULL for none */
    int rows, n, k;
    bool more; /* carry on the chains in c instead of starting from 0 */
};

typedef void gemm_tile_fn(const struct gemm_tile *t);
gemm_tile_fn gemm_tile_ref, gemm_tile_avx2, gemm_tile_avx512;

/* Widens n_k packed rows of one panel to f32 in column order: dst [n_k][GEMM_NR]. */
typedef void gemm_widen_fn(float *dst, const void *src, enum dtype type, int n_k);
gemm_widen_fn gemm_widen_ref, gemm_widen_avx2, gemm_widen_avx512;

#endif
