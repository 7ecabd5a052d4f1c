/* widen_body.h - widen.h and gemm_widen of gemm.h over v16.  Included after a v16_*.h. */
#ifndef GALLEY_KERNELS_WIDEN_BODY_H
#define GALLEY_KERNELS_WIDEN_BODY_H

#include <string.h>

#include "kernels/gemm.h"
#include "kernels/widen.h"

static inline struct v16 v16_from(const char *p, enum dtype type)
{
    return type == DTYPE_F16 ? v16_from_f16(p) : v16_from_bf16(p);
}

static inline void widen_body(float *dst, const void *src, enum dtype type, size_t n)
{
    if (type == DTYPE_F32) {
        memcpy(dst, src, n * sizeof(float));
        return;
    }
    const char *p = src;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16_store(dst + i, v16_from(p + 2 * i, type));
    }
    if (i < n) {
        char tail[32] = { 0 };
        memcpy(tail, p + 2 * i, 2 * (n - i));
        v16_store_n(dst + i, v16_from(tail, type), n - i);
    }
}

static inline void gemm_widen_body(float *dst, const void *src, enum dtype type, int n_k)
{
    if (type != DTYPE_BF16) {
        widen_body(dst, src, type, (size_t)n_k * GEMM_NR);
        return;
    }
    const char *p = src;
    for (int k = 0; k < n_k; k++, p += 2 * GEMM_NR, dst += GEMM_NR) {
        struct v16 low, high;
        v16_unpair(p, &low, &high);
        v16_store(dst, low);
        v16_store(dst + 16, high);
    }
}

#endif
