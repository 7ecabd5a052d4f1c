/* b64_avx2.h - sixty-four bytes, or sixteen 32-bit lanes, as two registers; see b64_avx512.h. */
#ifndef GALLEY_KERNELS_B64_AVX2_H
#define GALLEY_KERNELS_B64_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "src/base/compiler.h"

struct b64 {
    __m256i a, b;
};

static GALLEY_INLINE struct b64 b64_set1(uint32_t x)
{
    const __m256i v = _mm256_set1_epi32((int)x);
    return (struct b64){ v, v };
}

static GALLEY_INLINE struct b64 b64_load(const void *p)
{
    const __m256i *q = p;
    return (struct b64){ _mm256_loadu_si256(q), _mm256_loadu_si256(q + 1) };
}

static GALLEY_INLINE void b64_store(void *p, struct b64 x)
{
    __m256i *q = p;
    _mm256_storeu_si256(q, x.a);
    _mm256_storeu_si256(q + 1, x.b);
}

static GALLEY_INLINE struct b64 b64_and(struct b64 x, struct b64 y)
{
    return (struct b64){ _mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b) };
}

static GALLEY_INLINE struct b64 b64_or(struct b64 x, struct b64 y)
{
    return (struct b64){ _mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b) };
}

static GALLEY_INLINE struct b64 b64_or_and(struct b64 x, struct b64 y, struct b64 mask)
{
    return b64_or(x, b64_and(y, mask));
}

static GALLEY_INLINE struct b64 b64_right(struct b64 x, const int n)
{
    if (n > 0) {
        return (struct b64){ _mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n) };
    }
    if (n < 0) {
        return (struct b64){ _mm256_slli_epi32(x.a, -n), _mm256_slli_epi32(x.b, -n) };
    }
    return x;
}

static GALLEY_INLINE struct b64 b64_right_signed(struct b64 x, const int n)
{
    return (struct b64){ _mm256_srai_epi32(x.a, n), _mm256_srai_epi32(x.b, n) };
}

static GALLEY_INLINE struct b64 b64_sub32(struct b64 x, struct b64 y)
{
    return (struct b64){ _mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b) };
}

static GALLEY_INLINE struct b64 b64_table(const void *p)
{
    const __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
    return (struct b64){ v, v };
}

static GALLEY_INLINE struct b64 b64_lookup(struct b64 table, struct b64 i)
{
    return (struct b64){ _mm256_shuffle_epi8(table.a, i.a), _mm256_shuffle_epi8(table.b, i.b) };
}

static GALLEY_INLINE void b64_store_float(float *p, struct b64 x)
{
    _mm256_storeu_ps(p, _mm256_cvtepi32_ps(x.a));
    _mm256_storeu_ps(p + 8, _mm256_cvtepi32_ps(x.b));
}

/* 16 integers as pairs of the same int16: what vpmaddwd multiplies pairs of products by. */
static GALLEY_INLINE void b64_store_factor(void *p, struct b64 x)
{
    __m256i *q = p;
    _mm256_storeu_si256(q, _mm256_blend_epi16(_mm256_slli_epi32(x.a, 16), x.a, 0x55));
    _mm256_storeu_si256(q + 1, _mm256_blend_epi16(_mm256_slli_epi32(x.b, 16), x.b, 0x55));
}

static GALLEY_INLINE void b64_halves(float *p, const void *src)
{
    const __m128i *q = src;
    _mm256_storeu_ps(p, _mm256_cvtph_ps(_mm_loadu_si128(q)));
    _mm256_storeu_ps(p + 8, _mm256_cvtph_ps(_mm_loadu_si128(q + 1)));
}

static GALLEY_INLINE struct b64 b64_from_u16(const void *p)
{
    const __m128i *q = p;
    return (struct b64){ _mm256_cvtepu16_epi32(_mm_loadu_si128(q)),
                         _mm256_cvtepu16_epi32(_mm_loadu_si128(q + 1)) };
}

static GALLEY_INLINE __m256i b64_exponents_8(__m256i e)
{
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e));
}

static GALLEY_INLINE void b64_exponents(float *p, const void *src)
{
    const __m128i bytes = _mm_loadu_si128(src);
    __m256i *q = (void *)p;
    _mm256_storeu_si256(q, b64_exponents_8(_mm256_cvtepu8_epi32(bytes)));
    _mm256_storeu_si256(q + 1, b64_exponents_8(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))));
}

#endif
