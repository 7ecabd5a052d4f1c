/* bench_qgemm.c - products of quantised weights against what this machine reads and multiplies.
 *
 * Weights are copied until they are larger than any cache share, and the copies are walked in
 * turn, as the layers of a model are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/cpu.h"
#include "src/base/mem.h"
#include "tests/kernels/bench.h"

#define BYTES_COLD ((size_t)400 << 20)
#define COPIES_MAX 256

struct cold {
    struct device *d;
    struct linear *l[COPIES_MAX];
    int n, rows, n_in, n_out;
    float *x, *y;
};

static void cold_run(void *arg) /* every copy once */
{
    struct cold *c = arg;
    for (int i = 0; i < c->n; i++) {
        c->d->ops->matmul(c->d, c->y, (size_t)c->n_out, c->l[i], c->x, (size_t)c->n_in, c->rows);
    }
}

static uint64_t seed = 88172645463325252u;

static uint64_t random_next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* Random codes; scales with no exponent that slows arithmetic (sums of denormal numbers take thirty
 * times as long). */
static uint8_t *blocks_new(enum dtype t, int n_out, int n_in)
{
    const size_t n = (size_t)dtype_row_bytes(t, (uint64_t)n_in) * (size_t)n_out;
    uint8_t *p = mem_alloc(n + 8);
    /* MXFP4's scale is a bare exponent: 64 to 127 is 2^-63 to 1. */
    const uint64_t least = t == DTYPE_MXFP4 ? 0x4040404040404040u : 0;
    for (size_t i = 0; p && i < n; i += 8) {
        const uint64_t v = (random_next() & 0x3f3f3f3f3f3f3f3fu) | least; /* f16: up to 1.8 */
        memcpy(p + i, &v, 8);
    }
    return p;
}

static void cold_open(struct cold *c, struct device *d, enum dtype t, int n_out, int n_in)
{
    uint8_t *w = blocks_new(t, n_out, n_in);
    const struct linear_part part = { { t, 2, { n_out, n_in }, w, NULL }, NULL };
    *c = (struct cold){ .d = d, .n_in = n_in, .n_out = n_out };
    size_t bytes = 0;
    while (w && c->n < COPIES_MAX && bytes < BYTES_COLD) {
        struct galley_err err = { 0 };
        if (d->ops->linear_new(d, &c->l[c->n], &part, 1, &err) != GALLEY_OK) {
            fprintf(stderr, "bench_kernels: %s\n", err.msg);
            exit(1);
        }
        bytes += d->ops->linear_bytes(c->l[c->n++]);
    }
    mem_free(w);
    c->x = mem_aligned(512 * (size_t)n_in * sizeof(float));
    c->y = mem_aligned(512 * (size_t)n_out * sizeof(float));
    if (!w || !c->x || !c->y) {
        fprintf(stderr, "bench_kernels: no memory\n");
        exit(1);
    }
    for (size_t i = 0; i < 512 * (size_t)n_in; i++) {
        c->x[i] = 0.0f; /* a bell curve, as activations are: flat ones take slower ways */
        for (int k = 0; k < 12; k++) {
            c->x[i] += (float)(int64_t)random_next() * 0x1p-63f;
        }
    }
}

static void cold_close(struct cold *c)
{
    for (int i = 0; i < c->n; i++) {
        c->d->ops->linear_free(c->d, c->l[i]);
    }
    mem_free(c->x);
    mem_free(c->y);
}

/* only: a type's name, NULL for all. */
void bench_qgemm(struct device *d, int threads, const char *only)
{
    static const int shapes[][2] = {
        { 2048, 2048 }, { 11008, 2048 }, { 2048, 11008 }, { 151936, 2048 }
    };
    static const int rows[] = { 1, 2, 4, 8, 16, 32, 64, 512 };
    const double read = threads * bench_read_huge(BYTES_COLD), peak = threads * bench_peak_int8();
    printf("read of one thread,cold,GB/s,%.1f\n", 1e-9 * read / threads);
    printf("peak of one thread,int8,GOP/s,%.1f\n", 1e-9 * peak / threads);
    printf("type,n_out,n_in,rows,us,gbytes,of_read,gops,of_peak,of_roof\n");
    for (int t = DTYPE_N_DENSE; t < DTYPE_COUNT; t++) {
        if (only && strcasecmp(only, dtype_name((enum dtype)t)) != 0) {
            continue;
        }
        for (size_t s = 0; s < COUNT(shapes); s++) {
            const int n_out = shapes[s][0], n_in = shapes[s][1];
            struct cold c;
            cold_open(&c, d, (enum dtype)t, n_out, n_in);
            for (size_t r = 0; r < COUNT(rows) && !(n_out > 100000 && rows[r] > 64); r++) {
                const int copies = c.n;
                c.rows = rows[r];
                c.n = rows[r] > 64 ? 1 : rows[r] > 4 && c.n > 8 ? 8 : c.n;
                const double us = 1e6 * bench_time(cold_run, &c) / c.n;
                const double bytes = (double)d->ops->linear_bytes(c.l[0]);
                const double ops = 2.0 * n_out * n_in * rows[r];
                const double ideal = bytes / read > ops / peak ? bytes / read : ops / peak;
                printf("%s,%d,%d,%d,%.1f,%.2f,%.2f,%.1f,%.2f,%.2f\n", dtype_name((enum dtype)t),
                       n_out, n_in, rows[r], us, 1e-3 * bytes / us, 1e6 * bytes / us / read,
                       1e-3 * ops / us, 1e6 * ops / us / peak, 1e6 * ideal / us);
                fflush(stdout);
                c.n = copies;
            }
            cold_close(&c);
        }
    }
}
