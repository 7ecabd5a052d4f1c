/* backbone.h - the inside of struct model, shared by model.c (fills) and backbone.c (runs). */
#ifndef GALLEY_MODEL_BACKBONE_H
#define GALLEY_MODEL_BACKBONE_H

#include "kernels/scratch.h"
#include "src/base/hash.h"
#include "src/model/desc.h"
#include "src/model/model.h"

/* NULL where the description has none. */
struct layer {
    float *attn_norm, *attn_post_norm, *ffn_norm, *ffn_post_norm; /* [hidden] */
    float *q_norm, *k_norm;                                       /* [head_dim] */
    struct linear *qkv, *o;        /* rows of qkv: all q heads, all k heads, all v heads */
    struct linear *gate_up, *down; /* rows of gate_up: gate, then up */
};

struct model {
    /* fixed after open */
    struct device *dev;
    struct model_desc desc;
    struct layer *layers;
    float *final_norm;
    struct linear *embed, *head; /* [n_vocab][hidden]; one and the same when they are tied */
    uint64_t weight_bytes;
    uint8_t hash[HASH_BYTES];
    /* the thread that runs model_forward */
    struct scratch scratch;
};

/* model_hash.c: see model_hash. */
GALLEY_MUST_USE enum galley_status model_hash_make(uint8_t out[HASH_BYTES],
                                                   const struct model_desc *d,
                                                   const struct weights *w, struct galley_err *err);

#endif
