/* rope_body.h - rope.h over v16.  Included after a v16_*.h. */
#ifndef GALLEY_KERNELS_ROPE_BODY_H
#define GALLEY_KERNELS_ROPE_BODY_H

#include "kernels/rope.h"

static inline void rope_row_body(float *x, const float *cos, const float *sin, int n_head,
                                 int head_dim, int rot_dim)
{
    const size_t half = (size_t)rot_dim / 2;
    for (int h = 0; h < n_head; h++, x += head_dim) {
        for (size_t i = 0; i < half; i += 16) {
            const size_t n = half - i;
            const struct v16 a = v16_load_n(x + i, n), b = v16_load_n(x + half + i, n);
            const struct v16 c = v16_load_n(cos + i, n), s = v16_load_n(sin + i, n);
            const struct v16 minus = v16_sub(v16_set1(0.0f), v16_mul(b, s));
            v16_store_n(x + i, v16_fma(a, c, minus), n);
            v16_store_n(x + half + i, v16_fma(b, c, v16_mul(a, s)), n);
        }
    }
}

/* Eight pairs at a time: the pair's other element comes from a swap of neighbours. */
static inline void rope_pairs_body(float *x, const float *cos, const float *sin, int n_head,
                                   int head_dim, int rot_dim)
{
    const size_t dim = (size_t)rot_dim;
    for (int h = 0; h < n_head; h++, x += head_dim) {
        for (size_t i = 0; i < dim; i += 16) {
            const size_t n = dim - i;
            const struct v16 a = v16_load_n(x + i, n);
            const struct v16 c = v16_twice(cos + i / 2, n / 2), s = v16_twice(sin + i / 2, n / 2);
            const struct v16 cross = v16_mul(v16_swap(a), s);
            const struct v16 minus = v16_sub(v16_set1(0.0f), cross);
            v16_store_n(x + i, v16_fma(a, c, v16_even_odd(minus, cross)), n);
        }
    }
}

#endif
