/* qact_avx512.c - activation rows to int8 with AVX-512. */
#include "kernels/x86/v16_avx512.h"
#include "src/base/compiler.h"

static inline struct v16 bits_max(struct v16 a, struct v16 b)
{
    return (struct v16){ _mm512_castsi512_ps(
        _mm512_max_epi32(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v))) };
}

static inline int bits_fold(struct v16 a)
{
    return _mm512_reduce_max_epi32(_mm512_castps_si512(a.v));
}

static inline void codes_store(signed char *q, struct v16 a)
{
    _mm_storeu_si128((void *)q, _mm512_cvtepi32_epi8(_mm512_castps_si512(a.v)));
}

#include "kernels/x86/qact_body.h"

void qact_avx512(const struct qact_args *a)
{
    rows_quantise(a);
}
