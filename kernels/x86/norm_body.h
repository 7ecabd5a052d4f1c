/* norm_body.h - norm.h over v16.  Included after a v16_*.h. */
#ifndef GALLEY_KERNELS_NORM_BODY_H
#define GALLEY_KERNELS_NORM_BODY_H

#include <math.h>

#include "kernels/norm.h"

static inline void norm_rms_body(float *y, const float *x, const float *weight, int rows, int dim,
                                 float eps)
{
    const size_t n = (size_t)dim;
    for (int r = 0; r < rows; r++, x += n, y += n) {
        struct v16 q = v16_set1(0.0f);
        for (size_t i = 0; i < n; i += 16) {
            const struct v16 a = v16_load_n(x + i, n - i);
            q = v16_fma(a, a, q);
        }
        const struct v16 inv = v16_set1(1.0f / sqrtf(v16_sum(q) / (float)dim + eps));
        for (size_t i = 0; i < n; i += 16) {
            const struct v16 a = v16_mul(v16_load_n(x + i, n - i), inv);
            v16_store_n(y + i, v16_mul(a, v16_load_n(weight + i, n - i)), n - i);
        }
    }
}

static inline void norm_layer_row(float *y, const float *x, const float *weight, const float *bias,
                                  size_t n, float eps)
{
    const struct v16 zero = v16_set1(0.0f);
    struct v16 s = zero, q = zero;
    for (size_t i = 0; i < n; i += 16) {
        s = v16_add(s, v16_load_n(x + i, n - i));
    }
    const struct v16 mean = v16_set1(v16_sum(s) / (float)n);
    for (size_t i = 0; i < n; i += 16) {
        const struct v16 d = v16_first(v16_sub(v16_load_n(x + i, n - i), mean), n - i, zero);
        q = v16_fma(d, d, q);
    }
    const struct v16 inv = v16_set1(1.0f / sqrtf(v16_sum(q) / (float)n + eps));
    for (size_t i = 0; i < n; i += 16) {
        const struct v16 d = v16_mul(v16_sub(v16_load_n(x + i, n - i), mean), inv);
        const struct v16 b = v16_load_n(bias + i, n - i);
        v16_store_n(y + i, v16_fma(d, v16_load_n(weight + i, n - i), b), n - i);
    }
}

static inline void norm_layer_body(float *y, const float *x, const float *weight, const float *bias,
                                   int rows, int dim, float eps)
{
    const size_t n = (size_t)dim;
    for (int r = 0; r < rows; r++) {
        norm_layer_row(y + n * (size_t)r, x + n * (size_t)r, weight, bias, n, eps);
    }
}

#endif
