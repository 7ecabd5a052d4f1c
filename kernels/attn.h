/* attn.h - the softmax step of blocked attention, and the walk it belongs to.
 *
 * A query row meets its keys in blocks of KV_BLOCK at absolute logical positions, blocks
 * ascending.  Per block, with q already multiplied by the scale (one rounding each):
 *     s[j] = chain of fma over d ascending (gemm.h)             j = 0..n-1, the keys it sees
 *     m'   = max(m, s[0..n-1]);  p[j] = exp(s[j] - m') (exp.h), 0 for j >= n
 *     f    = exp(m - m');  l[i] = fma(l[i], f, p[i] + p[i + 16]) for 16 lanes i
 *     o[d] = o[d] * f, then o[d] = fma(p[j], v[j][d], o[d]) over j = 0..n-1 ascending
 * from m = -inf, l = 0, o = 0; at the end out[d] = o[d] * (1 / tree(l)), tree as in norm.h.
 * Keys a row does not see are not touched, so a row's bits depend on its own keys only.
 * Against exact arithmetic: 4e-6 * max|v| while |q k scale| stays below 30. */
#ifndef GALLEY_KERNELS_ATTN_H
#define GALLEY_KERNELS_ATTN_H

#include <stddef.h>

#define ATTN_LANES 16

struct attn_soft {
    float *s;   /* [rows][KV_BLOCK]: scores in, p out */
    float *max; /* [rows] */
    float *sum; /* [rows][ATTN_LANES] */
    float *o;   /* [rows][o_ld], o_ld a multiple of 16, aligned to 64 bytes */
    size_t o_ld;
    int rows, n; /* n: keys seen, 1..KV_BLOCK */
};

typedef void attn_soft_fn(const struct attn_soft *a);
attn_soft_fn attn_soft_ref, attn_soft_avx2, attn_soft_avx512;

/* dst[d][j] = src[j * ld + d] for n keys j and head_dim d; lanes n..KV_BLOCK-1 become 0. */
typedef void attn_turn_fn(float *dst, const float *src, size_t ld, int n, int head_dim);
attn_turn_fn attn_turn_ref, attn_turn_avx2, attn_turn_avx512;

#endif
