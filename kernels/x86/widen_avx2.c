/* widen_avx2.c - see widen_body.h. */
#include "kernels/x86/v16_avx2.h"

#include "kernels/x86/widen_body.h"

void widen_avx2(float *dst, const void *src, enum dtype type, size_t n)
{
    widen_body(dst, src, type, n);
}

void gemm_widen_avx2(float *dst, const void *src, enum dtype type, int n_k)
{
    gemm_widen_body(dst, src, type, n_k);
}
