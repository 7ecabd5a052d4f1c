/* family_qwen.c - Qwen2, Qwen3, and the text models of Qwen2-VL and Qwen2.5-VL. */
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
    .q_norm = "self_attn.q_norm.weight",
    .k_norm = "self_attn.k_norm.weight",
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
    model_desc_fill(d, cfg);
    d->names = &qwen_names;
    for (int i = 0; i < d->n_layers; i++) {
        d->layers[i].norms = NORM_PRE_ATTN | NORM_PRE_FFN;
    }
}
