/* exp_body.h - exp and erf of exp.h over v16.  Included after a v16_*.h. */
#ifndef GALLEY_KERNELS_EXP_BODY_H
#define GALLEY_KERNELS_EXP_BODY_H

#include "kernels/exp.h"

static inline struct v16 v16_horner(struct v16 p, struct v16 x, float c)
{
    return v16_fma(p, x, v16_set1(c));
}

static inline struct v16 v16_exp(struct v16 x)
{
    x = v16_min(v16_set1(EXP_HI), v16_max(v16_set1(EXP_LO), x));
    const struct v16 magic = v16_set1(EXP_MAGIC);
    const struct v16 t = v16_fma(x, v16_set1(EXP_LOG2E), magic);
    const struct v16 n = v16_sub(t, magic);
    struct v16 r = v16_fma(n, v16_set1(-EXP_LN2_HI), x);
    r = v16_fma(n, v16_set1(-EXP_LN2_LO), r);
    struct v16 p = v16_horner(v16_set1(EXP_C6), r, EXP_C5);
    p = v16_horner(p, r, EXP_C4);
    p = v16_horner(p, r, EXP_C3);
    p = v16_horner(p, r, EXP_C2);
    p = v16_horner(p, r, 1.0f);
    p = v16_horner(p, r, 1.0f);
    return v16_scale2(p, t, EXP_MAGIC);
}

/* tanh of attn.h */
static inline struct v16 v16_tanh(struct v16 x)
{
    const struct v16 one = v16_set1(1.0f);
    const struct v16 e = v16_exp(v16_mul(v16_abs(x), v16_set1(-2.0f)));
    return v16_sign_of(v16_div(v16_sub(one, e), v16_add(one, e)), x);
}

static inline struct v16 v16_erf(struct v16 x)
{
    const struct v16 t = v16_abs(x);
    const struct v16 s = v16_mul(t, t);
    struct v16 p = v16_horner(v16_set1(ERF_P6), s, ERF_P5);
    p = v16_horner(p, s, ERF_P4);
    p = v16_horner(p, s, ERF_P3);
    p = v16_horner(p, s, ERF_P2);
    p = v16_horner(p, s, ERF_P1);
    p = v16_horner(p, s, ERF_P0);
    p = v16_fma(t, p, t);
    const struct v16 u = v16_min(v16_set1(ERF_MAX), t);
    struct v16 q = v16_horner(v16_set1(ERF_Q6), u, ERF_Q5);
    q = v16_horner(q, u, ERF_Q4);
    q = v16_horner(q, u, ERF_Q3);
    q = v16_horner(q, u, ERF_Q2);
    q = v16_horner(q, u, ERF_Q1);
    q = v16_horner(q, u, ERF_Q0);
    q = v16_sub(v16_set1(1.0f), v16_exp(q));
    return v16_sign_of(v16_if_le(t, v16_set1(ERF_SPLIT), p, q), x);
}

#endif
