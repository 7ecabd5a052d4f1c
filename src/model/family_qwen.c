/* family_qwen.c - the text models of Qwen2-VL and Qwen2.5-VL: Qwen2 with M-RoPE. */
#include <math.h>

#include "src/model/desc.h"

/* The classic layout, the nesting newer checkpoints are saved with, and the same seen from a
 * composite model's root. */
static const char *const qwen_prefixes[] = { "model.", "model.language_model.",
                                             "language_model.model.", NULL };

static const struct model_names qwen_names = {
    .prefixes = qwen_prefixes,
    .embed = "embed_tokens.weight",
    .final_norm = "norm.weight",
    .layer = "layers.",
    .attn_norm = "input_layernorm.weight",
    .q_weight = "self_attn.q_proj.weight",
    .q_bias = "self_attn.q_proj.bias",
    .k_weight = "self_attn.k_proj.weight",
    .k_bias = "self_attn.k_proj.bias",
    .v_weight = "self_attn.v_proj.weight",
    .v_bias = "self_attn.v_proj.bias",
    .o_weight = "self_attn.o_proj.weight",
    .o_bias = "self_attn.o_proj.bias",
    .ffn_norm = "post_attention_layernorm.weight",
    .gate = "mlp.gate_proj.weight",
    .up = "mlp.up_proj.weight",
    .down = "mlp.down_proj.weight",
    .head = "lm_head.weight",
};

void family_qwen_describe(struct model_desc *d, const struct hf_config *cfg)
{
    const struct hf_text_config *t = &cfg->text;
    d->names = &qwen_names;
    d->hidden = t->hidden;
    d->n_vocab = t->n_vocab;
    d->norm_eps = t->rms_eps;
    d->tied = t->tied;
    d->n_rope = 1;
    d->rope[0].theta = t->rope.theta;
    for (int a = 0; a < 3; a++) {
        d->rope[0].section[a] = t->mrope_section[a];
    }
    for (int i = 0; i < d->n_layers; i++) {
        d->layers[i] = (struct layer_desc){
            .n_head = t->n_head,
            .n_kv_head = t->n_kv_head,
            .head_dim = t->head_dim,
            .attn_scale = (float)(1.0 / sqrt(t->head_dim)),
            .qkv_bias = true,
            .intermediate = t->intermediate,
            .act = ACT_SILU,
        };
    }
}
