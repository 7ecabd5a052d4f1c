/* family_gemma.c - Gemma 3: a norm before and after each half of a layer. */
#include "src/model/desc.h"

/* Text models; then the text part of those with a SigLIP tower, old files and new. */
static const char *const gemma_prefixes[] = { "model.", "language_model.model.",
                                              "model.language_model.", NULL };

static const char *const gemma_ignored[] = { "vision_tower.", "multi_modal_projector.",
                                             "model.vision_tower.", "model.multi_modal_projector.",
                                             NULL };

static const struct model_names gemma_names = {
    .prefixes = gemma_prefixes,
    .embed = "embed_tokens.weight",
    .final_norm = "norm.weight",
    .layer = "layers.",
    .attn_norm = "input_layernorm.weight",
    .attn_post_norm = "post_attention_layernorm.weight",
    .ffn_norm = "pre_feedforward_layernorm.weight",
    .ffn_post_norm = "post_feedforward_layernorm.weight",
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
    .up = "mlp.up_proj.weight",
    .down = "mlp.down_proj.weight",
    .head = "lm_head.weight",
    .ignored = gemma_ignored,
};

void family_gemma_describe(struct model_desc *d, const struct hf_config *cfg)
{
    model_desc_fill(d, cfg);
    d->names = &gemma_names;
    for (int i = 0; i < d->n_layers; i++) {
        d->layers[i].norms = NORM_PRE_ATTN | NORM_POST_ATTN | NORM_PRE_FFN | NORM_POST_FFN;
    }
}
