/* kv_store.c - see kv_store.h. */
#include "kernels/kv_store.h"

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

static float narrow_q8(int8_t *dst, const float *src, int n)
{
    uint32_t top = 0;
    for (int i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, src + i, sizeof(u));
        u &= 0x7fffffff;
        top = u > top ? u : top;
    }
    float by;
    const float scale = kv_q8_scale(top, &by);
    for (int i = 0; i < n; i++) {
        dst[i] = by > 0.0f ? (int8_t)nearbyintf(src[i] * by) : 0;
    }
    return scale;
}

float kv_narrow_ref(void *dst, enum kv_type type, const float *src, int n)
{
    switch (type) {
    case KV_F32:
        memcpy(dst, src, (size_t)n * sizeof(*src));
        break;
    case KV_F16:
        for (int i = 0; i < n; i++) {
            ((uint16_t *)dst)[i] = f16_from_f32(src[i]);
        }
        break;
    case KV_BF16:
        for (int i = 0; i < n; i++) {
            ((uint16_t *)dst)[i] = bf16_from_f32(src[i]);
        }
        break;
    case KV_Q8:
        return narrow_q8(dst, src, n);
    default:
        for (int i = 0; i < n; i++) {
            ((uint8_t *)dst)[i] = f8_from_f32(src[i]);
        }
    }
    return 1.0f;
}
