/* check_attn.c - attention over segments and over the paged cache. */
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

/* Two sequences in one cache whose blocks lie in disorder; garbage wherever no key is. */
#define N_BLOCKS 16
#define N_SEQ    2
#define KEYS_MAX (7 * KV_BLOCK)

struct paged {
    int n_head, n_kv_head, head_dim;
    enum kv_type type;
    float size;
    float *k, *v; /* [N_SEQ][KEYS_MAX][n_kv_head][head_dim], as the cache's type holds them */
    void *k_cache, *v_cache;
    float *q;
    int32_t seq[64], n_keys[64];
    int rows;
};

static const int32_t table_a[] = { 9, 2, 14, 0, 7, 5, 11 };
static const int32_t table_b[] = { 1, 13, 3, 12, 4, 8, 6 };
static const int32_t *const tables[N_SEQ] = { table_a, table_b };

static void paged_round(float *p, size_t n, enum kv_type type)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = type == KV_F32   ? p[i]
               : type == KV_F16 ? f16_to_f32(f16_from_f32(p[i]))
                                : bf16_to_f32(bf16_from_f32(p[i]));
    }
}

static void paged_init(struct paged *p)
{
    const size_t width = (size_t)p->n_kv_head * (size_t)p->head_dim;
    const size_t n = N_SEQ * KEYS_MAX * width;
    const size_t n_cache = N_BLOCKS * KV_BLOCK * width;
    p->k = mem_array(n, sizeof(float));
    p->v = mem_array(n, sizeof(float));
    p->k_cache = mem_array(n_cache, kv_array_block_bytes(p->type, 1, 1) / KV_BLOCK);
    p->v_cache = mem_array(n_cache, kv_array_block_bytes(p->type, 1, 1) / KV_BLOCK);
    p->q = mem_array((size_t)p->rows * (size_t)(p->n_head * p->head_dim), sizeof(float));
    T_OK(p->k && p->v && p->k_cache && p->v_cache && p->q);
    fill(p->k, n, FILL_RANDOM);
    fill(p->v, n, FILL_RANDOM);
    fill(p->q, (size_t)p->rows * (size_t)(p->n_head * p->head_dim), FILL_RANDOM);
    for (size_t i = 0; i < (size_t)p->rows * (size_t)(p->n_head * p->head_dim); i++) {
        p->q[i] *= p->size;
    }
    memset(p->k_cache, 0xff,
           n_cache * kv_array_block_bytes(p->type, 1, 1) / KV_BLOCK); /* NaNs: none may show */
    memset(p->v_cache, 0xff, n_cache * kv_array_block_bytes(p->type, 1, 1) / KV_BLOCK);
}

/* Writes the keys each sequence has, and no others, with some rows to skip in between. */
static void paged_write(struct device *d, struct paged *p)
{
    const size_t width = (size_t)p->n_kv_head * (size_t)p->head_dim;
    for (int s = 0; s < N_SEQ; s++) {
        int32_t slot[KEYS_MAX];
        int n = 0;
        for (int r = 0; r < p->rows; r++) {
            n = p->seq[r] == s && p->n_keys[r] > n ? p->n_keys[r] : n;
        }
        for (int i = 0; i < KEYS_MAX; i++) {
            slot[i] = i < n ? tables[s][i / KV_BLOCK] * KV_BLOCK + i % KV_BLOCK : -1;
        }
        const size_t at = (size_t)s * KEYS_MAX * width;
        d->ops->kv_write(d, &(struct kv_write_args){ .k_cache = p->k_cache,
                                                     .v_cache = p->v_cache,
                                                     .kv_type = p->type,
                                                     .k = p->k + at,
                                                     .v = p->v + at,
                                                     .ld = width,
                                                     .slot = slot,
                                                     .rows = KEYS_MAX,
                                                     .n_kv_head = p->n_kv_head,
                                                     .head_dim = p->head_dim });
    }
}

static struct attn_paged_args paged_args(const struct paged *p, float *out, size_t out_ld)
{
    return (struct attn_paged_args){ .out = out,
                                     .out_ld = out_ld,
                                     .q = p->q,
                                     .q_ld = (size_t)(p->n_head * p->head_dim),
                                     .k_cache = p->k_cache,
                                     .v_cache = p->v_cache,
                                     .kv_type = p->type,
                                     .block_table = tables,
                                     .seq = p->seq,
                                     .n_keys = p->n_keys,
                                     .rows = p->rows,
                                     .n_head = p->n_head,
                                     .n_kv_head = p->n_kv_head,
                                     .head_dim = p->head_dim,
                                     .scale = 1.0f / sqrtf((float)p->head_dim) };
}

static void paged_oracle(struct paged *p, const float *out, size_t out_ld)
{
    const size_t width = (size_t)p->n_kv_head * (size_t)p->head_dim, dim = (size_t)p->head_dim;
    double want[ATTN_HEAD_DIM_MAX];
    paged_round(p->k, N_SEQ * KEYS_MAX * width, p->type);
    paged_round(p->v, N_SEQ * KEYS_MAX * width, p->type);
    for (int r = 0; r < p->rows; r++) {
        for (int h = 0; h < p->n_head; h++) {
            const size_t kv = (size_t)(h / (p->n_head / p->n_kv_head)) * dim;
            const size_t at = (size_t)p->seq[r] * KEYS_MAX * width + kv;
            oracle(want, p->q + ((size_t)r * (size_t)p->n_head + (size_t)h) * dim, p->k + at,
                   p->v + at, width, p->n_keys[r], p->head_dim, 1.0 / sqrt(p->head_dim));
            for (size_t d = 0; d < dim; d++) {
                T_NEAR((double)out[(size_t)r * out_ld + (size_t)h * dim + d], want[d], 6e-6);
            }
        }
    }
}

/* Row r alone has the bits it has among all. */
static void paged_alone(struct device *d, const struct paged *p, const float *all, size_t out_ld)
{
    const size_t width = (size_t)(p->n_head * p->head_dim);
    float *one = mem_array(width, sizeof(float));
    T_OK(one);
    for (int r = 0; r < p->rows; r += 3) {
        struct attn_paged_args a = paged_args(p, one, width);
        a.q += (size_t)r * width;
        a.seq += r;
        a.n_keys += r;
        a.rows = 1;
        d->ops->attn_paged(d, &a);
        bytes_same(one, all + (size_t)r * out_ld, width, "row alone");
    }
    mem_free(one);
}

static void check_paged(struct devices *ds, struct paged p)
{
    paged_init(&p);
    const size_t width = (size_t)(p.n_head * p.head_dim), out_ld = width + 5;
    struct guarded first = guard_new((size_t)p.rows * out_ld);
    struct guarded out = guard_new((size_t)p.rows * out_ld);
    for (int i = 0; i < ds->n; i++) {
        struct guarded *g = i == 0 ? &first : &out;
        guard_reset(g);
        paged_write(ds->d[i], &p);
        const struct attn_paged_args a = paged_args(&p, g->p, out_ld);
        ds->d[i]->ops->attn_paged(ds->d[i], &a);
        guard_check(g, out_ld, width, ds->d[i]->ops->name);
        bytes_same(g->p, first.p, (size_t)p.rows * out_ld, ds->d[i]->ops->name);
        paged_alone(ds->d[i], &p, first.p, out_ld);
    }
    paged_oracle(&p, first.p, out_ld);
    guard_free(&first);
    guard_free(&out);
    mem_free(p.k);
    mem_free(p.v);
    mem_free(p.k_cache);
    mem_free(p.v_cache);
    mem_free(p.q);
}

static void test_paged(void)
{
    static const struct paged shapes[] = {
        { .n_head = 4, .n_kv_head = 2, .head_dim = 64, .type = KV_F32, .size = 1.0f },
        { .n_head = 7, .n_kv_head = 1, .head_dim = 128, .type = KV_F32, .size = 9.0f },
        { .n_head = 2, .n_kv_head = 2, .head_dim = 20, .type = KV_F16, .size = 1.0f },
        { .n_head = 4, .n_kv_head = 2, .head_dim = 80, .type = KV_BF16, .size = 4.0f },
        /* more heads in a group than one tile holds */
        { .n_head = 33, .n_kv_head = 1, .head_dim = 512, .type = KV_F32, .size = 1.0f },
    };
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(shapes); i++) {
        /* decode: one row of each sequence */
        struct paged p = shapes[i];
        p.rows = 2;
        p.seq[1] = 1;
        p.n_keys[0] = 1;
        p.n_keys[1] = KEYS_MAX;
        check_paged(&ds, p);
        /* a prompt's chunk and a draft to verify, both across block borders */
        p = shapes[i];
        const int n_chunk = p.head_dim < 512 ? 37 : 2, n_draft = p.head_dim < 512 ? 13 : 1;
        p.rows = n_chunk + n_draft;
        for (int r = 0; r < p.rows; r++) {
            p.seq[r] = r < n_chunk;
            p.n_keys[r] = r < n_chunk ? 63 - n_chunk / 2 + r : 185 + r - n_chunk;
        }
        check_paged(&ds, p);
    }
    devices_close(&ds);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = { { "seg", test_seg }, { "paged", test_paged } };
    return t_main(argc, argv, cases, COUNT(cases));
}
