/* gguf.c - opening GGUF files: the header is walked once, every number compared before use.
 *
 * Strings of the metadata are never copied: a vocabulary of 150,000 tokens is one list of pointers
 * into the mapping.  Only key and tensor names are, to get their NUL. */
#include "src/format/gguf.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/format/gguf_impl.h"

#define KEYS_MAX       65536
#define TENSORS_MAX    131072
#define NAME_MAX_BYTES 1024
#define DIMS_MAX       4 /* the format's own */
#define ELEMENTS_MAX   (UINT64_C(1) << 53)
#define ALIGNMENT_MAX  (UINT64_C(1) << 20)
#define KEY_LEAST      13 /* bytes: length of its name, type, one byte */
#define TENSOR_LEAST   24 /* bytes: length of its name, dimensions, type, offset */

struct ggml_row {
    uint32_t id;
    const char *name;
    uint16_t block, n_bytes; /* 0: unknown */
    enum dtype dtype;        /* DTYPE_COUNT: listed only */
};

static const struct ggml_row ggml_types[] = {
    { 0, "F32", 1, 4, DTYPE_F32 },           { 1, "F16", 1, 2, DTYPE_F16 },
    { 2, "Q4_0", 32, 18, DTYPE_Q4_0 },       { 3, "Q4_1", 32, 20, DTYPE_Q4_1 },
    { 6, "Q5_0", 32, 22, DTYPE_Q5_0 },       { 7, "Q5_1", 32, 24, DTYPE_Q5_1 },
    { 8, "Q8_0", 32, 34, DTYPE_Q8_0 },       { 9, "Q8_1", 32, 0, DTYPE_COUNT },
    { 10, "Q2_K", 256, 84, DTYPE_Q2_K },     { 11, "Q3_K", 256, 110, DTYPE_Q3_K },
    { 12, "Q4_K", 256, 144, DTYPE_Q4_K },    { 13, "Q5_K", 256, 176, DTYPE_Q5_K },
    { 14, "Q6_K", 256, 210, DTYPE_Q6_K },    { 15, "Q8_K", 256, 292, DTYPE_COUNT },
    { 16, "IQ2_XXS", 256, 66, DTYPE_COUNT }, { 17, "IQ2_XS", 256, 74, DTYPE_COUNT },
    { 18, "IQ3_XXS", 256, 98, DTYPE_COUNT }, { 19, "IQ1_S", 256, 50, DTYPE_COUNT },
    { 20, "IQ4_NL", 32, 18, DTYPE_IQ4_NL },  { 21, "IQ3_S", 256, 110, DTYPE_COUNT },
    { 22, "IQ2_S", 256, 82, DTYPE_COUNT },   { 23, "IQ4_XS", 256, 136, DTYPE_IQ4_XS },
    { 24, "I8", 1, 1, DTYPE_COUNT },         { 25, "I16", 1, 2, DTYPE_COUNT },
    { 26, "I32", 1, 4, DTYPE_COUNT },        { 27, "I64", 1, 8, DTYPE_COUNT },
    { 28, "F64", 1, 8, DTYPE_COUNT },        { 29, "IQ1_M", 256, 56, DTYPE_COUNT },
    { 30, "BF16", 1, 2, DTYPE_BF16 },        { 34, "TQ1_0", 256, 54, DTYPE_COUNT },
    { 35, "TQ2_0", 256, 66, DTYPE_COUNT },   { 39, "MXFP4", 32, 17, DTYPE_MXFP4 },
    { 40, "NVFP4", 64, 36, DTYPE_COUNT },
};

static const struct ggml_row *lookup_ggml(uint32_t id)
{
    for (size_t i = 0; i < COUNT(ggml_types); i++) {
        if (ggml_types[i].id == id) {
            return &ggml_types[i];
        }
    }
    return NULL;
}

/* ---- reading ---- */

/* One part being walked. */
struct walk {
    const char *where;
    const uint8_t *p, *end;
    struct galley_err *err;
};

static enum galley_status no_memory(const struct walk *w)
{
    return galley_err_set(w->err, GALLEY_ENOMEM, "%s: no memory to open it", w->where);
}

static enum galley_status cut_short(const struct walk *w, const char *what)
{
    return galley_err_set(w->err, GALLEY_EMODEL,
                          "%s: the file ends within %s: it is damaged or cut short", w->where,
                          what);
}

static bool take(struct walk *w, void *out, size_t n)
{
    if ((size_t)(w->end - w->p) < n) {
        return false;
    }
    memcpy(out, w->p, n);
    w->p += n;
    return true;
}

static bool take_string(struct walk *w, struct gguf_string *out)
{
    uint64_t n;
    if (!take(w, &n, sizeof(n)) || n > (uint64_t)(w->end - w->p)) {
        return false;
    }
    *out = (struct gguf_string){ (const char *)w->p, (size_t)n };
    w->p += n;
    return true;
}

/* A name of a key or tensor, copied for its NUL. */
static enum galley_status take_name(struct walk *w, char **out, const char *what)
{
    struct gguf_string s;
    if (!take_string(w, &s)) {
        return cut_short(w, what);
    }
    if (s.n == 0 || s.n > NAME_MAX_BYTES || memchr(s.text, 0, s.n)) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: %s is empty, longer than %d bytes or holds a zero byte: the "
                              "file is damaged",
                              w->where, what, NAME_MAX_BYTES);
    }
    *out = mem_strndup(s.text, s.n);
    return *out ? GALLEY_OK : no_memory(w);
}

/* ---- names to positions ---- */

static bool index_reserve(struct gguf_index *x, size_t n)
{
    size_t n_slots = 16;
    while (n_slots < 2 * n) {
        n_slots *= 2;
    }
    x->slots = mem_many(uint32_t, n_slots);
    x->n_slots = x->slots ? n_slots : 0;
    return x->slots != NULL;
}

/* Names lie `stride` bytes apart, a pointer to each at the front of its element.  False when the
 * name is there already. */
static bool index_add(struct gguf_index *x, const void *items, size_t stride, uint32_t at)
{
    const char *name, *other;
    const char *base = items;
    memcpy(&name, base + at * stride, sizeof(name));
    for (size_t i = gguf_hash(name);; i++) {
        uint32_t *slot = &x->slots[i & (x->n_slots - 1)];
        if (*slot == 0) {
            *slot = at + 1;
            return true;
        }
        memcpy(&other, base + (*slot - 1) * stride, sizeof(other));
        if (strcmp(name, other) == 0) {
            return false;
        }
    }
}

/* ---- metadata ---- */

static enum galley_status take_strings(struct walk *w, struct gguf_value *v, const char *key)
{
    /* each string has at least its length: bounds the list by the file */
    if (v->n > (uint64_t)(w->end - w->p) / 8) {
        return cut_short(w, key);
    }
    struct gguf_string *list = mem_array((size_t)v->n, sizeof(*list));
    if (!list) {
        return no_memory(w);
    }
    v->strings = list;
    for (uint64_t i = 0; i < v->n; i++) {
        if (!take_string(w, &list[i])) {
            return cut_short(w, key);
        }
    }
    return GALLEY_OK;
}

static enum galley_status take_type(struct walk *w, enum gguf_type *out, const char *key)
{
    uint32_t type;
    if (!take(w, &type, sizeof(type))) {
        return cut_short(w, key);
    }
    if (type >= GGUF_TYPE_COUNT) {
        return galley_err_set(w->err, GALLEY_EMODEL, "%s: key %s has the unknown type %" PRIu32,
                              w->where, key, type);
    }
    *out = (enum gguf_type)type;
    return GALLEY_OK;
}

static enum galley_status take_value(struct walk *w, struct gguf_key *k)
{
    struct gguf_value *v = &k->value;
    enum galley_status rc = take_type(w, &v->type, k->name);
    v->n = 1;
    if (!rc && v->type == GGUF_ARRAY) {
        v->is_array = true;
        rc = take_type(w, &v->type, k->name);
        if (!rc && !take(w, &v->n, sizeof(v->n))) {
            rc = cut_short(w, k->name);
        }
    }
    if (rc) {
        return rc;
    }
    if (v->type == GGUF_ARRAY) {
        return galley_err_set(w->err, GALLEY_EMODEL, "%s: key %s is an array of arrays", w->where,
                              k->name);
    }
    if (v->type == GGUF_STRING) {
        if (v->is_array) {
            return take_strings(w, v, k->name);
        }
        v->strings = &k->one;
        return take_string(w, &k->one) ? GALLEY_OK : cut_short(w, k->name);
    }
    if (v->n > (uint64_t)(w->end - w->p) / gguf_value_bytes[v->type]) {
        return cut_short(w, k->name);
    }
    v->data = w->p;
    w->p += v->n * gguf_value_bytes[v->type];
    return GALLEY_OK;
}

static enum galley_status take_keys(struct walk *w, struct gguf_part *p, uint64_t n)
{
    if (n > KEYS_MAX || n > (uint64_t)(w->end - w->p) / KEY_LEAST) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: claims %" PRIu64 " keys in %zu bytes, limit %d: damaged or cut "
                              "short",
                              w->where, n, (size_t)(w->end - w->p), KEYS_MAX);
    }
    p->keys = mem_many(struct gguf_key, (size_t)n);
    if (!p->keys || !index_reserve(&p->by_key, (size_t)n)) {
        return no_memory(w);
    }
    for (uint64_t i = 0; i < n; i++) {
        struct gguf_key *k = &p->keys[i];
        enum galley_status rc = take_name(w, &k->name, "the name of a key");
        if (rc) {
            return rc;
        }
        p->n_keys++; /* owned from here on */
        rc = take_value(w, k);
        if (rc) {
            return rc;
        }
        if (!index_add(&p->by_key, p->keys, sizeof(*k), (uint32_t)i)) {
            return galley_err_set(w->err, GALLEY_EMODEL, "%s: key %s is there twice", w->where,
                                  k->name);
        }
    }
    return GALLEY_OK;
}

/* ---- tensors ---- */

/* Shape in PyTorch's order, and the bytes they make; *bytes 0 when the type's size is unknown. */
static enum galley_status take_shape(struct walk *w, struct gguf_tensor *t)
{
    uint32_t n_dim;
    uint64_t dims[DIMS_MAX], n = 1;
    if (!take(w, &n_dim, sizeof(n_dim))) {
        return cut_short(w, t->name);
    }
    if (n_dim > DIMS_MAX) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: tensor %s has %" PRIu32 " dimensions, limit %d", w->where,
                              t->name, n_dim, DIMS_MAX);
    }
    t->view.n_dim = (int)n_dim;
    for (uint32_t i = 0; i < n_dim; i++) {
        if (!take(w, &dims[i], sizeof(dims[i]))) {
            return cut_short(w, t->name);
        }
        if (dims[i] == 0 || dims[i] > ELEMENTS_MAX / n) {
            return galley_err_set(w->err, GALLEY_EMODEL,
                                  "%s: tensor %s has a dimension of %" PRIu64
                                  ", not usable: the file is damaged",
                                  w->where, t->name, dims[i]);
        }
        n *= dims[i];
        t->view.shape[n_dim - 1 - i] = (int64_t)dims[i];
    }
    if (!take(w, &t->ggml_type, sizeof(t->ggml_type))) {
        return cut_short(w, t->name);
    }
    const struct ggml_row *row = lookup_ggml(t->ggml_type);
    t->view.dtype = row ? row->dtype : DTYPE_COUNT;
    t->known = t->view.dtype != DTYPE_COUNT;
    t->type = row ? row->name : "a type this build does not know";
    if (!row || row->n_bytes == 0) {
        return GALLEY_OK;
    }
    const uint64_t n_row = n_dim ? dims[0] : 1;
    if (n_row % row->block) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: tensor %s has rows of %" PRIu64
                              " elements, %s comes in blocks of %d",
                              w->where, t->name, n_row, row->name, row->block);
    }
    t->bytes = n / row->block * row->n_bytes; /* below 2^53 * 9 */
    return GALLEY_OK;
}

static enum galley_status take_tensor(struct walk *w, struct gguf *g, const struct gguf_part *p)
{
    struct gguf_tensor *t = &g->tensors[g->n_tensors];
    char *name;
    enum galley_status rc = take_name(w, &name, "the name of a tensor");
    if (rc) {
        return rc;
    }
    *t = (struct gguf_tensor){ .name = name, .i_part = (int)(p - g->parts) };
    g->n_tensors++; /* owned from here on */
    rc = take_shape(w, t);
    if (rc) {
        return rc;
    }
    if (!take(w, &t->offset, sizeof(t->offset))) {
        return cut_short(w, t->name);
    }
    if (t->offset % p->alignment) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: tensor %s begins at byte %" PRIu64
                              ", no multiple of the file's alignment %" PRIu64,
                              w->where, t->name, t->offset, p->alignment);
    }
    return GALLEY_OK;
}

static enum galley_status take_tensors(struct walk *w, struct gguf *g, const struct gguf_part *p)
{
    const uint64_t n = p->n_tensors;
    if (n > TENSORS_MAX - (uint64_t)g->n_tensors || n > (uint64_t)(w->end - w->p) / TENSOR_LEAST) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: claims %" PRIu64 " tensors in %zu bytes, limit %d: damaged or "
                              "cut short",
                              w->where, n, (size_t)(w->end - w->p), TENSORS_MAX);
    }
    struct gguf_tensor *more =
        mem_resize_array(g->tensors, (size_t)g->n_tensors + (size_t)n, sizeof(*more));
    if (!more) {
        return no_memory(w);
    }
    g->tensors = more;
    for (uint64_t i = 0; i < n; i++) {
        const enum galley_status rc = take_tensor(w, g, p);
        if (rc) {
            return rc;
        }
    }
    return GALLEY_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static enum galley_status check_overlap(const struct walk *w, const struct gguf_tensor *first,
                                        size_t n)
{
    const struct gguf_tensor **order = mem_array(n, sizeof(*order));
    if (!order) {
        return no_memory(w);
    }
    for (size_t i = 0; i < n; i++) {
        order[i] = &first[i];
    }
    qsort(order, n, sizeof(*order), by_offset);
    enum galley_status rc = GALLEY_OK;
    for (size_t i = 1; !rc && i < n; i++) {
        const struct gguf_tensor *a = order[i - 1], *b = order[i];
        if (b->offset < a->offset + a->bytes) {
            rc = galley_err_set(w->err, GALLEY_EMODEL,
                                "%s: tensors %s and %s overlap at byte %" PRIu64 " of the data",
                                w->where, a->name, b->name, b->offset);
        }
    }
    mem_free(order);
    return rc;
}

/* Gives the part's tensors their place in the file. */
static enum galley_status place_tensors(const struct walk *w, struct gguf *g, struct gguf_part *p)
{
    const uint64_t at = (uint64_t)(w->p - p->base), rest = at % p->alignment;
    p->data_at = rest ? at + (p->alignment - rest) : at;
    const uint64_t n_data = p->data_at <= p->n ? p->n - p->data_at : 0;
    struct gguf_tensor *first = g->tensors + (g->n_tensors - (int)p->n_tensors);
    for (uint64_t i = 0; i < p->n_tensors; i++) {
        struct gguf_tensor *t = &first[i];
        if (t->offset > n_data || t->bytes > n_data - t->offset) {
            return galley_err_set(w->err, GALLEY_EMODEL,
                                  "%s: tensor %s claims %" PRIu64 " bytes from %" PRIu64
                                  " on, the file has %" PRIu64 ": it is damaged or cut short",
                                  w->where, t->name, t->bytes, t->offset, n_data);
        }
        t->view.data = t->known ? p->base + p->data_at + t->offset : NULL;
    }
    return check_overlap(w, first, (size_t)p->n_tensors);
}

/* ---- one part ---- */

static enum galley_status take_head(struct walk *w, struct gguf_part *p, uint64_t *n_keys)
{
    char magic[4];
    uint32_t version;
    if (!take(w, magic, 4) || memcmp(magic, "GGUF", 4) != 0 ||
        !take(w, &version, sizeof(version))) {
        return galley_err_set(w->err, GALLEY_EMODEL, "%s: not a GGUF file", w->where);
    }
    if (version != 0 && (version & 0xffff) == 0) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: a big-endian GGUF file; this build reads little-endian ones",
                              w->where);
    }
    if (version != 2 && version != 3) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: GGUF version %" PRIu32 "; this build reads versions 2 and 3",
                              w->where, version);
    }
    p->version = (int)version;
    if (!take(w, &p->n_tensors, 8) || !take(w, n_keys, 8)) {
        return cut_short(w, "its header");
    }
    return GALLEY_OK;
}

static enum galley_status read_alignment(const struct walk *w, struct gguf_part *p)
{
    p->alignment = GGUF_ALIGNMENT;
    const struct gguf_value *v = gguf_part_lookup(p, "general.alignment");
    if (!v) {
        return GALLEY_OK;
    }
    const int64_t a = v->type == GGUF_U32 && !v->is_array ? gguf_int(v, 0) : 0;
    if (a < 1 || (uint64_t)a > ALIGNMENT_MAX || (a & (a - 1))) {
        return galley_err_set(w->err, GALLEY_EMODEL,
                              "%s: general.alignment is no power of two up to %" PRIu64, w->where,
                              ALIGNMENT_MAX);
    }
    p->alignment = (uint64_t)a;
    return GALLEY_OK;
}

static enum galley_status read_part(struct gguf *g, struct gguf_part *p, struct galley_err *err)
{
    struct walk w = { p->path, p->base, p->base + p->n, err };
    uint64_t n_keys = 0;
    enum galley_status rc = take_head(&w, p, &n_keys);
    rc = rc ? rc : take_keys(&w, p, n_keys);
    rc = rc ? rc : read_alignment(&w, p);
    rc = rc ? rc : take_tensors(&w, g, p);
    return rc ? rc : place_tensors(&w, g, p);
}

static enum galley_status index_tensors(struct gguf *g, struct galley_err *err)
{
    if (!index_reserve(&g->by_name, (size_t)g->n_tensors)) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open it", gguf_path(g));
    }
    for (int i = 0; i < g->n_tensors; i++) {
        if (!index_add(&g->by_name, g->tensors, sizeof(*g->tensors), (uint32_t)i)) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: tensor %s is there twice",
                                  g->parts[g->tensors[i].i_part].path, g->tensors[i].name);
        }
    }
    return GALLEY_OK;
}

/* ---- split files ---- */

static int five_digits(const char *s)
{
    int v = 0;
    for (int i = 0; i < 5; i++) {
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

/* NAME-00002-of-00003.gguf: where the first number begins, 0 when the name is none such. */
static size_t split_place(const char *path, int *no, int *count)
{
    static const char tail[] = "-00001-of-00001.gguf";
    const size_t n = strlen(path), n_tail = sizeof(tail) - 1;
    if (n <= n_tail) {
        return 0;
    }
    const char *s = path + n - n_tail;
    for (size_t i = 0; i < n_tail; i++) {
        const bool digit = s[i] >= '0' && s[i] <= '9';
        if (tail[i] == '0' || tail[i] == '1' ? !digit : s[i] != tail[i]) {
            return 0;
        }
    }
    *no = five_digits(s + 1);
    *count = five_digits(s + 10);
    return n - n_tail;
}

int gguf_part_no(const char *path)
{
    int no, count;
    return split_place(path, &no, &count) ? no : 0;
}

struct split {
    int64_t no, count, n_tensors;
};

static enum galley_status read_split(const struct gguf *g, struct split *s, struct galley_err *err)
{
    *s = (struct split){ 0, 1, -1 };
    enum galley_status rc =
        gguf_read_int(g, "split.count", false, 0, GGUF_PARTS_MAX, &s->count, err);
    rc = rc ? rc : gguf_read_int(g, "split.no", false, 0, GGUF_PARTS_MAX - 1, &s->no, err);
    rc = rc ? rc
            : gguf_read_int(g, "split.tensors.count", false, 0, TENSORS_MAX, &s->n_tensors, err);
    s->count = s->count ? s->count : 1;
    if (!rc && s->no >= s->count) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: split.no is %" PRId64 " of %" PRId64,
                            gguf_path(g), s->no, s->count);
    }
    return rc;
}

/* The path of part i; *out is the caller's. */
static enum galley_status split_path(char **out, const char *path, int i, int count,
                                     struct galley_err *err)
{
    int no, named;
    const size_t at = split_place(path, &no, &named);
    if (at == 0 || named != count) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: one of %d parts, but not named NAME-0000N-of-%05d.gguf: the "
                              "others cannot be found",
                              path, count, count);
    }
    const size_t size = at + 64;
    *out = mem_alloc(size);
    if (!*out) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open it", path);
    }
    snprintf(*out, size, "%.*s-%05d-of-%05d.gguf", (int)at, path, i + 1, count);
    return GALLEY_OK;
}

static enum galley_status map_part(struct gguf_part *p, struct galley_err *err)
{
    const enum galley_status rc = map_open(&p->map, p->path, err);
    if (rc) {
        return rc == GALLEY_EIO ? galley_err_prefix(err, GALLEY_EMODEL, "model file") : rc;
    }
    p->base = p->map.base;
    p->n = p->map.n;
    return GALLEY_OK;
}

static enum galley_status check_part(const struct gguf_part *p, int i, int count,
                                     struct galley_err *err)
{
    const struct gguf_value *no = gguf_part_lookup(p, "split.no");
    const struct gguf_value *n = gguf_part_lookup(p, "split.count");
    const bool numbers = no && n && !no->is_array && !n->is_array && no->type != GGUF_STRING &&
                         n->type != GGUF_STRING;
    if (!numbers || gguf_int(no, 0) != i || gguf_int(n, 0) != count) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: is not part %d of %d of one model", p->path,
                              i + 1, count);
    }
    return GALLEY_OK;
}

static enum galley_status open_others(struct gguf *g, const struct split *s, struct galley_err *err)
{
    struct gguf_part *more = mem_resize_array(g->parts, (size_t)s->count, sizeof(*more));
    if (!more) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open it", gguf_path(g));
    }
    g->parts = more;
    while (g->n_parts < s->count) {
        const int i = g->n_parts;
        struct gguf_part *p = &g->parts[i];
        *p = (struct gguf_part){ 0 };
        enum galley_status rc = split_path(&p->path, gguf_path(g), i, (int)s->count, err);
        if (rc) {
            return rc;
        }
        g->n_parts++; /* owned from here on */
        rc = map_part(p, err);
        if (rc) {
            return galley_err_prefix(err, rc, "part %d of %d", i + 1, (int)s->count);
        }
        rc = read_part(g, p, err);
        rc = rc ? rc : check_part(p, i, (int)s->count, err);
        if (rc) {
            return rc;
        }
    }
    return GALLEY_OK;
}

/* ---- opening ---- */

static enum galley_status new_file(struct gguf **out, const char *path, struct galley_err *err)
{
    struct gguf *g = mem_new(struct gguf);
    if (g) {
        g->parts = mem_new(struct gguf_part);
        g->n_parts = g->parts != NULL;
    }
    if (g && g->parts) {
        g->parts[0].path = mem_strdup(path);
    }
    *out = g;
    if (!g || !g->parts || !g->parts[0].path) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open it", path);
    }
    return GALLEY_OK;
}

/* The file at `path` alone. */
static enum galley_status open_one(struct gguf **out, const char *path, struct split *s,
                                   struct galley_err *err)
{
    enum galley_status rc = new_file(out, path, err);
    rc = rc ? rc : map_part(&(*out)->parts[0], err);
    rc = rc ? rc : read_part(*out, &(*out)->parts[0], err);
    return rc ? rc : read_split(*out, s, err);
}

static enum galley_status open_all(struct gguf **g, const char *path, struct galley_err *err)
{
    struct split s = { 0, 1, -1 };
    enum galley_status rc = open_one(g, path, &s, err);
    if (!rc && s.no > 0) { /* a later part: the keys are in the first */
        const int count = (int)s.count;
        char *first = NULL;
        rc = split_path(&first, path, 0, count, err);
        if (!rc) {
            gguf_close(*g);
            rc = open_one(g, first, &s, err);
        }
        mem_free(first);
        if (!rc && (s.no != 0 || s.count != count)) {
            rc = galley_err_set(err, GALLEY_EMODEL, "%s: is not part 1 of %d of one model",
                                gguf_path(*g), count);
        }
    }
    rc = rc || s.count == 1 ? rc : open_others(*g, &s, err);
    if (!rc && s.count > 1 && s.n_tensors >= 0 && s.n_tensors != (*g)->n_tensors) {
        rc = galley_err_set(err, GALLEY_EMODEL,
                            "%s: split.tensors.count is %" PRId64 ", the %d parts hold %d",
                            gguf_path(*g), s.n_tensors, (*g)->n_parts, (*g)->n_tensors);
    }
    return rc ? rc : index_tensors(*g, err);
}

/* When the parts no longer move. */
static void name_files(struct gguf *g)
{
    for (int i = 0; i < g->n_tensors; i++) {
        g->tensors[i].view.file = &g->parts[g->tensors[i].i_part].map;
    }
}

enum galley_status gguf_open(struct gguf **out, const char *path, struct galley_err *err)
{
    *out = NULL;
    struct gguf *g = NULL;
    const enum galley_status rc = open_all(&g, path, err);
    if (rc) {
        gguf_close(g);
        return rc;
    }
    name_files(g);
    *out = g;
    return GALLEY_OK;
}

enum galley_status gguf_open_memory(struct gguf **out, const void *data, size_t n,
                                    struct galley_err *err)
{
    *out = NULL;
    struct gguf *g = NULL;
    struct split s;
    enum galley_status rc = new_file(&g, "memory", err);
    if (!rc) {
        g->parts[0].base = data;
        g->parts[0].n = n;
        rc = read_part(g, &g->parts[0], err);
    }
    rc = rc ? rc : read_split(g, &s, err);
    if (!rc && s.count > 1) {
        rc = galley_err_set(err, GALLEY_EMODEL, "memory: one of %" PRId64 " parts", s.count);
    }
    rc = rc ? rc : index_tensors(g, err);
    if (rc) {
        gguf_close(g);
        return rc;
    }
    *out = g;
    return GALLEY_OK;
}

static void close_part(struct gguf_part *p)
{
    for (int i = 0; i < p->n_keys; i++) {
        struct gguf_key *k = &p->keys[i];
        if (k->value.strings != &k->one) {
            mem_free((void *)(uintptr_t)k->value.strings);
        }
        mem_free(k->name);
    }
    mem_free(p->keys);
    mem_free(p->by_key.slots);
    map_close(&p->map);
    mem_free(p->path);
}

void gguf_close(struct gguf *g)
{
    if (!g) {
        return;
    }
    for (int i = 0; i < g->n_tensors; i++) {
        mem_free((void *)(uintptr_t)g->tensors[i].name);
    }
    for (int i = 0; i < g->n_parts; i++) {
        close_part(&g->parts[i]);
    }
    mem_free(g->tensors);
    mem_free(g->parts);
    mem_free(g->by_name.slots);
    mem_free(g);
}

bool gguf_is_file(const char *path)
{
    struct map m;
    if (map_open(&m, path, NULL)) {
        return false;
    }
    const bool is = m.n >= 4 && memcmp(m.base, "GGUF", 4) == 0;
    map_close(&m);
    return is;
}
