/* weights.h - a checkpoint as a table from tensor name to a checked view.
 *
 * GGUF files are seen through the same table, under Hugging Face's names (gguf_config.h).
 * Opens a Hugging Face directory: model.safetensors, or the shards named by
 * model.safetensors.index.json plus whatever else the shards hold (tensors that the
 * index forgot are real: that is how MTP heads get lost).  Every header, offset and
 * shape is checked against the file before a view exists.  Files stay mapped until
 * weights_close. */
#ifndef GALLEY_FORMAT_WEIGHTS_H
#define GALLEY_FORMAT_WEIGHTS_H

#include <stdbool.h>

#include "kernels/tensor.h"
#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/format/hf_config.h"

struct weights;

GALLEY_MUST_USE enum galley_status weights_open(struct weights **out, const char *dir,
                                                struct galley_err *err);
/* The tensors of an open GGUF file, renamed; takes g over, also on failure. */
struct gguf;
GALLEY_MUST_USE enum galley_status weights_open_gguf(struct weights **out, struct gguf *g,
                                                     enum hf_family family, struct galley_err *err);
void weights_close(struct weights *w);
const struct gguf *weights_gguf(const struct weights *w); /* lent; NULL: a directory */

/* The directory or GGUF file, for sentences. */
const char *weights_place(const struct weights *w);
int weights_count(const struct weights *w);
/* i-th tensor in name order: lends name, view and dtype as written in the file.  The view's dtype
 * is DTYPE_COUNT when this build cannot read the type (safetensors: others than F32, F16 and BF16)
 * or there are too many dimensions: such tensors are listed, and a lookup refuses them. */
const char *weights_name_at(const struct weights *w, int i);
const struct tensor *weights_tensor_at(const struct weights *w, int i);
const char *weights_dtype_at(const struct weights *w, int i);
/* Most of their bytes are of block types: products in integers, KV in f16 when nobody says. */
bool weights_are_quantised(const struct weights *w);

/* Lends the tensor and marks it used; its shape must be exactly shape[0..n_dim).
 * Missing or different: one sentence naming the tensor, both shapes and the file. */
GALLEY_MUST_USE enum galley_status weights_lookup(struct weights *w, const char *name, int n_dim,
                                                  const int64_t *shape, const struct tensor **out,
                                                  struct galley_err *err);
/* GALLEY_EMODEL with a sentence: tensor_read has failed for the tensor `name`. */
enum galley_status weights_cut(const struct weights *w, const char *name, struct galley_err *err);
bool weights_has(const struct weights *w, const char *name);
/* GALLEY_EMODEL naming the first tensor nobody looked up (a surplus tensor means the
 * config and the file are not of one model).  Tensors whose name starts with a prefix in
 * `ignored` (NULL-terminated list, may be NULL) do not count. */
GALLEY_MUST_USE enum galley_status
weights_check_all_used(const struct weights *w, const char *const *ignored, struct galley_err *err);

#endif
