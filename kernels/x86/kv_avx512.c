/* kv_avx512.c - see kv_body.h and narrow_body.h. */
#include "kernels/x86/v16_avx512.h"

#include "kernels/x86/kv_body.h"
#include "kernels/x86/narrow_body.h"

void kv_widen_avx512(const struct kv_widen *w)
{
    kv_widen_body(w);
}

float kv_narrow_avx512(void *dst, enum kv_type type, const float *src, int n)
{
    return narrow_body(dst, type, src, n);
}
