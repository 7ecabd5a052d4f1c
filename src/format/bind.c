/* bind.c - see bind.h. */
#include "src/format/bind.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/widen.h"
#include "src/base/mem.h"

#define NAME_TEXT 256

void binder_scope(struct binder *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(b->scope, sizeof(b->scope), fmt, ap);
    va_end(ap);
    assert(n >= 0 && (size_t)n < sizeof(b->scope));
    (void)n; /* read by the assert only */
}

static void full_name(char out[NAME_TEXT], const struct binder *b, const char *name)
{
    const int n = snprintf(out, NAME_TEXT, "%s%s", b->scope, name);
    assert(n >= 0 && n < NAME_TEXT);
    (void)n;
}

static const struct tensor *lookup(struct binder *b, const char *name, int n_dim,
                                   const int64_t *shape)
{
    char full[NAME_TEXT];
    full_name(full, b, name);
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
    if (!dtype_is_dense(t->dtype)) {
        b->rc = galley_err_set(b->err, GALLEY_EMODEL,
                               "%s: tensor %s%s is %s; vectors are F32, F16 or BF16",
                               weights_place(b->w), b->scope, name, dtype_name(t->dtype));
        return NULL;
    }
    float *y = b->dev->ops->alloc(b->dev, (size_t)n * sizeof(*y));
    if (!y) {
        fail_memory(b, name, (uint64_t)n * sizeof(*y));
        return NULL;
    }
    void *raw = mem_alloc((size_t)tensor_bytes(t));
    if (!raw) {
        fail_memory(b, name, tensor_bytes(t));
    } else if (!tensor_read(t, raw, 0, (size_t)tensor_bytes(t))) {
        char full[NAME_TEXT];
        full_name(full, b, name);
        b->rc = weights_cut(b->w, full, b->err);
    } else {
        widen_ref(y, raw, t->dtype, (size_t)n);
        b->bytes += (uint64_t)n * sizeof(*y);
        mem_free(raw);
        return y;
    }
    mem_free(raw);
    b->dev->ops->free(b->dev, y);
    return NULL;
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
    assert(n_parts >= 1 && n_parts <= LINEAR_PARTS_MAX && n_in_dim < TENSOR_DIM_MAX);
    const struct tensor *w[LINEAR_PARTS_MAX];
    if (b->rc || !find_weights(b, w, parts, n_parts, n_in_dim, in)) {
        return NULL;
    }
    struct linear_part packed[LINEAR_PARTS_MAX];
    for (int i = 0; i < n_parts; i++) {
        packed[i] = (struct linear_part){ .w = *w[i] };
        if (parts[i].bias) {
            packed[i].bias = lookup(b, parts[i].bias, 1, &parts[i].n_out);
            if (!packed[i].bias) {
                return NULL;
            }
        }
    }
    struct linear *l = NULL;
    b->rc = b->dev->ops->linear_new(b->dev, &l, packed, n_parts, b->err);
    if (b->rc) { /* a device knows no names */
        galley_err_prefix(b->err, b->rc, "%s: tensor %s%s", weights_place(b->w), b->scope,
                          parts[0].weight);
        return NULL;
    }
    b->bytes += b->dev->ops->linear_bytes(l);
    return l;
}

struct linear *bind_linear(struct binder *b, const char *weight, const char *bias, int64_t n_out,
                           int64_t n_in)
{
    const struct bind_part part = { weight, bias, n_out };
    return bind_stack(b, &part, 1, 1, &n_in);
}
