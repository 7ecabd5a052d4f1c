/* gguf_config.h - a GGUF checkpoint's metadata as struct hf_config, its tensors under Hugging
 * Face's names.
 *
 * Key and tensor names: ggml's gguf-py constants, llama-arch.cpp and clip-impl.h. */
#ifndef GALLEY_FORMAT_GGUF_CONFIG_H
#define GALLEY_FORMAT_GGUF_CONFIG_H

#include "src/format/gguf.h"
#include "src/format/hf_config.h"

/* The language part.  An architecture, rope kind or feature we cannot honour is refused by name
 * with the list of those we can. */
GALLEY_MUST_USE enum galley_status gguf_config_text(struct hf_config *out, const struct gguf *g,
                                                    struct galley_err *err);
/* What Gemma 3's q . k is multiplied by; its files have no key for it. */
double gguf_gemma_scale(const struct hf_text_config *t);
/* Adds the vision part from an mmproj file and checks that it belongs: projection width, family;
 * the entry that differs is named with both values. */
GALLEY_MUST_USE enum galley_status gguf_config_vision(struct hf_config *io, const struct gguf *mm,
                                                      struct galley_err *err);
/* "blk.0.attn_q.weight" -> "model.layers.0.self_attn.q_proj.weight", "v.blk.3.ln1.weight" ->
 * "visual.blocks.3.norm1.weight" ...; false when the name is none of the table's. */
bool gguf_tensor_name(char *out, size_t size, const char *name, enum hf_family family);
/* The other way round. */
bool gguf_tensor_from_hf(char *out, size_t size, const char *name, enum hf_family family);

#endif
