/* ref_math.c - see ref_math.h. */
#include "kernels/ref/ref_math.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/exp.h"

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static float power_of_two(int32_t n) /* -126..127 */
{
    const uint32_t u = (uint32_t)(n + 127) << 23;
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

float ref_exp(float x)
{
    if (isnan(x)) {
        return x;
    }
    x = x < EXP_LO ? EXP_LO : x;
    x = x > EXP_HI ? EXP_HI : x;
    const float t = fmaf(x, EXP_LOG2E, EXP_MAGIC);
    const float n = t - EXP_MAGIC;
    float r = fmaf(n, -EXP_LN2_HI, x);
    r = fmaf(n, -EXP_LN2_LO, r);
    float p = fmaf(EXP_C6, r, EXP_C5);
    p = fmaf(p, r, EXP_C4);
    p = fmaf(p, r, EXP_C3);
    p = fmaf(p, r, EXP_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    const int32_t k = (int32_t)(bits_of(t) - bits_of(EXP_MAGIC));
    const int32_t half = k >= 0 ? k / 2 : -((1 - k) / 2); /* rounds down, as a shift does */
    return p * power_of_two(half) * power_of_two(k - half);
}

float ref_erf(float x)
{
    const float t = fabsf(x);
    if (t <= ERF_SPLIT) {
        const float s = t * t;
        float p = fmaf(ERF_P6, s, ERF_P5);
        p = fmaf(p, s, ERF_P4);
        p = fmaf(p, s, ERF_P3);
        p = fmaf(p, s, ERF_P2);
        p = fmaf(p, s, ERF_P1);
        p = fmaf(p, s, ERF_P0);
        return copysignf(fmaf(t, p, t), x);
    }
    const float u = t > ERF_MAX ? ERF_MAX : t;
    float q = fmaf(ERF_Q6, u, ERF_Q5);
    q = fmaf(q, u, ERF_Q4);
    q = fmaf(q, u, ERF_Q3);
    q = fmaf(q, u, ERF_Q2);
    q = fmaf(q, u, ERF_Q1);
    q = fmaf(q, u, ERF_Q0);
    return copysignf(1.0f - ref_exp(q), x);
}

float ref_tree(float lane[REF_LANES])
{
    for (int step = REF_LANES / 2; step > 0; step /= 2) {
        for (int i = 0; i < step; i++) {
            lane[i] = lane[i] + lane[i + step];
        }
    }
    return lane[0];
}
