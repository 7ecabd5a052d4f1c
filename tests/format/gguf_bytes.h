/* gguf_bytes.h - GGUF files put together byte by byte, honest or not. */
#ifndef GALLEY_TESTS_GGUF_BYTES_H
#define GALLEY_TESTS_GGUF_BYTES_H

#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/mem.h"
#include "src/format/gguf.h"
#include "tests/t.h"

static inline void put_u32(struct buf *b, uint32_t v)
{
    buf_add(b, &v, sizeof(v));
}

static inline void put_u64(struct buf *b, uint64_t v)
{
    buf_add(b, &v, sizeof(v));
}

static inline void put_str(struct buf *b, const char *s)
{
    put_u64(b, strlen(s));
    buf_add_str(b, s);
}

static inline void put_head(struct buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys)
{
    buf_init(b, (size_t)1 << 24);
    buf_add(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_keys);
}

static inline void put_key(struct buf *b, const char *key, enum gguf_type type)
{
    put_str(b, key);
    put_u32(b, (uint32_t)type);
}

static inline void put_key_u32(struct buf *b, const char *key, uint32_t v)
{
    put_key(b, key, GGUF_U32);
    put_u32(b, v);
}

static inline void put_key_f32(struct buf *b, const char *key, float v)
{
    put_key(b, key, GGUF_F32);
    buf_add(b, &v, sizeof(v));
}

static inline void put_key_str(struct buf *b, const char *key, const char *v)
{
    put_key(b, key, GGUF_STRING);
    put_str(b, v);
}

static inline void put_key_u32s(struct buf *b, const char *key, const uint32_t *v, uint64_t n)
{
    put_key(b, key, GGUF_ARRAY);
    put_u32(b, GGUF_U32);
    put_u64(b, n);
    buf_add(b, v, (size_t)n * sizeof(*v));
}

/* dims as the file has them: the fastest first. */
static inline void put_tensor(struct buf *b, const char *name, uint32_t n_dim, const uint64_t *dims,
                              uint32_t type, uint64_t offset)
{
    put_str(b, name);
    put_u32(b, n_dim);
    for (uint32_t i = 0; i < n_dim; i++) {
        put_u64(b, dims[i]);
    }
    put_u32(b, type);
    put_u64(b, offset);
}

/* Up to the next multiple of 32, then n bytes of data: 0, 1, 2 ... */
static inline void put_data(struct buf *b, size_t n)
{
    while (b->n % 32) {
        buf_add_char(b, 0);
    }
    for (size_t i = 0; i < n; i++) {
        buf_add_char(b, (char)(i & 127));
    }
    T_OK(buf_ok(b));
}

/* Opens a copy that ends exactly where the file does, so that a sanitizer sees the first byte read
 * beyond it.  *copy is the caller's and must outlive *out. */
static inline enum galley_status open_copy(struct gguf **out, char **copy, const void *data,
                                           size_t n, struct galley_err *err)
{
    *copy = mem_alloc(n ? n : 1);
    T_OK(*copy);
    memcpy(*copy, data, n);
    return gguf_open_memory(out, *copy, n, err);
}

#endif
