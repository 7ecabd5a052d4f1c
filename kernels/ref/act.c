/* act.c - see act.h. */
#include "kernels/act.h"

#include <math.h>

#include "kernels/ref/ref_math.h"

static float swish(float x, float z)
{
    return x / (1.0f + ref_exp(0.0f - z));
}

static float act_one(float x, enum act kind)
{
    switch (kind) {
    case ACT_SILU:
        return swish(x, x);
    case ACT_QUICK_GELU:
        return swish(x, ACT_QUICK * x);
    case ACT_GELU_TANH:
        return swish(x, (x * x * ACT_TANH_B + ACT_TANH_A) * x);
    case ACT_GELU_ERF:
        break;
    }
    return x * 0.5f * (1.0f + ref_erf(x * ACT_SQRT_HALF));
}

void act_ref(float *x, size_t n, enum act kind)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = act_one(x[i], kind);
    }
}

void act_gated_ref(float *y, const float *gate, const float *up, size_t n, enum act kind)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = act_one(gate[i], kind) * up[i];
    }
}

void act_add_ref(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

void act_scale_ref(float *x, size_t n, float by)
{
    for (size_t i = 0; i < n; i++) {
        x[i] *= by;
    }
}

void act_softcap_ref(float *x, size_t n, float cap)
{
    const float k = -2.0f / cap;
    for (size_t i = 0; i < n; i++) {
        const float e = ref_exp(fabsf(x[i]) * k);
        x[i] = copysignf(cap * ((1.0f - e) / (1.0f + e)), x[i]);
    }
}
