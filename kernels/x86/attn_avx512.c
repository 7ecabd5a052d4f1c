/* attn_avx512.c - see attn_body.h and turn_body.h. */
#include "kernels/x86/v16_avx512.h"

#define ATTN_ACC 25 /* of 32 registers; both ports are busy from 8 on */
#define ATTN_VEC 5

#include "kernels/x86/attn_body.h"
#include "kernels/x86/turn_body.h"

#define ROWS(r, nv)                    \
    case r:                            \
        sums_tile(a, row, vec, r, nv); \
        break;

static void sums_1(const struct attn_sums *a, int row, int vec, int rows)
{
    switch (rows) {
        ROWS(1, 1)
        ROWS(2, 1)
        ROWS(3, 1)
        ROWS(4, 1)
        ROWS(5, 1)
        ROWS(6, 1)
        ROWS(7, 1)
        ROWS(8, 1)
        ROWS(9, 1)
        ROWS(10, 1)
        ROWS(11, 1)
    default:
        sums_tile(a, row, vec, 12, 1);
    }
}

static void sums_2(const struct attn_sums *a, int row, int vec, int rows)
{
    switch (rows) {
        ROWS(1, 2)
        ROWS(2, 2)
        ROWS(3, 2)
        ROWS(4, 2)
        ROWS(5, 2)
        ROWS(6, 2)
        ROWS(7, 2)
        ROWS(8, 2)
        ROWS(9, 2)
        ROWS(10, 2)
        ROWS(11, 2)
    default:
        sums_tile(a, row, vec, 12, 2);
    }
}

static void sums_3(const struct attn_sums *a, int row, int vec, int rows)
{
    switch (rows) {
        ROWS(1, 3)
        ROWS(2, 3)
        ROWS(3, 3)
        ROWS(4, 3)
        ROWS(5, 3)
        ROWS(6, 3)
        ROWS(7, 3)
    default:
        sums_tile(a, row, vec, 8, 3);
    }
}

static void sums_4(const struct attn_sums *a, int row, int vec, int rows)
{
    switch (rows) {
        ROWS(1, 4)
        ROWS(2, 4)
        ROWS(3, 4)
        ROWS(4, 4)
        ROWS(5, 4)
    default:
        sums_tile(a, row, vec, 6, 4);
    }
}

static void sums_5(const struct attn_sums *a, int row, int vec, int rows)
{
    switch (rows) {
        ROWS(1, 5)
        ROWS(2, 5)
        ROWS(3, 5)
        ROWS(4, 5)
    default:
        sums_tile(a, row, vec, 5, 5);
    }
}

void attn_scores_avx512(const struct attn_scores *a)
{
#define GROUP(rows)                                                   \
    case rows:                                                        \
        scores_tile(s, q, a->k, a->head_dim, a->next, step, rows, 2); \
        break;
    for (int r = 0; r < a->rows; r += ATTN_GROUP) {
        float *s = a->s + r * KV_BLOCK;
        const float *q = a->q + (size_t)r * (size_t)a->head_dim;
        const size_t step = r == 0 ? a->next_step : 0; /* the first group asks for all */
        switch (a->rows - r) {
            GROUP(1)
            GROUP(2)
            GROUP(3)
            GROUP(4)
            GROUP(5)
            GROUP(6)
            GROUP(7)
        default:
            scores_tile(s, q, a->k, a->head_dim, a->next, step, ATTN_GROUP, 2);
        }
    }
#undef GROUP
}

void attn_sums_avx512(const struct attn_sums *a)
{
    typedef void sums_fn(const struct attn_sums *a, int row, int vec, int rows);
    static sums_fn *const sums[ATTN_VEC + 1] = { NULL, sums_1, sums_2, sums_3, sums_4, sums_5 };
    static const int rows_max[ATTN_VEC + 1] = { 0, 12, 12, 8, 6, 5 };
    for (int vec = 0, nv; vec < a->n_vec; vec += nv) {
        const int left = a->n_vec - vec;
        nv = left <= ATTN_VEC ? left : 4;
        const int n_tiles = (a->rows + rows_max[nv] - 1) / rows_max[nv];
        for (int i = 0, row = 0; i < n_tiles; i++) {
            const int rows = (a->rows - row + n_tiles - i - 1) / (n_tiles - i);
            sums[nv](a, row, vec, rows);
            row += rows;
        }
    }
}

void attn_pack_avx512(float *dst, const float *const src[ATTN_GROUP], float by, int head_dim)
{
    pack_body(dst, src, by, head_dim);
}

void attn_soft_avx512(const struct attn_soft *a)
{
    attn_soft_body(a);
}

void attn_merge_avx512(const struct attn_part *to, const struct attn_part *from, size_t o_ld)
{
    attn_merge_body(to, from, o_ld);
}

void attn_result_avx512(float *out, const float *o, const float sum[ATTN_LANES], int head_dim)
{
    attn_result_body(out, o, sum, head_dim);
}

void attn_turn_avx512(float *dst, const float *src, size_t ld, int n, int head_dim)
{
    turn_body(dst, src, ld, n, head_dim);
}
