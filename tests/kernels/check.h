/* check.h - what the kernel checks share: devices of every instruction set this CPU has,
 * fills, guarded buffers, byte comparison.  Include once per binary. */
#ifndef GALLEY_TESTS_KERNELS_CHECK_H
#define GALLEY_TESTS_KERNELS_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu.h"
#include "src/base/half.h"
#include "src/base/mem.h"
#include "tests/t.h"

enum fill { FILL_RANDOM, FILL_HUGE, FILL_TINY, FILL_MIXED, FILL_ZERO, FILL_COUNT };

static uint64_t check_seed = 0x9e3779b97f4a7c15u;

static inline uint32_t check_bits(void)
{
    check_seed ^= check_seed << 13;
    check_seed ^= check_seed >> 7;
    check_seed ^= check_seed << 17;
    return (uint32_t)(check_seed >> 32);
}

static inline float check_uniform(void) /* -1 .. 1 */
{
    return (float)((double)check_bits() / 2147483648.0 - 1.0);
}

static inline float fill_one(enum fill kind)
{
    const float u = check_uniform();
    switch (kind) {
    case FILL_HUGE:
        return u * 1e17f;
    case FILL_TINY:
        return u * 1e-24f; /* products are subnormal */
    case FILL_MIXED:
        return ldexpf(u, (int)(check_bits() % 40) - 20);
    case FILL_ZERO:
        return check_bits() & 1 ? 0.0f : -0.0f;
    default:
        return u;
    }
}

static inline void fill(float *p, size_t n, enum fill kind)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = fill_one(kind);
    }
}

/* n floats between two bands of guard words, all of them the guard to begin with. */
#define GUARD_N    32
#define GUARD_WORD 0x7fa5c3d1u /* a NaN: using one would show as well */

struct guarded {
    float *p;
    size_t n;
};

static inline void guard_reset(struct guarded *g)
{
    const uint32_t word = GUARD_WORD;
    for (size_t i = 0; i < g->n + 2 * GUARD_N; i++) {
        memcpy(g->p - GUARD_N + i, &word, sizeof(word));
    }
}

static inline struct guarded guard_new(size_t n)
{
    float *base = mem_array(n + 2 * GUARD_N, sizeof(float));
    if (!base) {
        T_FAIL("no memory for %zu floats", n);
    }
    struct guarded g = { base + GUARD_N, n };
    guard_reset(&g);
    return g;
}

static inline void guard_free(struct guarded *g)
{
    mem_free(g->p - GUARD_N);
}

static inline bool guard_is(const float *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof(word));
    return word == GUARD_WORD;
}

/* The bands around, and the columns n.. of each row of ld, still hold the guard. */
static inline void guard_check(const struct guarded *g, size_t ld, size_t n, const char *what)
{
    for (size_t i = 0; i < GUARD_N; i++) {
        if (!guard_is(g->p - 1 - i) || !guard_is(g->p + g->n + i)) {
            T_FAIL("%s wrote outside its output", what);
        }
    }
    for (size_t i = 0; i < g->n; i++) {
        if (i % ld >= n && !guard_is(g->p + i)) {
            T_FAIL("%s wrote column %zu of %zu", what, i % ld, n);
        }
    }
}

static inline void bytes_same(const float *a, const float *b, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i, b + i, sizeof(*a)) != 0) {
            T_FAIL("%s: element %zu is %.9g, elsewhere %.9g", what, i, (double)a[i], (double)b[i]);
        }
    }
}

/* Every instruction set this CPU has, with one thread and with two. */
#define DEVICES_MAX (2 * CPU_ISA_COUNT)

struct devices {
    struct device *d[DEVICES_MAX];
    int n;
};

static inline struct devices devices_open(void)
{
    static const char *const names[] = { "ref", "avx2", "avx512" };
    struct devices ds = { { NULL }, 0 };
    for (int i = 0; i <= (int)cpu_isa_best(); i++) {
        for (int threads = 1; threads <= 2; threads++) {
            struct galley_err err = { 0 };
            if (device_open_cpu(&ds.d[ds.n], names[i], threads, &err) != GALLEY_OK) {
                T_FAIL("%s", err.msg);
            }
            ds.n++;
        }
    }
    return ds;
}

static inline void devices_close(struct devices *ds)
{
    for (int i = 0; i < ds->n; i++) {
        device_close(ds->d[i]);
    }
}

/* The row counts around every tile. */
static const int check_rows[] = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128
};

#endif
