/* bind.h - checkpoint tensors become device objects.
 *
 * What the vision tower and the language model share when they open a checkpoint: names under
 * a scope, norm vectors widened to f32, weight matrices (several stacked into one) packed for
 * the device.  Errors stick: after the first failure every call is a no-op that yields NULL, so
 * that a layer's binding reads as a table and is checked once. */
#ifndef GALLEY_FORMAT_BIND_H
#define GALLEY_FORMAT_BIND_H

#include <stdint.h>

#include "kernels/device.h"
#include "src/format/weights.h"

struct binder {
    struct device *dev;
    struct weights *w;
    struct galley_err *err;
    enum galley_status rc; /* the first failure */
    uint64_t bytes;        /* bound so far, as packed */
    char scope[96];        /* put before every name */
};

/* One weight [n_out][in ...] and its bias [n_out] (NULL: none). */
struct bind_part {
    const char *weight, *bias;
    int64_t n_out;
};

void binder_scope(struct binder *b, const char *fmt, ...) GALLEY_PRINTF(2, 3);

/* The vector `name` of n floats in device memory; the caller frees it with dev->ops->free. */
float *bind_vector(struct binder *b, const char *name, int64_t n);

/* The parts stacked in order into one linear; the caller frees it with dev->ops->linear_free.
 * in[0..n_in_dim): the input dimensions, flattened to one. */
struct linear *bind_stack(struct binder *b, const struct bind_part *parts, int n_parts,
                          int n_in_dim, const int64_t *in);
/* The common case: one part, one input dimension. */
struct linear *bind_linear(struct binder *b, const char *weight, const char *bias, int64_t n_out,
                           int64_t n_in);

#endif
