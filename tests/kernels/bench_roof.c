/* bench_roof.c - what the machine can do: FMA peak and read bandwidth, on one thread. */
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "src/base/mem.h"
#include "tests/kernels/bench.h"

#define N_CHAINS 12
#define N_STEPS  20000

static volatile float sink;

__attribute__((target("avx512f"))) static void fma_avx512(void *arg)
{
    __m512 a[N_CHAINS];
    const __m512 x = _mm512_set1_ps(*(float *)arg), y = _mm512_set1_ps(0.5f);
    for (int i = 0; i < N_CHAINS; i++) {
        a[i] = _mm512_set1_ps((float)i);
    }
    for (int s = 0; s < N_STEPS; s++) {
#pragma GCC unroll 12
        for (int i = 0; i < N_CHAINS; i++) {
            a[i] = _mm512_fmadd_ps(a[i], x, y);
        }
    }
    for (int i = 1; i < N_CHAINS; i++) {
        a[0] = _mm512_add_ps(a[0], a[i]);
    }
    sink = _mm512_cvtss_f32(a[0]);
}

__attribute__((target("avx2,fma"))) static void fma_avx2(void *arg)
{
    __m256 a[N_CHAINS];
    const __m256 x = _mm256_set1_ps(*(float *)arg), y = _mm256_set1_ps(0.5f);
    for (int i = 0; i < N_CHAINS; i++) {
        a[i] = _mm256_set1_ps((float)i);
    }
    for (int s = 0; s < N_STEPS; s++) {
#pragma GCC unroll 12
        for (int i = 0; i < N_CHAINS; i++) {
            a[i] = _mm256_fmadd_ps(a[i], x, y);
        }
    }
    for (int i = 1; i < N_CHAINS; i++) {
        a[0] = _mm256_add_ps(a[0], a[i]);
    }
    sink = _mm256_cvtss_f32(a[0]);
}

double bench_peak_flops(int isa)
{
    float half = 0.5f;
    if (isa == CPU_REF) {
        return 0.0;
    }
    const double lanes = isa == CPU_AVX512 ? 16 : 8;
    const double t = bench_time(isa == CPU_AVX512 ? fma_avx512 : fma_avx2, &half);
    return 2.0 * lanes * N_CHAINS * N_STEPS / t;
}

struct region {
    const uint64_t *p;
    size_t n;
};

static void read_all(void *arg)
{
    const struct region *r = arg;
    uint64_t x[16] = { 0 };
    for (size_t i = 0; i + 16 <= r->n; i += 16) {
        for (int j = 0; j < 16; j++) {
            x[j] ^= r->p[i + (size_t)j];
        }
    }
    for (int j = 1; j < 16; j++) {
        x[0] ^= x[j];
    }
    sink = (float)x[0];
}

double bench_read_bytes(size_t bytes)
{
    uint64_t *p = mem_aligned(bytes);
    if (!p) {
        return 0.0;
    }
    memset(p, 1, bytes);
    struct region r = { p, bytes / sizeof(*p) };
    const double t = bench_time(read_all, &r);
    mem_free(p);
    return (double)bytes / t;
}
