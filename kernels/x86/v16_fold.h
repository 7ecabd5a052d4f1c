/* v16_fold.h - sixteen lanes to one, given v16_low and v16_high.  Included by v16_*.h. */
#ifndef GALLEY_KERNELS_V16_FOLD_H
#define GALLEY_KERNELS_V16_FOLD_H

/* tree of norm.h: lanes i and i + 8, then + 4, + 2, + 1 */
static inline float v16_sum(struct v16 a)
{
    const __m256 e = _mm256_add_ps(v16_low(a), v16_high(a));
    const __m128 q = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}

static inline float v16_top(struct v16 a) /* the largest lane: order is free */
{
    const __m256 e = _mm256_max_ps(v16_low(a), v16_high(a));
    const __m128 q = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

#endif
