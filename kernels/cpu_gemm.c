/* cpu_gemm.c - dense parts of a linear on the CPU: packing, and one piece of the product.
 *
 * A piece walks k in slices of GEMM_KC with the sums resting in y between slices, which changes
 * no bit (gemm.h). */
#include <assert.h>
#include <string.h>

#include "kernels/linear.h"

static_assert(GEMM_KC % QGEMM_K == 0 && GEMM_NR == QGEMM_NR, "a slice is whole units");

/* Columns of k taken at a time: 32 rows of them and the panel's part stay in L1. */
#define PACK_K 64

static void pack_block(char *panel, const char *src, const struct linear_packed *l, int j,
                       size_t k0, size_t n)
{
    const size_t at = (size_t)gemm_place(j, l->dtype);
    if (dtype_bytes(l->dtype) == 2) {
        for (size_t k = k0; k < k0 + n; k++) {
            memcpy(panel + (k * GEMM_NR + at) * 2, src + k * 2, 2);
        }
    } else {
        for (size_t k = k0; k < k0 + n; k++) {
            memcpy(panel + (k * GEMM_NR + at) * 4, src + k * 4, 4);
        }
    }
}

void gemm_pack(const struct linear_packed *l, const void *src, int group)
{
    const size_t row = (size_t)l->n_in * dtype_bytes(l->dtype), n_in = (size_t)l->n_in;
    const int n = linear_columns(l, group);
    char *panel = (char *)l->w + (size_t)group * l->group_bytes;
    if (n < GEMM_NR) {
        memset(panel, 0, l->group_bytes);
    }
    for (size_t k = 0; k < n_in; k += PACK_K) {
        for (int j = 0; j < n; j++) {
            pack_block(panel, (const char *)src + (size_t)j * row, l, j, k,
                       n_in - k < PACK_K ? n_in - k : PACK_K);
        }
    }
}

void linear_widen(const struct cpu_device *c, const struct linear_packed *l, struct cpu_scratch *s,
                  int panel, int k0, int n_k)
{
    const int each = dtype_info(l->dtype)->block, per_unit = QGEMM_K / each;
    const char *unit = (const char *)l->w + (size_t)panel * l->group_bytes +
                       (size_t)(k0 / QGEMM_K) * qgemm_unit_bytes(l->dtype, per_unit);
    float *to = s->widened;
    for (int k = 0; k < n_k; k += QGEMM_K, to += QGEMM_K * GEMM_NR) {
        const int n = n_k - k < QGEMM_K ? (n_k - k) / each : per_unit;
        c->k.qgemm_widen(to, unit, l->dtype, n, &s->panel);
        unit += qgemm_unit_bytes(l->dtype, n);
    }
}

/* One slice of k over the panels p0..p1-1 and the rows t already names. */
static void slice_run(const struct part_job *job, struct gemm_tile *t, int p0, int p1, int k0,
                      struct cpu_scratch *scratch)
{
    const struct cpu_kernels *k = &job->m->c->k;
    const struct linear_packed *l = job->l;
    const size_t size = l->exact ? 0 : dtype_bytes(l->dtype), panel = (size_t)l->n_in * GEMM_NR;
    const bool last = k0 + t->k == l->n_in;
    const bool widen = l->exact || (l->dtype != DTYPE_F32 && t->rows >= k->widen_rows);
    const int step = widen ? 1 : p1 - p0;
    float *c = t->c;
    for (int p = p0; p < p1; p += step, c += step * GEMM_NR) {
        const int column = p * GEMM_NR;
        const int n_left = l->n_out - column, n_wide = step * GEMM_NR;
        const char *w = (const char *)l->w + ((size_t)p * panel + (size_t)k0 * GEMM_NR) * size;
        struct gemm_tile s = *t;
        s.c = c;
        s.n = n_left < n_wide ? n_left : n_wide;
        s.bias = last && l->bias ? l->bias + column : NULL;
        s.w = w;
        s.w_type = l->dtype;
        if (l->exact) {
            linear_widen(job->m->c, l, scratch, p, k0, t->k);
        } else if (widen) {
            k->gemm_widen(scratch->widened, w, l->dtype, t->k);
        }
        if (widen) {
            s.w = scratch->widened;
            s.w_type = DTYPE_F32;
        }
        k->gemm_tile(&s);
    }
}

void gemm_piece(const struct part_job *job, int i, int i_thread)
{
    const struct matmul_job *m = job->m;
    const struct linear_packed *l = job->l;
    const int r0 = i % job->n_row_pieces * job->rows_piece;
    const int p0 = i / job->n_row_pieces * job->groups_piece;
    const int p1 = p0 + job->groups_piece < l->n_groups ? p0 + job->groups_piece : l->n_groups;
    for (int k0 = 0; k0 < l->n_in; k0 += GEMM_KC) {
        struct gemm_tile t = {
            .c = m->y + (size_t)r0 * m->y_ld + (size_t)l->column + (size_t)p0 * GEMM_NR,
            .c_ld = m->y_ld,
            .x = m->x + (size_t)r0 * m->x_ld + k0,
            .x_ld = m->x_ld,
            .w_ld = GEMM_NR,
            .panel = (size_t)l->n_in * GEMM_NR,
            .rows = m->rows - r0 < job->rows_piece ? m->rows - r0 : job->rows_piece,
            .k = l->n_in - k0 < GEMM_KC ? l->n_in - k0 : GEMM_KC,
            .more = k0 > 0,
        };
        slice_run(job, &t, p0, p1, k0, &m->c->scratch[i_thread]);
    }
}
