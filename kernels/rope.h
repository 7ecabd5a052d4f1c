/* rope.h - rotary embedding of one row's heads, half-split pairs, in place.
 *
 * For pair i of each head, a = x[i], b = x[i + head_dim / 2]:
 *     x[i] = fma(a, cos[i], -(b * sin[i]));  x[i + head_dim / 2] = fma(b, cos[i], a * sin[i])
 * Tolerance against exact arithmetic: 2e-7 * (|a| + |b|). */
#ifndef GALLEY_KERNELS_ROPE_H
#define GALLEY_KERNELS_ROPE_H

/* x: [n_head][head_dim]; cos, sin: [head_dim / 2]; head_dim even. */
typedef void rope_row_fn(float *x, const float *cos, const float *sin, int n_head, int head_dim);
rope_row_fn rope_row_ref, rope_row_avx2, rope_row_avx512;

#endif
