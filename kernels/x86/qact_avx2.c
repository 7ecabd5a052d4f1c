/* qact_avx2.c - activation rows to int8 with AVX2. */
#include "kernels/x86/v16_avx2.h"
#include "src/base/compiler.h"

static inline struct v16 bits_max(struct v16 x, struct v16 y)
{
    return (struct v16){
        _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(x.a), _mm256_castps_si256(y.a))),
        _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(x.b), _mm256_castps_si256(y.b))),
    };
}

static inline int bits_fold(struct v16 x)
{
    const __m256i v = _mm256_max_epi32(_mm256_castps_si256(x.a), _mm256_castps_si256(x.b));
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return _mm_cvtsi128_si32(m);
}

static inline void codes_store(signed char *q, struct v16 x)
{
    /* The low byte of each lane, gathered in the first four bytes of each 16. */
    const __m256i low =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i a = _mm256_shuffle_epi8(_mm256_castps_si256(x.a), low);
    const __m256i b = _mm256_shuffle_epi8(_mm256_castps_si256(x.b), low);
    const __m128i a8 =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    const __m128i b8 =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
    _mm_storeu_si128((void *)q, _mm_unpacklo_epi64(a8, b8));
}

#include "kernels/x86/qact_body.h"

void qact_avx2(const struct qact_args *a)
{
    rows_quantise(a);
}
