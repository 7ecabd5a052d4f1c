/* family_gemma.c - Gemma 3: a norm before and after each half of a layer. */
#include "src/model/desc.h"

/* The SigLIP tower beside the text model, old files and new. */
static const char *const gemma_ignored[] = { "vision_tower.", "multi_modal_projector.",
                                             "model.vision_tower.", "model.multi_modal_projector.",
                                             NULL };

void family_gemma_describe(struct model_desc *d, const struct hf_config *cfg)
{
    model_desc_fill(d, cfg);
    d->names.attn_post_norm = "post_attention_layernorm.weight";
    d->names.ffn_norm = "pre_feedforward_layernorm.weight";
    d->names.ffn_post_norm = "post_feedforward_layernorm.weight";
    d->names.ignored = gemma_ignored;
    for (int i = 0; i < d->n_layers; i++) {
        d->layers[i].norms |= NORM_POST_ATTN | NORM_POST_FFN;
    }
}
