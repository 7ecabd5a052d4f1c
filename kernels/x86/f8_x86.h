/* f8_x86.h - sixteen E4M3 codes as f16 of a 256th of their value. */
#ifndef GALLEY_KERNELS_F8_X86_H
#define GALLEY_KERNELS_F8_X86_H

#include <immintrin.h>

/* The fields of E4M3 moved to those of f16, whose bias is 8 larger: subnormals come along.  Only
 * NaN (all of exponent and fraction set) is not a number there yet. */
static inline __m256i f8_to_f16_16(const void *p)
{
    const __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
    const __m256i low = _mm256_and_si256(x, _mm256_set1_epi16(0x7f));
    const __m256i nan = _mm256_cmpeq_epi16(low, _mm256_set1_epi16(0x7f));
    const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0x80)), 8);
    const __m256i h = _mm256_or_si256(sign, _mm256_slli_epi16(low, 7));
    return _mm256_or_si256(h, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
}

#endif
