/* kv_store.c - see kv_store.h.  Narrowing has this form alone. */
#include "kernels/kv_store.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/half.h"

static float value(const void *p, enum kv_type type, size_t i)
{
    float f = 0.0f;
    uint16_t h;
    switch (type) {
    case KV_F32:
        memcpy(&f, (const char *)p + 4 * i, sizeof(f));
        return f;
    case KV_F16:
        memcpy(&h, (const char *)p + 2 * i, sizeof(h));
        return f16_to_f32(h);
    case KV_BF16:
        memcpy(&h, (const char *)p + 2 * i, sizeof(h));
        return bf16_to_f32(h);
    case KV_Q8:
        return (float)((const int8_t *)p)[i];
    default:
        return f8_to_f32(((const uint8_t *)p)[i]);
    }
}

void kv_widen_ref(const struct kv_widen *w)
{
    for (int r = 0; r < w->rows; r++) {
        float *dst = w->dst + (size_t)r * w->dst_ld;
        int i = 0;
        for (; i < w->n; i++) {
            dst[i] = value(w->src, w->type, (size_t)r * (size_t)w->n + (size_t)i);
            if (w->type == KV_Q8) {
                dst[i] *= w->row_scale ? w->row_scale[r] : w->column_scale[i];
            }
        }
        for (; i % 16 != 0; i++) {
            dst[i] = 0.0f;
        }
    }
}

static float narrow_q8(int8_t *dst, size_t stride, const float *src, int n)
{
    uint32_t top = 0; /* of |src|, as bits: NaN is above infinity there */
    for (int i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, src + i, sizeof(u));
        u &= 0x7fffffff;
        top = u > top ? u : top;
    }
    float amax;
    memcpy(&amax, &top, sizeof(amax));
    const bool wild = top >= 0x7f800000;
    const float by = wild || amax < KV_Q8_MIN ? 0.0f : 127.0f / amax;
    for (int i = 0; i < n; i++) {
        dst[(size_t)i * stride] = by > 0.0f ? (int8_t)nearbyintf(src[i] * by) : 0;
    }
    return wild ? NAN : by > 0.0f ? amax / 127.0f : 0.0f;
}

float kv_narrow(void *dst, size_t stride, enum kv_type type, const float *src, int n)
{
    if (type == KV_Q8) {
        return narrow_q8(dst, stride, src, n);
    }
    for (int i = 0; i < n; i++) {
        const size_t at = (size_t)i * stride;
        uint16_t h;
        switch (type) {
        case KV_F32:
            memcpy((char *)dst + 4 * at, src + i, sizeof(*src));
            break;
        case KV_F16:
            h = f16_from_f32(src[i]);
            memcpy((char *)dst + 2 * at, &h, sizeof(h));
            break;
        case KV_BF16:
            h = bf16_from_f32(src[i]);
            memcpy((char *)dst + 2 * at, &h, sizeof(h));
            break;
        default:
            ((uint8_t *)dst)[at] = f8_from_f32(src[i]);
        }
    }
    return 1.0f;
}
