/* bind.c - see bind.h. */
#include "src/format/bind.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/widen.h"
#include "src/base/mem.h"

#define BIND_PARTS_MAX 4

void binder_scope(struct binder *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(b->scope, sizeof(b->scope), fmt, ap);
    va_end(ap);
    assert(n >= 0 && (size_t)n < sizeof(b->scope));
    (void)n; /* read by the assert only */
}

static const struct tensor *lookup(struct binder *b, const char *name, int n_dim,
                                   const int64_t *shape)
{
    char full[256];
    const int n = snprintf(full, sizeof(full), "%s%s", b->scope, name);
    assert(n >= 0 && (size_t)n < sizeof(full));
    (void)n;
    const struct tensor *t = NULL;
    b->rc = weights_lookup(b->w, full, n_dim, shape, &t, b->err);
    return b->rc ? NULL : t;
}

static void fail_memory(struct binder *b, const char *name, uint64_t bytes)
{
    b->rc = galley_err_set(b->err, GALLEY_ENOMEM, "out of memory: %llu bytes for %s%s",
                           (unsigned long long)bytes, b->scope, name);
}

float *bind_vector(struct binder *b, const char *name, int64_t n)
{
    if (b->rc) {
        return NULL;
    }
    const struct tensor *t = lookup(b, name, 1, &n);
    if (!t) {
        return NULL;
    }
    float *y = b->dev->ops->alloc(b->dev, (size_t)n * sizeof(*y));
    if (!y) {
        fail_memory(b, name, (uint64_t)n * sizeof(*y));
        return NULL;
    }
    widen_ref(y, t->data, t->dtype, (size_t)n);
    b->bytes += (uint64_t)n * sizeof(*y);
    return y;
}

/* The stacked weight: the file's own type when the parts agree, else f32. */
static void *stack_weights(struct tensor *io, const struct tensor *const *w,
                           const struct bind_part *parts, int n_parts, int64_t n_in)
{
    for (int i = 0; i < n_parts; i++) {
        io->dtype = w[i]->dtype == w[0]->dtype ? io->dtype : DTYPE_F32;
    }
    const size_t row_bytes = (size_t)n_in * dtype_bytes(io->dtype);
    uint8_t *data = mem_array((size_t)io->shape[0], row_bytes);
    if (!data) {
        return NULL;
    }
    uint8_t *to = data;
    for (int i = 0; i < n_parts; i++) {
        if (w[i]->dtype == io->dtype) {
            memcpy(to, w[i]->data, (size_t)parts[i].n_out * row_bytes);
        } else {
            widen_ref((float *)(void *)to, w[i]->data, w[i]->dtype,
                      (size_t)(parts[i].n_out * n_in));
        }
        to += (size_t)parts[i].n_out * row_bytes;
    }
    io->data = data;
    return data;
}

/* Biases side by side in f32, zero where a part has none; NULL when no part has one. */
static float *stack_biases(struct binder *b, const struct bind_part *parts, int n_parts,
                           int64_t n_out)
{
    float *data = mem_many(float, (size_t)n_out);
    if (!data) {
        fail_memory(b, "bias", (uint64_t)n_out * sizeof(*data));
        return NULL;
    }
    int64_t at = 0;
    for (int i = 0; i < n_parts; at += parts[i++].n_out) {
        const struct tensor *t =
            parts[i].bias ? lookup(b, parts[i].bias, 1, &parts[i].n_out) : NULL;
        if (t) {
            widen_ref(data + at, t->data, t->dtype, (size_t)parts[i].n_out);
        } else if (b->rc) {
            mem_free(data);
            return NULL;
        }
    }
    return data;
}

/* Looks up every weight of the stack; true when all are there with their shapes. */
static bool find_weights(struct binder *b, const struct tensor **w, const struct bind_part *parts,
                         int n_parts, int n_in_dim, const int64_t *in)
{
    for (int i = 0; i < n_parts; i++) {
        int64_t shape[TENSOR_DIM_MAX] = { parts[i].n_out };
        memcpy(shape + 1, in, (size_t)n_in_dim * sizeof(*in));
        w[i] = lookup(b, parts[i].weight, n_in_dim + 1, shape);
        if (!w[i]) {
            return false;
        }
    }
    return true;
}

struct linear *bind_stack(struct binder *b, const struct bind_part *parts, int n_parts,
                          int n_in_dim, const int64_t *in)
{
    assert(n_parts >= 1 && n_parts <= BIND_PARTS_MAX && n_in_dim < TENSOR_DIM_MAX);
    const struct tensor *w[BIND_PARTS_MAX];
    if (b->rc || !find_weights(b, w, parts, n_parts, n_in_dim, in)) {
        return NULL;
    }
    int64_t n_in = 1, n_out = 0;
    bool biased = false;
    for (int i = 0; i < n_in_dim; i++) {
        n_in *= in[i];
    }
    for (int i = 0; i < n_parts; i++) {
        n_out += parts[i].n_out;
        biased = biased || parts[i].bias;
    }
    struct linear *l = NULL;
    struct tensor weight = { w[0]->dtype, 2, { n_out, n_in }, w[0]->data };
    void *stacked = n_parts > 1 ? stack_weights(&weight, w, parts, n_parts, n_in) : NULL;
    float *bias = biased ? stack_biases(b, parts, n_parts, n_out) : NULL;
    const struct tensor bias_view = { DTYPE_F32, 1, { n_out }, bias };
    if (n_parts > 1 && !stacked && !b->rc) {
        fail_memory(b, parts[0].weight, (uint64_t)(n_out * n_in) * dtype_bytes(weight.dtype));
    }
    if (!b->rc) {
        b->rc = b->dev->ops->linear_new(b->dev, &l, &weight, bias ? &bias_view : NULL, b->err);
        b->bytes += (uint64_t)(n_out * n_in) * dtype_bytes(weight.dtype) +
                    (bias ? (uint64_t)n_out * sizeof(*bias) : 0);
    }
    mem_free(stacked);
    mem_free(bias);
    return b->rc ? NULL : l;
}

struct linear *bind_linear(struct binder *b, const char *weight, const char *bias, int64_t n_out,
                           int64_t n_in)
{
    const struct bind_part part = { weight, bias, n_out };
    return bind_stack(b, &part, 1, 1, &n_in);
}
