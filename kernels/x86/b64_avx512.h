/* b64_avx512.h - sixty-four bytes, or sixteen 32-bit lanes, as one register.
 *
 * The same names as b64_avx2.h, for qunpack_body.h. */
#ifndef GALLEY_KERNELS_B64_AVX512_H
#define GALLEY_KERNELS_B64_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "src/base/compiler.h"

struct b64 {
    __m512i v;
};

static GALLEY_INLINE struct b64 b64_set1(uint32_t x) /* in every 32-bit lane */
{
    return (struct b64){ _mm512_set1_epi32((int)x) };
}

static GALLEY_INLINE struct b64 b64_load(const void *p)
{
    return (struct b64){ _mm512_loadu_si512(p) };
}

static GALLEY_INLINE void b64_store(void *p, struct b64 a)
{
    _mm512_store_si512(p, a.v);
}

static GALLEY_INLINE struct b64 b64_and(struct b64 a, struct b64 b)
{
    return (struct b64){ _mm512_and_si512(a.v, b.v) };
}

static GALLEY_INLINE struct b64 b64_or(struct b64 a, struct b64 b)
{
    return (struct b64){ _mm512_or_si512(a.v, b.v) };
}

/* a | (b & mask) */
static GALLEY_INLINE struct b64 b64_or_and(struct b64 a, struct b64 b, struct b64 mask)
{
    return (struct b64){ _mm512_ternarylogic_epi32(a.v, b.v, mask.v, 0xf8) };
}

/* Shifts of 32-bit lanes; n below 0 goes left. */
static GALLEY_INLINE struct b64 b64_right(struct b64 a, const int n)
{
    return (struct b64){ n > 0   ? _mm512_srli_epi32(a.v, (unsigned)n)
                         : n < 0 ? _mm512_slli_epi32(a.v, (unsigned)-n)
                                 : a.v };
}

static GALLEY_INLINE struct b64 b64_right_signed(struct b64 a, const int n)
{
    return (struct b64){ _mm512_srai_epi32(a.v, (unsigned)n) };
}

static GALLEY_INLINE struct b64 b64_sub32(struct b64 a, struct b64 b)
{
    return (struct b64){ _mm512_sub_epi32(a.v, b.v) };
}

/* Sixteen bytes, four times. */
static GALLEY_INLINE struct b64 b64_table(const void *p)
{
    return (struct b64){ _mm512_broadcast_i32x4(_mm_loadu_si128(p)) };
}

/* Each byte (0..15) looked up in the table. */
static GALLEY_INLINE struct b64 b64_lookup(struct b64 table, struct b64 i)
{
    return (struct b64){ _mm512_shuffle_epi8(table.v, i.v) };
}

/* 16 integers as f32. */
static GALLEY_INLINE void b64_store_float(float *p, struct b64 a)
{
    _mm512_storeu_ps(p, _mm512_cvtepi32_ps(a.v));
}

/* 16 integers as int16, each with a 0 beside: what vpdpwssd multiplies the low halves of dots by.
 */
static GALLEY_INLINE void b64_store_factor(void *p, struct b64 a)
{
    _mm512_storeu_si512(p, _mm512_and_si512(a.v, _mm512_set1_epi32(0xffff)));
}

/* 16 f16s as f32. */
static GALLEY_INLINE void b64_halves(float *p, const void *src)
{
    _mm512_storeu_ps(p, _mm512_cvtph_ps(_mm256_loadu_si256(src)));
}

static GALLEY_INLINE struct b64 b64_from_u16(const void *p)
{
    return (struct b64){ _mm512_cvtepu16_epi32(_mm256_loadu_si256(p)) };
}

/* 16 exponents e as the f32 2^(e - 128), the two smallest being subnormal. */
static GALLEY_INLINE void b64_exponents(float *p, const void *src)
{
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(src));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    const __mmask16 m = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    _mm512_storeu_si512(p, _mm512_mask_mov_epi32(normal, m, tiny));
}

#endif
