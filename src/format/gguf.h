/* gguf.h - GGUF v2 and v3 files: metadata and tensor views.
 *
 * Every count, length, type, offset and shape is checked against the file before anything is handed
 * out; the file stays mapped until gguf_close.  A split checkpoint (NAME-00001-of-00003.gguf,
 * split.count) opens as one from any of its parts; a missing part is named.  Big-endian
 * files and v1 are refused in so many words.  Format: ggml's docs/gguf.md. */
#ifndef GALLEY_FORMAT_GGUF_H
#define GALLEY_FORMAT_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/tensor.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

#define GGUF_ALIGNMENT 32 /* of tensor data in a file that does not say otherwise */

struct gguf;

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT
};

/* tokenizer.ggml.token_type */
enum gguf_token_type {
    GGUF_TOKEN_NORMAL = 1,
    GGUF_TOKEN_UNKNOWN,
    GGUF_TOKEN_CONTROL,
    GGUF_TOKEN_USER, /* found in the text before anything else, but no control token */
    GGUF_TOKEN_UNUSED,
    GGUF_TOKEN_BYTE
};

struct gguf_string {
    const char *text; /* lent, not NUL-terminated */
    size_t n;
};

/* One metadata value.  A scalar is an array of one; nested arrays are refused. */
struct gguf_value {
    enum gguf_type type; /* of the elements */
    bool is_array;
    uint64_t n;
    const uint8_t *data;               /* numbers: [n] packed, unaligned */
    const struct gguf_string *strings; /* GGUF_STRING: [n] */
};

struct gguf_tensor {
    const char *name;   /* lent, NUL-terminated */
    struct tensor view; /* dtype and shape in PyTorch's order; data inside the mapping */
    uint32_t ggml_type; /* as written */
    const char *type;   /* its name: "Q4_K", "IQ2_XXS", "type 99" */
    bool known;         /* false: a type this build cannot read (view.dtype is DTYPE_COUNT) */
    int i_part;         /* of which file */
    uint64_t offset;    /* of the data in that file */
    uint64_t bytes;     /* 0: a type of unknown size */
};

GALLEY_MUST_USE enum galley_status gguf_open(struct gguf **out, const char *path,
                                             struct galley_err *err);
/* One part from memory that outlives it: tests and fuzzers. */
GALLEY_MUST_USE enum galley_status gguf_open_memory(struct gguf **out, const void *data, size_t n,
                                                    struct galley_err *err);
void gguf_close(struct gguf *g); /* NULL is fine */
/* 2 of NAME-00002-of-00003.gguf; 0: not the name of a part. */
int gguf_part_no(const char *path);
/* Whether the first bytes are GGUF's. */
bool gguf_is_file(const char *path);

int gguf_n_keys(const struct gguf *g);
const char *gguf_key_at(const struct gguf *g, int i, const struct gguf_value **value);
const struct gguf_value *gguf_lookup(const struct gguf *g, const char *key); /* NULL: none */
/* Element i of a numeric or boolean value, whatever its width. */
int64_t gguf_int(const struct gguf_value *v, uint64_t i);
double gguf_number(const struct gguf_value *v, uint64_t i);

/* Scalars by key with range and type checks.  A missing key leaves *out alone: GALLEY_OK unless
 * `required`.  The sentence names file and key. */
GALLEY_MUST_USE enum galley_status gguf_read_int(const struct gguf *g, const char *key,
                                                 bool required, int64_t lo, int64_t hi,
                                                 int64_t *out, struct galley_err *err);
GALLEY_MUST_USE enum galley_status gguf_read_number(const struct gguf *g, const char *key,
                                                    bool required, double lo, double hi,
                                                    double *out, struct galley_err *err);
GALLEY_MUST_USE enum galley_status gguf_read_bool(const struct gguf *g, const char *key,
                                                  bool required, bool *out, struct galley_err *err);
GALLEY_MUST_USE enum galley_status gguf_read_string(const struct gguf *g, const char *key,
                                                    bool required, struct gguf_string *out,
                                                    struct galley_err *err);

int gguf_n_tensors(const struct gguf *g);
const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, int i);
const struct gguf_tensor *gguf_tensor_lookup(const struct gguf *g, const char *name);
const char *gguf_path(const struct gguf *g); /* of the first part; "memory" */
int gguf_n_parts(const struct gguf *g);
const char *gguf_part_path(const struct gguf *g, int i);
int gguf_version(const struct gguf *g);
/* Whether the string value's element i is exactly `text`. */
bool gguf_string_is(const struct gguf_string *s, const char *text);

#endif
