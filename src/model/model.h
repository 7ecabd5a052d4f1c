/* model.h - the language backbone: one ragged batch of rows in, logits out.
 *
 * Families are data: a struct model_desc says what each layer looks like, so the
 * forward pass (backbone.c) has no "if family".  The model sees token ids,
 * embeddings, positions; it never hears of images. */
#ifndef GALLEY_MODEL_MODEL_H
#define GALLEY_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"
#include "src/base/hash.h"
#include "src/format/hf_config.h"
#include "src/format/weights.h"
#include "src/model/kv.h"

struct model;

/* Binds and packs the language part of `w` for `dev`.  Every tensor's shape is
 * checked against cfg; a missing one is named.  w may be closed afterwards. */
GALLEY_MUST_USE enum galley_status model_open(struct model **out, struct device *dev,
                                              const struct hf_config *cfg, struct weights *w,
                                              struct galley_err *err);
void model_close(struct model *m);

/* The cache this model needs, stored as `type`. */
struct kv_shape model_kv_shape(const struct model *m, enum kv_type type);
int model_hidden(const struct model *m);
int model_n_vocab(const struct model *m);
uint64_t model_weight_bytes(const struct model *m);
/* What cached keys, values and image embeddings depend on, as a key: SHA-256 over the description
 * and over every tensor of the checkpoint (vision included): name, type, shape, and its bytes, of
 * those over 12 KiB the first, middle and last 4 KiB.  Two files that differ in nothing else are
 * taken for one model. */
void model_hash(const struct model *m, uint8_t out[HASH_BYTES]);
/* Prefixes of tensors that a checkpoint of this family may hold beside the model's, for
 * weights_check_all_used; NULL: none. */
const char *const *model_ignored_tensors(const struct model *m);

/* One step: rows of many sequences, rows of one sequence adjacent and in ascending
 * logical order.  Row r is token[r], or, when embd[r] is not NULL, that embedding
 * [hidden] instead.  Logical index (KV slot) and M-RoPE position are different things:
 * with images they differ. */
struct model_batch {
    int n_rows;
    const int32_t *token;     /* [n_rows] */
    const float *const *embd; /* [n_rows] or NULL: all rows are tokens */
    const int32_t *pos[3];    /* [n_rows] each: t, h, w */
    const int32_t *seq;       /* [n_rows] index into block_table */
    const int32_t *n_keys;    /* [n_rows] logical index + 1 */
    const int32_t *slot;      /* [n_rows] where this row's k and v go */
    const int32_t *const *block_table;
    const uint64_t *tree; /* as attn_paged_args; NULL: chains only */
    const int32_t *tree_base;
    const int32_t *want; /* [n_want] rows whose logits are wanted, ascending */
    int n_want;
    float *logits; /* out: [n_want][n_vocab] */
};

/* Bytes of scratch a batch of that size works in: planners add it up. */
struct model_desc;
uint64_t model_step_bytes(const struct model_desc *d, int n_rows, int n_want);

/* Runs the batch; k and v of every row are written into kv.  Grows its scratch when
 * needed (GALLEY_ENOMEM), else never allocates. */
GALLEY_MUST_USE enum galley_status model_forward(struct model *m, struct kv_pool *kv,
                                                 const struct model_batch *b,
                                                 struct galley_err *err);

#endif
