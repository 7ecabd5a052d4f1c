/* norm_avx512.c - see norm_body.h. */
#include "kernels/x86/v16_avx512.h"

#include "kernels/x86/norm_body.h"

void norm_rms_avx512(float *y, const float *x, const float *weight, int rows, int dim, float eps)
{
    norm_rms_body(y, x, weight, rows, dim, eps);
}

void norm_layer_avx512(float *y, const float *x, const float *weight, const float *bias, int rows,
                       int dim, float eps)
{
    norm_layer_body(y, x, weight, bias, rows, dim, eps);
}
