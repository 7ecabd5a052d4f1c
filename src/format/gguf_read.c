/* gguf_read.c - asking an open GGUF file. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "src/format/gguf_impl.h"

/* As people know them, for sentences. */
static const char *const type_names[GGUF_TYPE_COUNT] = { "u8",  "i8",  "u16",  "i16",    "u32",
                                                         "i32", "f32", "bool", "string", "array",
                                                         "u64", "i64", "f64" };

const uint8_t gguf_value_bytes[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

const struct gguf_value *gguf_part_lookup(const struct gguf_part *p, const char *key)
{
    const struct gguf_index *x = &p->by_key;
    for (size_t i = gguf_hash(key); x->n_slots; i++) {
        const uint32_t slot = x->slots[i & (x->n_slots - 1)];
        if (slot == 0) {
            break;
        }
        if (strcmp(p->keys[slot - 1].name, key) == 0) {
            return &p->keys[slot - 1].value;
        }
    }
    return NULL;
}

int gguf_n_keys(const struct gguf *g)
{
    return g->parts[0].n_keys;
}

const char *gguf_key_at(const struct gguf *g, int i, const struct gguf_value **value)
{
    assert(i >= 0 && i < g->parts[0].n_keys);
    *value = &g->parts[0].keys[i].value;
    return g->parts[0].keys[i].name;
}

const struct gguf_value *gguf_lookup(const struct gguf *g, const char *key)
{
    return gguf_part_lookup(&g->parts[0], key);
}

int gguf_n_tensors(const struct gguf *g)
{
    return g->n_tensors;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, int i)
{
    assert(i >= 0 && i < g->n_tensors);
    return &g->tensors[i];
}

const struct gguf_tensor *gguf_tensor_lookup(const struct gguf *g, const char *name)
{
    const struct gguf_index *x = &g->by_name;
    for (size_t i = gguf_hash(name); x->n_slots; i++) {
        const uint32_t slot = x->slots[i & (x->n_slots - 1)];
        if (slot == 0) {
            break;
        }
        if (strcmp(g->tensors[slot - 1].name, name) == 0) {
            return &g->tensors[slot - 1];
        }
    }
    return NULL;
}

const char *gguf_path(const struct gguf *g)
{
    return g->parts[0].path;
}

int gguf_n_parts(const struct gguf *g)
{
    return g->n_parts;
}

const char *gguf_part_path(const struct gguf *g, int i)
{
    assert(i >= 0 && i < g->n_parts);
    return g->parts[i].path;
}

int gguf_version(const struct gguf *g)
{
    return g->parts[0].version;
}

bool gguf_string_is(const struct gguf_string *s, const char *text)
{
    const size_t n = strlen(text);
    return s->n == n && memcmp(s->text, text, n) == 0;
}

/* ---- numbers ---- */

/* One number, unaligned; `whole` says which of the two is meant. */
struct number {
    bool whole;
    int64_t i;
    double d;
};

#define LOAD(type) \
    type v;        \
    memcpy(&v, at->data + i * sizeof(v), sizeof(v))

static struct number whole(int64_t i)
{
    return (struct number){ true, i, (double)i };
}

static struct number load_wide(const struct gguf_value *at, uint64_t i)
{
    if (at->type == GGUF_U64) {
        LOAD(uint64_t);
        return v <= INT64_MAX ? whole((int64_t)v) : (struct number){ false, INT64_MAX, (double)v };
    }
    if (at->type == GGUF_I64) {
        LOAD(int64_t);
        return whole(v);
    }
    if (at->type == GGUF_F64) {
        LOAD(double);
        return (struct number){ false, 0, v };
    }
    LOAD(float);
    return (struct number){ false, 0, (double)v };
}

static struct number load(const struct gguf_value *at, uint64_t i)
{
    assert(i < at->n && at->data);
    switch (at->type) {
    case GGUF_U8:
        return whole(at->data[i]);
    case GGUF_BOOL:
        return whole(at->data[i] != 0);
    case GGUF_I8:
        return whole((int8_t)at->data[i]);
    case GGUF_U16: {
        LOAD(uint16_t);
        return whole(v);
    }
    case GGUF_I16: {
        LOAD(int16_t);
        return whole(v);
    }
    case GGUF_U32: {
        LOAD(uint32_t);
        return whole(v);
    }
    case GGUF_I32: {
        LOAD(int32_t);
        return whole(v);
    }
    default:
        return load_wide(at, i);
    }
}

int64_t gguf_int(const struct gguf_value *v, uint64_t i)
{
    const struct number x = load(v, i);
    if (x.whole || x.i == INT64_MAX) {
        return x.i;
    }
    if (!(x.d > -9.2e18)) { /* NaN as well */
        return INT64_MIN;
    }
    return x.d < 9.2e18 ? (int64_t)x.d : INT64_MAX;
}

double gguf_number(const struct gguf_value *v, uint64_t i)
{
    return load(v, i).d;
}

/* ---- scalars by key ---- */

static enum galley_status missing(const struct gguf *g, const char *key, bool required,
                                  struct galley_err *err)
{
    if (!required) {
        return GALLEY_OK;
    }
    return galley_err_set(err, GALLEY_EMODEL, "%s: key %s is missing", gguf_path(g), key);
}

static enum galley_status wrong_type(const struct gguf *g, const char *key,
                                     const struct gguf_value *v, const char *want,
                                     struct galley_err *err)
{
    return galley_err_set(err, GALLEY_EMODEL, "%s: key %s is %s%s, not %s", gguf_path(g), key,
                          v->is_array ? "an array of " : "", type_names[v->type], want);
}

enum galley_status gguf_read_int(const struct gguf *g, const char *key, bool required, int64_t lo,
                                 int64_t hi, int64_t *out, struct galley_err *err)
{
    const struct gguf_value *v = gguf_lookup(g, key);
    if (!v) {
        return missing(g, key, required, err);
    }
    if (v->is_array || v->type == GGUF_STRING || v->type == GGUF_BOOL || v->type == GGUF_F32 ||
        v->type == GGUF_F64) {
        return wrong_type(g, key, v, "a whole number", err);
    }
    const int64_t x = gguf_int(v, 0);
    if (x < lo || x > hi) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: key %s is %" PRId64 ", outside %" PRId64 " to %" PRId64,
                              gguf_path(g), key, x, lo, hi);
    }
    *out = x;
    return GALLEY_OK;
}

enum galley_status gguf_read_number(const struct gguf *g, const char *key, bool required, double lo,
                                    double hi, double *out, struct galley_err *err)
{
    const struct gguf_value *v = gguf_lookup(g, key);
    if (!v) {
        return missing(g, key, required, err);
    }
    if (v->is_array || v->type == GGUF_STRING || v->type == GGUF_BOOL) {
        return wrong_type(g, key, v, "a number", err);
    }
    const double x = gguf_number(v, 0);
    if (!(x >= lo && x <= hi)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: key %s is %g, outside %g to %g",
                              gguf_path(g), key, x, lo, hi);
    }
    *out = x;
    return GALLEY_OK;
}

enum galley_status gguf_read_bool(const struct gguf *g, const char *key, bool required, bool *out,
                                  struct galley_err *err)
{
    const struct gguf_value *v = gguf_lookup(g, key);
    if (!v) {
        return missing(g, key, required, err);
    }
    if (v->is_array || v->type != GGUF_BOOL) {
        return wrong_type(g, key, v, "true or false", err);
    }
    *out = v->data[0] != 0;
    return GALLEY_OK;
}

enum galley_status gguf_read_string(const struct gguf *g, const char *key, bool required,
                                    struct gguf_string *out, struct galley_err *err)
{
    const struct gguf_value *v = gguf_lookup(g, key);
    if (!v) {
        return missing(g, key, required, err);
    }
    if (v->is_array || v->type != GGUF_STRING) {
        return wrong_type(g, key, v, "a string", err);
    }
    *out = v->strings[0];
    return GALLEY_OK;
}
