/* top1_avx512.c - see top1_body.h. */
#include "kernels/x86/v16_avx512.h"

#include "kernels/x86/top1_body.h"

void top1_avx512(struct logit_top *top, const float *x, int n)
{
    top1_body(top, x, n);
}
