/* check_gemm.c - matmul: against float64, across instruction sets, alone and among others. */
#include "tests/kernels/check.h"

struct problem {
    int rows, n_out, n_in;
    enum dtype type;
    enum fill kind;
    bool bias;
    float *x;      /* [rows][n_in] */
    float *w;      /* [n_out][n_in], what the stored type really holds */
    float *b;      /* [n_out] likewise */
    uint16_t *w16; /* the stored form, from one byte off an even address */
    uint16_t *b16;
};

static uint16_t to_half(float f, enum dtype type)
{
    return type == DTYPE_F16 ? f16_from_f32(f) : bf16_from_f32(f);
}

static void store(uint16_t *to, float *real, size_t n, enum dtype type)
{
    for (size_t i = 0; i < n && type != DTYPE_F32; i++) {
        const uint16_t h = to_half(real[i], type);
        memcpy((char *)to + 1 + 2 * i, &h, 2);
        real[i] = type == DTYPE_F16 ? f16_to_f32(h) : bf16_to_f32(h);
    }
}

static void problem_init(struct problem *p)
{
    const size_t nx = (size_t)p->rows * (size_t)p->n_in;
    const size_t nw = (size_t)p->n_out * (size_t)p->n_in, nb = (size_t)p->n_out;
    p->x = mem_array(nx, sizeof(float));
    p->w = mem_array(nw, sizeof(float));
    p->b = mem_array(nb, sizeof(float));
    p->w16 = mem_array(nw + 1, 2);
    p->b16 = mem_array(nb + 1, 2);
    T_OK(p->x && p->w && p->b && p->w16 && p->b16);
    fill(p->x, nx, p->kind);
    /* f16 reaches 65504 only: its weights stay ordinary. */
    const enum fill kind_w = p->type == DTYPE_F16 && p->kind != FILL_ZERO ? FILL_RANDOM : p->kind;
    fill(p->w, nw, kind_w);
    fill(p->b, nb, kind_w);
    store(p->w16, p->w, nw, p->type);
    store(p->b16, p->b, nb, p->type);
}

static void problem_free(struct problem *p)
{
    mem_free(p->x);
    mem_free(p->w);
    mem_free(p->b);
    mem_free(p->w16);
    mem_free(p->b16);
}

static struct linear *linear_of(struct device *d, const struct problem *p)
{
    const bool wide = p->type == DTYPE_F32;
    const struct tensor w = { p->type,
                              2,
                              { p->n_out, p->n_in },
                              wide ? (const void *)p->w : (const char *)p->w16 + 1,
                              NULL };
    const struct tensor b = {
        p->type, 1, { p->n_out }, wide ? (const void *)p->b : (const char *)p->b16 + 1, NULL
    };
    struct linear *l;
    struct galley_err err = { 0 };
    const struct linear_part part = { w, p->bias ? &b : NULL };
    if (d->ops->linear_new(d, &l, &part, 1, &err) != GALLEY_OK) {
        T_FAIL("%s", err.msg);
    }
    return l;
}

/* gemm.h's tolerance, element by element. */
static void check_oracle(const struct problem *p, const float *y, size_t ld)
{
    for (int r = 0; r < p->rows; r++) {
        for (int j = 0; j < p->n_out; j++) {
            double sum = p->bias ? (double)p->b[j] : 0.0, size = fabs(sum);
            for (int k = 0; k < p->n_in; k++) {
                const double product = (double)p->x[(size_t)r * (size_t)p->n_in + (size_t)k] *
                                       (double)p->w[(size_t)j * (size_t)p->n_in + (size_t)k];
                sum += product;
                size += fabs(product);
            }
            const double tol = (p->n_in + 1) * ldexp(size, -24) + p->n_in * ldexp(1.0, -149);
            T_NEAR((double)y[(size_t)r * ld + (size_t)j], sum, tol);
        }
    }
}

#include "tests/kernels/check_product.h"

#define WIDENED 67 /* rows: 16-bit weights are widened first on every CPU (kernels/cpu.c) */

static void test_rows(void)
{
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(check_rows); i++) {
        for (int type = 0; type < DTYPE_N_DENSE; type++) {
            check_problem(&ds, (struct problem){ .rows = check_rows[i],
                                                 .n_out = 77,
                                                 .n_in = 65,
                                                 .type = (enum dtype)type,
                                                 .bias = i % 2 });
        }
    }
    devices_close(&ds);
}

static void test_columns(void)
{
    static const int n_out[] = { 1,  7,  8,  9,  15, 16, 17, 23,  24,
                                 31, 32, 33, 47, 95, 96, 97, 129, 160 };
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(n_out); i++) {
        for (int rows = 1; rows <= 14; rows += i % 2 ? 1 : 3) {
            check_problem(&ds, (struct problem){ .rows = rows,
                                                 .n_out = n_out[i],
                                                 .n_in = 1 + (int)i,
                                                 .type = (enum dtype)((int)i % DTYPE_N_DENSE),
                                                 .bias = true });
        }
        check_problem(&ds, (struct problem){ .rows = WIDENED,
                                             .n_out = n_out[i],
                                             .n_in = 1 + (int)i,
                                             .type = (enum dtype)((int)i % DTYPE_N_DENSE),
                                             .bias = true });
    }
    devices_close(&ds);
}

/* Long sums cross the slices of GEMM_KC; enough work for the pool to be used. */
static void test_depth(void)
{
    static const int n_in[] = { GEMM_KC - 1, GEMM_KC, GEMM_KC + 1, 2 * GEMM_KC + 37 };
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(n_in); i++) {
        for (int k = 0; k < 2 * DTYPE_N_DENSE; k++) {
            check_problem(&ds, (struct problem){ .rows = k % 2 ? WIDENED : 29,
                                                 .n_out = 70,
                                                 .n_in = n_in[i],
                                                 .type = (enum dtype)(k / 2),
                                                 .bias = true });
        }
    }
    devices_close(&ds);
}

static void test_extremes(void)
{
    struct devices ds = devices_open();
    for (int kind = 0; kind < FILL_COUNT; kind++) {
        for (int type = 0; type < DTYPE_N_DENSE; type++) {
            check_problem(&ds, (struct problem){ .rows = 5,
                                                 .n_out = 34,
                                                 .n_in = 40,
                                                 .kind = (enum fill)kind,
                                                 .type = (enum dtype)type,
                                                 .bias = kind % 2 });
        }
    }
    devices_close(&ds);
}

static void test_refusals(void)
{
    struct devices ds = devices_open();
    struct device *d = ds.d[0];
    static const float data[12];
    const struct tensor bad[] = {
        { DTYPE_F32, 1, { 12 }, data, NULL },
        { DTYPE_F32, 2, { 0, 3 }, data, NULL },
        { DTYPE_F32, 2, { 3, 0 }, data, NULL },
        { DTYPE_F32, 2, { -1, 3 }, data, NULL },
        { DTYPE_F32, 3, { 2, INT32_MAX, INT32_MAX }, data, NULL },
        { DTYPE_F32, 2, { INT64_MAX, 1 }, data, NULL },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct linear *l;
        struct galley_err err = { 0 };
        T_EQ(d->ops->linear_new(d, &l, &(struct linear_part){ bad[i], NULL }, 1, &err),
             GALLEY_EMODEL);
        T_OK(!l && err.msg[0]);
    }
    const struct tensor w = { DTYPE_F32, 2, { 3, 4 }, data, NULL },
                        b = { DTYPE_F32, 1, { 4 }, data, NULL };
    struct linear *l;
    struct galley_err err = { 0 };
    T_EQ(d->ops->linear_new(d, &l, &(struct linear_part){ w, &b }, 1, &err), GALLEY_EMODEL);
    T_OK(!l && err.msg[0]);
    devices_close(&ds);
}

static void test_memory(void)
{
    static const float data[12];
    const struct tensor w = { DTYPE_F32, 2, { 3, 4 }, data, NULL },
                        b = { DTYPE_F32, 1, { 3 }, data, NULL };
    bool done = false;
    for (long n = 1; !done; n++) {
        T_OK(n < 20);
        struct galley_err err = { 0 };
        struct device *d;
        struct linear *l = NULL;
        mem_fail_at(n);
        enum galley_status rc = device_open_cpu(&d, "auto", 2, &err);
        if (rc == GALLEY_OK) {
            rc = d->ops->linear_new(d, &l, &(struct linear_part){ w, &b }, 1, &err);
        }
        mem_fail_at(0);
        if (rc == GALLEY_OK) {
            done = true;
            d->ops->linear_free(d, l);
        } else {
            T_EQ(rc, GALLEY_ENOMEM);
            T_OK(!l && err.msg[0]);
        }
        device_close(d);
    }
}

static void test_open(void)
{
    struct device *d;
    struct galley_err err = { 0 };
    T_EQ(device_open_cpu(&d, "sse9", 1, &err), GALLEY_EUSAGE);
    T_OK(!d && strstr(err.msg, "sse9"));
    T_EQ(device_open_cpu(&d, NULL, 1, &err), GALLEY_OK);
    static const char *const names[] = { "cpu-ref", "cpu-avx2", "cpu-avx512" };
    T_STR(d->ops->name, names[cpu_isa_best()]);
    device_close(d);
    if (cpu_isa_best() < CPU_AVX512) {
        T_EQ(device_open_cpu(&d, "avx512", 1, &err), GALLEY_EUNSUP);
        T_OK(!d && err.msg[0]);
    }
    device_close(NULL);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "open", test_open },     { "rows", test_rows },         { "columns", test_columns },
        { "depth", test_depth },   { "extremes", test_extremes }, { "refusals", test_refusals },
        { "memory", test_memory },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
