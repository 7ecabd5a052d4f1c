/* family_llama.c - Llama 2 and 3 and what is built like them: SmolLM2, TinyLlama, Mistral. */
#include "src/model/desc.h"

static const char *const llama_prefixes[] = { "model.", NULL };

static const struct model_names llama_names = {
    .prefixes = llama_prefixes,
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
    .gate_bias = "mlp.gate_proj.bias",
    .up = "mlp.up_proj.weight",
    .up_bias = "mlp.up_proj.bias",
    .down = "mlp.down_proj.weight",
    .down_bias = "mlp.down_proj.bias",
    .head = "lm_head.weight",
};

void family_llama_describe(struct model_desc *d, const struct hf_config *cfg)
{
    model_desc_fill(d, cfg);
    d->names = &llama_names;
    for (int i = 0; i < d->n_layers; i++) {
        d->layers[i].norms = NORM_PRE_ATTN | NORM_PRE_FFN;
    }
}
