/* bench_kernels.c - the GEMM against oneDNN, the other kernels against the machine's roofs.
 *
 * CSV on stdout.  bench_kernels [threads [isa [roof|rows|attn|gemm|qgemm [type]]]]; nothing is
 * asserted here: timings on a shared machine are for people.  oneDNN multiplies f32 by f32 in every
 * row of the table: it has no f32 x bf16 product, and bf16 x bf16 would round the activations. */
#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "src/base/half.h"
#include "src/base/mem.h"
#include "tests/kernels/bench.h"

/* --- oneDNN: an inner product whose weights it may lay out as it likes --- */
struct peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t product;
    dnnl_memory_t memory[3];
    dnnl_exec_arg_t args[3];
};

static void ok(dnnl_status_t s, const char *what)
{
    if (s != dnnl_success) {
        fprintf(stderr, "bench_kernels: oneDNN %s failed with %d\n", what, (int)s);
        exit(1);
    }
}

static dnnl_memory_desc_t desc(const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t d;
    ok(dnnl_memory_desc_init_by_tag(&d, 2, dims, dnnl_f32, tag), "memory description");
    return d;
}

static dnnl_memory_t memory_of(struct peer *p, const dnnl_memory_desc_t *d, void *data)
{
    dnnl_memory_t m;
    ok(dnnl_memory_create(&m, d, p->engine, data), "memory");
    return m;
}

static void weights_in(struct peer *p, const dnnl_memory_desc_t *plain, dnnl_memory_t to, float *w)
{
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t copy;
    const dnnl_memory_desc_t *want;
    dnnl_memory_t from = memory_of(p, plain, w);
    ok(dnnl_memory_get_memory_desc(to, &want), "description");
    ok(dnnl_reorder_primitive_desc_create(&pd, plain, p->engine, want, p->engine, NULL), "reorder");
    ok(dnnl_primitive_create(&copy, pd), "reorder");
    const dnnl_exec_arg_t args[2] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    ok(dnnl_primitive_execute(copy, p->stream, 2, args), "reorder");
    ok(dnnl_stream_wait(p->stream), "wait");
    dnnl_primitive_destroy(copy);
    dnnl_primitive_desc_destroy(pd);
    dnnl_memory_destroy(from);
}

static void peer_open(struct peer *p, float *x, float *w, float *y, int rows, int n_in, int n_out)
{
    const dnnl_dims_t dx = { rows, n_in }, dw = { n_out, n_in }, dy = { rows, n_out };
    const dnnl_memory_desc_t mx = desc(dx, dnnl_ab), my = desc(dy, dnnl_ab),
                             plain = desc(dw, dnnl_ab);
    const dnnl_memory_desc_t any = desc(dw, dnnl_format_tag_any);
    dnnl_inner_product_desc_t ip;
    dnnl_primitive_desc_t pd;
    ok(dnnl_engine_create(&p->engine, dnnl_cpu, 0), "engine");
    ok(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags), "stream");
    ok(dnnl_inner_product_forward_desc_init(&ip, dnnl_forward_inference, &mx, &any, NULL, &my),
       "inner product");
    ok(dnnl_primitive_desc_create(&pd, &ip, NULL, p->engine, NULL), "inner product");
    ok(dnnl_primitive_create(&p->product, pd), "inner product");
    p->memory[0] = memory_of(p, &mx, x);
    p->memory[1] = memory_of(p, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0),
                             DNNL_MEMORY_ALLOCATE);
    p->memory[2] = memory_of(p, &my, y);
    weights_in(p, &plain, p->memory[1], w);
    p->args[0] = (dnnl_exec_arg_t){ DNNL_ARG_SRC, p->memory[0] };
    p->args[1] = (dnnl_exec_arg_t){ DNNL_ARG_WEIGHTS, p->memory[1] };
    p->args[2] = (dnnl_exec_arg_t){ DNNL_ARG_DST, p->memory[2] };
    dnnl_primitive_desc_destroy(pd);
}

static void peer_close(struct peer *p)
{
    dnnl_primitive_destroy(p->product);
    for (int i = 0; i < 3; i++) {
        dnnl_memory_destroy(p->memory[i]);
    }
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

static void peer_run(void *arg)
{
    struct peer *p = arg;
    dnnl_primitive_execute(p->product, p->stream, 3, p->args);
    dnnl_stream_wait(p->stream);
}

struct ours {
    struct device *d;
    struct linear *l;
    float *x, *y;
    int rows, n_in, n_out;
};

static void ours_run(void *arg)
{
    struct ours *o = arg;
    o->d->ops->matmul(o->d, o->y, (size_t)o->n_out, o->l, o->x, (size_t)o->n_in, o->rows);
}

static struct linear *pack(struct device *d, float *w, int n_out, int n_in, enum dtype type)
{
    const size_t n = (size_t)n_out * (size_t)n_in;
    uint16_t *half = bench_need(mem_array(n, sizeof(*half)));
    for (size_t i = 0; i < n; i++) {
        half[i] = bf16_from_f32(w[i]);
    }
    const struct tensor t = {
        type, 2, { n_out, n_in }, type == DTYPE_F32 ? (void *)w : (void *)half, NULL
    };
    struct linear *l;
    struct galley_err err = { 0 };
    if (d->ops->linear_new(d, &l, &(struct linear_part){ t, NULL }, 1, &err) != GALLEY_OK) {
        fprintf(stderr, "bench_kernels: %s\n", err.msg);
        exit(1);
    }
    mem_free(half);
    return l;
}

static void bench_gemm(struct device *d)
{
    static const int shapes[][2] = { { 256, 256 },  { 256, 768 },   { 768, 256 },
                                     { 2048, 256 }, { 2048, 2048 }, { 2048, 11008 } };
    static const int rows[] = { 1, 4, 16, 64, 256 };
    printf("n_out,n_in,rows,weights,us,gflops,weight_gbytes,onednn_us,ours_per_onednn\n");
    for (size_t s = 0; s < COUNT(shapes); s++) {
        const int n_out = shapes[s][0], n_in = shapes[s][1];
        float *w = bench_noise((size_t)n_out * (size_t)n_in);
        for (size_t r = 0; r < COUNT(rows); r++) {
            float *x = bench_noise((size_t)rows[r] * (size_t)n_in);
            float *y = bench_noise((size_t)rows[r] * (size_t)n_out);
            struct peer p;
            peer_open(&p, x, w, y, rows[r], n_in, n_out);
            for (int bf16 = 0; bf16 < 2; bf16++) {
                const enum dtype type = bf16 ? DTYPE_BF16 : DTYPE_F32;
                struct ours o = { d, pack(d, w, n_out, n_in, type), x, y, rows[r], n_in, n_out };
                double best[2];
                bench_pair(best, (bench_fn *[2]){ ours_run, peer_run }, (void *[2]){ &o, &p });
                const double us = 1e6 * best[0];
                const double n = (double)n_out * n_in;
                printf("%d,%d,%d,%s,%.2f,%.1f,%.1f,%.2f,%.2f\n", n_out, n_in, rows[r],
                       dtype_name(type), us, 2e-3 * n * rows[r] / us,
                       n * (double)dtype_bytes(type) / us * 1e-3, 1e6 * best[1], best[1] / best[0]);
                fflush(stdout);
                d->ops->linear_free(d, o.l);
            }
            peer_close(&p);
            mem_free(x);
            mem_free(y);
        }
        mem_free(w);
    }
}

/* --- the others --- */
struct rows_job {
    struct device *d;
    float *x, *y, *w;
    int rows, dim;
    struct logit_top top;
};

static void run_rms(void *arg)
{
    struct rows_job *j = arg;
    j->d->ops->rms_norm(j->d, j->y, j->x, j->w, j->rows, j->dim, 1e-6f);
}

static void run_silu(void *arg)
{
    struct rows_job *j = arg;
    j->d->ops->gated(j->d, j->y, j->x, j->rows, j->dim / 2, ACT_SILU);
}

static void run_gelu(void *arg)
{
    struct rows_job *j = arg;
    j->d->ops->gated(j->d, j->y, j->x, j->rows, j->dim / 2, ACT_GELU_ERF);
}

static void run_top1(void *arg)
{
    struct rows_job *j = arg;
    j->d->ops->top1(j->d, &j->top, j->x, (size_t)j->dim, 1, j->dim);
}

static void report(const char *what, struct rows_job *j, bench_fn *fn, double flops, double bytes)
{
    const double t = bench_time(fn, j);
    printf("%s,%d,%d,%.2f,%.1f,%.1f\n", what, j->rows, j->dim, 1e6 * t, 1e-9 * flops / t,
           1e-9 * bytes / t);
    fflush(stdout);
}

static void bench_elements(struct rows_job *j, int rows, int dim)
{
    const double n = (double)rows * dim;
    j->rows = rows;
    j->dim = dim;
    report("rms_norm", j, run_rms, 4 * n, 8 * n);
    report("gated_silu", j, run_silu, 0, 6 * n);
    report("gated_gelu_erf", j, run_gelu, 0, 6 * n);
}

static void bench_others(struct device *d)
{
    struct rows_job j = { .d = d,
                          .x = bench_noise(256 * 3072),
                          .y = bench_noise(256 * 3072),
                          .w = bench_noise(1 << 18) };
    printf("kernel,rows,dim,us,gflops,gbytes\n");
    bench_elements(&j, 1, 256);
    bench_elements(&j, 16, 1536);
    bench_elements(&j, 256, 1536);
    j.rows = 1;
    j.dim = 2048;
    report("top1", &j, run_top1, 0, 4.0 * 2048);
    j.dim = 151936;
    report("top1", &j, run_top1, 0, 4.0 * 151936);
    mem_free(j.x);
    mem_free(j.y);
    mem_free(j.w);
}

static void bench_roof(void)
{
    for (int i = CPU_AVX2; i <= (int)cpu_isa_best(); i++) {
        printf("peak of one thread,%s,GFLOP/s,%.1f\n", i == CPU_AVX2 ? "avx2" : "avx512",
               1e-9 * bench_peak_flops(i));
    }
    printf("read of one thread,32 KiB,GB/s,%.1f\n", 1e-9 * bench_read_bytes(32 << 10));
    printf("read of one thread,1 MiB,GB/s,%.1f\n", 1e-9 * bench_read_bytes(1 << 20));
    printf("read of one thread,512 MiB,GB/s,%.1f\n", 1e-9 * bench_read_bytes((size_t)512 << 20));
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const char *isa = argc > 2 ? argv[2] : "auto";
    const char *part = argc > 3 ? argv[3] : NULL;
    struct device *d;
    struct galley_err err = { 0 };
    if (device_open_cpu(&d, isa, threads, &err) != GALLEY_OK) {
        fprintf(stderr, "bench_kernels: %s\n", err.msg);
        return 1;
    }
    bench_on_wall = threads != 1;
    omp_set_num_threads(threads);
    printf("device,%s,threads,%d,clock,%s\n", d->ops->name, threads,
           bench_on_wall ? "wall" : "cpu");
    if (!part || strcmp(part, "roof") == 0) {
        bench_roof();
    }
    if (!part || strcmp(part, "rows") == 0) {
        bench_others(d);
    }
    if (!part || strcmp(part, "attn") == 0) {
        bench_attn(d, bench_on_wall);
    }
    if (!part || strcmp(part, "gemm") == 0) {
        bench_gemm(d);
    }
    if (!part || strcmp(part, "qgemm") == 0) {
        bench_qgemm(d, threads, argc > 4 ? argv[4] : NULL);
    }
    device_close(d);
    return 0;
}
