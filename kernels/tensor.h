/* tensor.h - a typed, shaped view of memory somebody else owns. */
#ifndef GALLEY_KERNELS_TENSOR_H
#define GALLEY_KERNELS_TENSOR_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/map.h"

/* Dense types first, then the block-quantised ones of GGUF (layouts in quant.h). */
enum dtype {
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_N_DENSE,
    DTYPE_Q4_0 = DTYPE_N_DENSE,
    DTYPE_Q4_1,
    DTYPE_Q5_0,
    DTYPE_Q5_1,
    DTYPE_Q8_0,
    DTYPE_Q2_K,
    DTYPE_Q3_K,
    DTYPE_Q4_K,
    DTYPE_Q5_K,
    DTYPE_Q6_K,
    DTYPE_IQ4_NL,
    DTYPE_IQ4_XS,
    DTYPE_MXFP4,
    DTYPE_COUNT
};

#define TENSOR_DIM_MAX 5

/* Row-major: shape[n_dim - 1] is the fastest.  data may be unaligned (files).  Rows of a
 * block-quantised tensor are whole blocks. */
struct tensor {
    enum dtype dtype;
    int n_dim;
    int64_t shape[TENSOR_DIM_MAX];
    const void *data;
    const struct map *file; /* what data is part of; NULL: plain memory */
};

struct dtype_info {
    const char *name;
    int block;   /* elements per block; 1: dense */
    int n_bytes; /* bytes per block */
};

static inline const struct dtype_info *dtype_info(enum dtype t)
{
    static const struct dtype_info info[DTYPE_COUNT] = {
        { "F32", 1, 4 },      { "F16", 1, 2 },      { "BF16", 1, 2 },       { "Q4_0", 32, 18 },
        { "Q4_1", 32, 20 },   { "Q5_0", 32, 22 },   { "Q5_1", 32, 24 },     { "Q8_0", 32, 34 },
        { "Q2_K", 256, 84 },  { "Q3_K", 256, 110 }, { "Q4_K", 256, 144 },   { "Q5_K", 256, 176 },
        { "Q6_K", 256, 210 }, { "IQ4_NL", 32, 18 }, { "IQ4_XS", 256, 136 }, { "MXFP4", 32, 17 },
    };
    assert(t >= 0 && t < DTYPE_COUNT);
    return &info[t];
}

static inline bool dtype_is_dense(enum dtype t)
{
    return t < DTYPE_N_DENSE;
}

/* Bytes of one element of a dense type. */
static inline size_t dtype_bytes(enum dtype t)
{
    assert(dtype_is_dense(t));
    return t == DTYPE_F32 ? 4 : 2;
}

/* Bytes of n elements side by side; n must be whole blocks. */
static inline uint64_t dtype_row_bytes(enum dtype t, uint64_t n)
{
    const struct dtype_info *i = dtype_info(t);
    assert(n % (uint64_t)i->block == 0);
    return n / (uint64_t)i->block * (uint64_t)i->n_bytes;
}

static inline const char *dtype_name(enum dtype t)
{
    return dtype_info(t)->name;
}

static inline uint64_t tensor_bytes(const struct tensor *t)
{
    uint64_t n = 1;
    for (int i = 0; i < t->n_dim; i++) {
        n *= (uint64_t)t->shape[i];
    }
    return dtype_row_bytes(t->dtype, n);
}

/* What there is to say of a tensor that tensor_read could not read. */
#define TENSOR_UNREADABLE \
    "its bytes cannot be read: has the file been shortened, or is the disk damaged?"

/* Bytes at .. at + n - 1, by reading when they are a file's (map_read: false when it is shorter
 * now, or cannot be read).  Any thread may. */
GALLEY_MUST_USE static inline bool tensor_read(const struct tensor *t, void *to, uint64_t at,
                                               size_t n)
{
    const char *from = (const char *)t->data + at;
    if (t->file) {
        return map_read(t->file, to, from, n);
    }
    memcpy(to, from, n);
    return true;
}

#endif
