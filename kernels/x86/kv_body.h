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

/* type is a constant at every call. */
static GALLEY_INLINE void kv_rows(const struct kv_widen *w, const enum kv_type type)
{
    const size_t n = (size_t)w->n, width = kv_width(type);
    const char *src = w->src;
    for (int r = 0; r < w->rows; r++, src += n * width) {
        float *dst = w->dst + (size_t)r * w->dst_ld;
        const float row_scale = type == KV_Q8 && w->row_scale ? w->row_scale[r] : 0.0f;
        for (size_t i = 0; i < n; i += 16) {
            char tail[64] = { 0 };
            const char *from = src + i * width;
            if (n - i < 16) {
                memcpy(tail, from, (n - i) * width);
                from = tail;
            }
            struct v16 x = kv_from(from, type);
            if (type == KV_Q8) {
                x = v16_mul(x, w->row_scale ? v16_set1(row_scale)
                                            : v16_load_n(w->column_scale + i, n - i));
            }
            v16_store(dst + i, x);
        }
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
        kv_rows(w, KV_Q8);
        break;
    default:
        kv_rows(w, KV_FP8);
        break;
    }
}

#endif
