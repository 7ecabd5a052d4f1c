/* gemm_avx512.c - register tiles of up to 12 rows x 32 columns, or few rows x 128 columns.
 *
 * 24 accumulators hide the FMA latency of both ports; below four rows the tile grows along
 * the columns instead (several panels at once), because a chain over k cannot be split. */
#include <immintrin.h>
#include <stdbool.h>

#include "kernels/gemm.h"
#include "src/base/compiler.h"

#define ROWS_MAX 12
#define N_ACC    24

static inline __mmask16 mask_below(int n)
{
    return n >= 16 ? (__mmask16)0xffff : n <= 0 ? (__mmask16)0 : (__mmask16)((1u << n) - 1);
}

/* One packed row of a panel, widened: columns 0..15 and 16..31. */
static GALLEY_INLINE void load_w(__m512 w[2], const void *p, size_t at, enum dtype type,
                                 const bool full, const __mmask16 m[2])
{
    if (type == DTYPE_F32 && full) {
        const float *f = (const float *)p + at;
        w[0] = _mm512_loadu_ps(f);
        w[1] = _mm512_loadu_ps(f + 16);
    } else if (type == DTYPE_F32) {
        const float *f = (const float *)p + at;
        w[0] = _mm512_maskz_loadu_ps(m[0], f);
        w[1] = _mm512_maskz_loadu_ps(m[1], f + 16);
    } else if (type == DTYPE_F16) {
        const char *h = (const char *)p + 2 * at;
        w[0] = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)h));
        w[1] = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(h + 32)));
    } else {
        const __m512i v = _mm512_loadu_si512((const char *)p + 2 * at);
        w[0] = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
        w[1] = _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000)));
    }
}

struct place {
    int row, column; /* of c, where the tile begins */
};

/* rows, panels, type and full are constants at every call, so that acc lives in registers. */
static GALLEY_INLINE void tile(const struct gemm_tile *t, struct place at, const int rows,
                               const int panels, const enum dtype type, const bool full)
{
    const int nv = 2 * panels;
    __m512 acc[N_ACC];
    __mmask16 m[8];
    float *c = t->c + (size_t)at.row * t->c_ld + at.column;
    GALLEY_UNROLL
    for (int v = 0; v < nv; v++) {
        m[v] = mask_below(t->n - at.column - 16 * v);
    }
    GALLEY_UNROLL
    for (int r = 0; r < rows; r++) {
        GALLEY_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r * nv + v] = t->more
                                  ? _mm512_maskz_loadu_ps(m[v], c + (size_t)r * t->c_ld + 16 * v)
                                  : _mm512_setzero_ps();
        }
    }
    const float *x = t->x + (size_t)at.row * t->x_ld;
    const size_t ld = t->x_ld;
    size_t w_at = (size_t)(at.column / GEMM_NR) * t->panel;
    for (int k = 0; k < t->k; k++, w_at += t->w_ld) {
        __m512 w[8];
        GALLEY_UNROLL
        for (int p = 0; p < panels; p++) {
            load_w(w + 2 * p, t->w, w_at + (size_t)p * t->panel, type, full, m + 2 * p);
        }
        GALLEY_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m512 xv = _mm512_set1_ps(x[(size_t)r * ld + (size_t)k]);
            GALLEY_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[r * nv + v] = _mm512_fmadd_ps(xv, w[v], acc[r * nv + v]);
            }
        }
    }
    GALLEY_UNROLL
    for (int r = 0; r < rows; r++) {
        GALLEY_UNROLL
        for (int v = 0; v < nv; v++) {
            __m512 a = acc[r * nv + v];
            if (t->bias) {
                a = _mm512_add_ps(a, _mm512_maskz_loadu_ps(m[v], t->bias + at.column + 16 * v));
            }
            _mm512_mask_storeu_ps(c + (size_t)r * t->c_ld + 16 * v, m[v], a);
        }
    }
}

static GALLEY_INLINE void one_panel(const struct gemm_tile *t, struct place at, int rows,
                                    const enum dtype type, const bool full)
{
    switch (rows) {
#define ROWS(n)                        \
    case n:                            \
        tile(t, at, n, 1, type, full); \
        break;
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
        ROWS(7)
        ROWS(8)
        ROWS(9)
        ROWS(10)
        ROWS(11)
        ROWS(12)
#undef ROWS
    default:
        break;
    }
}

/* One to three rows: two or four panels at once.  Returns the first column left. */
static GALLEY_INLINE int few_rows(const struct gemm_tile *t, const enum dtype type)
{
    int j = 0;
    if (t->rows == 1) {
        for (; t->n - j >= 4 * GEMM_NR; j += 4 * GEMM_NR) {
            tile(t, (struct place){ 0, j }, 1, 4, type, true);
        }
        for (; t->n - j >= 2 * GEMM_NR; j += 2 * GEMM_NR) {
            tile(t, (struct place){ 0, j }, 1, 2, type, true);
        }
    } else if (t->rows == 2) {
        for (; t->n - j >= 4 * GEMM_NR; j += 4 * GEMM_NR) {
            tile(t, (struct place){ 0, j }, 2, 4, type, true);
        }
    } else if (t->rows == 3) {
        for (; t->n - j >= 2 * GEMM_NR; j += 2 * GEMM_NR) {
            tile(t, (struct place){ 0, j }, 3, 2, type, true);
        }
    }
    return j;
}

static GALLEY_INLINE void all_tiles(const struct gemm_tile *t, const enum dtype type)
{
    /* Rows are shared out evenly: 13 rows are 7 + 6, not 12 and a slow 1. */
    const int n_tiles = (t->rows + ROWS_MAX - 1) / ROWS_MAX;
    for (int j = few_rows(t, type); j < t->n; j += GEMM_NR) {
        for (int i = 0, row = 0; i < n_tiles; i++) {
            const int rows = (t->rows - row + n_tiles - i - 1) / (n_tiles - i);
            const struct place at = { row, j };
            /* Packed 16-bit panels are padded: only f32 must mind what lies behind n. */
            if (type != DTYPE_F32 || t->n - j >= GEMM_NR) {
                one_panel(t, at, rows, type, true);
            } else {
                one_panel(t, at, rows, type, false);
            }
            row += rows;
        }
    }
}

void gemm_tile_avx512(const struct gemm_tile *t)
{
    switch (t->w_type) {
    case DTYPE_F32:
        all_tiles(t, DTYPE_F32);
        break;
    case DTYPE_F16:
        all_tiles(t, DTYPE_F16);
        break;
    default:
        all_tiles(t, DTYPE_BF16);
        break;
    }
}
