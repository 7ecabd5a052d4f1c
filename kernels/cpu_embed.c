/* cpu_embed.c - rows of a packed weight as f32: the embedding of token ids.
 *
 * The table is packed like every other weight, because most models use one matrix as table and as
 * head: it is in memory once, and no file need stay open for it.  A row is then one column of a
 * panel; a panel of a 2048-wide Q4_K table is 37 KB, little beside what a row of the model reads.
 */
#include <assert.h>
#include <string.h>

#include "kernels/linear.h"

#define EMBED_US (4.0 / 1000) /* per element on one thread */

struct embed_job {
    struct cpu_device *c;
    const struct linear_packed *l;
    float *y;
    const int32_t *ids;
};

static void row_quantised(const struct embed_job *j, float *y, int id, int i_thread)
{
    const struct linear_packed *l = j->l;
    struct cpu_scratch *s = &j->c->scratch[i_thread];
    for (int k0 = 0; k0 < l->n_in; k0 += GEMM_KC) {
        const int n = l->n_in - k0 < GEMM_KC ? l->n_in - k0 : GEMM_KC;
        linear_widen(j->c, l, s, id / LINEAR_NR, k0, n);
        for (int k = 0; k < n; k++) {
            y[k0 + k] = s->widened[k * LINEAR_NR + id % LINEAR_NR];
        }
    }
}

static void row_dense(const struct embed_job *j, float *y, int id, int i_thread)
{
    const struct linear_packed *l = j->l;
    const size_t size = dtype_bytes(l->dtype);
    const char *from = (const char *)l->w + (size_t)(id / LINEAR_NR) * l->group_bytes +
                       (size_t)gemm_place(id % LINEAR_NR, l->dtype) * size;
    char *row = (char *)j->c->scratch[i_thread].widened;
    for (int k0 = 0; k0 < l->n_in; k0 += GEMM_KC) {
        const int n = l->n_in - k0 < GEMM_KC ? l->n_in - k0 : GEMM_KC;
        for (int k = 0; k < n; k++, from += size * LINEAR_NR) {
            memcpy(row + (size_t)k * size, from, size);
        }
        j->c->k.widen(y + k0, row, l->dtype, (size_t)n);
    }
}

static void embed_piece(void *arg, int r, int i_thread)
{
    const struct embed_job *j = arg;
    float *y = j->y + (size_t)r * (size_t)j->l->n_in;
    assert(j->ids[r] >= 0 && j->ids[r] < j->l->n_out);
    if (dtype_is_dense(j->l->dtype)) {
        row_dense(j, y, j->ids[r], i_thread);
    } else {
        row_quantised(j, y, j->ids[r], i_thread);
    }
}

void cpu_embed(struct device *d, float *y, const struct linear *table, const int32_t *ids, int rows)
{
    assert(table->n_parts == 1);
    struct embed_job j = { cpu_of(d), &table->parts[0], y, ids };
    cpu_run(j.c, embed_piece, &j, rows, EMBED_US * (double)rows * table->n_in);
}
