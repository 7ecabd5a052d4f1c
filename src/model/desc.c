/* desc.c - the family table and the checks every description must pass. */
#include "src/model/desc.h"

#include <assert.h>
#include <math.h>

#include "src/base/mem.h"

struct family {
    enum hf_family id;
    void (*describe)(struct model_desc *d, const struct hf_config *cfg);
};

static const struct family families[] = {
    { HF_QWEN2_VL, model_desc_fill }, { HF_QWEN2_5_VL, model_desc_fill },
    { HF_QWEN2, model_desc_fill },    { HF_QWEN3, model_desc_fill },
    { HF_LLAMA, model_desc_fill },    { HF_GEMMA3, family_gemma_describe },
};

/* The classic layout, the nesting newer checkpoints are saved with, and the same seen from a
 * composite model's root. */
static const char *const prefixes[] = { "model.", "model.language_model.", "language_model.model.",
                                        NULL };

static const struct model_names common_names = {
    .prefixes = prefixes,
    .embed = "embed_tokens.weight",
    .final_norm = "norm.weight",
    .layer = "layers.",
    .attn_norm = "input_layernorm.weight",
    .ffn_norm = "post_attention_layernorm.weight",
    .q_weight = "self_attn.q_proj.weight",
    .q_bias = "self_attn.q_proj.bias",
    .k_weight = "self_attn.k_proj.weight",
    .k_bias = "self_attn.k_proj.bias",
    .v_weight = "self_attn.v_proj.weight",
    .v_bias = "self_attn.v_proj.bias",
    .q_norm = "self_attn.q_norm.weight",
    .k_norm = "self_attn.k_norm.weight",
    .o_weight = "self_attn.o_proj.weight",
    .o_bias = "self_attn.o_proj.bias",
    .gate = "mlp.gate_proj.weight",
    .gate_bias = "mlp.gate_proj.bias",
    .up = "mlp.up_proj.weight",
    .up_bias = "mlp.up_proj.bias",
    .down = "mlp.down_proj.weight",
    .down_bias = "mlp.down_proj.bias",
    .head = "lm_head.weight",
};

/* Llama 3's rule: long waves are divided by factor, short ones stay, between is a ramp. */
static double scaled_freq(const struct hf_rope *r, double freq)
{
    if (r->kind == HF_ROPE_LINEAR) {
        return freq / r->factor;
    }
    if (r->kind == HF_ROPE_PLAIN) {
        return freq;
    }
    const double waves = r->original_context * freq / (2 * 3.14159265358979323846);
    if (waves < r->low) {
        return freq / r->factor;
    }
    if (waves > r->high) {
        return freq;
    }
    const double s = (waves - r->low) / (r->high - r->low);
    return (1 - s) * freq / r->factor + s * freq;
}

static void rope_fill(struct rope_desc *d, const struct hf_rope *r, const struct hf_text_config *t)
{
    const int *section = t->mrope_section;
    d->rot_dim = t->head_dim;
    d->pairs = t->rope_pairs;
    d->gain = 1;
    for (int i = 0; i < d->rot_dim / 2 && i < ROPE_PAIRS_MAX; i++) {
        const bool one = section[0] + section[1] + section[2] == 0 || i < section[0];
        d->freq[i] = scaled_freq(r, pow(r->theta, -2.0 * i / d->rot_dim));
        d->axis[i] = one ? 0 : i < section[0] + section[1] ? 1 : 2;
    }
}

/* Whether layer i sees the last `window` keys only. */
static bool layer_slides(const struct hf_text_config *t, int i)
{
    return t->window > 0 && (t->window_pattern == 0 || (i + 1) % t->window_pattern != 0);
}

void model_desc_fill(struct model_desc *d, const struct hf_config *cfg)
{
    const struct hf_text_config *t = &cfg->text;
    d->names = common_names;
    d->hidden = t->hidden;
    d->n_vocab = t->n_vocab;
    d->norm_eps = t->rms_eps;
    d->norm_plus_one = t->norm_plus_one;
    d->tied = t->tied;
    d->embed_scale = t->embed_scale != 0 ? (float)t->embed_scale : 1;
    d->residual_scale = 1;
    d->logit_scale = 1;
    d->final_softcap = (float)t->final_softcap;
    d->n_rope = t->window > 0 ? 2 : 1;
    rope_fill(&d->rope[0], &t->rope, t);
    if (t->window > 0) {
        rope_fill(&d->rope[1], &t->rope_local, t);
    }
    for (int i = 0; i < d->n_layers; i++) {
        const bool slides = layer_slides(t, i);
        d->layers[i] = (struct layer_desc){
            .n_head = t->n_head,
            .n_kv_head = t->n_kv_head,
            .head_dim = t->head_dim,
            .attn_scale = (float)(t->query_scale != 0 ? t->query_scale : 1 / sqrt(t->head_dim)),
            .attn_softcap = (float)t->attn_softcap,
            .window = slides ? t->window : 0,
            .i_rope = slides,
            .qkv_bias = t->qkv_bias,
            .o_bias = t->o_bias,
            .qk_norm = t->qk_norm ? QK_NORM_BEFORE_ROPE : QK_NORM_NONE,
            .norms = NORM_PRE_ATTN | NORM_PRE_FFN,
            .ffn = { .intermediate = t->intermediate,
                     .act = t->gelu ? ACT_GELU_TANH : ACT_SILU,
                     .bias = t->mlp_bias },
        };
    }
}

static enum galley_status rope_check(const struct model_desc *d, int i, struct galley_err *err)
{
    const struct layer_desc *l = &d->layers[i];
    if (l->i_rope < 0) {
        return GALLEY_OK;
    }
    assert(l->i_rope < d->n_rope && d->n_rope <= ROPE_KINDS_MAX);
    const struct rope_desc *r = &d->rope[l->i_rope];
    if (r->rot_dim < 2 || r->rot_dim % 2 != 0 || r->rot_dim > l->head_dim) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "layer %d: %d rotated elements of a head of size %d", i, r->rot_dim,
                              l->head_dim);
    }
    for (int p = 0; p < r->rot_dim / 2; p++) {
        if (r->axis[p] > 2) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "layer %d: a rotary embedding over %d axes; this build has 3", i,
                                  r->axis[p] + 1);
        }
    }
    return GALLEY_OK;
}

/* What a description may say and the backbone does not run. */
static const char *layer_lacks(const struct layer_desc *l)
{
    return l->ffn.n_experts > 0               ? "experts (mixture of experts)"
           : l->ffn.n_shared > 0              ? "shared experts"
           : l->chunk > 0                     ? "chunked attention"
           : l->temp_scale != 0               ? "attention temperature"
           : l->attn_gated                    ? "gated attention output"
           : l->qk_norm == QK_NORM_AFTER_ROPE ? "a norm of q and k after rotation"
           : l->qk_norm_plain                 ? "a norm of q and k without weights"
                                              : NULL;
}

static enum galley_status layer_check(const struct model_desc *d, int i, struct galley_err *err)
{
    const struct layer_desc *l = &d->layers[i];
    if (l->n_head < 1 || l->n_kv_head < 1 || l->n_head % l->n_kv_head != 0) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "layer %d: %d attention heads cannot be shared by %d key/value heads",
                              i, l->n_head, l->n_kv_head);
    }
    if (l->head_dim < 1 || l->head_dim > ATTN_HEAD_DIM_MAX) {
        return galley_err_set(err, GALLEY_EMODEL, "layer %d: heads of size %d, limit %d", i,
                              l->head_dim, ATTN_HEAD_DIM_MAX);
    }
    if (l->n_kv_head != d->layers[0].n_kv_head || l->head_dim != d->layers[0].head_dim) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "layer %d: keys of %d x %d, layer 0 has %d x %d; this build keeps "
                              "one shape for all layers",
                              i, l->n_kv_head, l->head_dim, d->layers[0].n_kv_head,
                              d->layers[0].head_dim);
    }
    const char *lack = layer_lacks(l);
    if (lack) {
        return galley_err_set(err, GALLEY_EMODEL, "layer %d has %s; this build does not run that",
                              i, lack);
    }
    return rope_check(d, i, err);
}

enum galley_status model_desc_check(const struct model_desc *d, struct galley_err *err)
{
    enum galley_status rc = GALLEY_OK;
    for (int i = 0; !rc && i < d->n_layers; i++) {
        rc = layer_check(d, i, err);
    }
    return rc;
}

/* The config's own numbers that a description no longer shows. */
static enum galley_status sections_check(const struct hf_text_config *t, struct galley_err *err)
{
    const int *s = t->mrope_section;
    const int sum = s[0] + s[1] + s[2];
    if (sum != 0 && sum != t->head_dim / 2) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "rotary sections %d, %d, %d do not make half of the head size %d",
                              s[0], s[1], s[2], t->head_dim);
    }
    return GALLEY_OK;
}

enum galley_status model_desc_init(struct model_desc *out, const struct hf_config *cfg,
                                   struct galley_err *err)
{
    *out = (struct model_desc){ 0 };
    const struct family *f = NULL;
    for (size_t i = 0; i < COUNT(families); i++) {
        f = families[i].id == cfg->family ? &families[i] : f;
    }
    assert(f);
    assert(cfg->text.n_layers > 0 && cfg->text.hidden > 0 && cfg->text.n_vocab > 0);
    enum galley_status rc = sections_check(&cfg->text, err);
    if (rc) {
        return rc;
    }
    out->layers = mem_many(struct layer_desc, (size_t)cfg->text.n_layers);
    if (!out->layers) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: %d layer descriptions",
                              cfg->text.n_layers);
    }
    out->n_layers = cfg->text.n_layers;
    f->describe(out, cfg);
    rc = model_desc_check(out, err);
    if (rc) {
        model_desc_deinit(out);
    }
    return rc;
}

void model_desc_deinit(struct model_desc *d)
{
    mem_free(d->layers);
    *d = (struct model_desc){ 0 };
}
