/* kv.h - the paged key/value pool.
 *
 * A block holds KV_BLOCK tokens of every layer.  Sequences own block *lists*
 * (struct kv_seq); blocks are shared by reference count, so a common prompt prefix
 * costs a list, not a copy.  One commit/rewind function is used everywhere:
 * kv_seq_resize.  Engine thread only.  Invariant, checked by kv_check:
 *     n_free + n_live == n_blocks,  refs(b) == number of lists holding b */
#ifndef GALLEY_MODEL_KV_H
#define GALLEY_MODEL_KV_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"

struct kv_pool;

struct kv_shape {
    int n_layers, n_kv_head, head_dim;
    enum kv_type type;
};

/* One sequence's table.  Zero is an empty sequence. */
struct kv_seq {
    int32_t *blocks; /* [n_blocks], owned */
    int n_blocks, cap;
    int n_tokens; /* logical length in tokens */
};

GALLEY_MUST_USE enum galley_status kv_pool_open(struct kv_pool **out, struct device *dev,
                                                const struct kv_shape *shape, int n_blocks,
                                                struct galley_err *err);
void kv_pool_close(struct kv_pool *p);

/* Bytes one block takes over all layers: planners multiply. */
uint64_t kv_block_bytes(const struct kv_shape *shape);
int kv_pool_n_free(const struct kv_pool *p);
int kv_pool_n_blocks(const struct kv_pool *p);
const struct kv_shape *kv_pool_shape(const struct kv_pool *p);
/* Layer's cache arrays for dev_ops. */
void *kv_pool_k(const struct kv_pool *p, int layer);
void *kv_pool_v(const struct kv_pool *p, int layer);

/* Sets the length to n_tokens: grows by taking blocks, shrinks by giving them back.
 * False when the pool is short; the sequence is then as before. */
bool kv_seq_resize(struct kv_pool *p, struct kv_seq *s, int n_tokens);
/* Makes the empty list s begin with blocks that others hold too (a common prefix): n_tokens,
 * whole blocks.  False without memory for the list. */
bool kv_seq_share(struct kv_pool *p, struct kv_seq *s, const int32_t *blocks, int n_tokens);
/* One more, one less holder of a block outside the lists (the prefix cache). */
void kv_block_ref(struct kv_pool *p, int32_t block);
void kv_block_unref(struct kv_pool *p, int32_t block);
int kv_block_refs(const struct kv_pool *p, int32_t block);
void kv_seq_clear(struct kv_pool *p, struct kv_seq *s); /* gives everything back, frees the list */
/* Slot of logical index i, for kv_write_args. */
int32_t kv_seq_slot(const struct kv_seq *s, int i);

void kv_check(const struct kv_pool *p); /* asserts the invariant */
/* The same when seqs[0..n) are all lists there are: nothing leaked, nothing held twice. */
void kv_check_lists(const struct kv_pool *p, const struct kv_seq *const *seqs, int n);

#endif
