/* kv_avx2.c - see kv_body.h and narrow_body.h. */
#include "kernels/x86/v16_avx2.h"

#include "kernels/x86/kv_body.h"
#include "kernels/x86/narrow_body.h"

void kv_widen_avx2(const struct kv_widen *w)
{
    kv_widen_body(w);
}

float kv_narrow_avx2(void *dst, enum kv_type type, const float *src, int n)
{
    return narrow_body(dst, type, src, n);
}
