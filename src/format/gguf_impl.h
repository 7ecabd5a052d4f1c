/* gguf_impl.h - what gguf.c (opening), gguf_read.c (asking) and gguf_write.c share.  Not for other
 * modules. */
#ifndef GALLEY_FORMAT_GGUF_IMPL_H
#define GALLEY_FORMAT_GGUF_IMPL_H

#include "src/base/map.h"
#include "src/format/gguf.h"

#define GGUF_PARTS_MAX 1000

/* Bytes of one value; 0: of no fixed size. */
extern const uint8_t gguf_value_bytes[GGUF_TYPE_COUNT];

/* Open addressing over names that live elsewhere; a slot holds position + 1. */
struct gguf_index {
    uint32_t *slots;
    size_t n_slots; /* a power of two; 0: nothing inside */
};

struct gguf_key {
    char *name; /* owned */
    struct gguf_value value;
    struct gguf_string one; /* what value.strings points to when it is no array */
};

struct gguf_part {
    char *path; /* owned */
    struct map map;
    const uint8_t *base;
    size_t n;
    int version;
    struct gguf_key *keys; /* owned, and their string lists */
    int n_keys;
    struct gguf_index by_key;
    uint64_t n_tensors, data_at, alignment;
};

struct gguf {
    struct gguf_part *parts; /* owned */
    int n_parts;
    struct gguf_tensor *tensors; /* owned, and the names; in file order */
    int n_tensors;
    struct gguf_index by_name;
};

/* FNV-1a: short names, no adversary can do worse than 131,072 of them. */
static inline uint64_t gguf_hash(const char *name)
{
    uint64_t h = 14695981039346656037ull;
    for (; *name; name++) {
        h = (h ^ (uint8_t)*name) * 1099511628211ull;
    }
    return h ^ h >> 32;
}

/* A key of one part; NULL: none. */
const struct gguf_value *gguf_part_lookup(const struct gguf_part *p, const char *key);

#endif
