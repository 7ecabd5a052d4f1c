/* v16_avx2.h - sixteen f32 lanes as two registers; see v16_avx512.h. */
#ifndef GALLEY_KERNELS_V16_AVX2_H
#define GALLEY_KERNELS_V16_AVX2_H

#include <immintrin.h>
#include <stddef.h>

#include "kernels/x86/f8_x86.h"

struct v16 {
    __m256 a, b; /* lanes 0..7 and 8..15 */
};

static inline __m256i lanes8_below(long n) /* lanes 0..n-1; n may be negative or exceed 8 */
{
    const int m = n < 0 ? 0 : n > 8 ? 8 : (int)n;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(m), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline struct v16 v16_set1(float x)
{
    const __m256 v = _mm256_set1_ps(x);
    return (struct v16){ v, v };
}

static inline struct v16 v16_load(const float *p)
{
    return (struct v16){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}

static inline struct v16 v16_load_n(const float *p, size_t n)
{
    if (n >= 16) {
        return v16_load(p);
    }
    const __m256i ma = lanes8_below((long)n), mb = lanes8_below((long)n - 8);
    return (struct v16){ _mm256_maskload_ps(p, ma), _mm256_maskload_ps(p + 8, mb) };
}

static inline void v16_store(float *p, struct v16 x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}

static inline void v16_store_n(float *p, struct v16 x, size_t n)
{
    if (n >= 16) {
        v16_store(p, x);
        return;
    }
    _mm256_maskstore_ps(p, lanes8_below((long)n), x.a);
    _mm256_maskstore_ps(p + 8, lanes8_below((long)n - 8), x.b);
}

static inline struct v16 v16_add(struct v16 x, struct v16 y)
{
    return (struct v16){ _mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b) };
}

static inline struct v16 v16_sub(struct v16 x, struct v16 y)
{
    return (struct v16){ _mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b) };
}

static inline struct v16 v16_mul(struct v16 x, struct v16 y)
{
    return (struct v16){ _mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b) };
}

static inline struct v16 v16_div(struct v16 x, struct v16 y)
{
    return (struct v16){ _mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b) };
}

static inline struct v16 v16_fma(struct v16 x, struct v16 y, struct v16 z)
{
    return (struct v16){ _mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b) };
}

static inline struct v16 v16_max(struct v16 x, struct v16 y)
{
    return (struct v16){ _mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b) };
}

static inline struct v16 v16_min(struct v16 x, struct v16 y)
{
    return (struct v16){ _mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b) };
}

static inline struct v16 v16_abs(struct v16 x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (struct v16){ _mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b) };
}

static inline struct v16 v16_sign_of(struct v16 x, struct v16 y)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const struct v16 abs = v16_abs(x);
    return (struct v16){ _mm256_or_ps(abs.a, _mm256_and_ps(sign, y.a)),
                         _mm256_or_ps(abs.b, _mm256_and_ps(sign, y.b)) };
}

static inline struct v16 v16_if_le(struct v16 x, struct v16 limit, struct v16 y, struct v16 z)
{
    return (struct v16){ _mm256_blendv_ps(z.a, y.a, _mm256_cmp_ps(x.a, limit.a, _CMP_LE_OQ)),
                         _mm256_blendv_ps(z.b, y.b, _mm256_cmp_ps(x.b, limit.b, _CMP_LE_OQ)) };
}

static inline struct v16 v16_first(struct v16 x, size_t n, struct v16 fill)
{
    const __m256 ma = _mm256_castsi256_ps(lanes8_below((long)n));
    const __m256 mb = _mm256_castsi256_ps(lanes8_below((long)n - 8));
    return (struct v16){ _mm256_blendv_ps(fill.a, x.a, ma), _mm256_blendv_ps(fill.b, x.b, mb) };
}

static inline __m256 scale2_8(__m256 x, __m256 t, float magic)
{
    const __m256i n =
        _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(magic)));
    const __m256i half = _mm256_srai_epi32(n, 1);
    const __m256i one = _mm256_set1_epi32(127);
    const __m256i s0 = _mm256_slli_epi32(_mm256_add_epi32(half, one), 23);
    const __m256i s1 = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), one), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(s0)), _mm256_castsi256_ps(s1));
}

static inline struct v16 v16_scale2(struct v16 x, struct v16 t, float magic)
{
    return (struct v16){ scale2_8(x.a, t.a, magic), scale2_8(x.b, t.b, magic) };
}

static inline struct v16 v16_power(struct v16 t)
{
    return (struct v16){
        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t.a), 23)),
        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t.b), 23)),
    };
}

static inline struct v16 v16_between(struct v16 x, size_t from, size_t to, struct v16 fill)
{
    return v16_first(v16_first(fill, from, x), to, fill);
}

static inline int v16_find(struct v16 x, float value)
{
    const __m256 v = _mm256_set1_ps(value);
    const unsigned a = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.a, v, _CMP_EQ_OQ));
    const unsigned b = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.b, v, _CMP_EQ_OQ));
    const unsigned m = a | b << 8;
    return m ? __builtin_ctz(m) : 16;
}

static inline struct v16 v16_swap(struct v16 x)
{
    return (struct v16){ _mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1) };
}

static inline struct v16 v16_even_odd(struct v16 x, struct v16 y)
{
    return (struct v16){ _mm256_blend_ps(x.a, y.a, 0xaa), _mm256_blend_ps(x.b, y.b, 0xaa) };
}

static inline struct v16 v16_twice(const float *p, size_t n)
{
    const __m256 v = n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, lanes8_below((long)n));
    const __m256 low = _mm256_unpacklo_ps(v, v);  /* 0 0 1 1 | 4 4 5 5 */
    const __m256 high = _mm256_unpackhi_ps(v, v); /* 2 2 3 3 | 6 6 7 7 */
    return (struct v16){ _mm256_permute2f128_ps(low, high, 0x20),
                         _mm256_permute2f128_ps(low, high, 0x31) };
}

static inline __m256 v16_low(struct v16 x)
{
    return x.a;
}

static inline __m256 v16_high(struct v16 x)
{
    return x.b;
}

static inline __m256 from_f16_8(const char *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline __m256 from_bf16_8(const char *p)
{
    const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

static inline struct v16 v16_from_f16(const void *p)
{
    return (struct v16){ from_f16_8(p), from_f16_8((const char *)p + 16) };
}

static inline struct v16 v16_from_bf16(const void *p)
{
    return (struct v16){ from_bf16_8(p), from_bf16_8((const char *)p + 16) };
}

static inline __m256 from_i8_8(const char *p)
{
    const __m128i c = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(c));
}

static inline struct v16 v16_from_i8(const void *p)
{
    return (struct v16){ from_i8_8(p), from_i8_8((const char *)p + 8) };
}

static inline struct v16 v16_from_f8(const void *p)
{
    const __m256i h = f8_to_f16_16(p);
    const __m256 by = _mm256_set1_ps(256.0f);
    return (struct v16){ _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(h)), by),
                         _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(h, 1)), by) };
}

static inline void unpair_8(const char *p, __m256 *low, __m256 *high)
{
    const __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)p);
    *low = _mm256_castsi256_ps(_mm256_slli_epi32(w, 16));
    *high = _mm256_castsi256_ps(_mm256_and_si256(w, _mm256_set1_epi32((int)0xffff0000)));
}

static inline void v16_unpair(const void *p, struct v16 *low, struct v16 *high)
{
    unpair_8(p, &low->a, &high->a);
    unpair_8((const char *)p + 32, &low->b, &high->b);
}

#include "kernels/x86/v16_fold.h"

#endif
