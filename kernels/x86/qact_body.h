/* qact_body.h - quantised activation rows over sixteen lanes; see qgemm.h.
 *
 * Included after a v16_*.h, bits_max (lane-wise maximum of magnitudes, as integers, so that
 * infinities and NaNs come out on top), bits_fold (the largest lane) and codes_store (the low byte
 * of each lane, which is the code once ROUNDER has been added). */
#include <string.h>

#include "kernels/qgemm.h"

#define ROUNDER  12582912.0f /* 1.5 * 2^23: adding it rounds to an integer, ties to even */
#define INF_BITS 0x7f800000

static inline float float_of(int32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* Bits of the largest magnitude among n (a multiple of 16). */
static GALLEY_INLINE int32_t magnitude(const float *x, int n)
{
    struct v16 m = v16_abs(v16_load(x));
    for (int i = 16; i < n; i += 16) {
        m = bits_max(m, v16_abs(v16_load(x + i)));
    }
    return bits_fold(m);
}

static GALLEY_INLINE void codes(int8_t *q, const float *x, int n, float inverse)
{
    const struct v16 by = v16_set1(inverse), top = v16_set1(127.0f), rounder = v16_set1(ROUNDER);
    for (int i = 0; i < n; i += 16) {
        const struct v16 v = v16_min(v16_mul(v16_load(x + i), by), top);
        codes_store(q + i, v16_add(v, rounder));
    }
}

/* Sums of codes 0..15 and 16..31. */
static GALLEY_INLINE void sums_of(int sum[2], __m256i v)
{
    const __m256i two = _mm256_maddubs_epi16(_mm256_set1_epi8(1), v);
    const __m256i four = _mm256_madd_epi16(two, _mm256_set1_epi16(1));
    const __m256i eight = _mm256_add_epi32(four, _mm256_shuffle_epi32(four, 0x4e));
    const __m256i all = _mm256_add_epi32(eight, _mm256_shuffle_epi32(eight, 0xb1));
    sum[0] = _mm_cvtsi128_si32(_mm256_castsi256_si128(all));
    sum[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(all, 1));
}

static GALLEY_INLINE void sums(int sum[2], const int8_t *q)
{
    sums_of(sum, _mm256_loadu_si256((const void *)q));
}

/* Widens the reach of m by 32 codes of that sum: the part above 0, or below, is half of the sum of
 * magnitudes and the magnitude of the sum. */
static GALLEY_INLINE void reach_add(union qact_meta *m, const int8_t *q, int sum)
{
    int size[2];
    sums_of(size, _mm256_abs_epi8(_mm256_loadu_si256((const void *)q)));
    const int more = size[0] > size[1] ? size[0] : size[1];
    const int side = (size[0] + size[1] + (sum < 0 ? -sum : sum)) / 2;
    m->k.reach16 = more > m->k.reach16 ? more : m->k.reach16;
    m->k.reach32 = side > m->k.reach32 ? side : m->k.reach32;
}

/* The first element of that magnitude, with its sign. */
static GALLEY_INLINE float first_of(const float *x, float size)
{
    for (int i = 0; i < QGEMM_K; i += 16) {
        const int at = v16_find(v16_abs(v16_load(x + i)), size);
        if (at < 16) {
            return x[i + at];
        }
    }
    return 0.0f;
}

static void block_k(int8_t *q, union qact_meta *m, const float *x)
{
    const int32_t bits = magnitude(x, QGEMM_K);
    const float inverse = bits < INF_BITS ? -127.0f / first_of(x, float_of(bits)) : 0.0f;
    const bool fine = bits < INF_BITS && inverse - inverse == 0.0f;
    if (fine) {
        codes(q, x, QGEMM_K, inverse);
    } else {
        memset(q, 0, QGEMM_K);
    }
    m->k.d = fine ? 1.0f / inverse : bits < INF_BITS ? 0.0f : float_of(0x7fc00000);
    m->k.reach32 = m->k.reach16 = 0;
    for (int i = 0; i < 8; i++) {
        int sum[2];
        sums(sum, q + 32 * i);
        reach_add(m, q + 32 * i, sum[0] + sum[1]);
        for (int k = 2 * i; k < 2 * i + 2; k++) {
            m->k.minus16[k] = -32 * sum[k % 2];
            m->k.pair16[k / 4 * 2 + k % 2][k % 4 / 2] = (int16_t)sum[k % 2];
        }
        m->k.pair32[i / 4 * 2 + i % 2][i % 4 / 2] = (int16_t)(sum[0] + sum[1]);
    }
}

static GALLEY_INLINE void block_32(int8_t *q, union qact_meta *m, int b, const float *x)
{
    const int32_t bits = magnitude(x, 32);
    const float size = float_of(bits), inverse = bits < INF_BITS ? 127.0f / size : 0.0f;
    const bool fine = bits < INF_BITS && inverse - inverse == 0.0f;
    if (fine) {
        codes(q, x, 32, inverse);
    } else {
        memset(q, 0, 32);
    }
    int sum[2];
    sums(sum, q);
    const float d = fine              ? _cvtsh_ss(_cvtss_sh(size / 127.0f, 0))
                    : bits < INF_BITS ? 0.0f
                                      : float_of(0x7fc00000);
    m->block.d[b] = d;
    m->block.minus32[b] = -(sum[0] + sum[1]);
    m->block.sum[b] = d * (float)(sum[0] + sum[1]);
}

static GALLEY_INLINE void rows_quantise(const struct qact_args *a)
{
    for (int r = a->r0; r < a->r0 + a->n; r++) {
        const float *x = a->x + (size_t)r * a->x_ld;
        for (int u = 0, k = 0; k < a->n_in; u++, k += QGEMM_K) {
            const size_t at = (size_t)u * (size_t)a->a->rows + (size_t)r;
            int8_t *q = a->a->code + at * QGEMM_K;
            if (a->kind == QACT_K) {
                block_k(q, a->a->meta + at, x + k);
                continue;
            }
            const int n = (a->n_in - k < QGEMM_K ? a->n_in - k : QGEMM_K) / 32;
            for (int b = 0; b < n; b++) {
                block_32(q + 32 * b, a->a->meta + at, b, x + k + 32 * b);
            }
        }
    }
}
