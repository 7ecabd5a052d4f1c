/* device.h - what a device can do: whole operators over row-major float data.
 *
 * The forward pass (src/model, vision, drafters) is written once against this
 * table; cpu.c fills it for the CPU, cuda/ will for NVIDIA GPUs.  Activations are
 * f32 and live in device memory (on the CPU: anywhere, 64-byte aligned rows run
 * fastest).  One thread at a time uses a device.
 *
 * Row invariance (the contract everything rests on): for every operator here a
 * row's result, bit for bit, depends neither on the number of rows in the call
 * nor on its index nor on the number of threads.  The CPU device also gives the
 * same bits with every instruction set (ref, AVX2, AVX-512): every sum has one
 * fixed order, written in the operator's contract header kernels/<op>.h. */
#ifndef GALLEY_KERNELS_DEVICE_H
#define GALLEY_KERNELS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/tensor.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

struct device;
struct linear; /* a weight matrix in the device's own layout, owned by the device's user */

/* A weight [n_out][n_in ...] of any dtype (rows of block-quantised ones are whole blocks), which
 * is read, not touched, when it is a file's (tensor_read); and a dense bias [n_out] (NULL: none).
 */
struct linear_part {
    struct tensor w;
    const struct tensor *bias;
};

#define LINEAR_PARTS_MAX 8

enum act { ACT_SILU, ACT_GELU_ERF, ACT_GELU_TANH, ACT_QUICK_GELU };

/* Rotary embedding in place.  x: [rows][n_head][head_dim] with ld floats from row to row.  The
 * first rot_dim elements of each head turn (0: all of head_dim), the rest stays.  Pair i is
 * (i, i + rot_dim/2), or (2i, 2i + 1) when `pairs`.
 * cos, sin: [rows][rot_dim / 2], already expanded per pair (rope_table makes them). */
struct rope_args {
    float *x;
    size_t ld;
    const float *cos, *sin;
    int rows, n_head, head_dim;
    int rot_dim;
    bool pairs;
};

#define ATTN_HEAD_DIM_MAX 512 /* the scratch of a thread is sized by it */

/* Attention inside segments, no mask (vision towers).
 * q, k, v, out: [rows][n_head][head_dim], ld floats from row to row (one for all of q, k, v).
 * Segment s covers rows seg[s] .. seg[s+1]-1; seg[0] = 0, seg[n_seg] = rows; empty ones are
 * fine.  head_dim at most ATTN_HEAD_DIM_MAX, here and below: hf_config.c checks it.
 * Of these rows only row0 .. row0+n_rows-1 of q are asked for; both 0: all. */
struct attn_seg_args {
    float *out;
    size_t out_ld;
    const float *q, *k, *v;
    size_t ld;
    const int32_t *seg;
    int n_seg, n_head, head_dim;
    float scale;
    int row0, n_rows;
};

/* How keys and values are kept.  Attention always reads the stored form, also for rows of the
 * same step, so that chunking a prompt changes no bit. */
enum kv_type {
    KV_F32,
    KV_F16,
    KV_BF16,
    KV_Q8,  /* int8 codes with one f32 scale per token and head, k and v each */
    KV_FP8, /* E4M3 (OCP, no infinity, saturating at 448), no scale */
    KV_TYPE_COUNT
};

/* Bytes of one block of one of the two arrays (k or v) of one layer, scales included. */
size_t kv_array_block_bytes(enum kv_type t, int n_kv_head, int head_dim);
/* "f16" ... as in --kv. */
const char *kv_type_name(enum kv_type t);

/* Writes k and v rows into the paged cache of one layer.
 * k, v: [rows][n_kv_head][head_dim], ld floats per row.
 * slot[r] = block * KV_BLOCK + offset; a slot below 0 skips the row. */
struct kv_write_args {
    /* n_blocks * kv_array_block_bytes each; a block is contiguous (copying one copies its tokens),
     * its inside is the device's own: the CPU keeps k as [n_kv_head][head_dim][KV_BLOCK], v as
     * [n_kv_head][KV_BLOCK][head_dim], then the scales of KV_Q8 as [n_kv_head][KV_BLOCK]. */
    void *k_cache, *v_cache;
    enum kv_type kv_type;
    const float *k, *v;
    size_t ld;
    const int32_t *slot;
    int rows, n_kv_head, head_dim;
};

#define KV_BLOCK 32 /* tokens per cache block */

/* Causal attention of many rows, of many sequences, over the paged cache.
 * q, out: [rows][n_head][head_dim] with their own ld.  Row r belongs to sequence
 * seq[r] and sees the keys at logical indices 0 .. n_keys[r]-1 (its own included),
 * logical index i lying in block block_table[seq][i / KV_BLOCK].  Rows of one
 * sequence are adjacent.  n_head is a multiple of n_kv_head. */
struct attn_paged_args {
    float *out;
    size_t out_ld;
    const float *q;
    size_t q_ld;
    const void *k_cache, *v_cache;
    enum kv_type kv_type;
    const int32_t *const *block_table;
    const int32_t *seq, *n_keys;
    int rows, n_head, n_kv_head, head_dim;
    float scale;
    int window;    /* only the last `window` of these keys are seen; 0: all */
    float softcap; /* scores become softcap * tanh(score / softcap); 0: as they are */
    /* Drafts that are trees: row r with tree[r] != 0 sees the keys 0 .. tree_base[r]-1 and, of
     * the keys tree_base[r] + i, those whose bit i is set (its own included; n_keys is not read).
     * What it sees counts as adjacent: the bits are those of plain decoding along that path.
     * NULL: no row is of a tree. */
    const uint64_t *tree;
    const int32_t *tree_base;
};

/* The result of a greedy head over one row of logits. */
struct logit_top {
    int32_t id;    /* argmax; the lowest id of equals */
    float logit;   /* its logit */
    float log_sum; /* log of the sum of exp(logit) over the vocabulary */
};

struct dev_ops {
    const char *name; /* "cpu-avx512" ... */

    /* Device memory.  NULL when short. */
    void *(*alloc)(struct device *d, size_t bytes);
    void (*free)(struct device *d, void *p);

    /* From now on linears of block-quantised weights multiply the f32 rows by the decoded weights
     * (the bits of a dense f32 matrix of them) instead of rows quantised to eight bits by the
     * codes: slower, and what other engines' f32 results compare with.  Off at first. */
    void (*set_exact)(struct device *d, bool exact);
    /* Packs parts (at most LINEAR_PARTS_MAX, all with the same inputs) into one linear whose
     * outputs lie side by side.  The packed form keeps the values.  The sources may go away after.
     */
    enum galley_status (*linear_new)(struct device *d, struct linear **out,
                                     const struct linear_part *parts, int n_parts,
                                     struct galley_err *err);
    void (*linear_free)(struct device *d, struct linear *l);
    uint64_t (*linear_bytes)(const struct linear *l); /* as packed, biases included */

    /* y[r][j] = bias[j] + sum over k of x[r][k] w[j][k]; y never overlaps x. */
    void (*matmul)(struct device *d, float *y, size_t y_ld, const struct linear *l, const float *x,
                   size_t x_ld, int rows);
    /* y may be x in these.  weight, bias: [dim] f32. */
    void (*rms_norm)(struct device *d, float *y, const float *x, const float *weight, int rows,
                     int dim, float eps);
    /* RMSNorm of each head by itself, in place: x [rows][n_head][head_dim], ld floats from row to
     * row; weight: [head_dim]. */
    void (*head_norm)(struct device *d, float *x, size_t ld, const float *weight, int rows,
                      int n_head, int head_dim, float eps);
    void (*layer_norm)(struct device *d, float *y, const float *x, const float *weight,
                       const float *bias, int rows, int dim, float eps);
    void (*add)(struct device *d, float *y, const float *x, size_t n); /* y += x */
    void (*scale)(struct device *d, float *x, size_t n, float by);     /* x *= by */
    /* x = cap * tanh(x / cap) */
    void (*softcap)(struct device *d, float *x, size_t n, float cap);
    void (*act)(struct device *d, float *x, size_t n, enum act kind);
    /* y[r][j] = act(gate_up[r][j]) * gate_up[r][n + j]; gate_up: [rows][2 n], y: [rows][n]. */
    void (*gated)(struct device *d, float *y, const float *gate_up, int rows, int n, enum act kind);
    void (*rope)(struct device *d, const struct rope_args *a);
    void (*attn_seg)(struct device *d, const struct attn_seg_args *a);
    void (*kv_write)(struct device *d, const struct kv_write_args *a);
    void (*attn_paged)(struct device *d, const struct attn_paged_args *a);
    /* y[r] = the weights of output ids[r] of a linear of one part, as f32: row ids[r] of an
     * embedding table [n_vocab][dim]. */
    void (*embed)(struct device *d, float *y, const struct linear *table, const int32_t *ids,
                  int rows);
    /* top[r] over logits[r][0..n_vocab). */
    void (*top1)(struct device *d, struct logit_top *top, const float *logits, size_t ld, int rows,
                 int n_vocab);

    void (*close)(struct device *d);
};

struct device {
    const struct dev_ops *ops;
};

/* The CPU device.  isa: NULL or "auto" takes the best this CPU has; "ref", "avx2" and
 * "avx512" force one (GALLEY_EUNSUP when the CPU lacks it).  n_threads as pool_open. */
GALLEY_MUST_USE enum galley_status device_open_cpu(struct device **out, const char *isa,
                                                   int n_threads, struct galley_err *err);
void device_close(struct device *d); /* NULL is fine */

/* What the CPU device allocates beside linears and alloc: scratch of n_threads (as pool_open), and
 * rows quantised for linears; widest[t]: the most inputs of one of type t, 0 without any. */
uint64_t device_cpu_bytes(int n_threads, const int widest[DTYPE_COUNT]);

/* Rotary tables for rope_args.  inv_freq_i = theta^(-2 i / head_dim); pair i of row r
 * turns by pos[axis(i)][r] * inv_freq_i, computed in double, rounded once to f32.
 * section: how many consecutive pairs belong to axis 0, 1, 2 (t, h, w); they sum to
 * head_dim / 2.  pos[a]: [rows].  cos, sin: [rows][head_dim / 2]. */
void rope_table(float *cos, float *sin, const int32_t *const pos[3], const int section[3], int rows,
                int head_dim, double theta);
/* The same from any frequencies: pair i of row r turns by pos[axis[i]][r] * freq[i], and cos and
 * sin are gain times as large.  axis, freq: [n_pairs]; cos, sin: [rows][n_pairs]. */
void rope_angles(float *cos, float *sin, const int32_t *const pos[3], const uint8_t *axis,
                 const double *freq, int rows, int n_pairs, double gain);

#endif
