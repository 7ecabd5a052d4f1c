/* check_qgemm.c - products with block-quantised weights: against float64 from decoded weights and
 * quantised rows, across instruction sets and threads, alone and among others. */
#include "tests/kernels/check.h"

#include "kernels/qgemm.h"
#include "kernels/quant.h"

enum blocks { BLOCKS_RANDOM, BLOCKS_ZERO, BLOCKS_MAX, BLOCKS_TINY, BLOCKS_LARGE, BLOCKS_COUNT };

struct problem {
    int rows, n_out, n_in;
    enum dtype type;
    enum blocks kind;
    enum fill fill;
    bool one_sign; /* of the rows */
    bool bias;
    float *x;    /* [rows][n_in] */
    uint8_t *w;  /* n_out rows of blocks, one byte off */
    float *real; /* [n_out][n_in]: w decoded */
    float *b;    /* [n_out] */
    float *xq;   /* [rows][n_in]: codes times scale */
    int n_steps; /* of the float chain */
};

/* Scales are f16 at these bytes of a block (-1: none). */
static void scales_at(enum dtype t, int at[2])
{
    static const int8_t places[DTYPE_COUNT][2] = {
        [DTYPE_Q4_0] = { 0, -1 },   [DTYPE_Q4_1] = { 0, 2 },    [DTYPE_Q5_0] = { 0, -1 },
        [DTYPE_Q5_1] = { 0, 2 },    [DTYPE_Q8_0] = { 0, -1 },   [DTYPE_Q2_K] = { 80, 82 },
        [DTYPE_Q3_K] = { 108, -1 }, [DTYPE_Q4_K] = { 0, 2 },    [DTYPE_Q5_K] = { 0, 2 },
        [DTYPE_Q6_K] = { -1, -1 },  [DTYPE_IQ4_NL] = { 0, -1 }, [DTYPE_IQ4_XS] = { 0, -1 },
        [DTYPE_MXFP4] = { -1, -1 },
    };
    at[0] = t == DTYPE_Q6_K ? 208 : places[t][0];
    at[1] = places[t][1];
}

static void block_fill(uint8_t *block, enum dtype t, enum blocks kind)
{
    const int n = dtype_info(t)->n_bytes;
    for (int i = 0; i < n; i++) {
        block[i] = kind == BLOCKS_ZERO  ? 0
                   : kind == BLOCKS_MAX ? (check_bits() % 8 ? 0xff : 0x80)
                                        : (uint8_t)check_bits();
    }
    if (t == DTYPE_MXFP4) {
        block[0] = kind == BLOCKS_TINY    ? (uint8_t)(check_bits() % 3)
                   : kind == BLOCKS_LARGE ? (uint8_t)(200 + check_bits() % 8)
                                          : (uint8_t)(118 + check_bits() % 8);
    }
    int at[2];
    scales_at(t, at);
    for (int i = 0; i < 2; i++) {
        if (at[i] >= 0) {
            const float u = check_uniform();
            const uint16_t h = kind == BLOCKS_TINY    ? (uint16_t)(check_bits() & 0x83ff)
                               : kind == BLOCKS_ZERO  ? 0
                               : kind == BLOCKS_LARGE ? f16_from_f32(60000.0f * u)
                                                      : f16_from_f32(0.01f * u);
            memcpy(block + at[i], &h, 2);
        }
    }
}

static void *need(size_t n, size_t size)
{
    void *p = mem_array(n, size);
    T_OK(p);
    return p;
}

/* What the contract says the rows become, written from the definition of Q8_0 and Q8_K alone. */
static void rows_quantise(struct problem *p)
{
    const int each = dtype_info(p->type)->block;
    for (size_t i = 0; i < (size_t)p->rows * (size_t)p->n_in; i += (size_t)each) {
        const float *x = p->x + i;
        float max = 0.0f;
        for (int k = 0; k < each; k++) {
            max = fabsf(x[k]) > fabsf(max) ? x[k] : max;
        }
        float inverse = each == 32 ? 127.0f / fabsf(max) : -127.0f / max;
        float d = each == 32 ? f16_to_f32(f16_from_f32(fabsf(max) / 127.0f)) : 1.0f / inverse;
        if (!isfinite(inverse)) {
            inverse = d = 0.0f;
        }
        for (int k = 0; k < each; k++) {
            const float code = nearbyintf(inverse * x[k]);
            p->xq[i + (size_t)k] = d * (code > 127.0f ? 127.0f : code); /* exact enough below */
        }
    }
}

/* Rows whose codes have one sign: of 32 some are 127, the next one 25 or 26.  Seventeen and a 25
 * times 15, the largest code of Q4_K, is the last sum below 2^15, one and a 26 the first beyond. */
static void fill_one_sign(float *x, int rows, int n_in)
{
    for (int r = 0; r < rows; r++) {
        const int n = 16 + r % 17;
        for (int k = 0; k < n_in; k++) {
            const float v = k % 32 < n ? 1.0f : k % 32 == n ? (float)(25 + r % 2) / 127.0f : 0.0f;
            x[(size_t)r * (size_t)n_in + (size_t)k] = k / 256 % 2 ? -v : v;
        }
    }
}

static void problem_init(struct problem *p)
{
    const size_t n_in = (size_t)p->n_in, n_out = (size_t)p->n_out, nx = (size_t)p->rows * n_in;
    const size_t row_bytes = (size_t)dtype_row_bytes(p->type, n_in);
    p->x = need(nx, sizeof(float));
    p->xq = need(nx, sizeof(float));
    p->w = need(n_out * row_bytes + 1, 1);
    p->real = need(n_out * n_in, sizeof(float));
    p->b = need(n_out, sizeof(float));
    fill(p->x, nx, p->fill);
    if (p->one_sign) {
        fill_one_sign(p->x, p->rows, p->n_in);
    }
    fill(p->b, n_out, FILL_RANDOM);
    for (size_t i = 0; i < n_out * row_bytes; i += (size_t)dtype_info(p->type)->n_bytes) {
        block_fill(p->w + 1 + i, p->type, p->kind);
    }
    for (size_t j = 0; j < n_out; j++) {
        quant_decode(p->real + j * n_in, p->w + 1 + j * row_bytes, p->type, n_in);
    }
    rows_quantise(p);
}

static void problem_free(struct problem *p)
{
    mem_free(p->x);
    mem_free(p->xq);
    mem_free(p->w);
    mem_free(p->real);
    mem_free(p->b);
}

static struct linear *linear_of(struct device *d, const struct problem *p)
{
    const struct tensor b = { DTYPE_F32, 1, { p->n_out }, p->b, NULL };
    const struct linear_part part = { { p->type, 2, { p->n_out, p->n_in }, p->w + 1, NULL },
                                      p->bias ? &b : NULL };
    struct linear *l;
    struct galley_err err = { 0 };
    if (d->ops->linear_new(d, &l, &part, 1, &err) != GALLEY_OK) {
        T_FAIL("%s", err.msg);
    }
    return l;
}

/* qgemm.h's tolerance.  Where a weight is a difference of two terms (a minimum), both count: the
 * bound takes |w| + 2 |smallest weight of the block| for the size of the terms. */
static void check_oracle(const struct problem *p, const float *y, size_t ld)
{
    const enum qgemm_form form = qgemm_form_of(p->type);
    const bool min = form == QGEMM_K32_MIN || form == QGEMM_K16_MIN || form == QGEMM_BLOCK_MIN;
    const int sub = form == QGEMM_K16 || form == QGEMM_K16_MIN ? 16 : 32;
    const double n_steps = 2.0 * p->n_in / sub + 8.0;
    for (int r = 0; r < p->rows; r++) {
        const float *x = p->xq + (size_t)r * (size_t)p->n_in;
        for (int j = 0; j < p->n_out; j++) {
            const float *w = p->real + (size_t)j * (size_t)p->n_in;
            double sum = p->bias ? (double)p->b[j] : 0.0, size = fabs(sum);
            for (int k = 0; k < p->n_in; k++) {
                double most = fabs((double)w[k]);
                for (int i = k / sub * sub; min && i < k / sub * sub + sub; i++) {
                    most = fmax(most, 64.0 * fabs((double)w[i]));
                }
                sum += (double)x[k] * (double)w[k];
                size += fabs((double)x[k]) * most;
            }
            T_NEAR((double)y[(size_t)r * ld + (size_t)j], sum,
                   (2.0 * n_steps + 4.0) * ldexp(size, -24) + n_steps * ldexp(1.0, -149));
        }
    }
}

#include "tests/kernels/check_product.h"

#define N_QUANT (DTYPE_COUNT - DTYPE_N_DENSE)

static enum dtype quant_type(size_t i)
{
    return (enum dtype)(DTYPE_N_DENSE + (int)(i % N_QUANT));
}

/* An emulated old CPU has the reference alone, which does not care for tiles of rows. */
static bool worth(int rows)
{
    return cpu_isa_best() > CPU_REF || rows <= 9;
}

static void test_rows(void)
{
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(check_rows) && worth(check_rows[i]); i++) {
        for (size_t t = 0; t < N_QUANT; t++) {
            check_problem(&ds, (struct problem){ .rows = check_rows[i],
                                                 .n_out = 35,
                                                 .n_in = 256,
                                                 .type = quant_type(t),
                                                 .bias = i % 2 });
        }
    }
    devices_close(&ds);
}

static void test_shapes(void)
{
    static const int n_out[] = { 1, 15, 16, 17, 31, 32, 33, 64, 97 };
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(n_out); i++) {
        for (size_t t = 0; t < N_QUANT; t++) {
            const enum dtype type = quant_type(t);
            const int block = dtype_info(type)->block;
            check_problem(&ds, (struct problem){ .rows = 1 + (int)((i + t) % 7),
                                                 .n_out = n_out[i],
                                                 .n_in = block == 32 ? 32 * (1 + (int)(i * 5 % 19))
                                                                     : 256 * (1 + (int)(i % 3)),
                                                 .type = type,
                                                 .bias = true });
        }
    }
    devices_close(&ds);
}

static void test_extremes(void)
{
    static const enum fill fills[] = { FILL_RANDOM, FILL_TINY, FILL_MIXED, FILL_ZERO };
    struct devices ds = devices_open();
    for (size_t t = 0; t < N_QUANT; t++) {
        for (int kind = 0; kind < BLOCKS_COUNT; kind++) {
            for (size_t f = 0; f < COUNT(fills); f++) {
                check_problem(&ds, (struct problem){ .rows = 3,
                                                     .n_out = 33,
                                                     .n_in = 512,
                                                     .kind = (enum blocks)kind,
                                                     .fill = fills[f],
                                                     .type = quant_type(t) });
            }
        }
    }
    devices_close(&ds);
}

/* Dots as large as they get, alone and beside small ones, around the limit of 16 bits. */
static void test_one_sign(void)
{
    static const int rows[] = { 2, 19, 35 };
    struct devices ds = devices_open();
    for (size_t t = 0; t < N_QUANT; t++) {
        for (size_t i = 0; i < COUNT(rows); i++) {
            check_problem(&ds, (struct problem){ .rows = rows[i],
                                                 .n_out = 65,
                                                 .n_in = 512,
                                                 .kind = i == 1 ? BLOCKS_RANDOM : BLOCKS_MAX,
                                                 .one_sign = true,
                                                 .type = quant_type(t) });
        }
    }
    devices_close(&ds);
}

/* Every row index, with other rows that are garbage: more than one slab, piece and register tile.
 */
static void test_among_garbage(void)
{
    struct devices ds = devices_open();
    for (size_t t = 0; t < N_QUANT; t++) {
        struct problem p = { .rows = 128, .n_out = 33, .n_in = 256, .type = quant_type(t) };
        problem_init(&p);
        const size_t n_in = 256, n_out = 33;
        float *one = need(n_out, sizeof(float)), *all = need(128 * n_out, sizeof(float));
        float *x = need(128 * n_in, sizeof(float));
        struct device *d = ds.d[ds.n - 1];
        struct linear *l = linear_of(d, &p);
        d->ops->matmul(d, one, n_out, l, p.x, n_in, 1);
        for (size_t i = 0; i < COUNT(check_rows) && worth(check_rows[i]); i++) {
            const int rows = check_rows[i];
            for (int r = 0; r < rows; r++) {
                fill(x, (size_t)rows * n_in, r % 2 ? FILL_HUGE : FILL_MIXED);
                memcpy(x + (size_t)r * n_in, p.x, n_in * sizeof(*x));
                d->ops->matmul(d, all, n_out, l, x, n_in, rows);
                bytes_same(all + (size_t)r * n_out, one, n_out, "among garbage");
            }
        }
        d->ops->linear_free(d, l);
        mem_free(one);
        mem_free(all);
        mem_free(x);
        problem_free(&p);
    }
    devices_close(&ds);
}

/* Slabs of rows: the rows on both sides of each border, alone. */
static void test_many_rows(void)
{
    static const enum dtype types[] = { DTYPE_Q4_K, DTYPE_Q8_0 };
    struct devices ds = devices_open();
    for (size_t t = 0; t < COUNT(types); t++) {
        struct problem p = { .rows = CPU_QROWS + 100, .n_out = 40, .n_in = 256, .type = types[t] };
        problem_init(&p);
        float *y = need((size_t)p.rows * 40, sizeof(float));
        struct device *d = ds.d[ds.n - 1];
        struct linear *l = linear_of(d, &p);
        d->ops->matmul(d, y, 40, l, p.x, 256, p.rows);
        check_alone(d, &p, l, y, 40, CPU_QROWS - 1, 1);
        check_alone(d, &p, l, y, 40, CPU_QROWS, 1);
        check_alone(d, &p, l, y, 40, p.rows - 1, 1);
        check_alone(d, &p, l, y, 40, CPU_QROWS - 50, 100);
        d->ops->linear_free(d, l);
        mem_free(y);
        problem_free(&p);
    }
    devices_close(&ds);
}

/* Parts of several types side by side are what they are alone. */
static void test_parts(void)
{
    static const enum dtype types[] = { DTYPE_Q4_K, DTYPE_Q8_0, DTYPE_F32, DTYPE_Q6_K, DTYPE_BF16 };
    struct devices ds = devices_open();
    for (int i = 0; i < ds.n; i++) {
        struct device *d = ds.d[i];
        struct linear_part parts[COUNT(types)];
        static uint8_t data[COUNT(types)][70 * 256 * 4];
        float x[9 * 256], y[9 * 350], alone[9 * 70];
        fill(x, COUNT(x), FILL_RANDOM);
        for (size_t t = 0; t < COUNT(types); t++) {
            float row[256];
            for (size_t j = 0; j < 70; j++) {
                fill(row, 256, FILL_RANDOM);
                quant_encode(data[t] + j * (size_t)dtype_row_bytes(types[t], 256), row, NULL,
                             types[t], 256);
            }
            parts[t] = (struct linear_part){ { types[t], 2, { 70, 256 }, data[t], NULL }, NULL };
        }
        struct linear *all, *one;
        struct galley_err err = { 0 };
        T_EQ(d->ops->linear_new(d, &all, parts, COUNT(types), &err), GALLEY_OK);
        d->ops->matmul(d, y, 350, all, x, 256, 9);
        for (size_t t = 0; t < COUNT(types); t++) {
            T_EQ(d->ops->linear_new(d, &one, &parts[t], 1, &err), GALLEY_OK);
            T_OK(d->ops->linear_bytes(one) >= dtype_row_bytes(types[t], 256) * 70);
            d->ops->matmul(d, alone, 70, one, x, 256, 9);
            for (size_t r = 0; r < 9; r++) {
                bytes_same(y + r * 350 + t * 70, alone + r * 70, 70, "a part");
            }
            d->ops->linear_free(d, one);
        }
        d->ops->linear_free(d, all);
    }
    devices_close(&ds);
}

static void same_as_dense(struct device *d, struct problem p)
{
    problem_init(&p);
    const size_t n_out = (size_t)p.n_out, n = (size_t)p.rows * n_out;
    float *y = need(n, sizeof(float)), *real = need(n, sizeof(float));
    const struct tensor b = { DTYPE_F32, 1, { p.n_out }, p.b, NULL };
    const struct linear_part part = { { DTYPE_F32, 2, { p.n_out, p.n_in }, p.real, NULL },
                                      p.bias ? &b : NULL };
    struct galley_err err = { 0 };
    struct linear *l = linear_of(d, &p), *f;
    T_EQ(d->ops->linear_new(d, &f, &part, 1, &err), GALLEY_OK);
    d->ops->matmul(d, y, n_out, l, p.x, (size_t)p.n_in, p.rows);
    d->ops->matmul(d, real, n_out, f, p.x, (size_t)p.n_in, p.rows);
    bytes_same(y, real, n, dtype_name(p.type));
    d->ops->linear_free(d, l);
    d->ops->linear_free(d, f);
    mem_free(y);
    mem_free(real);
    problem_free(&p);
}

/* Exact linears have the bits of a dense matrix of the decoded weights, for any rows. */
static void test_exact(void)
{
    static const int rows[] = { 1, 2, 3, 13, 70 };
    struct devices ds = devices_open();
    for (int i = 0; i < ds.n; i++) {
        ds.d[i]->ops->set_exact(ds.d[i], true);
        for (size_t t = 0; t < N_QUANT; t++) {
            const bool block = dtype_info(quant_type(t))->block == 32;
            for (size_t r = 0; r < COUNT(rows) && worth(rows[r]); r++) {
                same_as_dense(ds.d[i], (struct problem){ .rows = rows[r],
                                                         .n_out = r % 2 ? 97 : 33,
                                                         .n_in = block ? 32 * (5 + 12 * (int)r)
                                                                       : 256 * (1 + (int)r),
                                                         .kind = (enum blocks)(r % BLOCKS_COUNT),
                                                         .type = quant_type(t),
                                                         .bias = r % 2 });
            }
        }
    }
    devices_close(&ds);
}

/* Infinities and NaNs show in their own row and nowhere else. */
static void test_not_finite(void)
{
    static const enum dtype types[] = { DTYPE_Q4_K, DTYPE_Q6_K, DTYPE_Q8_0, DTYPE_Q4_1 };
    struct devices ds = devices_open();
    for (size_t t = 0; t < COUNT(types); t++) {
        struct problem p = { .rows = 3, .n_out = 33, .n_in = 512, .type = types[t] };
        problem_init(&p);
        for (int i = 0; i < ds.n; i++) {
            struct device *d = ds.d[i];
            float x[3 * 512], y[3 * 33], clean[3 * 33];
            struct linear *l = linear_of(d, &p);
            d->ops->matmul(d, clean, 33, l, p.x, 512, 3);
            memcpy(x, p.x, sizeof(x));
            x[512 + 300] = i % 2 ? NAN : INFINITY;
            d->ops->matmul(d, y, 33, l, x, 512, 3);
            for (size_t j = 0; j < 33; j++) {
                T_OK(isnan(y[33 + j]));
            }
            bytes_same(y, clean, 33, "the row before");
            bytes_same(y + 66, clean + 66, 33, "the row after");
            d->ops->linear_free(d, l);
        }
        problem_free(&p);
    }
    devices_close(&ds);
}

static void test_refusals(void)
{
    static const uint8_t data[4 * 256];
    struct devices ds = devices_open();
    struct device *d = ds.d[0];
    const struct tensor fine = { DTYPE_Q4_0, 2, { 3, 64 }, data, NULL },
                        part_block = { DTYPE_Q4_K, 2, { 3, 128 }, data, NULL },
                        other = { DTYPE_Q4_0, 2, { 3, 32 }, data, NULL },
                        bias = { DTYPE_Q8_0, 1, { 3 }, data, NULL };
    const struct linear_part bad[][2] = {
        { { part_block, NULL }, { part_block, NULL } },
        { { fine, NULL }, { other, NULL } },
        { { fine, NULL }, { fine, &bias } },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct linear *l;
        struct galley_err err = { 0 };
        T_EQ(d->ops->linear_new(d, &l, bad[i], 2, &err), GALLEY_EMODEL);
        T_OK(!l && err.msg[0]);
    }
    devices_close(&ds);
}

static void test_memory(void)
{
    static const uint8_t data[3 * 144];
    const struct linear_part part = { { DTYPE_Q4_K, 2, { 3, 256 }, data, NULL }, NULL };
    bool done = false;
    for (long n = 1; !done; n++) {
        T_OK(n < 30);
        struct galley_err err = { 0 };
        struct device *d;
        struct linear *l = NULL;
        mem_fail_at(n);
        enum galley_status rc = device_open_cpu(&d, "auto", 2, &err);
        if (rc == GALLEY_OK) {
            rc = d->ops->linear_new(d, &l, &part, 1, &err);
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

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "rows", test_rows },
        { "shapes", test_shapes },
        { "extremes", test_extremes },
        { "one_sign", test_one_sign },
        { "among_garbage", test_among_garbage },
        { "many_rows", test_many_rows },
        { "parts", test_parts },
        { "exact", test_exact },
        { "not_finite", test_not_finite },
        { "refusals", test_refusals },
        { "memory", test_memory },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
