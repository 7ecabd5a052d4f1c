/* attn_avx2.c - see attn_body.h and turn_body.h. */
#include "kernels/x86/v16_avx2.h"

#define ATTN_ACC 6 /* of two registers each, sixteen there are */
#define ATTN_VEC 2

#include "kernels/x86/attn_body.h"
#include "kernels/x86/turn_body.h"

static void mul_rows(const struct attn_mul *a, int row, int vec, int rows)
{
    switch (rows) {
    case 1:
        mul_tile(a, row, vec, 1, 1);
        break;
    case 2:
        mul_tile(a, row, vec, 2, 1);
        break;
    case 3:
        mul_tile(a, row, vec, 3, 1);
        break;
    case 4:
        mul_tile(a, row, vec, 4, 1);
        break;
    case 5:
        mul_tile(a, row, vec, 5, 1);
        break;
    default:
        mul_tile(a, row, vec, 6, 1);
        break;
    }
}

/* Few rows take two vectors at once: returns how many are done. */
static int mul_few(const struct attn_mul *a)
{
    int vec = 0;
    for (; a->rows <= 3 && vec + 2 <= a->n_vec; vec += 2) {
        if (a->rows == 1) {
            mul_tile(a, 0, vec, 1, 2);
        } else if (a->rows == 2) {
            mul_tile(a, 0, vec, 2, 2);
        } else {
            mul_tile(a, 0, vec, 3, 2);
        }
    }
    return vec;
}

void attn_mul_avx2(const struct attn_mul *a)
{
    const int n_tiles = (a->rows + ATTN_ACC - 1) / ATTN_ACC;
    for (int vec = mul_few(a); vec < a->n_vec; vec++) {
        for (int i = 0, row = 0; i < n_tiles; i++) {
            const int rows = (a->rows - row + n_tiles - i - 1) / (n_tiles - i);
            mul_rows(a, row, vec, rows);
            row += rows;
        }
    }
}

void attn_soft_avx2(const struct attn_soft *a)
{
    attn_soft_body(a);
}

void attn_merge_avx2(const struct attn_part *to, const struct attn_part *from, size_t o_ld)
{
    attn_merge_body(to, from, o_ld);
}

void attn_scale_avx2(float *dst, const float *src, float by, size_t n)
{
    attn_scale_body(dst, src, by, n);
}

void attn_turn_avx2(float *dst, const float *src, size_t ld, int n, int head_dim)
{
    turn_body(dst, src, ld, n, head_dim);
}
