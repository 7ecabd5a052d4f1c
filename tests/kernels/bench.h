/* bench.h - timing for the kernel benchmarks: the best of repeated runs. */
#ifndef GALLEY_TESTS_KERNELS_BENCH_H
#define GALLEY_TESTS_KERNELS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/base/mem.h"

typedef void bench_fn(void *arg);

static inline void *bench_need(void *p)
{
    if (!p) {
        fprintf(stderr, "bench_kernels: no memory\n");
        exit(1);
    }
    return p;
}

/* n floats of -1 .. 1; mem_free. */
static inline float *bench_noise(size_t n)
{
    static uint64_t seed = 88172645463325252u;
    float *p = bench_need(mem_aligned(n * sizeof(float)));
    for (size_t i = 0; i < n; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        p[i] = (float)((double)(seed >> 40) / 8388608.0 - 1.0);
    }
    return p;
}

#define BENCH_RUNS    15
#define BENCH_SECONDS 0.6 /* slow calls get fewer runs, three at least */

/* With one thread the process's own CPU time counts: on a shared machine the wall also sees
 * the others.  With more it is the wall. */
static bool bench_on_wall;

static inline double bench_clock(void)
{
    struct timespec t;
    if (bench_on_wall || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) {
        return clock_seconds();
    }
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one call, over n in a row. */
static inline double bench_once(bench_fn *fn, void *arg, int n)
{
    const double t0 = bench_clock();
    for (int i = 0; i < n; i++) {
        fn(arg);
    }
    return (bench_clock() - t0) / n;
}

/* Calls that take 1 ms together: short ones are not drowned by the clock. */
static inline int bench_batch(bench_fn *fn, void *arg)
{
    int n = 1;
    fn(arg);
    while (n < 1 << 20 && bench_once(fn, arg, n) * n < 1e-3) {
        n *= 2;
    }
    return n;
}

/* Best seconds of one call of two rivals, run in turn so that a busy moment hits both;
 * the second may be NULL. */
static inline void bench_pair(double best[2], bench_fn *fn[2], void *arg[2])
{
    const int n[2] = { bench_batch(fn[0], arg[0]), fn[1] ? bench_batch(fn[1], arg[1]) : 0 };
    const double start = clock_seconds();
    best[0] = best[1] = 1e9;
    for (int r = 0; r < BENCH_RUNS && (r < 3 || clock_seconds() - start < BENCH_SECONDS); r++) {
        for (int i = 0; i < 2; i++) {
            const double t = n[i] ? bench_once(fn[i], arg[i], n[i]) : 0.0;
            best[i] = t < best[i] ? t : best[i];
        }
    }
}

static inline double bench_time(bench_fn *fn, void *arg)
{
    double best[2];
    bench_pair(best, (bench_fn *[2]){ fn, NULL }, (void *[2]){ arg, NULL });
    return best[0];
}

/* Roofs of this machine on one thread, by the best instruction set it has (bench_roof.c). */
double bench_peak_flops(int isa);      /* FLOP/s of an FMA loop in registers; isa as enum cpu_isa */
double bench_read_bytes(size_t bytes); /* bytes/s reading a buffer of that size */

double bench_read_huge(size_t bytes); /* the same with huge pages and vectors */
double bench_peak_int8(void);         /* operations/s of an int8 product loop; best level */

struct device;
void bench_qgemm(struct device *d, int threads, const char *type); /* bench_qgemm.c */
void bench_attn(struct device *d, bool on_wall);                   /* bench_attn.c */

#endif
