/* widen_avx512.c - see widen_body.h. */
#include "kernels/x86/v16_avx512.h"

#include "kernels/x86/widen_body.h"

void widen_avx512(float *dst, const void *src, enum dtype type, size_t n)
{
    widen_body(dst, src, type, n);
}

void gemm_widen_avx512(float *dst, const void *src, enum dtype type, int n_k)
{
    gemm_widen_body(dst, src, type, n_k);
}
