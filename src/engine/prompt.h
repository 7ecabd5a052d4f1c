/* prompt.h - from messages to rows: tokens, positions, places of the images, keys of the blocks.
 *
 * Nothing here touches the engine's state: engine_submit builds prompts on the caller's thread, so
 * that tokenising and hashing never hold up a forward pass. */
#ifndef GALLEY_ENGINE_PROMPT_H
#define GALLEY_ENGINE_PROMPT_H

#include "src/base/hash.h"
#include "src/engine/engine.h"
#include "src/format/checkpoint.h"
#include "src/model/prefix.h"
#include "vision/vcache.h"
#include "vision/vision.h"

struct prompt_image {
    struct image *image; /* a reference is held */
    struct vision_grid grid;
    int at, n_rows;          /* rows [at, at + n_rows) of the prompt are its embeddings */
    uint8_t key[HASH_BYTES]; /* content and size, as vcache_key */
};

struct prompt {
    int32_t *token; /* [n] */
    int n;
    int32_t *pos[3]; /* [n] each, one block of memory at pos[0] */
    int32_t pos_next;
    struct prompt_image *image; /* [n_images] in order */
    int n_images, n_visual;
    struct prefix_key *key; /* [n_keys] of its full blocks; none without a prefix cache */
    int n_keys;
    bool skip_space; /* the answer's first text begins with a space that is the tokenizer's */
};

/* What a prompt is built with; fixed while the engine lives. */
struct prompt_context {
    const struct checkpoint *cp;
    int64_t max_pixels;               /* of one image as encoded */
    const struct prefix_cache *cache; /* NULL: no keys */
    const uint8_t *vision_hash;       /* HASH_BYTES */
    struct vcache *vcache;            /* images on its disk are read; NULL: a text model */
    int hidden;                       /* width of embeddings */
};

#define PROMPT_IMAGES_MAX 256

/* Fills *out; on failure it holds what was built so far and wants prompt_deinit all the same.
 * GALLEY_EUSAGE: a request that cannot be; other errors lie in what it holds. */
GALLEY_MUST_USE enum galley_status prompt_build(struct prompt *out, const struct engine_request *r,
                                                const struct prompt_context *ctx,
                                                struct galley_err *err);
void prompt_deinit(struct prompt *p); /* zeroed is fine */

/* Keys of the full blocks of prompt and output together, [(n + n_out) / KV_BLOCK]; NULL without
 * memory.  The caller's. */
struct prefix_key *prompt_keys(const struct prompt *p, const int32_t *out, int n_out,
                               const struct prefix_cache *cache);

#endif
