/* turn_body.h - attn_turn and attn_pack of attn.h, in squares of 8 x 8. */
#ifndef GALLEY_KERNELS_TURN_BODY_H
#define GALLEY_KERNELS_TURN_BODY_H

#include <immintrin.h>

#include "kernels/attn.h"
#include "kernels/device.h"

/* dst[d][0..7] = r[0..7][d] for 8 values of d */
static inline void turn_8x8(float *dst, size_t dst_ld, const __m256 r[8])
{
    __m256 p[8], q[8];
    for (int i = 0; i < 8; i += 2) {
        p[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        p[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        q[i] = _mm256_shuffle_ps(p[i], p[i + 2], 0x44);
        q[i + 1] = _mm256_shuffle_ps(p[i], p[i + 2], 0xee);
        q[i + 2] = _mm256_shuffle_ps(p[i + 1], p[i + 3], 0x44);
        q[i + 3] = _mm256_shuffle_ps(p[i + 1], p[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        float *low = dst + (size_t)i * dst_ld;
        _mm256_storeu_ps(low, _mm256_permute2f128_ps(q[i], q[i + 4], 0x20));
        _mm256_storeu_ps(low + 4 * dst_ld, _mm256_permute2f128_ps(q[i], q[i + 4], 0x31));
    }
}

static inline void pack_body(float *dst, const float *const src[ATTN_GROUP], float by, int head_dim)
{
    const __m256 b = _mm256_set1_ps(by);
    int d = 0;
    for (; d + 8 <= head_dim; d += 8) {
        __m256 r[8];
        for (int i = 0; i < 8; i++) {
            r[i] = src[i] ? _mm256_mul_ps(_mm256_loadu_ps(src[i] + d), b) : _mm256_setzero_ps();
        }
        turn_8x8(dst + d * ATTN_GROUP, ATTN_GROUP, r);
    }
    for (; d < head_dim; d++) {
        for (int i = 0; i < ATTN_GROUP; i++) {
            dst[d * ATTN_GROUP + i] = src[i] ? src[i][d] * by : 0.0f;
        }
    }
}

static inline void turn_body(float *dst, const float *src, size_t ld, int n, int head_dim)
{
    const int n8 = n & ~7, d8 = head_dim & ~7;
    for (int j = 0; j < n8; j += 8) {
        for (int d = 0; d < d8; d += 8) {
            __m256 r[8];
            for (int i = 0; i < 8; i++) {
                r[i] = _mm256_loadu_ps(src + (size_t)(j + i) * ld + d);
            }
            turn_8x8(dst + d * KV_BLOCK + j, KV_BLOCK, r);
        }
    }
    for (int d = 0; d < head_dim; d++) {
        for (int j = d < d8 ? n8 : 0; j < KV_BLOCK; j++) {
            dst[d * KV_BLOCK + j] = j < n ? src[(size_t)j * ld + (size_t)d] : 0.0f;
        }
    }
}

#endif
