/* qgemm_avx512.c - products of a panel with rows, by vpdpbusd.
 *
 * The K kind is in qk_body.h, but for IQ4_XS, whose dots are wide.  Here two vectors of columns
 * times six rows are twelve integer chains, enough for the latency of both ports, and twelve float
 * chains beside them: 27 registers with the operands. */
#include <immintrin.h>
#include <string.h>

#include "kernels/qwiden.h"
#include "kernels/x86/b64_avx512.h"
#include "kernels/x86/qrow_avx512.h"
#include "kernels/x86/qunpack_body.h"

#include "kernels/x86/qk_body.h" /* uses the one above */

#define ROWS_MAX 6

/* Weights are asked of memory as evenly as they will be used: a unit is fetched into L2 FAR_UNITS
 * before its turn, part of it while unpacking (for few rows most of the time goes there: SHARE_ONE,
 * SHARE_TWO of four lines with one and with two tiles of rows), the rest between the products.
 * All of it between the products, or another distance, costs 3 to 15 % of a pass with 1 to 12
 * rows (one thread of a Xeon, November 2026). */
#define FAR_UNITS 2
#define SHARE_ONE 3
#define SHARE_TWO 1
#define FAR_TILES 8 /* more tiles of rows give memory time enough */

struct span {
    const struct qgemm_panel *p;
    const int8_t *x;          /* [rows][QGEMM_K] */
    const union qact_meta *m; /* [rows] */
    float *acc;               /* [rows][QGEMM_NR] */
    int n;                    /* sub-blocks */
    __m512i shift;            /* codes are value + 2^shift */
    const uint8_t *far;       /* weights for look_ahead, a share for each sub-block */
    size_t far_bytes;
    size_t far_step; /* a line; as a constant it makes gcc 12 cost up to 5 % more */
};

/* What is read after sub-block j.  Rows that are few wait for weights: far ones into L2, evenly
 * over the products, while unpacking brings the next unit into L1.  Many rows wait for the next
 * rows, whose places no hardware guesses. */
static GALLEY_INLINE void look_ahead(const struct span *s, int j, const int R,
                                     const enum qgemm_form form)
{
    const uint8_t *far = s->far + (size_t)j * s->far_bytes;
    for (size_t i = 0; i < s->far_bytes; i += s->far_step) {
        GALLEY_PREFETCH_FAR(far + i);
    }
    if (R <= 3) {
        return;
    }
    GALLEY_UNROLL
    for (int l = 0; l < R / 2; l++) {
        GALLEY_PREFETCH(s->x + R * QGEMM_K + (j * (R / 2) + l) * 64);
    }
    if (j < R) {
        GALLEY_PREFETCH(&s->m[R + j]);
        if (form == QGEMM_K32) {
            GALLEY_PREFETCH(s->m[R + j].k.minus16);
        }
        GALLEY_PREFETCH(s->acc + (R + j) * QGEMM_NR);
        GALLEY_PREFETCH(s->acc + (R + j) * QGEMM_NR + 16);
    }
}

/* What takes the offset of the codes away again. */
static GALLEY_INLINE __m512i start_of(const struct span *s, int r, int j,
                                      const enum qgemm_form form)
{
    if (form == QGEMM_K32) { /* 128, of which meta has 32 */
        const int32_t *m = s->m[r].k.minus16 + 2 * j;
        return _mm512_slli_epi32(_mm512_set1_epi32(m[0] + m[1]), 2);
    }
    if (form == QGEMM_BLOCK) {
        return _mm512_sllv_epi32(_mm512_set1_epi32(s->m[r].block.minus32[j]), s->shift);
    }
    return _mm512_setzero_si512();
}

/* The exact dots of sub-block j, of 32; R and form are constants. */
static GALLEY_INLINE void dots(__m512i *a, const struct span *s, int j, const int R,
                               const enum qgemm_form form)
{
    GALLEY_UNROLL
    for (int r = 0; r < R; r++) {
        a[2 * r] = a[2 * r + 1] = start_of(s, r, j, form);
    }
    const uint8_t *code = s->p->code + (size_t)j * (8 * WORD_BYTES);
    const int8_t *x = s->x + j * 32;
    look_ahead(s, j, R, form);
    GALLEY_UNROLL
    for (int g = 0; g < 8; g++) {
        const __m512i w0 = _mm512_load_si512(code + g * WORD_BYTES);
        const __m512i w1 = _mm512_load_si512(code + g * WORD_BYTES + 64);
        GALLEY_UNROLL
        for (int r = 0; r < R; r++) {
            const __m512i v = four_codes(x + r * QGEMM_K + 4 * g);
            a[2 * r] = _mm512_dpbusd_epi32(a[2 * r], w0, v);
            a[2 * r + 1] = _mm512_dpbusd_epi32(a[2 * r + 1], w1, v);
        }
    }
}

/* IQ4_XS, whose dots are wide. */
static GALLEY_INLINE void rows_k32(const struct span *s, const int R)
{
    __m512 f[2 * ROWS_MAX];
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        f[i] = _mm512_setzero_ps();
    }
    for (int j = 0; j < 8; j++) {
        __m512i a[2 * ROWS_MAX];
        dots(a, s, j, R, QGEMM_K32);
        const __m512 w0 = _mm512_loadu_ps(s->p->scale[j]);
        const __m512 w1 = _mm512_loadu_ps(s->p->scale[j] + 16);
        GALLEY_UNROLL
        for (int r = 0; r < R; r++) {
            f[2 * r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[2 * r]), w0, f[2 * r]);
            f[2 * r + 1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[2 * r + 1]), w1, f[2 * r + 1]);
        }
    }
    GALLEY_UNROLL
    for (int h = 0; h < 2; h++) {
        GALLEY_UNROLL
        for (int r = 0; r < R; r++) {
            unit_add(s->acc + r * QGEMM_NR, f[2 * r + h], s->p, s->m + r, h, false, false);
        }
    }
}

static GALLEY_INLINE void rows_block(const struct span *s, const int R, const enum qgemm_form form)
{
    __m512 f[2 * ROWS_MAX];
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        f[i] = _mm512_load_ps(s->acc + 16 * i);
    }
    for (int j = 0; j < s->n; j++) {
        __m512i a[2 * ROWS_MAX];
        dots(a, s, j, R, form);
        GALLEY_UNROLL
        for (int h = 0; h < 2; h++) {
            const __m512 w = _mm512_loadu_ps(s->p->scale[j] + 16 * h);
            GALLEY_UNROLL
            for (int r = 0; r < R; r++) {
                const __m512 d = _mm512_mul_ps(w, _mm512_set1_ps(s->m[r].block.d[j]));
                __m512 *to = &f[2 * r + h];
                *to = _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[2 * r + h]), d, *to);
                if (form == QGEMM_BLOCK_MIN) {
                    *to = _mm512_fmadd_ps(_mm512_loadu_ps(s->p->min[j] + 16 * h),
                                          _mm512_set1_ps(s->m[r].block.sum[j]), *to);
                }
            }
        }
    }
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        _mm512_store_ps(s->acc + 16 * i, f[i]);
    }
}

static GALLEY_INLINE void rows_of(const struct span *s, const int R, const enum qgemm_form form)
{
    if (form == QGEMM_BLOCK || form == QGEMM_BLOCK_MIN) {
        rows_block(s, R, form);
    } else {
        rows_k32(s, R);
    }
}

#define FORM(name, form)                             \
    static void name(const struct span *s, int rows) \
    {                                                \
        switch (rows) {                              \
        case 1:                                      \
            rows_of(s, 1, form);                     \
            break;                                   \
        case 2:                                      \
            rows_of(s, 2, form);                     \
            break;                                   \
        case 3:                                      \
            rows_of(s, 3, form);                     \
            break;                                   \
        case 4:                                      \
            rows_of(s, 4, form);                     \
            break;                                   \
        case 5:                                      \
            rows_of(s, 5, form);                     \
            break;                                   \
        default:                                     \
            rows_of(s, 6, form);                     \
            break;                                   \
        }                                            \
    }
FORM(rows_wide, QGEMM_K32)
FORM(rows_blocks, QGEMM_BLOCK)
FORM(rows_blocks_min, QGEMM_BLOCK_MIN)

typedef void rows_fn(const struct span *s, int rows);

/* One unit at a place of x: n blocks of 32, or IQ4_XS with as many sub-blocks. */
static void unit_rows(const struct qgemm_tile *t, const uint8_t *unit, size_t at, int n)
{
    const enum qgemm_form form = qgemm_form_of(t->type);
    rows_fn *const fn = form == QGEMM_K32     ? rows_wide
                        : form == QGEMM_BLOCK ? rows_blocks
                                              : rows_blocks_min;
    const int n_tiles = (t->rows + ROWS_MAX - 1) / ROWS_MAX;
    const size_t bytes = qgemm_unit_bytes(t->type, form == QGEMM_K32 ? 1 : n);
    const struct ahead ahead = { bytes, unit + FAR_UNITS * bytes,
                                 n_tiles == 1   ? SHARE_ONE
                                 : n_tiles == 2 ? SHARE_TWO
                                                : 0 };
    const uint8_t *const far = unpack(t->panel, unit, t->type, n, ahead);
    const size_t left = (size_t)(ahead.far + bytes - far) / (size_t)n_tiles;
    struct span s = { .p = t->panel,
                      .x = t->x->code + at * QGEMM_K,
                      .m = t->x->meta + at,
                      .acc = t->acc,
                      .n = n,
                      .shift = _mm512_set1_epi32(qgemm_shift(t->type)),
                      .far = far,
                      .far_bytes = n_tiles > FAR_TILES ? 0 : left / (size_t)n,
                      .far_step = 64 };
    /* Rows are shared out evenly: 7 rows are 4 + 3, not 6 and a slow 1. */
    for (int i = 0, row = 0; i < n_tiles; i++) {
        const int rows = (t->rows - row + n_tiles - i - 1) / (n_tiles - i);
        fn(&s, rows);
        s.x += rows * QGEMM_K;
        s.m += rows;
        s.acc += rows * QGEMM_NR;
        s.far += left;
        row += rows;
    }
}

void qgemm_tile_avx512(const struct qgemm_tile *t)
{
    const int block = dtype_info(t->type)->block;
    const bool integers = block == QGEMM_K && t->type != DTYPE_IQ4_XS;
    const uint8_t *unit = t->w;
    memset(t->acc, 0, (size_t)t->rows * QGEMM_NR * sizeof(float));
    for (int u = 0, k = 0; k < t->n_in; u++, k += QGEMM_K) {
        const int n = (t->n_in - k < QGEMM_K ? t->n_in - k : QGEMM_K) / block;
        const size_t at = (size_t)u * (size_t)t->x->rows + (size_t)t->row0;
        if (integers) {
            k_unit(t, unit, at);
        } else {
            unit_rows(t, unit, at, block == QGEMM_K ? 8 : n);
        }
        unit += qgemm_unit_bytes(t->type, n);
    }
}

void qgemm_widen_avx512(float *dst, const void *w, enum dtype t, int n_blocks,
                        struct qgemm_panel *scratch)
{
    const size_t bytes = qgemm_unit_bytes(t, n_blocks);
    unpack(scratch, w, t, n_blocks,
           (struct ahead){ bytes, (const uint8_t *)w + FAR_UNITS * bytes, 4 });
    qwiden(dst, scratch, t, n_blocks);
}
