/* roofline.c - see roofline.h.  Best of several rounds: a roof is not an average. */
#include "src/engine/roofline.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/compiler.h"
#include "src/base/mem.h"
#include "src/base/pool.h"

#define READ_LEAST      (32ull << 20) /* of less the caches would be measured */
#define PIECE           (1ull << 20)
#define AHEAD           16384 /* bytes: left to itself the hardware reads a third less */
#define ROUNDS          5
#define SIDE            1024
#define PRODUCT_SECONDS 0.15 /* others may hold a CPU for some of it */
#define ROWS            256

struct read_job {
    const uint64_t *data;
    _Atomic uint64_t sum; /* keeps the loads alive */
};

static void read_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    struct read_job *j = arg;
    const uint64_t *p = j->data + (size_t)i * (PIECE / sizeof(uint64_t));
    uint64_t s[8] = { 0 }; /* eight sums: loads must not wait for one addition */
    for (size_t k = 0; k < PIECE / sizeof(uint64_t); k += 8) {
        GALLEY_PREFETCH((const char *)(p + k) + AHEAD);
        for (int n = 0; n < 8; n++) {
            s[n] ^= p[k + (size_t)n];
        }
    }
    for (int n = 1; n < 8; n++) {
        s[0] ^= s[n];
    }
    j->sum ^= s[0];
}

/* What the system could give without swapping: what it promises beyond that ends the process. */
static uint64_t available_bytes(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    unsigned long long kb = ULLONG_MAX / 1024; /* not known: whoever asks may be refused */
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1) {
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return 1024 * (uint64_t)kb;
}

/* The largest buffer there is memory for, a power of two; NULL: not even the smallest. */
static uint64_t *buffer_new(uint64_t *n_bytes)
{
    const uint64_t half = available_bytes() / 2;
    for (*n_bytes = ROOFLINE_READ_BYTES; *n_bytes >= READ_LEAST; *n_bytes /= 2) {
        uint64_t *data =
            *n_bytes <= half ? mem_huge(*n_bytes) : NULL; /* small pages would cost half */
        if (data) {
            return data;
        }
    }
    return NULL;
}

static enum galley_status measure_read(struct roofline *out, int n_threads, struct galley_err *err)
{
    struct pool *pool;
    const enum galley_status rc = pool_open(&pool, n_threads, err);
    if (rc) {
        return rc;
    }
    uint64_t n;
    uint64_t *data = buffer_new(&n);
    if (data) {
        out->read_bytes = n;
        memset(data, 1, n);
    }
    struct read_job job = { .data = data };
    for (int i = 0; data && i < ROUNDS; i++) {
        const double start = clock_seconds();
        pool_run(pool, read_piece, &job, (int)(n / PIECE));
        const double rate = (double)n / (clock_seconds() - start);
        out->read_bytes_per_s = rate > out->read_bytes_per_s ? rate : out->read_bytes_per_s;
    }
    mem_free(data);
    pool_close(pool);
    return GALLEY_OK;
}

/* Best rate of ROWS rows through a SIDE x SIDE matrix of that type; 0 without memory. */
static double measure_product(struct device *d, enum dtype type)
{
    const uint64_t n = (uint64_t)SIDE * SIDE;
    void *w = mem_zero_array(dtype_row_bytes(type, n), 1);
    float *x = mem_aligned((size_t)ROWS * SIDE * sizeof(float));
    float *y = mem_aligned((size_t)ROWS * SIDE * sizeof(float));
    struct linear *l = NULL;
    const struct linear_part part = { .w = { type, 2, { SIDE, SIDE }, w, NULL } };
    double best = 0;
    if (w && x && y && d->ops->linear_new(d, &l, &part, 1, NULL) == GALLEY_OK) {
        for (size_t i = 0; i < (size_t)ROWS * SIDE; i++) {
            x[i] = (float)(i % 17) - 8;
        }
        double now = clock_seconds();
        for (const double end = now + PRODUCT_SECONDS; now < end;) {
            const double start = now;
            d->ops->matmul(d, y, SIDE, l, x, SIDE, ROWS);
            now = clock_seconds();
            const double rate = 2.0 * (double)n * ROWS / (now - start);
            best = rate > best ? rate : best;
        }
        d->ops->linear_free(d, l);
    }
    mem_free(w);
    mem_free(x);
    mem_free(y);
    return best;
}

enum galley_status roofline_measure(struct roofline *out, const char *isa, int n_threads,
                                    struct galley_err *err)
{
    *out = (struct roofline){ 0 };
    enum galley_status rc = measure_read(out, n_threads, err);
    if (rc) {
        return rc;
    }
    struct device *d;
    rc = device_open_cpu(&d, isa, n_threads, err);
    if (rc) {
        return rc;
    }
    out->f32_per_s = measure_product(d, DTYPE_F32);
    /* Rounding to one scale for 32 or for 256 codes: either may be the faster. */
    const double block = measure_product(d, DTYPE_Q8_0), k = measure_product(d, DTYPE_Q4_K);
    out->int8_per_s = block > k ? block : k;
    device_close(d);
    return GALLEY_OK;
}
