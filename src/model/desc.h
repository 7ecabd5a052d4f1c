/* desc.h - what a language model looks like, as data.
 *
 * One row of the family table turns a config into a struct model_desc: a handful of numbers for
 * the whole model and one struct layer_desc per layer.  model.c and backbone.c read nothing
 * else, so a new family is a new file that fills this in. */
#ifndef GALLEY_MODEL_DESC_H
#define GALLEY_MODEL_DESC_H

#include "kernels/device.h"
#include "src/format/hf_config.h"

#define ROPE_KINDS_MAX 2

/* A rotary embedding: pairs per axis t, h, w, and the base. */
struct rope_desc {
    double theta;
    int section[3];
};

struct layer_desc {
    int n_head, n_kv_head, head_dim;
    float attn_scale; /* on q . k */
    int i_rope;       /* into model_desc.rope */
    bool qkv_bias, o_bias;
    int intermediate; /* gated feed-forward */
    enum act act;
};

/* Tensor names: prefixes are tried in order; the rest stands behind the one that fits.  Layer
 * names come after the prefix, `layer`, the number and a dot. */
struct model_names {
    const char *const *prefixes; /* NULL-terminated */
    const char *embed, *final_norm, *layer;
    const char *attn_norm, *q_weight, *q_bias, *k_weight, *k_bias, *v_weight, *v_bias;
    const char *o_weight, *o_bias;
    const char *ffn_norm, *gate, *up, *down;
    const char *head; /* full name: it stands outside the prefix */
};

struct model_desc {
    const struct model_names *names;
    int hidden, n_layers, n_vocab;
    double norm_eps;
    bool tied; /* the head is the embedding table */
    struct rope_desc rope[ROPE_KINDS_MAX];
    int n_rope;
    struct layer_desc *layers; /* [n_layers], owned */
};

/* Fills *out from cfg; GALLEY_EMODEL when the numbers do not fit together. */
GALLEY_MUST_USE enum galley_status
model_desc_init(struct model_desc *out, const struct hf_config *cfg, struct galley_err *err);
void model_desc_deinit(struct model_desc *d); /* zeroed is fine */

/* The rows of the family table: layers are allocated, everything else is theirs to fill. */
void family_qwen_describe(struct model_desc *d, const struct hf_config *cfg);

#endif
