/* prefix.h - finding the KV blocks of a prompt's beginning that are already there.
 *
 * A full block of a prompt has a key: SHA-256 over the key before it and what each of its KV_BLOCK
 * rows is: a token id, or for an embedding row the image's content hash and the row's number in
 * it; and each row's three positions.  The first key starts from the model's (and KV type's) own
 * hash.  So equal keys mean equal keys and values, bit for bit (row invariance), and an image of
 * the same size is not the same image.  The table holds one reference per block; blocks nobody else
 * holds are evicted least recently used first, leaves before what they hang on.  Nothing is
 * allocated after open.  Engine thread only. */
#ifndef GALLEY_MODEL_PREFIX_H
#define GALLEY_MODEL_PREFIX_H

#include <stdint.h>

#include "src/base/hash.h"
#include "src/model/kv.h"

struct prefix_cache;

struct prefix_key {
    uint8_t bytes[HASH_BYTES];
};

/* root: hash of the model and of how keys and values are stored. */
GALLEY_MUST_USE enum galley_status prefix_open(struct prefix_cache **out, struct kv_pool *kv,
                                               const uint8_t root[HASH_BYTES],
                                               struct galley_err *err);
void prefix_close(struct prefix_cache *c); /* gives its references back; NULL is fine */

/* What one prompt row is. */
struct prefix_row {
    int32_t token;        /* when image is NULL */
    const uint8_t *image; /* HASH_BYTES: content and size of the image as encoded */
    int32_t i_row;        /* row of that image's embeddings */
    int32_t pos[3];
};

/* Keys of the n / KV_BLOCK full blocks of a prompt. */
void prefix_keys(const struct prefix_cache *c, struct prefix_key *keys,
                 const struct prefix_row *rows, int n);

/* The longest run of known blocks from the start: fills blocks[0..n_keys) and returns how many.
 * They are marked as used; the caller takes references (kv_seq_share) before anything else. */
int prefix_find(struct prefix_cache *c, const struct prefix_key *keys, int n_keys, int32_t *blocks);
/* Block i of the prompt is written: remembers it (takes a reference) unless its key is known, or
 * that of block i - 1 is not (any more): nobody could find it then. */
void prefix_add(struct prefix_cache *c, const struct prefix_key *keys, int i, int32_t block);
/* Gives up to n blocks back that only the cache holds; returns how many it could. */
int prefix_evict(struct prefix_cache *c, int n);
int prefix_n_blocks(const struct prefix_cache *c); /* held now */
bool prefix_holds(const struct prefix_cache *c, int32_t block);
/* How many prefix_evict could give back: held by nobody else, and so is all that hangs on them.
 * Walks the whole cache. */
int prefix_n_evictable(const struct prefix_cache *c);
/* Asserts that table, list, parents and the pool's counts agree.  kv_check_lists does not know of
 * this cache: a pool with one has prefix_n_blocks more holders. */
void prefix_check(const struct prefix_cache *c);

#endif
