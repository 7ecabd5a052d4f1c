/* kv_store.h - rows of the paged cache to f32 and back; which types there are says device.h.
 *
 * KV_Q8: a vector of head_dim values has scale = amax / 127 and codes rint(x * (127 / amax)), ties
 * to even; what lies below KV_Q8_MIN altogether is stored as zeros, and one infinity or NaN makes
 * the scale NaN.  KV_FP8: nearest even, saturating at 448, NaN stays NaN.  Read back, a code is
 * f32(code) * scale, rounded once; the other types widen exactly. */
#ifndef GALLEY_KERNELS_KV_STORE_H
#define GALLEY_KERNELS_KV_STORE_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/device.h"

#define KV_Q8_MIN 1e-30f /* below, 127 / amax would overflow soon */

/* dst[r * dst_ld + i] = src[r * n + i] for i < n, as f32; the vectors of dst are padded to whole
 * 16 lanes with zeros, so dst_ld >= n rounded up.  KV_Q8: times row_scale[r], or, when that is
 * NULL and n is KV_BLOCK, times column_scale[i]. */
struct kv_widen {
    float *dst;
    size_t dst_ld;
    const void *src;
    enum kv_type type;
    const float *row_scale, *column_scale;
    int rows, n;
};
typedef void kv_widen_fn(const struct kv_widen *w);
kv_widen_fn kv_widen_ref, kv_widen_avx2, kv_widen_avx512;

/* One vector of n floats into codes side by side; returns the scale (KV_Q8; else 1). */
typedef float kv_narrow_fn(void *dst, enum kv_type type, const float *src, int n);
kv_narrow_fn kv_narrow_ref, kv_narrow_avx2, kv_narrow_avx512;

/* The scale of a vector whose largest magnitude has these bits (NaN above infinity), and what to
 * multiply by: 0 where all codes are 0. */
static inline float kv_q8_scale(uint32_t top, float *by)
{
    float amax;
    memcpy(&amax, &top, sizeof(amax));
    const bool wild = top >= 0x7f800000;
    *by = wild || amax < KV_Q8_MIN ? 0.0f : 127.0f / amax;
    return wild ? NAN : *by > 0.0f ? amax / 127.0f : 0.0f;
}

/* Bytes of one element's code. */
static inline size_t kv_width(enum kv_type t)
{
    return t == KV_F32 ? 4 : t == KV_F16 || t == KV_BF16 ? 2 : 1;
}

#endif
