/* narrow_body.h - kv_narrow of kv_store.h, eight lanes at a time: the steps of half.c.  Vectors are
 * short and few, so both instruction sets use this form. */
#ifndef GALLEY_KERNELS_NARROW_BODY_H
#define GALLEY_KERNELS_NARROW_BODY_H

#include <immintrin.h>

#include "kernels/kv_store.h"

static inline __m256i narrow_abs(__m256i u)
{
    return _mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff));
}

static inline __m256i narrow_is_nan(__m256i u)
{
    return _mm256_cmpgt_epi32(narrow_abs(u), _mm256_set1_epi32(0x7f800000));
}

static inline void narrow_f16(uint16_t *dst, __m256i u)
{
    /* one NaN for all, with the sign it had */
    const __m256i nan = _mm256_or_si256(u, _mm256_set1_epi32(0x7fc00000));
    const __m256i one = _mm256_and_si256(nan, _mm256_set1_epi32((int)0xffc00000));
    const __m256i x = _mm256_blendv_epi8(u, one, narrow_is_nan(u));
    _mm_storeu_si128((void *)dst,
                     _mm256_cvtps_ph(_mm256_castsi256_ps(x), _MM_FROUND_TO_NEAREST_INT));
}

static inline void narrow_bf16(uint16_t *dst, __m256i u)
{
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    const __m256i h = _mm256_srli_epi32(_mm256_blendv_epi8(up, nan, narrow_is_nan(u)), 16);
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(h, h), 0x08);
    _mm_storeu_si128((void *)dst, _mm256_castsi256_si128(both));
}

static inline void narrow_bytes(void *dst, __m256i x) /* eight int32 of -128..255 that fit */
{
    const __m256i low = _mm256_and_si256(x, _mm256_set1_epi32(0xff));
    const __m256i h = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    _mm_storel_epi64(dst, _mm_packus_epi16(_mm256_castsi256_si128(h), _mm_setzero_si128()));
}

static inline void narrow_f8(uint8_t *dst, __m256i u)
{
    const __m256i a = narrow_abs(u);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(a, 20), _mm256_set1_epi32(1));
    const __m256i plain =
        _mm256_add_epi32(_mm256_add_epi32(a, _mm256_set1_epi32(0x7ffff - 0x3c000000)), odd);
    const __m256 low = _mm256_add_ps(_mm256_castsi256_ps(a), _mm256_set1_ps(16384.0f));
    const __m256i small = _mm256_sub_epi32(_mm256_castps_si256(low), _mm256_set1_epi32(0x46800000));
    __m256i code = _mm256_srli_epi32(plain, 20);
    code = _mm256_blendv_epi8(code, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3c800000), a));
    code = _mm256_blendv_epi8(code, _mm256_set1_epi32(0x7e),
                              _mm256_cmpgt_epi32(a, _mm256_set1_epi32(0x43e7ffff)));
    code = _mm256_blendv_epi8(code, _mm256_set1_epi32(0x7f), narrow_is_nan(u));
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(u, 24), _mm256_set1_epi32(0x80));
    narrow_bytes(dst, _mm256_or_si256(code, sign));
}

static inline __m256i narrow_load(const float *src, int n) /* n of eight, the others 0 */
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
    return _mm256_castps_si256(_mm256_maskload_ps(src, mask));
}

static inline uint32_t narrow_top(const float *src, int n) /* of the magnitudes, as bits */
{
    __m256i top = _mm256_setzero_si256();
    for (int i = 0; i < n; i += 8) {
        top = _mm256_max_epi32(top, narrow_abs(narrow_load(src + i, n - i)));
    }
    uint32_t lane[8], all = 0;
    _mm256_storeu_si256((void *)lane, top);
    for (int i = 0; i < 8; i++) {
        all = lane[i] > all ? lane[i] : all;
    }
    return all;
}

static inline float narrow_body(void *dst, enum kv_type type, const float *src, int n)
{
    const size_t width = kv_width(type);
    float by = 0.0f, scale = 1.0f;
    if (type == KV_Q8) {
        scale = kv_q8_scale(narrow_top(src, n), &by);
    }
    for (int i = 0; i < n; i += 8) {
        const __m256i u = narrow_load(src + i, n - i);
        char code[32];
        switch (type) {
        case KV_F32:
            _mm256_storeu_si256((void *)code, u);
            break;
        case KV_F16:
            narrow_f16((void *)code, u);
            break;
        case KV_BF16:
            narrow_bf16((void *)code, u);
            break;
        case KV_Q8: {
            const __m256 x = _mm256_mul_ps(_mm256_castsi256_ps(u), _mm256_set1_ps(by));
            narrow_bytes(code, by > 0.0f ? _mm256_cvtps_epi32(x) : _mm256_setzero_si256());
            break;
        }
        default:
            narrow_f8((void *)code, u);
            break;
        }
        memcpy((char *)dst + (size_t)i * width, code, (size_t)(n - i < 8 ? n - i : 8) * width);
    }
    return scale;
}

#endif
