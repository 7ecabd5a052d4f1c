/* qrow_avx512.h - what the products of qgemm_avx512.c do for one row. */
#ifndef GALLEY_KERNELS_QROW_AVX512_H
#define GALLEY_KERNELS_QROW_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/qgemm.h"
#include "src/base/compiler.h"

static GALLEY_INLINE __m512i four_codes(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, 4);
    return _mm512_set1_epi32(v);
}

/* The exact sum of minima times sums of codes; h: which half of the columns. */
static GALLEY_INLINE __m512i min_sum(const struct qgemm_panel *p, const union qact_meta *m, int h,
                                     const bool of16)
{
    const int n_pairs = of16 ? 8 : 4;
    __m512i sum = _mm512_setzero_si512();
    GALLEY_UNROLL
    for (int i = 0; i < n_pairs; i++) {
        int32_t v;
        memcpy(&v, of16 ? m->k.pair16[i] : m->k.pair32[i], 4);
        sum =
            _mm512_dpwssd_epi32(sum, _mm512_loadu_si512(p->pair[i] + 16 * h), _mm512_set1_epi32(v));
    }
    return sum;
}

/* A unit of the K kind, whose scaled dots sum to s, is added to acc [QGEMM_NR]. */
static GALLEY_INLINE void unit_add(float *acc, __m512 s, const struct qgemm_panel *p,
                                   const union qact_meta *m, int h, const bool min, const bool of16)
{
    const __m512 xd = _mm512_set1_ps(m->k.d);
    const __m512 d = _mm512_mul_ps(_mm512_loadu_ps(p->d + 16 * h), xd);
    __m512 y = _mm512_fmadd_ps(s, d, _mm512_load_ps(acc + 16 * h));
    if (min) {
        const __m512 dmin = _mm512_mul_ps(_mm512_loadu_ps(p->dmin + 16 * h), xd);
        y = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(min_sum(p, m, h, of16)), dmin, y);
    }
    _mm512_store_ps(acc + 16 * h, y);
}

/* Weights asked for between products: lines from far on, evenly over all sub-blocks and tiles, and
 * as many from near on into L1 if it is not NULL. */
struct lines {
    const uint8_t *far, *near;
    uint32_t each; /* for a sub-block, times 2^16 */
    bool pages;    /* far ones in turn from LINES_PAGES pages of 4 KiB */
};

#define LINES_PAGES 4 /* a power of two */

/* `each` that makes those bytes in n_sub sub-blocks. */
static GALLEY_INLINE uint32_t lines_each(size_t bytes, uint32_t n_sub)
{
    return ((uint32_t)(bytes / 64) << 16) / n_sub + 1;
}

/* For the i-th sub-block. */
static GALLEY_INLINE void lines_ask(const struct lines *l, uint32_t i)
{
    const uint32_t end = (i + 1) * l->each >> 16;
    for (uint32_t k = i * l->each >> 16; k < end; k++) {
        uintptr_t far = (uintptr_t)l->far / 64 + k;
        if (l->near) {
            GALLEY_PREFETCH(l->near + (size_t)k * 64);
        }
        if (l->pages) {
            const uintptr_t page = far % LINES_PAGES, line = far / LINES_PAGES % 64;
            far = far / (64 * LINES_PAGES) * (64 * LINES_PAGES) + page * 64 + line;
        }
        GALLEY_PREFETCH_FAR((const void *)(far * 64));
    }
}

#endif
