/* gguf_write.h - writing a GGUF v3 file.
 *
 * In this order: keys, tensor infos, gguf_write_begin, each tensor's bytes in the order of the
 * infos, gguf_write_close.  The header is kept in memory until begin; tensor data goes straight to
 * a file beside `path` that is renamed at the end, so nobody sees half a model.  The space is asked
 * for at begin: a full disk is an error there, before the work, wherever the file system can say
 * so.  Errors stick until gguf_write_close reports them; gguf_write_failed asks earlier. */
#ifndef GALLEY_FORMAT_GGUF_WRITE_H
#define GALLEY_FORMAT_GGUF_WRITE_H

#include "src/format/gguf.h"

struct gguf_writer;

GALLEY_MUST_USE enum galley_status gguf_write_open(struct gguf_writer **out, const char *path,
                                                   struct galley_err *err);
/* One value of any type; arrays too.  v is copied. */
void gguf_write_key(struct gguf_writer *w, const char *key, const struct gguf_value *v);
void gguf_write_u32(struct gguf_writer *w, const char *key, uint32_t v);
void gguf_write_f32(struct gguf_writer *w, const char *key, float v);
void gguf_write_bool(struct gguf_writer *w, const char *key, bool v);
void gguf_write_string(struct gguf_writer *w, const char *key, const char *s);

/* Declares a tensor; shape in PyTorch's order, whole blocks, at most 4 dimensions. */
void gguf_write_tensor(struct gguf_writer *w, const char *name, enum dtype t, int n_dim,
                       const int64_t *shape);
GALLEY_MUST_USE enum galley_status gguf_write_begin(struct gguf_writer *w, struct galley_err *err);
/* The next bytes of the tensors, one after the other; padding between them is written here. */
void gguf_write_data(struct gguf_writer *w, const void *bytes, size_t n);
bool gguf_write_failed(const struct gguf_writer *w);
/* Bytes of the whole file, known after begin. */
uint64_t gguf_write_size(const struct gguf_writer *w);

/* Completes and renames; frees w either way.  All tensors must have come in full. */
GALLEY_MUST_USE enum galley_status gguf_write_close(struct gguf_writer *w, struct galley_err *err);
/* Gives up: nothing appears under the name.  NULL is fine. */
void gguf_write_abandon(struct gguf_writer *w);

#endif
