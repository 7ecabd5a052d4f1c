/* cpu.c - which primitives this CPU runs, and the device's life. */
#include "kernels/cpu.h"

#include <assert.h>
#include <string.h>

#include "kernels/linear.h"
#include "src/base/mem.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Measured with tests/kernels/bench.h on one thread, by CPU time, for weights of 256 x 256 to
 * 2048 x 2048 (Xeon with AVX-512, 2 CPUs of a shared machine, November 2026).  flops_per_us: 64
 * rows in f32 ran at 7e2 (ref), 6.5e4 to 9.5e4 (avx2), 1.6e5 to 1.9e5 (avx512); the table has about
 * half for the last two, as fewer rows run slower.  widen_rows: widening bf16 first, against
 * widening inside the tile, breaks even at 2 (ref), 40 to 48 (avx2) and 48 to 80 (avx512) rows; at
 * 25 rows it cost 2 to 10 % and 10 to 17 %, at 128 it saved 3 to 8 %. */
static const struct cpu_kernels ref_kernels = {
    .name = "cpu-ref",
    .flops_per_us = 1e3,
    .widen_rows = 2,
    .gemm_tile = gemm_tile_ref,
    .gemm_widen = gemm_widen_ref,
    .qops_per_us = 2e3,
    .qgemm_tile = qgemm_tile_ref,
    .qgemm_widen = qgemm_widen_ref,
    .qact = qact_ref,
    .attn_pack = attn_pack_ref,
    .attn_scores = attn_scores_ref,
    .attn_sums = attn_sums_ref,
    .attn_soft = attn_soft_ref,
    .attn_merge = attn_merge_ref,
    .attn_result = attn_result_ref,
    .attn_turn = attn_turn_ref,
    .kv_widen = kv_widen_ref,
    .kv_narrow = kv_narrow_ref,
    .norm_rms = norm_rms_ref,
    .norm_layer = norm_layer_ref,
    .act = act_ref,
    .act_gated = act_gated_ref,
    .act_add = act_add_ref,
    .act_scale = act_scale_ref,
    .act_softcap = act_softcap_ref,
    .rope_row = rope_row_ref,
    .rope_pairs = rope_pairs_ref,
    .top1 = top1_ref,
    .widen = widen_ref,
};

#if defined(__x86_64__)
static const struct cpu_kernels avx2_kernels = {
    .name = "cpu-avx2",
    .flops_per_us = 4e4,
    .widen_rows = 48,
    .gemm_tile = gemm_tile_avx2,
    .gemm_widen = gemm_widen_avx2,
    .qops_per_us = 8e4,
    .qgemm_tile = qgemm_tile_avx2,
    .qgemm_widen = qgemm_widen_avx2,
    .qact = qact_avx2,
    .attn_pack = attn_pack_avx2,
    .attn_scores = attn_scores_avx2,
    .attn_sums = attn_sums_avx2,
    .attn_soft = attn_soft_avx2,
    .attn_merge = attn_merge_avx2,
    .attn_result = attn_result_avx2,
    .attn_turn = attn_turn_avx2,
    .kv_widen = kv_widen_avx2,
    .kv_narrow = kv_narrow_avx2,
    .norm_rms = norm_rms_avx2,
    .norm_layer = norm_layer_avx2,
    .act = act_avx2,
    .act_gated = act_gated_avx2,
    .act_add = act_add_avx2,
    .act_scale = act_scale_avx2,
    .act_softcap = act_softcap_avx2,
    .rope_row = rope_row_avx2,
    .rope_pairs = rope_pairs_avx2,
    .top1 = top1_avx2,
    .widen = widen_avx2,
};

static const struct cpu_kernels avx512_kernels = {
    .name = "cpu-avx512",
    .flops_per_us = 8e4,
    .widen_rows = 64,
    .gemm_tile = gemm_tile_avx512,
    .gemm_widen = gemm_widen_avx512,
    .qops_per_us = 2.5e5,
    .qgemm_tile = qgemm_tile_avx512,
    .qgemm_widen = qgemm_widen_avx512,
    .qact = qact_avx512,
    .attn_pack = attn_pack_avx512,
    .attn_scores = attn_scores_avx512,
    .attn_sums = attn_sums_avx512,
    .attn_soft = attn_soft_avx512,
    .attn_merge = attn_merge_avx512,
    .attn_result = attn_result_avx512,
    .attn_turn = attn_turn_avx512,
    .kv_widen = kv_widen_avx512,
    .kv_narrow = kv_narrow_avx512,
    .norm_rms = norm_rms_avx512,
    .norm_layer = norm_layer_avx512,
    .act = act_avx512,
    .act_gated = act_gated_avx512,
    .act_add = act_add_avx512,
    .act_scale = act_scale_avx512,
    .act_softcap = act_softcap_avx512,
    .rope_row = rope_row_avx512,
    .rope_pairs = rope_pairs_avx512,
    .top1 = top1_avx512,
    .widen = widen_avx512,
};
#endif

void cpu_kernels_init(struct cpu_kernels *k, enum cpu_isa isa)
{
    *k = ref_kernels;
#if defined(__x86_64__)
    if (isa == CPU_AVX2) {
        *k = avx2_kernels;
    } else if (isa == CPU_AVX512) {
        *k = avx512_kernels;
    }
#else
    (void)isa;
#endif
}

enum cpu_isa cpu_isa_best(void)
{
#if defined(__x86_64__)
    /* The compiler's probe also asks the system which registers it saves. */
    __builtin_cpu_init();
    unsigned a, b, c, d;
    const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    if (!f16c || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        return CPU_REF;
    }
    const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    return wide ? CPU_AVX512 : CPU_AVX2;
#else
    return CPU_REF;
#endif
}

/* AVX-512 came years before its int8 products. */
static bool has_vnni(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

static enum galley_status isa_choose(enum cpu_isa *out, const char *isa, struct galley_err *err)
{
    static const char *const names[CPU_ISA_COUNT] = { "ref", "avx2", "avx512" };
    const enum cpu_isa best = cpu_isa_best();
    if (!isa || strcmp(isa, "auto") == 0) {
        *out = best;
        return GALLEY_OK;
    }
    for (int i = 0; i < CPU_ISA_COUNT; i++) {
        if (strcmp(isa, names[i]) == 0) {
            *out = (enum cpu_isa)i;
            return *out <= best
                       ? GALLEY_OK
                       : galley_err_set(err, GALLEY_EUNSUP, "this CPU runs %s at best, not %s",
                                        names[best], isa);
        }
    }
    return galley_err_set(err, GALLEY_EUSAGE, "no instruction set \"%s\": auto, ref, avx2, avx512",
                          isa);
}

static void *cpu_alloc(struct device *d, size_t bytes)
{
    (void)d;
    return mem_huge(bytes);
}

static void cpu_free(struct device *d, void *p)
{
    (void)d;
    mem_free(p);
}

static void cpu_close(struct device *d)
{
    struct cpu_device *c = cpu_of(d);
    pool_close(c->pool);
    qact_free(c);
    mem_free(c->pack_rows);
    arena_deinit(&c->weights);
    mem_free(c->scratch);
    mem_free(c->spans);
    mem_free(c);
}

static const struct dev_ops cpu_ops = {
    .alloc = cpu_alloc,
    .free = cpu_free,
    .linear_new = cpu_linear_new,
    .set_exact = cpu_set_exact,
    .linear_free = cpu_linear_free,
    .linear_bytes = cpu_linear_bytes,
    .matmul = cpu_matmul,
    .rms_norm = cpu_rms_norm,
    .head_norm = cpu_head_norm,
    .layer_norm = cpu_layer_norm,
    .add = cpu_add,
    .scale = cpu_scale,
    .softcap = cpu_softcap,
    .act = cpu_act,
    .gated = cpu_gated,
    .rope = cpu_rope,
    .attn_seg = cpu_attn_seg,
    .kv_write = cpu_kv_write,
    .attn_paged = cpu_attn_paged,
    .embed = cpu_embed,
    .top1 = cpu_top1,
    .close = cpu_close,
};

enum galley_status device_open_cpu(struct device **out, const char *isa, int n_threads,
                                   struct galley_err *err)
{
    *out = NULL;
    enum cpu_isa level = CPU_REF;
    enum galley_status rc = isa_choose(&level, isa, err);
    if (rc) {
        return rc;
    }
    struct cpu_device *c = mem_new(struct cpu_device);
    if (!c) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for the CPU device");
    }
    cpu_kernels_init(&c->k, level);
    if (level == CPU_AVX512 && !has_vnni()) {
        struct cpu_kernels narrow;
        cpu_kernels_init(&narrow, CPU_AVX2);
        c->k.qgemm_tile = narrow.qgemm_tile;
        c->k.qgemm_widen = narrow.qgemm_widen;
        c->k.qops_per_us = narrow.qops_per_us;
    }
    c->ops = cpu_ops;
    c->ops.name = c->k.name;
    c->base.ops = &c->ops;
    rc = pool_open(&c->pool, n_threads, err);
    if (rc) {
        goto fail;
    }
    const size_t bytes = (size_t)pool_n_threads(c->pool) * sizeof(struct cpu_scratch);
    c->scratch = mem_aligned(bytes);
    c->spans = mem_aligned(CPU_SPAN_FLOATS * sizeof(float));
    if (!c->scratch || !c->spans) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "no memory for %zu bytes of kernel scratch",
                            bytes + CPU_SPAN_FLOATS * sizeof(float));
        goto fail;
    }
    memset(c->scratch, 0, bytes);
    *out = &c->base;
    return GALLEY_OK;
fail:
    cpu_close(&c->base); /* accepts every half-built state */
    return rc;
}

uint64_t device_cpu_bytes(int n_threads, const int widest[DTYPE_COUNT])
{
    const int threads = n_threads > 0 ? n_threads : pool_n_cpus();
    uint64_t bytes = CPU_SPAN_FLOATS * sizeof(float) + sizeof(struct cpu_device) +
                     (uint64_t)threads * sizeof(struct cpu_scratch);
    int most[QACT_KIND_COUNT] = { 0 };
    for (int t = DTYPE_N_DENSE; t < DTYPE_COUNT; t++) {
        int *m = &most[qact_kind_of((enum dtype)t)];
        *m = widest[t] > *m ? widest[t] : *m;
    }
    for (int kind = 0; kind < QACT_KIND_COUNT; kind++) {
        bytes += qact_bytes(most[kind]);
    }
    return bytes;
}

void device_close(struct device *d)
{
    if (d) {
        d->ops->close(d);
    }
}

/* An empty loop of two pieces takes 0.1 to 0.6 us while workers spin, and about 5 us when one has
 * to be woken (2 CPUs of a Xeon, November 2026; it was 6 to 14 us when every loop took the lock).
 * Two threads save half of this at most, less what it costs to move the rows to the other's cache.
 */
#define THREADS_PAY_US 6.0

bool cpu_pays(const struct cpu_device *c, double us)
{
    return us >= THREADS_PAY_US && pool_n_threads(c->pool) > 1;
}

void cpu_run(struct cpu_device *c, pool_fn *fn, void *arg, int n, double us)
{
    if (cpu_pays(c, us) && n > 1) {
        pool_run(c->pool, fn, arg, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        fn(arg, i, 0);
    }
}
