/* desc.h - what a language model looks like, as data.
 *
 * One row of the family table turns a config into a struct model_desc: a handful of numbers for
 * the whole model and one struct layer_desc per layer.  model.c and backbone.c read nothing
 * else, so a new family is a row of desc.c's table, and a file that fills in where it differs.
 *
 * The description can say more than the backbone runs: experts, chunks, attention temperature and
 * the like are named here so that families which need them are tables too.  model_desc_check
 * refuses what this build cannot run, with a sentence. */
#ifndef GALLEY_MODEL_DESC_H
#define GALLEY_MODEL_DESC_H

#include "kernels/device.h"
#include "src/format/hf_config.h"

#define ROPE_KINDS_MAX 4
#define ROPE_PAIRS_MAX (ATTN_HEAD_DIM_MAX / 2)

/* A rotary embedding.  Frequencies are data: linear and Llama 3 scaling, YaRN, longrope and alpha
 * are all other numbers here.  So are axes: contiguous sections, every third pair, or one axis. */
struct rope_desc {
    int rot_dim; /* the first rot_dim elements of each head turn */
    bool pairs;  /* (2i, 2i + 1) instead of (i, i + rot_dim / 2) */
    double gain; /* on cos and sin */
    double freq[ROPE_PAIRS_MAX];
    uint8_t axis[ROPE_PAIRS_MAX]; /* into model_batch.pos: t, h, w */
};

enum { /* layer_desc.norms */
       NORM_PRE_ATTN = 1,
       NORM_POST_ATTN = 2, /* of what attention adds */
       NORM_PRE_FFN = 4,
       NORM_POST_FFN = 8,
};

enum qk_norm { QK_NORM_NONE, QK_NORM_BEFORE_ROPE, QK_NORM_AFTER_ROPE };

enum router { /* how a row's scores of all experts become weights of the top_k */
              ROUTER_SOFTMAX_TOPK,
              ROUTER_TOPK_SOFTMAX,
              ROUTER_TOPK_SIGMOID,
};

/* Gated feed-forward: one, or the top_k of n_experts and shared ones beside them. */
struct ffn_desc {
    int intermediate; /* of each expert, when there are experts */
    enum act act;
    bool bias;     /* of gate, up and down */
    int n_experts; /* 0: dense */
    int top_k, n_shared, shared_intermediate;
    enum router router;
    bool renormalise;  /* the top_k weights sum to 1 */
    bool shared_gated; /* shared output times sigmoid of a score of its own */
    bool scale_input;  /* the weight multiplies the expert's input, not its output */
};

struct layer_desc {
    int n_head, n_kv_head, head_dim;
    float attn_scale;   /* on q . k */
    float attn_softcap; /* 0: none */
    int window;         /* keys a row sees; 0: all */
    int chunk;          /* rows see keys of their own chunk of so many positions; 0: no chunks */
    int i_rope;         /* into model_desc.rope; -1: no rotation */
    /* q *= 1 + temp_scale ln(1 + floor((p + 1) / temp_floor)); temp_scale 0: no */
    float temp_scale, temp_floor;
    bool qkv_bias, o_bias;
    bool attn_gated; /* attention's output times sigmoid of a gate projected beside q */
    enum qk_norm qk_norm;
    bool qk_norm_plain; /* without weights */
    unsigned norms;
    struct ffn_desc ffn;
};

/* Tensor names: prefixes are tried in order; the rest stands behind the one that fits.  Layer
 * names come after the prefix, `layer`, the number and a dot. */
struct model_names {
    const char *const *prefixes; /* NULL-terminated */
    const char *embed, *final_norm, *layer;
    const char *attn_norm, *attn_post_norm, *ffn_norm, *ffn_post_norm;
    const char *q_weight, *q_bias, *k_weight, *k_bias, *v_weight, *v_bias;
    const char *q_norm, *k_norm;
    const char *o_weight, *o_bias;
    const char *gate, *gate_bias, *up, *up_bias, *down, *down_bias;
    const char *head;           /* full name: it stands outside the prefix */
    const char *const *ignored; /* prefixes of tensors that are another model's; NULL-terminated */
};

struct model_desc {
    struct model_names names;
    int hidden, n_layers, n_vocab;
    double norm_eps;
    bool norm_plus_one; /* norm weights are stored less 1 */
    bool tied;          /* the head is the embedding table, unless the file has a head */
    /* 1: as it is.  Of token embeddings; of what each half of a layer adds; of the logits. */
    float embed_scale, residual_scale, logit_scale;
    float final_softcap; /* of the logits; 0: none */
    int n_mtp;           /* heads that predict further tokens */
    struct rope_desc rope[ROPE_KINDS_MAX];
    int n_rope;
    struct layer_desc *layers; /* [n_layers], owned */
};

/* Fills *out from cfg; GALLEY_EMODEL when the numbers do not fit together or ask for what this
 * build does not run. */
GALLEY_MUST_USE enum galley_status
model_desc_init(struct model_desc *out, const struct hf_config *cfg, struct galley_err *err);
void model_desc_deinit(struct model_desc *d); /* zeroed is fine */
GALLEY_MUST_USE enum galley_status model_desc_check(const struct model_desc *d,
                                                    struct galley_err *err);

/* Everything a struct hf_text_config says, under the names and with the norms that most families
 * share: one before each half of a layer.  For Qwen and Llama that is all. */
void model_desc_fill(struct model_desc *d, const struct hf_config *cfg);

/* Families that differ: layers are allocated; these fill in the rest. */
void family_gemma_describe(struct model_desc *d, const struct hf_config *cfg);

#endif
