/* bench_attn.c - attention in the shapes models have: part "attn" of bench_kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "src/base/mem.h"
#include "tests/kernels/bench.h"

struct paged_case {
    const char *name;
    int rows, n_keys; /* row r sees n_keys - rows + 1 + r keys */
    int n_head, n_kv_head, head_dim;
};

struct paged_bench {
    struct device *d;
    struct attn_paged_args a;
};

static void run_paged(void *arg)
{
    struct paged_bench *b = arg;
    b->d->ops->attn_paged(b->d, &b->a);
}

/* Blocks that follow a fixed disorder, so that no prefetcher of the hardware crosses them. */
static void fill_cache(struct device *d, struct attn_paged_args *a, int32_t *table, int n_blocks)
{
    const size_t width = (size_t)a->n_kv_head * (size_t)a->head_dim;
    const size_t bytes = kv_array_block_bytes(a->kv_type, a->n_kv_head, a->head_dim);
    void *k = bench_need(d->ops->alloc(d, (size_t)n_blocks * bytes));
    void *v = bench_need(d->ops->alloc(d, (size_t)n_blocks * bytes));
    float *from = bench_noise(KV_BLOCK * width);
    int32_t slot[KV_BLOCK];
    for (int b = 0; b < n_blocks; b++) {
        table[b] = (int32_t)((b * 7919L) % n_blocks);
        for (int i = 0; i < KV_BLOCK; i++) {
            slot[i] = b * KV_BLOCK + i;
        }
        d->ops->kv_write(d, &(struct kv_write_args){ .k_cache = k,
                                                     .v_cache = v,
                                                     .kv_type = a->kv_type,
                                                     .k = from,
                                                     .v = from,
                                                     .ld = width,
                                                     .slot = slot,
                                                     .rows = KV_BLOCK,
                                                     .n_kv_head = a->n_kv_head,
                                                     .head_dim = a->head_dim });
    }
    mem_free(from);
    a->k_cache = k;
    a->v_cache = v;
}

static void bench_paged_case(struct device *d, const struct paged_case *p, enum kv_type type)
{
    const int n_blocks = (p->n_keys + KV_BLOCK - 1) / KV_BLOCK;
    const size_t width = (size_t)p->n_head * (size_t)p->head_dim, rows = (size_t)p->rows;
    int32_t *table = bench_need(mem_array((size_t)n_blocks, sizeof(*table)));
    int32_t *seq = bench_need(mem_array(rows, sizeof(*seq)));
    int32_t *n_keys = bench_need(mem_array(rows, sizeof(*n_keys)));
    const int32_t *const tables[1] = { table };
    double keys = 0.0;
    for (int r = 0; r < p->rows; r++) {
        seq[r] = 0;
        n_keys[r] = p->n_keys - p->rows + 1 + r;
        keys += n_keys[r];
    }
    float *q = bench_noise(rows * width), *out = bench_noise(rows * width);
    struct paged_bench b = { d,
                             { .out = out,
                               .out_ld = width,
                               .q = q,
                               .q_ld = width,
                               .kv_type = type,
                               .block_table = tables,
                               .seq = seq,
                               .n_keys = n_keys,
                               .rows = p->rows,
                               .n_head = p->n_head,
                               .n_kv_head = p->n_kv_head,
                               .head_dim = p->head_dim,
                               .scale = 0.1f } };
    fill_cache(d, &b.a, table, n_blocks);
    const double t = bench_time(run_paged, &b);
    const double bytes =
        2.0 * n_blocks * (double)kv_array_block_bytes(type, p->n_kv_head, p->head_dim);
    printf("%s,%s,%d,%d,%d/%d,%d,%.1f,%.1f,%.2f\n", p->name, kv_type_name(type), p->rows, p->n_keys,
           p->n_head, p->n_kv_head, p->head_dim, 1e6 * t, 4e-9 * keys * (double)width / t,
           1e-9 * bytes / t);
    fflush(stdout);
    d->ops->free(d, (void *)b.a.k_cache);
    d->ops->free(d, (void *)b.a.v_cache);
    mem_free(table);
    mem_free(seq);
    mem_free(n_keys);
    mem_free(q);
    mem_free(out);
}

struct seg_bench {
    struct device *d;
    struct attn_seg_args a;
};

static void run_seg(void *arg)
{
    struct seg_bench *b = arg;
    b->d->ops->attn_seg(b->d, &b->a);
}

static void bench_seg_case(struct device *d, const char *name, int rows, int length)
{
    enum { HEADS = 16, DIM = 80 };
    const size_t width = (size_t)HEADS * DIM;
    const int n_seg = (rows + length - 1) / length;
    int32_t *seg = bench_need(mem_array((size_t)n_seg + 1, sizeof(*seg)));
    double pairs = 0.0;
    for (int i = 0; i <= n_seg; i++) {
        seg[i] = i * length < rows ? i * length : rows;
        pairs += i > 0 ? (double)(seg[i] - seg[i - 1]) * (seg[i] - seg[i - 1]) : 0.0;
    }
    float *qkv = bench_noise((size_t)rows * 3 * width), *out = bench_noise((size_t)rows * width);
    struct seg_bench b = { d,
                           { .out = out,
                             .out_ld = width,
                             .q = qkv,
                             .k = qkv + width,
                             .v = qkv + 2 * width,
                             .ld = 3 * width,
                             .seg = seg,
                             .n_seg = n_seg,
                             .n_head = HEADS,
                             .head_dim = DIM,
                             .scale = 0.1f } };
    const double t = bench_time(run_seg, &b);
    printf("%s,f32,%d,%d,%d/%d,%d,%.1f,%.1f,\n", name, rows, length, HEADS, HEADS, DIM, 1e6 * t,
           4e-9 * pairs * (double)width / t);
    fflush(stdout);
    mem_free(seg);
    mem_free(qkv);
    mem_free(out);
}

void bench_attn(struct device *d, bool on_wall)
{
    static const struct paged_case cases[] = {
        { "prefill", 512, 512, 16, 2, 128 }, { "prefill", 4096, 4096, 14, 2, 64 },
        { "prefill", 512, 512, 8, 8, 64 },   { "decode", 1, 4096, 16, 2, 128 },
        { "decode", 1, 4096, 14, 2, 64 },    { "decode", 1, 16384, 28, 4, 128 },
        { "decode", 1, 16384, 14, 2, 64 },   { "verify", 16, 4096, 16, 2, 128 },
    };
    bench_on_wall = on_wall;
    printf("attention,kv,rows,keys,heads,head_dim,us,gflops,kv_gbytes\n");
    bench_seg_case(d, "windows", 6633, 64);
    bench_seg_case(d, "whole", 6633, 6633);
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (enum kv_type t = KV_F32; t < KV_TYPE_COUNT; t++) {
            bench_paged_case(d, &cases[i], t);
        }
    }
}
