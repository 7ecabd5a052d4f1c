/* kv_avx512.c - see kv_body.h. */
#include "kernels/x86/v16_avx512.h"

#include "kernels/x86/kv_body.h"

void kv_widen_avx512(const struct kv_widen *w)
{
    kv_widen_body(w);
}
