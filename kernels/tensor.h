/* tensor.h - a typed, shaped view of memory somebody else owns. */
#ifndef GALLEY_KERNELS_TENSOR_H
#define GALLEY_KERNELS_TENSOR_H

#include <stddef.h>
#include <stdint.h>

enum dtype { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_COUNT };

#define TENSOR_DIM_MAX 5

/* Row-major: shape[n_dim - 1] is the fastest.  data may be unaligned (files). */
struct tensor {
    enum dtype dtype;
    int n_dim;
    int64_t shape[TENSOR_DIM_MAX];
    const void *data;
};

static inline size_t dtype_bytes(enum dtype t)
{
    return t == DTYPE_F32 ? 4 : 2;
}

static inline const char *dtype_name(enum dtype t)
{
    static const char *const names[DTYPE_COUNT] = { "F32", "F16", "BF16" };
    return names[t];
}

#endif
