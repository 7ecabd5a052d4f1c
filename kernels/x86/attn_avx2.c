/* attn_avx2.c - see attn_body.h and turn_body.h. */
#include "kernels/x86/v16_avx2.h"

#define ATTN_ACC 6 /* of two registers each, sixteen there are */
#define ATTN_VEC 2

#include "kernels/x86/attn_body.h"
#include "kernels/x86/turn_body.h"

/* Up to four rows of a group against both halves of the keys. */
static void scores_rows(const struct attn_scores *a, float *s, const float *q, int rows,
                        size_t step)
{
    const float *k = a->k;
    for (int v = 0; v < KV_BLOCK; v += 16, step = 0) {
        switch (rows) {
        case 1:
            scores_tile(s + v, q, k + v, a->head_dim, a->next, step, 1, 1);
            break;
        case 2:
            scores_tile(s + v, q, k + v, a->head_dim, a->next, step, 2, 1);
            break;
        case 3:
            scores_tile(s + v, q, k + v, a->head_dim, a->next, step, 3, 1);
            break;
        default:
            scores_tile(s + v, q, k + v, a->head_dim, a->next, step, 4, 1);
        }
    }
}

void attn_scores_avx2(const struct attn_scores *a)
{
    for (int r = 0; r < a->rows; r += 4) {
        const float *q = a->q + (size_t)(r & -ATTN_GROUP) * (size_t)a->head_dim + r % ATTN_GROUP;
        /* the first rows ask for all of the next block */
        scores_rows(a, a->s + r * KV_BLOCK, q, a->rows - r, r == 0 ? a->next_step : 0);
    }
}

static void sums_rows(const struct attn_sums *a, int row, int vec, int rows)
{
    switch (rows) {
    case 1:
        sums_tile(a, row, vec, 1, 1);
        break;
    case 2:
        sums_tile(a, row, vec, 2, 1);
        break;
    case 3:
        sums_tile(a, row, vec, 3, 1);
        break;
    case 4:
        sums_tile(a, row, vec, 4, 1);
        break;
    case 5:
        sums_tile(a, row, vec, 5, 1);
        break;
    default:
        sums_tile(a, row, vec, 6, 1);
        break;
    }
}

/* Few rows take two vectors at once: returns how many are done. */
static int sums_few(const struct attn_sums *a)
{
    int vec = 0;
    for (; a->rows <= 3 && vec + 2 <= a->n_vec; vec += 2) {
        if (a->rows == 1) {
            sums_tile(a, 0, vec, 1, 2);
        } else if (a->rows == 2) {
            sums_tile(a, 0, vec, 2, 2);
        } else {
            sums_tile(a, 0, vec, 3, 2);
        }
    }
    return vec;
}

void attn_sums_avx2(const struct attn_sums *a)
{
    const int n_tiles = (a->rows + ATTN_ACC - 1) / ATTN_ACC;
    for (int vec = sums_few(a); vec < a->n_vec; vec++) {
        for (int i = 0, row = 0; i < n_tiles; i++) {
            const int rows = (a->rows - row + n_tiles - i - 1) / (n_tiles - i);
            sums_rows(a, row, vec, rows);
            row += rows;
        }
    }
}

void attn_pack_avx2(float *dst, const float *const src[ATTN_GROUP], float by, int head_dim)
{
    pack_body(dst, src, by, head_dim);
}

void attn_soft_avx2(const struct attn_soft *a)
{
    attn_soft_body(a);
}

void attn_merge_avx2(const struct attn_part *to, const struct attn_part *from, size_t o_ld)
{
    attn_merge_body(to, from, o_ld);
}

void attn_result_avx2(float *out, const float *o, const float sum[ATTN_LANES], int head_dim)
{
    attn_result_body(out, o, sum, head_dim);
}

void attn_turn_avx2(float *dst, const float *src, size_t ld, int n, int head_dim)
{
    turn_body(dst, src, ld, n, head_dim);
}
