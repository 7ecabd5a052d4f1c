/* act_body.h - act.h over v16.  Included after a v16_*.h. */
#ifndef GALLEY_KERNELS_ACT_BODY_H
#define GALLEY_KERNELS_ACT_BODY_H

#include "kernels/act.h"
#include "kernels/x86/exp_body.h"

/* x / (1 + exp(-z)) */
static inline struct v16 swish(struct v16 x, struct v16 z)
{
    const struct v16 e = v16_exp(v16_sub(v16_set1(0.0f), z));
    return v16_div(x, v16_add(v16_set1(1.0f), e));
}

static inline struct v16 act_v16(struct v16 x, enum act kind)
{
    switch (kind) {
    case ACT_SILU:
        return swish(x, x);
    case ACT_QUICK_GELU:
        return swish(x, v16_mul(v16_set1(ACT_QUICK), x));
    case ACT_GELU_TANH: {
        const struct v16 c = v16_mul(v16_mul(x, x), v16_set1(ACT_TANH_B));
        return swish(x, v16_mul(v16_add(c, v16_set1(ACT_TANH_A)), x));
    }
    case ACT_GELU_ERF:
        break;
    }
    const struct v16 e = v16_erf(v16_mul(x, v16_set1(ACT_SQRT_HALF)));
    return v16_mul(v16_mul(x, v16_set1(0.5f)), v16_add(v16_set1(1.0f), e));
}

static inline void act_body(float *x, size_t n, enum act kind)
{
    for (size_t i = 0; i < n; i += 16) {
        v16_store_n(x + i, act_v16(v16_load_n(x + i, n - i), kind), n - i);
    }
}

static inline void act_gated_body(float *y, const float *gate, const float *up, size_t n,
                                  enum act kind)
{
    for (size_t i = 0; i < n; i += 16) {
        const struct v16 a = act_v16(v16_load_n(gate + i, n - i), kind);
        v16_store_n(y + i, v16_mul(a, v16_load_n(up + i, n - i)), n - i);
    }
}

static inline void act_add_body(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        v16_store_n(y + i, v16_add(v16_load_n(y + i, n - i), v16_load_n(x + i, n - i)), n - i);
    }
}

static inline void act_scale_body(float *x, size_t n, float by)
{
    for (size_t i = 0; i < n; i += 16) {
        v16_store_n(x + i, v16_mul(v16_load_n(x + i, n - i), v16_set1(by)), n - i);
    }
}

static inline void act_softcap_body(float *x, size_t n, float cap)
{
    const struct v16 one = v16_set1(1.0f), k = v16_set1(-2.0f / cap);
    for (size_t i = 0; i < n; i += 16) {
        const struct v16 a = v16_load_n(x + i, n - i);
        const struct v16 e = v16_exp(v16_mul(v16_abs(a), k));
        const struct v16 tanh = v16_div(v16_sub(one, e), v16_add(one, e));
        v16_store_n(x + i, v16_sign_of(v16_mul(v16_set1(cap), tanh), a), n - i);
    }
}

#endif
