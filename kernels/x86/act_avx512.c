/* act_avx512.c - see act_body.h. */
#include "kernels/x86/v16_avx512.h"

#include "kernels/x86/act_body.h"

void act_avx512(float *x, size_t n, enum act kind)
{
    act_body(x, n, kind);
}

void act_gated_avx512(float *y, const float *gate, const float *up, size_t n, enum act kind)
{
    act_gated_body(y, gate, up, n, kind);
}

void act_add_avx512(float *y, const float *x, size_t n)
{
    act_add_body(y, x, n);
}

void act_scale_avx512(float *x, size_t n, float by)
{
    act_scale_body(x, n, by);
}

void act_softcap_avx512(float *x, size_t n, float cap)
{
    act_softcap_body(x, n, cap);
}
