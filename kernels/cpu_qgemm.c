/* cpu_qgemm.c - quantised parts of a linear on the CPU: activations, and one piece of the product.
 *
 * Activations are quantised once per matmul and kind, into buffers of the device that hold a slab
 * of rows (linear.h); a piece then takes a few rows and some groups of columns over all of k. */
#include <assert.h>
#include <string.h>

#include "kernels/linear.h"
#include "src/base/mem.h"

enum galley_status qact_reserve(struct cpu_device *c, unsigned kinds, int n_in,
                                struct galley_err *err)
{
    const size_t units = (size_t)qgemm_n_units(n_in) * CPU_QROWS;
    for (int kind = 0; kind < QACT_KIND_COUNT; kind++) {
        struct cpu_qact *q = &c->qact[kind];
        if (!(kinds >> kind & 1) || q->units >= units) {
            continue;
        }
        /* Below 2^31 * 512 * 384: no overflow.  Pages nobody needs are never touched. */
        int8_t *code = mem_huge(units * QGEMM_K);
        union qact_meta *meta = mem_huge(units * sizeof(*meta));
        if (!code || !meta) {
            mem_free(code);
            mem_free(meta);
            return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d rows of %d codes",
                                  CPU_QROWS, n_in);
        }
        mem_free(q->a.code);
        mem_free(q->a.meta);
        q->a.code = code;
        q->a.meta = meta;
        q->units = units;
    }
    return GALLEY_OK;
}

uint64_t qact_bytes(int n_in)
{
    return (uint64_t)qgemm_n_units(n_in) * CPU_QROWS * (QGEMM_K + sizeof(union qact_meta));
}

void qact_free(struct cpu_device *c)
{
    for (int kind = 0; kind < QACT_KIND_COUNT; kind++) {
        mem_free(c->qact[kind].a.code);
        mem_free(c->qact[kind].a.meta);
    }
}

#define QACT_ROWS 4            /* rows of a piece */
#define QACT_US   (0.2 / 1000) /* per element on one thread */

struct qact_job {
    const struct matmul_job *m;
    enum qact_kind kind;
    int n_in;
};

static void qact_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct qact_job *j = arg;
    const struct matmul_job *m = j->m;
    const int r0 = i * QACT_ROWS, left = m->rows - r0;
    const struct qact_args q = { .a = &m->c->qact[j->kind].a,
                                 .kind = j->kind,
                                 .x = m->x,
                                 .x_ld = m->x_ld,
                                 .n_in = j->n_in,
                                 .r0 = r0,
                                 .n = left < QACT_ROWS ? left : QACT_ROWS };
    m->c->k.qact(&q);
}

void qact_rows(const struct matmul_job *m, unsigned kinds, int n_in)
{
    assert(kinds == 0 || m->rows <= CPU_QROWS);
    for (int kind = 0; kind < QACT_KIND_COUNT; kind++) {
        if (kinds >> kind & 1) {
            struct qact_job j = { m, (enum qact_kind)kind, n_in };
            assert(m->c->qact[kind].units >= (size_t)m->rows * (size_t)qgemm_n_units(n_in));
            m->c->qact[kind].a.rows = m->rows;
            cpu_run(m->c, qact_piece, &j, (m->rows + QACT_ROWS - 1) / QACT_ROWS,
                    QACT_US * m->rows * n_in);
        }
    }
}

/* The rows of n groups from group on to y, with their bias. */
static void rows_out(const struct part_job *job, const struct cpu_scratch *s, int r0, int rows,
                     int group, int n)
{
    const struct matmul_job *m = job->m;
    const int column = group * QGEMM_NR, left = job->l->n_out - column;
    const float *bias = job->l->bias ? job->l->bias + column : NULL;
    float *y = m->y + (size_t)r0 * m->y_ld + (size_t)(job->l->column + column);
    for (int r = 0; r < rows; r++, y += m->y_ld) {
        for (int g = 0; g < n; g++) {
            const float *acc = s->q_acc[g] + r * QGEMM_NR;
            float *to = y + g * QGEMM_NR;
            GALLEY_PREFETCH(to + 6 * m->y_ld); /* each row is on a page of its own */
            GALLEY_PREFETCH(to + 6 * m->y_ld + 16);
            const int there = left - g * QGEMM_NR < QGEMM_NR ? left - g * QGEMM_NR : QGEMM_NR;
            if (!bias && there == QGEMM_NR) {
                memcpy(to, acc, QGEMM_NR * sizeof(*to)); /* a constant size: no call */
                continue;
            }
            for (int j = 0; j < there; j++) {
                to[j] = bias ? acc[j] + bias[g * QGEMM_NR + j] : acc[j];
            }
        }
    }
}

void qgemm_piece(const struct part_job *job, int i, int i_thread)
{
    const struct matmul_job *m = job->m;
    const struct linear_packed *l = job->l;
    struct cpu_scratch *s = &m->c->scratch[i_thread];
    const int r0 = i % job->n_row_pieces * job->rows_piece;
    const int rows = m->rows - r0 < job->rows_piece ? m->rows - r0 : job->rows_piece;
    const int g0 = i / job->n_row_pieces * job->groups_piece;
    const int g1 = g0 + job->groups_piece < l->n_groups ? g0 + job->groups_piece : l->n_groups;
    assert(rows <= CPU_QPIECE);
    for (int g = g0; g < g1; g += CPU_QGROUPS) {
        const int n = g1 - g < CPU_QGROUPS ? g1 - g : CPU_QGROUPS;
        for (int k = 0; k < n; k++) {
            const struct qgemm_tile t = { .acc = s->q_acc[k],
                                          .w =
                                              (const char *)l->w + (size_t)(g + k) * l->group_bytes,
                                          .type = l->dtype,
                                          .n_in = l->n_in,
                                          .x = &m->c->qact[qact_kind_of(l->dtype)].a,
                                          .row0 = r0,
                                          .rows = rows,
                                          .panel = &s->panel };
            m->c->k.qgemm_tile(&t);
        }
        rows_out(job, s, r0, rows, g, n);
    }
}
