/* gemm_avx2.c - register tiles of up to 6 rows x 16 columns, or 1-3 rows x 32.
 *
 * Twelve accumulators, two weight vectors and a broadcast fill the sixteen registers. */
#include <immintrin.h>
#include <stdbool.h>

#include "kernels/gemm.h"
#include "src/base/compiler.h"

#define ROWS_MAX 6
#define N_ACC    12

struct place {
    int row, column; /* of c, where the tile begins */
};

static inline __m256i mask_below(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static GALLEY_INLINE __m256 half_8(const char *p, enum dtype type)
{
    const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
    return type == DTYPE_F16 ? _mm256_cvtph_ps(h)
                             : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* Which column of its panel vector v of a tile holds: bf16 rows are stored as pairs 16 apart
 * (gemm.h), so a tile of two vectors takes columns s..s+7 and s+16..s+23 there. */
static GALLEY_INLINE int column_of(int v, const int nv, const enum dtype type)
{
    return type == DTYPE_BF16 && nv == 2 ? 16 * v : 8 * v;
}

/* nv vectors of one packed row; p points at the tile's first column within the row. */
static GALLEY_INLINE void load_w(__m256 *w, const int nv, const void *base, size_t at,
                                 const enum dtype type, const bool full, const __m256i *m)
{
    if (type == DTYPE_F32) {
        const float *f = (const float *)base + at;
        GALLEY_UNROLL
        for (int v = 0; v < nv; v++) {
            w[v] = full ? _mm256_loadu_ps(f + 8 * v) : _mm256_maskload_ps(f + 8 * v, m[v]);
        }
    } else if (type == DTYPE_F16) {
        GALLEY_UNROLL
        for (int v = 0; v < nv; v++) {
            w[v] = half_8((const char *)base + 2 * at + 16 * v, type);
        }
    } else {
        GALLEY_UNROLL
        for (int v = 0; v < nv / 2; v++) {
            const char *p = (const char *)base + 2 * at + 32 * v;
            const __m256i pair = _mm256_loadu_si256((const __m256i *)(const void *)p);
            w[v] = _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16));
            w[v + nv / 2] =
                _mm256_castsi256_ps(_mm256_and_si256(pair, _mm256_set1_epi32((int)0xffff0000)));
        }
    }
}

/* rows, nv, type and full are constants at every call, so that acc lives in registers. */
static GALLEY_INLINE void tile(const struct gemm_tile *t, struct place at, const int rows,
                               const int nv, const enum dtype type, const bool full)
{
    __m256 acc[N_ACC];
    __m256i m[4];
    float *c = t->c + (size_t)at.row * t->c_ld + at.column;
    GALLEY_UNROLL
    for (int v = 0; v < nv; v++) {
        m[v] = mask_below(t->n - at.column - column_of(v, nv, type));
    }
    GALLEY_UNROLL
    for (int i = 0; i < rows * nv; i++) {
        const float *from = c + (size_t)(i / nv) * t->c_ld + column_of(i % nv, nv, type);
        acc[i] = !t->more ? _mm256_setzero_ps()
                 : full   ? _mm256_loadu_ps(from)
                          : _mm256_maskload_ps(from, m[i % nv]);
    }
    const float *x = t->x + (size_t)at.row * t->x_ld;
    const size_t ld = t->x_ld;
    /* In a bf16 row the pair of columns (s, s + 16) lies at 2 s. */
    const size_t in_row = (size_t)(at.column % GEMM_NR) * (type == DTYPE_BF16 ? 2 : 1);
    size_t w_at = (size_t)(at.column / GEMM_NR) * t->panel + in_row;
    for (int k = 0; k < t->k; k++, w_at += t->w_ld) {
        __m256 w[4];
        load_w(w, nv, t->w, w_at, type, full, m);
        GALLEY_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256 xv = _mm256_broadcast_ss(x + (size_t)r * ld + k);
            GALLEY_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[r * nv + v] = _mm256_fmadd_ps(xv, w[v], acc[r * nv + v]);
            }
        }
    }
    GALLEY_UNROLL
    for (int i = 0; i < rows * nv; i++) {
        const int column = column_of(i % nv, nv, type);
        float *to = c + (size_t)(i / nv) * t->c_ld + column;
        const float *bias = t->bias ? t->bias + at.column + column : NULL;
        if (full) {
            _mm256_storeu_ps(to, bias ? _mm256_add_ps(acc[i], _mm256_loadu_ps(bias)) : acc[i]);
        } else {
            const __m256i mask = m[i % nv];
            const __m256 b = bias ? _mm256_maskload_ps(bias, mask) : _mm256_setzero_ps();
            _mm256_maskstore_ps(to, mask, bias ? _mm256_add_ps(acc[i], b) : acc[i]);
        }
    }
}

/* 32 columns of 1 to 3 rows, or of 4 to 6 rows as two tiles of 16. */
static GALLEY_INLINE void one_panel(const struct gemm_tile *t, struct place at, int rows,
                                    const enum dtype type, const bool full)
{
    const struct place next = { at.row, at.column + (type == DTYPE_BF16 ? 8 : 16) };
    switch (rows) {
    case 1:
        tile(t, at, 1, 4, type, full);
        break;
    case 2:
        tile(t, at, 2, 4, type, full);
        break;
    case 3:
        tile(t, at, 3, 4, type, full);
        break;
    case 4:
        tile(t, at, 4, 2, type, full);
        tile(t, next, 4, 2, type, full);
        break;
    case 5:
        tile(t, at, 5, 2, type, full);
        tile(t, next, 5, 2, type, full);
        break;
    default:
        tile(t, at, 6, 2, type, full);
        tile(t, next, 6, 2, type, full);
        break;
    }
}

static GALLEY_INLINE void all_tiles(const struct gemm_tile *t, const enum dtype type)
{
    const int n_tiles = (t->rows + ROWS_MAX - 1) / ROWS_MAX;
    for (int j = 0; j < t->n; j += GEMM_NR) {
        for (int i = 0, row = 0; i < n_tiles; i++) {
            const int rows = (t->rows - row + n_tiles - i - 1) / (n_tiles - i);
            const struct place at = { row, j };
            if (t->n - j >= GEMM_NR) {
                one_panel(t, at, rows, type, true);
            } else {
                one_panel(t, at, rows, type, false);
            }
            row += rows;
        }
    }
}

void gemm_tile_avx2(const struct gemm_tile *t)
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
