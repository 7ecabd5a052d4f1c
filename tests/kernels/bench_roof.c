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
    uint64_t *p = mem_huge(bytes); /* as weights are: small pages cost half */
    if (!p) {
        return 0.0;
    }
    memset(p, 1, bytes);
    struct region r = { p, bytes / sizeof(*p) };
    const double t = bench_time(read_all, &r);
    mem_free(p);
    return (double)bytes / t;
}

__attribute__((target("avx512f"))) static void read_wide(void *arg)
{
    const struct region *r = arg;
    const char *p = (const char *)r->p, *end = p + r->n * sizeof(*r->p);
    __m512i x[4] = { _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                     _mm512_setzero_si512() };
    for (; p + 256 <= end; p += 256) {
        for (int j = 0; j < 4; j++) {
            _mm_prefetch(p + 64 * j + 8192, _MM_HINT_T0); /* as the kernels do */
            x[j] = _mm512_xor_si512(x[j], _mm512_load_si512(p + 64 * j));
        }
    }
    x[0] = _mm512_xor_si512(_mm512_xor_si512(x[0], x[1]), _mm512_xor_si512(x[2], x[3]));
    sink = (float)_mm512_reduce_add_epi32(x[0]);
}

double bench_read_huge(size_t bytes)
{
    uint64_t *p = mem_huge(bytes);
    if (!p) {
        return 0.0;
    }
    memset(p, 1, bytes);
    struct region r = { p, bytes / sizeof(*p) };
    const double t = bench_time(cpu_isa_best() == CPU_AVX512 ? read_wide : read_all, &r);
    mem_free(p);
    return (double)bytes / t;
}

__attribute__((target("avx512f,avx512vnni"))) static void dot_avx512(void *arg)
{
    __m512i a[N_CHAINS];
    const __m512i x = _mm512_set1_epi8(*(const char *)arg), y = _mm512_set1_epi8(1);
    for (int i = 0; i < N_CHAINS; i++) {
        a[i] = _mm512_set1_epi32(i);
    }
    for (int s = 0; s < N_STEPS; s++) {
#pragma GCC unroll 12
        for (int i = 0; i < N_CHAINS; i++) {
            a[i] = _mm512_dpbusd_epi32(a[i], x, y);
        }
    }
    for (int i = 1; i < N_CHAINS; i++) {
        a[0] = _mm512_add_epi32(a[0], a[i]);
    }
    sink = (float)_mm512_reduce_add_epi32(a[0]);
}

__attribute__((target("avx2"))) static void dot_avx2(void *arg)
{
    __m256i a[N_CHAINS];
    const __m256i x = _mm256_set1_epi8(*(const char *)arg), one = _mm256_set1_epi16(1);
    for (int i = 0; i < N_CHAINS; i++) {
        a[i] = _mm256_set1_epi32(i);
    }
    for (int s = 0; s < N_STEPS; s++) {
#pragma GCC unroll 12
        for (int i = 0; i < N_CHAINS; i++) {
            a[i] = _mm256_add_epi32(a[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a[i], x), one));
        }
    }
    for (int i = 1; i < N_CHAINS; i++) {
        a[0] = _mm256_add_epi32(a[0], a[i]);
    }
    sink = (float)_mm256_extract_epi32(a[0], 0);
}

double bench_peak_int8(void)
{
    char one = 1;
    const bool wide = cpu_isa_best() == CPU_AVX512 && __builtin_cpu_supports("avx512vnni");
    const double t = bench_time(wide ? dot_avx512 : dot_avx2, &one);
    return 2.0 * (wide ? 64 : 32) * N_CHAINS * N_STEPS / t;
}
