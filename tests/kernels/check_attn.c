/* check_attn.c - attention over segments. */
#include "tests/kernels/check.h"

/* Softmax attention of one query over n keys in double; k, v: [n][ld]. */
static void oracle(double *out, const float *q, const float *k, const float *v, size_t ld, int n,
                   int dim, double scale)
{
    double *p = mem_many(double, (size_t)n);
    T_OK(p);
    double max = -INFINITY, sum = 0.0;
    for (int j = 0; j < n; j++) {
        for (int d = 0; d < dim; d++) {
            p[j] += (double)q[d] * (double)k[(size_t)j * ld + (size_t)d];
        }
        p[j] *= scale;
        max = p[j] > max ? p[j] : max;
    }
    for (int j = 0; j < n; j++) {
        p[j] = exp(p[j] - max);
        sum += p[j];
    }
    for (int d = 0; d < dim; d++) {
        out[d] = 0.0;
        for (int j = 0; j < n; j++) {
            out[d] += p[j] / sum * (double)v[(size_t)j * ld + (size_t)d];
        }
    }
    mem_free(p);
}

struct seg_problem {
    const int32_t *seg;
    int n_seg, n_head, head_dim;
    float size; /* of q: large ones make sharp softmaxes */
};

static void check_seg_oracle(const struct seg_problem *p, const struct attn_seg_args *a)
{
    double want[ATTN_HEAD_DIM_MAX];
    for (int s = 0; s < p->n_seg; s++) {
        for (int r = p->seg[s]; r < p->seg[s + 1]; r += 1 + (p->seg[s + 1] - p->seg[s]) / 7) {
            for (int h = 0; h < p->n_head; h++) {
                const size_t head = (size_t)h * (size_t)p->head_dim;
                const size_t at = (size_t)p->seg[s] * a->ld + head;
                oracle(want, a->q + (size_t)r * a->ld + head, a->k + at, a->v + at, a->ld,
                       p->seg[s + 1] - p->seg[s], p->head_dim, (double)a->scale);
                for (int d = 0; d < p->head_dim; d++) {
                    T_NEAR((double)a->out[(size_t)r * a->out_ld + head + (size_t)d], want[d], 6e-6);
                }
            }
        }
    }
}

/* Each segment on its own has the bits it has among the others. */
static void check_seg_alone(struct device *d, const struct attn_seg_args *a, const float *all)
{
    const size_t width = (size_t)a->n_head * (size_t)a->head_dim;
    for (int s = 0; s < a->n_seg; s++) {
        const int32_t n = a->seg[s + 1] - a->seg[s], seg[2] = { 0, n };
        const size_t first = (size_t)a->seg[s];
        float *one = mem_array((size_t)n * width, sizeof(float));
        T_OK(one);
        struct attn_seg_args b = *a;
        b.out = one;
        b.out_ld = width;
        b.q += first * a->ld;
        b.k += first * a->ld;
        b.v += first * a->ld;
        b.seg = seg;
        b.n_seg = 1;
        d->ops->attn_seg(d, &b);
        for (size_t r = 0; r < (size_t)n; r++) {
            bytes_same(one + r * width, all + (first + r) * a->out_ld, width, "segment alone");
        }
        mem_free(one);
    }
}

/* A range of rows has its bits, and nothing beside it is written. */
static void check_seg_rows(struct device *d, const struct attn_seg_args *a, const float *all)
{
    const int rows = a->seg[a->n_seg];
    const size_t width = (size_t)a->n_head * (size_t)a->head_dim;
    float *some = mem_many(float, (size_t)rows *width), *none = mem_many(float, width);
    T_OK(some && none);
    struct attn_seg_args b = *a;
    b.out = some;
    b.out_ld = width;
    b.row0 = rows / 3;
    b.n_rows = (rows + 1) / 2;
    d->ops->attn_seg(d, &b);
    for (int r = 0; r < rows; r++) {
        const bool asked = r >= b.row0 && r < b.row0 + b.n_rows;
        bytes_same(some + (size_t)r * width, asked ? all + (size_t)r * a->out_ld : none, width,
                   "range of rows");
    }
    mem_free(some);
    mem_free(none);
}

static void check_seg(struct devices *ds, const struct seg_problem *p)
{
    const size_t width = (size_t)p->n_head * (size_t)p->head_dim, ld = 3 * width + 4;
    const size_t rows = (size_t)p->seg[p->n_seg], out_ld = width + 3;
    float *qkv = mem_array(rows * ld, sizeof(float));
    T_OK(qkv);
    fill(qkv, rows * ld, FILL_RANDOM);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < width; i++) {
            qkv[r * ld + i] *= p->size;
        }
    }
    struct guarded first = guard_new(rows * out_ld), out = guard_new(rows * out_ld);
    struct attn_seg_args a = { .out_ld = out_ld,
                               .q = qkv,
                               .k = qkv + width,
                               .v = qkv + 2 * width,
                               .ld = ld,
                               .seg = p->seg,
                               .n_seg = p->n_seg,
                               .n_head = p->n_head,
                               .head_dim = p->head_dim,
                               .scale = 1.0f / sqrtf((float)p->head_dim) };
    for (int i = 0; i < ds->n; i++) {
        struct guarded *g = i == 0 ? &first : &out;
        a.out = g->p;
        guard_reset(g);
        ds->d[i]->ops->attn_seg(ds->d[i], &a);
        guard_check(g, out_ld, width, ds->d[i]->ops->name);
        bytes_same(g->p, first.p, rows * out_ld, ds->d[i]->ops->name);
        check_seg_alone(ds->d[i], &a, first.p);
        check_seg_rows(ds->d[i], &a, first.p);
    }
    a.out = first.p;
    check_seg_oracle(p, &a);
    guard_free(&first);
    guard_free(&out);
    mem_free(qkv);
}

static void test_seg(void)
{
    static const int32_t windows[] = { 0, 16, 16, 48, 49, 112, 145, 145, 209, 240 };
    static const int32_t whole[] = { 0, 165 }, ones[] = { 0, 1, 2, 3 };
    static const struct seg_problem problems[] = {
        { windows, 9, 3, 64, 1.0f }, { windows, 9, 2, 80, 8.0f }, { whole, 1, 2, 80, 1.0f },
        { whole, 1, 1, 4, 20.0f },   { ones, 3, 2, 20, 1.0f },    { whole, 1, 1, 128, 30.0f },
        { ones, 3, 1, 512, 1.0f },
    };
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(problems); i++) {
        check_seg(&ds, &problems[i]);
    }
    devices_close(&ds);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = { { "seg", test_seg } };
    return t_main(argc, argv, cases, COUNT(cases));
}
