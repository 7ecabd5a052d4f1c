/* v16_avx512.h - sixteen f32 lanes as one register.
 *
 * The same names as v16_avx2.h, so that a kernel body (*_body.h) is written once and
 * compiled per instruction set.  Each name is one rounding: bodies read like the order
 * written in the contract headers. */
#ifndef GALLEY_KERNELS_V16_AVX512_H
#define GALLEY_KERNELS_V16_AVX512_H

#include <immintrin.h>
#include <stddef.h>

#include "kernels/x86/f8_x86.h"

struct v16 {
    __m512 v;
};

static inline __mmask16 lanes_below(size_t n) /* lanes 0..n-1; n may exceed 16 */
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

static inline struct v16 v16_set1(float x)
{
    return (struct v16){ _mm512_set1_ps(x) };
}

static inline struct v16 v16_load(const float *p)
{
    return (struct v16){ _mm512_loadu_ps(p) };
}

/* The first n lanes (more than 16 is 16); the others are 0 and their memory is not read. */
static inline struct v16 v16_load_n(const float *p, size_t n)
{
    return (struct v16){ _mm512_maskz_loadu_ps(lanes_below(n), p) };
}

static inline void v16_store(float *p, struct v16 a)
{
    _mm512_storeu_ps(p, a.v);
}

static inline void v16_store_n(float *p, struct v16 a, size_t n)
{
    _mm512_mask_storeu_ps(p, lanes_below(n), a.v);
}

static inline struct v16 v16_add(struct v16 a, struct v16 b)
{
    return (struct v16){ _mm512_add_ps(a.v, b.v) };
}

static inline struct v16 v16_sub(struct v16 a, struct v16 b)
{
    return (struct v16){ _mm512_sub_ps(a.v, b.v) };
}

static inline struct v16 v16_mul(struct v16 a, struct v16 b)
{
    return (struct v16){ _mm512_mul_ps(a.v, b.v) };
}

static inline struct v16 v16_div(struct v16 a, struct v16 b)
{
    return (struct v16){ _mm512_div_ps(a.v, b.v) };
}

static inline struct v16 v16_fma(struct v16 a, struct v16 b, struct v16 c) /* a b + c */
{
    return (struct v16){ _mm512_fmadd_ps(a.v, b.v, c.v) };
}

/* a > b ? a : b, so b wins when either is NaN */
static inline struct v16 v16_max(struct v16 a, struct v16 b)
{
    return (struct v16){ _mm512_max_ps(a.v, b.v) };
}

static inline struct v16 v16_min(struct v16 a, struct v16 b)
{
    return (struct v16){ _mm512_min_ps(a.v, b.v) };
}

static inline struct v16 v16_abs(struct v16 a)
{
    return (struct v16){ _mm512_abs_ps(a.v) };
}

/* |a| with b's sign */
static inline struct v16 v16_sign_of(struct v16 a, struct v16 b)
{
    const __m512i sign = _mm512_set1_epi32((int)0x80000000);
    /* 0xca: where sign is set take b, else a */
    return (struct v16){ _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        sign, _mm512_castps_si512(b.v), _mm512_castps_si512(a.v), 0xca)) };
}

/* x <= limit ? a : b */
static inline struct v16 v16_if_le(struct v16 x, struct v16 limit, struct v16 a, struct v16 b)
{
    return (
        struct v16){ _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, limit.v, _CMP_LE_OQ), b.v, a.v) };
}

/* Lanes n.. become fill. */
static inline struct v16 v16_first(struct v16 a, size_t n, struct v16 fill)
{
    return (struct v16){ _mm512_mask_blend_ps(lanes_below(n), fill.v, a.v) };
}

/* a * 2^n, n the integer that adding EXP_MAGIC left in t's low bits, in two steps. */
static inline struct v16 v16_scale2(struct v16 a, struct v16 t, float magic)
{
    const __m512i n =
        _mm512_sub_epi32(_mm512_castps_si512(t.v), _mm512_castps_si512(_mm512_set1_ps(magic)));
    const __m512i half = _mm512_srai_epi32(n, 1);
    const __m512i one = _mm512_set1_epi32(127);
    const __m512i s0 = _mm512_slli_epi32(_mm512_add_epi32(half, one), 23);
    const __m512i s1 = _mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(n, half), one), 23);
    return (struct v16){ _mm512_mul_ps(_mm512_mul_ps(a.v, _mm512_castsi512_ps(s0)),
                                       _mm512_castsi512_ps(s1)) };
}

/* The power of two whose biased exponent is t's low byte (attn.h). */
static inline struct v16 v16_power(struct v16 t)
{
    return (struct v16){ _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(t.v), 23)) };
}

/* Lanes from..to-1 of a, the others fill. */
static inline struct v16 v16_between(struct v16 a, size_t from, size_t to, struct v16 fill)
{
    const __mmask16 m = (__mmask16)(lanes_below(to) & ~lanes_below(from));
    return (struct v16){ _mm512_mask_blend_ps(m, fill.v, a.v) };
}

/* The lane whose value equals x, lowest first; 16 when none. */
static inline int v16_find(struct v16 a, float x)
{
    const unsigned m = _mm512_cmp_ps_mask(a.v, _mm512_set1_ps(x), _CMP_EQ_OQ);
    return m ? __builtin_ctz(m) : 16;
}

/* Lanes 1 0 3 2 5 4 ... */
static inline struct v16 v16_swap(struct v16 a)
{
    return (struct v16){ _mm512_permute_ps(a.v, 0xb1) };
}

/* Even lanes of a, odd lanes of b. */
static inline struct v16 v16_even_odd(struct v16 a, struct v16 b)
{
    return (struct v16){ _mm512_mask_blend_ps((__mmask16)0xaaaa, a.v, b.v) };
}

/* p[0] p[0] p[1] p[1] ... of the first n (more than 8 is 8); the others are 0. */
static inline struct v16 v16_twice(const float *p, size_t n)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512 v = _mm512_maskz_loadu_ps(lanes_below(n > 8 ? 8 : n), p);
    return (struct v16){ _mm512_permutexvar_ps(twice, v) };
}

static inline __m256 v16_low(struct v16 a)
{
    return _mm512_castps512_ps256(a.v);
}

static inline __m256 v16_high(struct v16 a)
{
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
}

static inline struct v16 v16_from_f16(const void *p)
{
    return (struct v16){ _mm512_cvtph_ps(_mm256_loadu_si256(p)) };
}

static inline struct v16 v16_from_bf16(const void *p)
{
    return (struct v16){ _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16)) };
}

static inline struct v16 v16_from_i8(const void *p)
{
    return (struct v16){ _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p))) };
}

static inline struct v16 v16_from_f8(const void *p)
{
    return (struct v16){ _mm512_mul_ps(_mm512_cvtph_ps(f8_to_f16_16(p)), _mm512_set1_ps(256.0f)) };
}

/* Sixteen pairs of bf16 (gemm.h): the low halves are lanes 0..15, the high ones 16..31. */
static inline void v16_unpair(const void *p, struct v16 *low, struct v16 *high)
{
    const __m512i w = _mm512_loadu_si512(p);
    low->v = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
    high->v = _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)));
}

#include "kernels/x86/v16_fold.h"

#endif
