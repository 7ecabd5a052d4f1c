/* cpu.h - the tile primitives of one instruction set, and the CPU device around them.
 *
 * A primitive starts no thread and allocates nothing; cpu_ops.c and cpu_attn.c cut the
 * operators of device.h into primitives.  Internal to kernels/ and its tests. */
#ifndef GALLEY_KERNELS_CPU_H
#define GALLEY_KERNELS_CPU_H

#include <stdbool.h>

#include "kernels/act.h"
#include "kernels/attn.h"
#include "kernels/device.h"
#include "kernels/gemm.h"
#include "kernels/kv_store.h"
#include "kernels/norm.h"
#include "kernels/qgemm.h"
#include "kernels/rope.h"
#include "kernels/top1.h"
#include "kernels/widen.h"
#include "src/base/arena.h"
#include "src/base/pool.h"

enum cpu_isa { CPU_REF, CPU_AVX2, CPU_AVX512, CPU_ISA_COUNT };

struct cpu_kernels {
    const char *name;    /* "cpu-avx2": as dev_ops says it */
    double flops_per_us; /* rough, of the gemm: only decides whether threads pay */
    int widen_rows;      /* from so many rows on, 16-bit weights are widened first */
    gemm_tile_fn *gemm_tile;
    gemm_widen_fn *gemm_widen;
    double qops_per_us; /* the same of the quantised product */
    qgemm_tile_fn *qgemm_tile;
    qgemm_widen_fn *qgemm_widen;
    qact_fn *qact;
    attn_pack_fn *attn_pack;
    attn_scores_fn *attn_scores;
    attn_sums_fn *attn_sums;
    attn_soft_fn *attn_soft;
    attn_merge_fn *attn_merge;
    attn_result_fn *attn_result;
    attn_turn_fn *attn_turn;
    kv_widen_fn *kv_widen;
    kv_narrow_fn *kv_narrow;
    norm_rms_fn *norm_rms;
    norm_layer_fn *norm_layer;
    act_fn *act;
    act_gated_fn *act_gated;
    act_add_fn *act_add;
    act_scale_fn *act_scale;
    act_softcap_fn *act_softcap;
    rope_row_fn *rope_row, *rope_pairs;
    top1_fn *top1;
    widen_fn *widen;
};

/* Pure: fills every slot for that level, whatever CPU this is. */
void cpu_kernels_init(struct cpu_kernels *k, enum cpu_isa isa);
/* The best level this CPU and its system can run. */
enum cpu_isa cpu_isa_best(void);

/* Floats of scratch each thread owns: a widened panel slice, or an attention tile. */
#define CPU_TILE_FLOATS 32768 /* q and o of an attention tile: rows * head_dim, padded */
#define CPU_TILE_ROWS   384
#define CPU_TURN_FLOATS (ATTN_HEAD_DIM_MAX * KV_BLOCK)
#define CPU_TAIL_KEYS   96 /* a tree's 64 keys and those before them in the block it begins in */
#define CPU_SPAN_FLOATS ((size_t)1 << 20) /* states of spans; pages never used cost nothing */

/* Quantised products: rows of a piece (their sums stay in L1 and L2), groups of columns written
 * out together (the rows of y are far apart: single lines of them cost), rows quantised at a
 * time. */
#define CPU_QPIECE  192
#define CPU_QGROUPS 4
#define CPU_QROWS   512

struct cpu_qact {
    struct qact a;
    size_t units; /* what a has room for, times rows */
};

struct cpu_scratch {
    _Alignas(QGEMM_ALIGN) float q_acc[CPU_QGROUPS][CPU_QPIECE * QGEMM_NR];
    struct qgemm_panel panel;
    float widened[GEMM_KC * GEMM_NR];
    /* An attention tile.  Two states, as a span is merged into those before it. */
    float q[CPU_TILE_FLOATS], o[2][CPU_TILE_FLOATS];
    float sum[2][CPU_TILE_ROWS * ATTN_LANES], max[2][CPU_TILE_ROWS];
    float s[CPU_TILE_ROWS * KV_BLOCK];
    float k[CPU_TURN_FLOATS], v[CPU_TURN_FLOATS];
    int first[CPU_TILE_ROWS], n[CPU_TILE_ROWS];         /* what vectors see of a block, */
    int row_first[CPU_TILE_ROWS], row_n[CPU_TILE_ROWS]; /* and of all keys */
    /* [CPU_TAIL_KEYS / KV_BLOCK][rows][KV_BLOCK] */
    float tail_s[CPU_TILE_ROWS * CPU_TAIL_KEYS], tail_p[CPU_TILE_ROWS * CPU_TAIL_KEYS];
    uint8_t tail_at[CPU_TILE_ROWS * KV_BLOCK];
};

struct cpu_device {
    struct device base;
    struct dev_ops ops;
    struct cpu_kernels k;
    struct pool *pool;
    struct cpu_scratch *scratch; /* [threads] */
    struct cpu_qact qact[QACT_KIND_COUNT];
    struct arena weights; /* packed */
    bool exact;           /* of linears to come */
    char *pack_rows;      /* [pack_bytes] rows read from files, kept between linears */
    size_t pack_bytes;
    float *spans; /* [CPU_SPAN_FLOATS] */
};

static inline struct cpu_device *cpu_of(struct device *d)
{
    return (struct cpu_device *)d; /* base is the first member */
}

/* Runs fn over 0..n-1: on the pool when the whole takes long enough to pay for waking it,
 * us being a guess of the whole on one thread. */
void cpu_run(struct cpu_device *c, pool_fn *fn, void *arg, int n, double us);
bool cpu_pays(const struct cpu_device *c, double us); /* whether it would take the pool */

/* cpu_ops.c and cpu_attn.c: the rows of the table. */
enum galley_status cpu_linear_new(struct device *d, struct linear **out,
                                  const struct linear_part *parts, int n_parts,
                                  struct galley_err *err);
void cpu_linear_free(struct device *d, struct linear *l);
void cpu_set_exact(struct device *d, bool exact);
uint64_t cpu_linear_bytes(const struct linear *l);
void cpu_matmul(struct device *d, float *y, size_t y_ld, const struct linear *l, const float *x,
                size_t x_ld, int rows);
void cpu_rms_norm(struct device *d, float *y, const float *x, const float *weight, int rows,
                  int dim, float eps);
void cpu_layer_norm(struct device *d, float *y, const float *x, const float *weight,
                    const float *bias, int rows, int dim, float eps);
void cpu_head_norm(struct device *d, float *x, size_t ld, const float *weight, int rows, int n_head,
                   int head_dim, float eps);
void cpu_add(struct device *d, float *y, const float *x, size_t n);
void cpu_scale(struct device *d, float *x, size_t n, float by);
void cpu_softcap(struct device *d, float *x, size_t n, float cap);
void cpu_act(struct device *d, float *x, size_t n, enum act kind);
void cpu_gated(struct device *d, float *y, const float *gate_up, int rows, int n, enum act kind);
void cpu_rope(struct device *d, const struct rope_args *a);
void cpu_embed(struct device *d, float *y, const struct linear *table, const int32_t *ids,
               int rows);
void cpu_top1(struct device *d, struct logit_top *top, const float *logits, size_t ld, int rows,
              int n_vocab);
void cpu_attn_seg(struct device *d, const struct attn_seg_args *a);
void cpu_kv_write(struct device *d, const struct kv_write_args *a);
void cpu_attn_paged(struct device *d, const struct attn_paged_args *a);

#endif
