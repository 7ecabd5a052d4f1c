/* rope.h - rotary embedding of one row's heads, in place.
 *
 * Of each head the first rot_dim elements turn.  Pair i is a, b: elements i and i + rot_dim / 2 for
 * rope_row, 2 i and 2 i + 1 for rope_pairs.
 *     a' = fma(a, cos[i], 0 - b * sin[i]);  b' = fma(b, cos[i], a * sin[i])
 * Tolerance against exact arithmetic: 2e-7 * (|a| + |b|). */
#ifndef GALLEY_KERNELS_ROPE_H
#define GALLEY_KERNELS_ROPE_H

/* x: [n_head][head_dim]; cos, sin: [rot_dim / 2]; rot_dim even, at most head_dim. */
typedef void rope_row_fn(float *x, const float *cos, const float *sin, int n_head, int head_dim,
                         int rot_dim);
rope_row_fn rope_row_ref, rope_row_avx2, rope_row_avx512;
rope_row_fn rope_pairs_ref, rope_pairs_avx2, rope_pairs_avx512;

#endif
