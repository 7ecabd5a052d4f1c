/* top1_body.h - top1.h over v16.  Included after a v16_*.h. */
#ifndef GALLEY_KERNELS_TOP1_BODY_H
#define GALLEY_KERNELS_TOP1_BODY_H

#include <math.h>

#include "kernels/top1.h"
#include "kernels/x86/exp_body.h"

static inline void top1_body(struct logit_top *top, const float *x, int n_vocab)
{
    const size_t n = (size_t)n_vocab;
    const struct v16 low = v16_set1(-INFINITY), zero = v16_set1(0.0f);
    struct v16 max = low;
    for (size_t i = 0; i < n; i += 16) {
        max = v16_max(v16_first(v16_load_n(x + i, n - i), n - i, low), max);
    }
    const float best = v16_top(max);
    const struct v16 b = v16_set1(best);
    struct v16 sum = zero;
    for (size_t i = 0; i < n; i += 16) {
        const struct v16 e = v16_exp(v16_sub(v16_load_n(x + i, n - i), b));
        sum = v16_add(sum, v16_first(e, n - i, zero));
    }
    top->id = 0;
    for (size_t i = 0; i < n; i += 16) {
        const int lane = v16_find(v16_first(v16_load_n(x + i, n - i), n - i, low), best);
        if (lane < 16) {
            /* A fill lane can only match when every logit is -inf; then lane 0 came first. */
            top->id = (int32_t)i + lane;
            break;
        }
    }
    top->logit = best;
    top->log_sum = (float)((double)best + log((double)v16_sum(sum)));
}

#endif
