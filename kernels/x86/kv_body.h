/* kv_body.h - kv_widen of kv_store.h over v16.  Included after a v16_*.h. */
#ifndef GALLEY_KERNELS_KV_BODY_H
#define GALLEY_KERNELS_KV_BODY_H

#include <string.h>

#include "kernels/kv_store.h"
#include "src/base/compiler.h"

static GALLEY_INLINE struct v16 kv_from(const char *p, const enum kv_type type)
{
    switch (type) {
    case KV_F32:
        return v16_load((const float *)(const void *)p);
    case KV_F16:
        return v16_from_f16(p);
    case KV_BF16:
        return v16_from_bf16(p);
    case KV_Q8:
        return v16_from_i8(p);
    default:
        return v16_from_f8(p);
    }
}

/* type, here and below, is a constant at every call.  n values side by side, all times a scale. */
static GALLEY_INLINE void kv_run(float *dst, const char *src, const enum kv_type type, size_t n,
                                 struct v16 scale)
{
    const size_t width = kv_width(type), whole = n & ~(size_t)15;
    for (size_t i = 0; i < whole; i += 16) {
        const struct v16 x = kv_from(src + i * width, type);
        v16_store(dst + i, type == KV_Q8 ? v16_mul(x, scale) : x);
    }
    if (whole < n) {
        char tail[64] = { 0 };
        memcpy(tail, src + whole * width, (n - whole) * width);
        const struct v16 x = kv_from(tail, type);
        v16_store(dst + whole, type == KV_Q8 ? v16_mul(x, scale) : x);
    }
}

/* Rows of KV_BLOCK keys, a scale for each column. */
static inline void kv_columns_q8(const struct kv_widen *w)
{
    const struct v16 s0 = v16_load(w->column_scale), s1 = v16_load(w->column_scale + 16);
    const char *src = w->src;
    float *dst = w->dst;
    for (int r = 0; r < w->rows; r++, src += KV_BLOCK, dst += w->dst_ld) {
        v16_store(dst, v16_mul(v16_from_i8(src), s0));
        v16_store(dst + 16, v16_mul(v16_from_i8(src + 16), s1));
    }
}

static GALLEY_INLINE void kv_rows(const struct kv_widen *w, const enum kv_type type)
{
    const size_t n = (size_t)w->n, width = kv_width(type);
    if (type != KV_Q8 && w->dst_ld == n) {
        kv_run(w->dst, w->src, type, n * (size_t)w->rows, v16_set1(1.0f));
        return;
    }
    const char *src = w->src;
    for (size_t r = 0; r < (size_t)w->rows; r++, src += n * width) {
        kv_run(w->dst + r * w->dst_ld, src, type, n,
               v16_set1(type == KV_Q8 ? w->row_scale[r] : 1.0f));
    }
}

static inline void kv_widen_body(const struct kv_widen *w)
{
    switch (w->type) {
    case KV_F32:
        kv_rows(w, KV_F32);
        break;
    case KV_F16:
        kv_rows(w, KV_F16);
        break;
    case KV_BF16:
        kv_rows(w, KV_BF16);
        break;
    case KV_Q8:
        if (w->row_scale) {
            kv_rows(w, KV_Q8);
        } else {
            kv_columns_q8(w);
        }
        break;
    default:
        kv_rows(w, KV_FP8);
        break;
    }
}

#endif
