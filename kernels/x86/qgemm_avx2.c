/* qgemm_avx2.c - products of a panel with up to three rows at once, by maddubs.
 *
 * maddubs adds two products in a saturating int16: two codes below 64 times 127 fit even when two
 * results are added, two of 128 just fit alone.  Codes with the offset 128 reach 255, so their
 * sign goes to the activation instead and their magnitude is multiplied; integers stay exact.  In
 * the K kind vpmaddwd, which makes int32 of those int16, multiplies by the sub-block's scale. */
#include <immintrin.h>
#include <string.h>

#include "kernels/qwiden.h"
#include "kernels/x86/b64_avx2.h"
#include "kernels/x86/qunpack_body.h"

#define ROWS_MAX  3
#define FAR_UNITS 2 /* ahead into L2 */

struct span {
    const struct qgemm_panel *p;
    const int8_t *x;          /* [rows][QGEMM_K] */
    const union qact_meta *m; /* [rows] */
    float *acc;               /* [rows][QGEMM_NR] */
    int n;                    /* sub-blocks */
    int at;                   /* first of the sixteen columns */
    int shift;                /* codes are value + 2^shift */
};

static GALLEY_INLINE __m256i four_codes(const int8_t *x)
{
    int32_t v;
    memcpy(&v, x, 4);
    return _mm256_set1_epi32(v);
}

/* Sums of two products of the signed weights behind w, as int16. */
static GALLEY_INLINE __m256i pairs_signed(__m256i w, __m256i x)
{
    w = _mm256_xor_si256(w, _mm256_set1_epi8((char)0x80));
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

/* Eight columns at w and the next four k of them, times the codes v0 and v1: as int16 pairs. */
static GALLEY_INLINE __m256i pairs_of(__m256i w0, __m256i w1, __m256i v0, __m256i v1)
{
    return _mm256_add_epi16(_mm256_maddubs_epi16(w0, v0), _mm256_maddubs_epi16(w1, v1));
}

/* The exact dots of sub-block j, of 32; R, form and wide (offset 128) are constants. */
static GALLEY_INLINE void dots(__m256i *a, const struct span *s, int j, const int R,
                               const enum qgemm_form form, const bool wide)
{
    const __m256i ones = _mm256_set1_epi16(1);
    GALLEY_UNROLL
    for (int r = 0; r < R; r++) {
        const int from = form == QGEMM_BLOCK && !wide ? s->m[r].block.minus32[j] : 0;
        a[2 * r] = a[2 * r + 1] = _mm256_set1_epi32(from * (1 << s->shift));
    }
    const uint8_t *code = s->p->code + (size_t)j * (8 * WORD_BYTES) + 4 * (size_t)s->at;
    const int8_t *x = s->x + j * 32;
    for (int g = 0; g < 8; g += 2) {
        __m256i w[4];
        GALLEY_UNROLL
        for (int i = 0; i < 4; i++) {
            w[i] =
                _mm256_loadu_si256((const void *)(code + (g + i / 2) * WORD_BYTES + 32 * (i % 2)));
        }
        GALLEY_UNROLL
        for (int r = 0; r < R; r++) {
            const __m256i v0 = four_codes(x + r * QGEMM_K + 4 * g);
            const __m256i v1 = four_codes(x + r * QGEMM_K + 4 * g + 4);
            GALLEY_UNROLL
            for (int h = 0; h < 2; h++) {
                __m256i *to = &a[2 * r + h];
                if (wide) {
                    *to = _mm256_add_epi32(*to, _mm256_madd_epi16(pairs_signed(w[h], v0), ones));
                    *to =
                        _mm256_add_epi32(*to, _mm256_madd_epi16(pairs_signed(w[2 + h], v1), ones));
                } else {
                    const __m256i p = pairs_of(w[h], w[2 + h], v0, v1);
                    *to = _mm256_add_epi32(*to, _mm256_madd_epi16(p, ones));
                }
            }
        }
    }
}

static GALLEY_INLINE __m256 min_sum(const struct span *s, int r, int h, const bool of16)
{
    __m256i sum = _mm256_setzero_si256();
    for (int i = 0; i < (of16 ? 8 : 4); i++) {
        int32_t v;
        memcpy(&v, of16 ? s->m[r].k.pair16[i] : s->m[r].k.pair32[i], 4);
        const __m256i m = _mm256_loadu_si256((const void *)(s->p->pair[i] + s->at + 8 * h));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(m, _mm256_set1_epi32(v)));
    }
    return _mm256_cvtepi32_ps(sum);
}

/* sum += dot * scale of sub-block j, in integers: pairs of products times the scale, twice. */
static GALLEY_INLINE void scaled_dots(__m256i *sum, const struct span *s, int j, const int R,
                                      const enum qgemm_form form)
{
    const int n_groups = form == QGEMM_K16 || form == QGEMM_K16_MIN ? 4 : 8;
    const void *const at = s->p->factor[j] + s->at;
    const __m256i f[2] = { _mm256_loadu_si256(at), _mm256_loadu_si256((const __m256i *)at + 1) };
    const int n_started = form == QGEMM_K16 ? 2 * R : 0;
    GALLEY_UNROLL
    for (int i = 0; i < n_started; i++) {
        /* Half of what the codes' offset adds, for either factor of a pair. */
        const int from = s->m[i / 2].k.minus16[j] >> (6 - s->shift);
        const __m256i both = _mm256_set1_epi16((int16_t)from);
        sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(both, f[i % 2]));
    }
    const uint8_t *code = s->p->code + (size_t)(j * n_groups * WORD_BYTES) + 4 * (size_t)s->at;
    const int8_t *x = s->x + j * 4 * n_groups;
    for (int g = 0; g < n_groups; g += 2) {
        const uint8_t *two = code + g * WORD_BYTES;
        __m256i w[4];
        GALLEY_UNROLL
        for (int i = 0; i < 4; i++) {
            w[i] = _mm256_loadu_si256((const void *)(two + i / 2 * WORD_BYTES + 32 * (i % 2)));
        }
        GALLEY_UNROLL
        for (int r = 0; r < R; r++) {
            const __m256i v0 = four_codes(x + r * QGEMM_K + 4 * g);
            const __m256i v1 = four_codes(x + r * QGEMM_K + 4 * g + 4);
            GALLEY_UNROLL
            for (int h = 0; h < 2; h++) {
                const __m256i p = pairs_of(w[h], w[2 + h], v0, v1);
                sum[2 * r + h] = _mm256_add_epi32(sum[2 * r + h], _mm256_madd_epi16(p, f[h]));
            }
        }
    }
}

static GALLEY_INLINE void rows_k(const struct span *s, const int R, const enum qgemm_form form)
{
    const bool of16 = form == QGEMM_K16 || form == QGEMM_K16_MIN;
    const bool min = form == QGEMM_K32_MIN || form == QGEMM_K16_MIN;
    __m256 f[2 * ROWS_MAX];
    __m256i sum[2 * ROWS_MAX];
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        f[i] = _mm256_setzero_ps();
        sum[i] = _mm256_setzero_si256();
    }
    for (int j = 0; form == QGEMM_K32 && j < 8; j++) {
        __m256i a[2 * ROWS_MAX];
        dots(a, s, j, R, form, true);
        GALLEY_UNROLL
        for (int i = 0; i < 2 * R; i++) {
            const __m256 w = _mm256_loadu_ps(s->p->scale[j] + s->at + 8 * (i % 2));
            f[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a[i]), w, f[i]);
        }
    }
    for (int j = 0; form != QGEMM_K32 && j < (of16 ? 16 : 8); j++) {
        scaled_dots(sum, s, j, R, form);
    }
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        const int r = i / 2, h = i % 2, column = s->at + 8 * h;
        const __m256 v = form == QGEMM_K32 ? f[i] : _mm256_cvtepi32_ps(sum[i]);
        const __m256 xd = _mm256_set1_ps(s->m[r].k.d);
        float *to = s->acc + r * QGEMM_NR + column;
        const __m256 d = _mm256_mul_ps(_mm256_loadu_ps(s->p->d + column), xd);
        __m256 acc = _mm256_fmadd_ps(v, d, _mm256_loadu_ps(to));
        if (min) {
            const __m256 dmin = _mm256_mul_ps(_mm256_loadu_ps(s->p->dmin + column), xd);
            acc = _mm256_fnmadd_ps(min_sum(s, r, h, of16), dmin, acc);
        }
        _mm256_storeu_ps(to, acc);
    }
}

static GALLEY_INLINE void rows_block(const struct span *s, const int R, const enum qgemm_form form,
                                     const bool wide)
{
    __m256 f[2 * ROWS_MAX];
    float *acc = s->acc + s->at;
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        f[i] = _mm256_loadu_ps(acc + i / 2 * QGEMM_NR + 8 * (i % 2));
    }
    for (int j = 0; j < s->n; j++) {
        __m256i a[2 * ROWS_MAX];
        dots(a, s, j, R, form, wide);
        GALLEY_UNROLL
        for (int i = 0; i < 2 * R; i++) {
            const int column = s->at + 8 * (i % 2);
            const __m256 d = _mm256_mul_ps(_mm256_loadu_ps(s->p->scale[j] + column),
                                           _mm256_set1_ps(s->m[i / 2].block.d[j]));
            f[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a[i]), d, f[i]);
            if (form == QGEMM_BLOCK_MIN) {
                f[i] = _mm256_fmadd_ps(_mm256_loadu_ps(s->p->min[j] + column),
                                       _mm256_set1_ps(s->m[i / 2].block.sum[j]), f[i]);
            }
        }
    }
    GALLEY_UNROLL
    for (int i = 0; i < 2 * R; i++) {
        _mm256_storeu_ps(acc + i / 2 * QGEMM_NR + 8 * (i % 2), f[i]);
    }
}

#define FORM(name, call_1, call_2, call_3)           \
    static void name(const struct span *s, int rows) \
    {                                                \
        if (rows == 1) {                             \
            call_1;                                  \
        } else if (rows == 2) {                      \
            call_2;                                  \
        } else {                                     \
            call_3;                                  \
        }                                            \
    }
#define FORM_K(name, form) FORM(name, rows_k(s, 1, form), rows_k(s, 2, form), rows_k(s, 3, form))
#define FORM_BLOCK(name, form, wide)                                       \
    FORM(name, rows_block(s, 1, form, wide), rows_block(s, 2, form, wide), \
         rows_block(s, 3, form, wide))
FORM_K(rows_k32_min, QGEMM_K32_MIN)
FORM_K(rows_k16_min, QGEMM_K16_MIN)
FORM_K(rows_k32, QGEMM_K32)
FORM_K(rows_k16, QGEMM_K16)
FORM_BLOCK(rows_blocks, QGEMM_BLOCK, false)
FORM_BLOCK(rows_blocks_wide, QGEMM_BLOCK, true)
FORM_BLOCK(rows_blocks_min, QGEMM_BLOCK_MIN, false)

typedef void rows_fn(const struct span *s, int rows);

static rows_fn *rows_for(enum dtype t)
{
    static rows_fn *const forms[] = { rows_k32_min, rows_k16_min, rows_k32,
                                      rows_k16,     rows_blocks,  rows_blocks_min };
    const enum qgemm_form form = qgemm_form_of(t);
    return form == QGEMM_BLOCK && qgemm_shift(t) == 7 ? rows_blocks_wide : forms[form];
}

static struct ahead ahead_of(const void *unit, size_t bytes)
{
    return (struct ahead){ bytes, (const uint8_t *)unit + FAR_UNITS * bytes, 4 };
}

void qgemm_tile_avx2(const struct qgemm_tile *t)
{
    rows_fn *const fn = rows_for(t->type);
    const int block = dtype_info(t->type)->block;
    const uint8_t *unit = t->w;
    memset(t->acc, 0, (size_t)t->rows * QGEMM_NR * sizeof(float));
    struct span s = { .p = t->panel, .shift = qgemm_shift(t->type) };
    for (int u = 0, k = 0; k < t->n_in; u++, k += QGEMM_K) {
        s.n = (t->n_in - k < QGEMM_K ? t->n_in - k : QGEMM_K) / block;
        const size_t bytes = qgemm_unit_bytes(t->type, s.n);
        unpack(t->panel, unit, t->type, s.n, ahead_of(unit, bytes));
        unit += bytes;
        const size_t at = (size_t)u * (size_t)t->x->rows + (size_t)t->row0;
        for (int row = 0; row < t->rows; row += ROWS_MAX) {
            const int rows = t->rows - row < ROWS_MAX ? t->rows - row : ROWS_MAX;
            s.x = t->x->code + (at + (size_t)row) * QGEMM_K;
            s.m = t->x->meta + at + row;
            s.acc = t->acc + row * QGEMM_NR;
            for (s.at = 0; s.at < QGEMM_NR; s.at += 16) {
                fn(&s, rows);
            }
        }
    }
}

void qgemm_widen_avx2(float *dst, const void *w, enum dtype t, int n_blocks,
                      struct qgemm_panel *scratch)
{
    const size_t bytes = qgemm_unit_bytes(t, n_blocks);
    unpack(scratch, w, t, n_blocks, ahead_of(w, bytes));
    qwiden(dst, scratch, t, n_blocks);
}
