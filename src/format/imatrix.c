/* imatrix.c - see imatrix.h.
 *
 * The older form: int32 n entries; each int32 length, name, int32 calls, int32 n values, f32 sums;
 * what follows (the last chunk, the text's name) is of no use here. */
#include "src/format/imatrix.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/format/gguf.h"

#define FILE_MAX       ((size_t)1 << 30)
#define ENTRY_NAME_MAX 256
#define ENTRIES_MAX    65536
#define VALUES_MAX     (1 << 24)

struct entry {
    char *name;    /* owned */
    float *values; /* owned */
    size_t n;
};

struct imatrix {
    struct entry *entries; /* in name order */
    size_t n, cap;
};

static enum galley_status no_memory(const char *where, struct galley_err *err)
{
    return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for the importance matrix", where);
}

/* Room for one more entry of n values; NULL without memory. */
static struct entry *add_entry(struct imatrix *im, const char *name, size_t n_name, size_t n)
{
    if (im->n == im->cap) {
        const size_t cap = im->cap ? 2 * im->cap : 64;
        struct entry *entries = mem_resize_array(im->entries, cap, sizeof(*entries));
        if (!entries) {
            return NULL;
        }
        im->entries = entries;
        im->cap = cap;
    }
    struct entry *e = &im->entries[im->n];
    *e = (struct entry){ mem_strndup(name, n_name), mem_array(n, sizeof(float)), n };
    im->n++; /* closing frees what there is of it */
    return e->name && e->values ? e : NULL;
}

static enum galley_status check_values(const struct entry *e, const char *where,
                                       struct galley_err *err)
{
    for (size_t i = 0; i < e->n; i++) {
        if (!(e->values[i] >= 0) || !isfinite(e->values[i])) {
            return galley_err_set(err, GALLEY_EINPUT, "%s: entry %s: value %zu is %g", where,
                                  e->name, i, (double)e->values[i]);
        }
    }
    return GALLEY_OK;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* --- the older form ------------------------------------------------------------------------ */

struct cursor {
    const uint8_t *p;
    size_t left;
};

static bool take_int(struct cursor *c, int32_t lo, int32_t hi, int32_t *out)
{
    if (c->left < sizeof(*out)) {
        return false;
    }
    memcpy(out, c->p, sizeof(*out));
    c->p += sizeof(*out);
    c->left -= sizeof(*out);
    return *out >= lo && *out <= hi;
}

static enum galley_status parse_entry(struct imatrix *im, struct cursor *c, const char *where,
                                      int i, struct galley_err *err)
{
    int32_t n_name, n_calls, n;
    const uint8_t *name = NULL;
    bool good = take_int(c, 1, ENTRY_NAME_MAX, &n_name) && c->left >= (size_t)n_name;
    if (good) {
        name = c->p;
        c->p += n_name;
        c->left -= (size_t)n_name;
        good = !memchr(name, 0, (size_t)n_name) && take_int(c, 0, INT32_MAX, &n_calls) &&
               take_int(c, 1, VALUES_MAX, &n) && c->left / sizeof(float) >= (size_t)n;
    }
    if (!good) {
        return galley_err_set(err, GALLEY_EINPUT,
                              "%s: entry %d of the importance matrix is cut off or out of range",
                              where, i);
    }
    struct entry *e = add_entry(im, (const char *)name, (size_t)n_name, (size_t)n);
    if (!e) {
        return no_memory(where, err);
    }
    memcpy(e->values, c->p, (size_t)n * sizeof(float));
    c->p += (size_t)n * sizeof(float);
    c->left -= (size_t)n * sizeof(float);
    return check_values(e, where, err);
}

static enum galley_status finish(struct imatrix **out, struct imatrix *im, const char *where,
                                 enum galley_status rc, struct galley_err *err)
{
    if (!rc) {
        qsort(im->entries, im->n, sizeof(*im->entries), compare_entries);
    }
    for (size_t i = 1; !rc && i < im->n; i++) {
        if (compare_entries(&im->entries[i - 1], &im->entries[i]) == 0) {
            rc = galley_err_set(err, GALLEY_EINPUT, "%s: two entries are called %s", where,
                                im->entries[i].name);
        }
    }
    if (rc) {
        imatrix_close(im);
        return rc;
    }
    *out = im;
    return GALLEY_OK;
}

enum galley_status imatrix_parse(struct imatrix **out, const char *where, const void *bytes,
                                 size_t n, struct galley_err *err)
{
    *out = NULL;
    struct imatrix *im = mem_new(struct imatrix);
    if (!im) {
        return no_memory(where, err);
    }
    struct cursor c = { bytes, n };
    int32_t n_entries = 0;
    enum galley_status rc = GALLEY_OK;
    if (!take_int(&c, 1, ENTRIES_MAX, &n_entries)) {
        rc =
            galley_err_set(err, GALLEY_EINPUT,
                           "%s: neither an importance matrix in GGUF nor in the older form", where);
    }
    for (int32_t i = 0; !rc && i < n_entries; i++) {
        rc = parse_entry(im, &c, where, i, err);
    }
    return finish(out, im, where, rc, err);
}

/* --- GGUF ---------------------------------------------------------------------------------- */

/* NAME.in_sum2 [matrices][columns] over NAME.counts [matrices][1]. */
static enum galley_status add_sums(struct imatrix *im, const struct gguf *g,
                                   const struct gguf_tensor *t, struct galley_err *err)
{
    static const char tail[] = ".in_sum2";
    const size_t n_name = strlen(t->name) - (sizeof(tail) - 1);
    char counts_name[ENTRY_NAME_MAX + 16];
    const struct tensor *v = &t->view;
    if (n_name > ENTRY_NAME_MAX) {
        return GALLEY_OK;
    }
    memcpy(counts_name, t->name, n_name);
    memcpy(counts_name + n_name, ".counts", sizeof(".counts"));
    const struct gguf_tensor *counts = gguf_tensor_lookup(g, counts_name);
    const int64_t n_col = v->n_dim > 0 ? v->shape[v->n_dim - 1] : 0;
    const int64_t n_mat = v->n_dim == 2 ? v->shape[0] : 1;
    if (!t->known || v->dtype != DTYPE_F32 || v->n_dim > 2 || n_col < 1 || n_col > VALUES_MAX ||
        !counts || !counts->known || counts->view.dtype != DTYPE_F32 ||
        counts->bytes != (uint64_t)n_mat * sizeof(float)) {
        return galley_err_set(err, GALLEY_EINPUT, "%s: %s has no sums with counts in F32",
                              gguf_path(g), t->name);
    }
    if (n_mat != 1) {
        return GALLEY_OK; /* experts: not a matrix of ours */
    }
    float count;
    memcpy(&count, counts->view.data, sizeof(count));
    struct entry *e = add_entry(im, t->name, n_name, (size_t)n_col);
    if (!e) {
        return no_memory(gguf_path(g), err);
    }
    memcpy(e->values, v->data, (size_t)n_col * sizeof(float));
    for (int64_t i = 0; i < n_col; i++) {
        e->values[i] = count > 0 ? e->values[i] / count : 1;
    }
    return check_values(e, gguf_path(g), err);
}

static enum galley_status open_gguf(struct imatrix **out, const char *path, struct galley_err *err)
{
    struct gguf *g;
    enum galley_status rc = gguf_open(&g, path, err);
    if (rc) {
        return rc == GALLEY_EMODEL ? GALLEY_EINPUT : rc;
    }
    struct imatrix *im = mem_new(struct imatrix);
    if (!im) {
        gguf_close(g);
        return no_memory(path, err);
    }
    for (int i = 0; !rc && i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const char *dot = strrchr(t->name, '.');
        if (dot && strcmp(dot, ".in_sum2") == 0) {
            rc = add_sums(im, g, t, err);
        }
    }
    if (!rc && im->n == 0) {
        rc = galley_err_set(err, GALLEY_EINPUT,
                            "%s: a GGUF file without sums (NAME.in_sum2): no importance matrix",
                            path);
    }
    gguf_close(g);
    return finish(out, im, path, rc, err);
}

enum galley_status imatrix_open(struct imatrix **out, const char *path, struct galley_err *err)
{
    *out = NULL;
    if (gguf_is_file(path)) {
        return open_gguf(out, path, err);
    }
    char *bytes;
    size_t n;
    enum galley_status rc = file_read(path, FILE_MAX, &bytes, &n, err);
    if (rc) {
        return rc == GALLEY_EIO ? galley_err_prefix(err, GALLEY_EINPUT, "importance matrix") : rc;
    }
    rc = imatrix_parse(out, path, bytes, n, err);
    mem_free(bytes);
    return rc;
}

void imatrix_close(struct imatrix *im)
{
    if (!im) {
        return;
    }
    for (size_t i = 0; i < im->n; i++) {
        mem_free(im->entries[i].name);
        mem_free(im->entries[i].values);
    }
    mem_free(im->entries);
    mem_free(im);
}

int imatrix_count(const struct imatrix *im)
{
    return (int)im->n;
}

const float *imatrix_lookup(const struct imatrix *im, const char *tensor, size_t *n)
{
    const struct entry key = { .name = (char *)(uintptr_t)tensor };
    const struct entry *e =
        im->n ? bsearch(&key, im->entries, im->n, sizeof(*im->entries), compare_entries) : NULL;
    *n = e ? e->n : 0;
    return e ? e->values : NULL;
}
