/* attn_body.h - attn.h over v16.  Included after a v16_*.h. */
#ifndef GALLEY_KERNELS_ATTN_BODY_H
#define GALLEY_KERNELS_ATTN_BODY_H

#include <math.h>

#include "kernels/attn.h"
#include "kernels/device.h"
#include "kernels/x86/exp_body.h"

static inline void attn_soft_row(float *s, float *max, float *sum, float *o, size_t o_ld, size_t n)
{
    const struct v16 low = v16_set1(-INFINITY), zero = v16_set1(0.0f);
    const size_t n1 = n > 16 ? n - 16 : 0;
    const struct v16 s0 = v16_first(v16_load(s), n, low);
    const struct v16 s1 = v16_first(v16_load(s + 16), n1, low);
    const float old = *max;
    const float top = v16_top(v16_max(s0, s1));
    const float m = top > old ? top : old;
    const struct v16 mv = v16_set1(m);
    const struct v16 p0 = v16_first(v16_exp(v16_sub(s0, mv)), n, zero);
    const struct v16 p1 = v16_first(v16_exp(v16_sub(s1, mv)), n1, zero);
    v16_store(s, p0);
    v16_store(s + 16, p1);
    const struct v16 p = v16_add(p0, p1);
    *max = m;
    if (m == old) {
        /* f is exactly 1: the same bits without the pass over o. */
        v16_store(sum, v16_add(v16_load(sum), p));
        return;
    }
    const struct v16 f = v16_exp(v16_sub(v16_set1(old), mv));
    v16_store(sum, v16_fma(v16_load(sum), f, p));
    for (size_t d = 0; d < o_ld; d += 16) {
        v16_store(o + d, v16_mul(v16_load(o + d), f));
    }
}

static inline void attn_soft_body(const struct attn_soft *a)
{
    for (int r = 0; r < a->rows; r++) {
        const size_t i = (size_t)r;
        attn_soft_row(a->s + i * KV_BLOCK, a->max + i, a->sum + i * ATTN_LANES, a->o + i * a->o_ld,
                      a->o_ld, (size_t)a->n);
    }
}

#endif
