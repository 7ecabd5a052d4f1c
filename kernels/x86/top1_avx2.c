/* top1_avx2.c - see top1_body.h. */
#include "kernels/x86/v16_avx2.h"

#include "kernels/x86/top1_body.h"

void top1_avx2(struct logit_top *top, const float *x, int n)
{
    top1_body(top, x, n);
}
