/* safetensors.c - header parsing with every number compared before it is used.
 *
 * Numbers in the JSON arrive as doubles: whole ones up to 2^53 are exact, larger ones are
 * refused (no file is that long). */
#include "src/format/safetensors.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53 */
#define DIMS_MAX  32                 /* any more is nonsense, whatever the dtype */

struct safetensors {
    char *where;
    struct map map; /* empty when the bytes are lent */
    const uint8_t *data;
    uint64_t n_data;
    cJSON *header; /* owns the names */
    struct st_entry *entries;
    int n_entries;
};

struct dtype_row {
    const char *name;
    unsigned bits;
    enum dtype dtype; /* DTYPE_COUNT: listed only */
};

static const struct dtype_row dtypes[] = {
    { "F32", 32, DTYPE_F32 },          { "F16", 16, DTYPE_F16 },
    { "BF16", 16, DTYPE_BF16 },        { "F64", 64, DTYPE_COUNT },
    { "I64", 64, DTYPE_COUNT },        { "U64", 64, DTYPE_COUNT },
    { "I32", 32, DTYPE_COUNT },        { "U32", 32, DTYPE_COUNT },
    { "I16", 16, DTYPE_COUNT },        { "U16", 16, DTYPE_COUNT },
    { "I8", 8, DTYPE_COUNT },          { "U8", 8, DTYPE_COUNT },
    { "BOOL", 8, DTYPE_COUNT },        { "F8_E4M3", 8, DTYPE_COUNT },
    { "F8_E5M2", 8, DTYPE_COUNT },     { "F8_E8M0", 8, DTYPE_COUNT },
    { "F8_E4M3FNUZ", 8, DTYPE_COUNT }, { "F8_E5M2FNUZ", 8, DTYPE_COUNT },
    { "F4", 4, DTYPE_COUNT },          { "F6_E2M3", 6, DTYPE_COUNT },
    { "F6_E3M2", 6, DTYPE_COUNT },     { "C64", 64, DTYPE_COUNT },
};

static const struct dtype_row *lookup_dtype(const char *name)
{
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            return &dtypes[i];
        }
    }
    return NULL;
}

static bool whole_number(const cJSON *item, uint64_t *out)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= EXACT_MAX)) {
        return false;
    }
    *out = (uint64_t)item->valuedouble;
    return (double)*out == item->valuedouble;
}

/* The number of elements; false when it does not fit. */
static bool shape_product(const cJSON *shape, uint64_t *out)
{
    *out = 1;
    const cJSON *dim;
    cJSON_ArrayForEach(dim, shape)
    {
        uint64_t n;
        if (!whole_number(dim, &n)) {
            return false;
        }
        if (n && *out > (uint64_t)EXACT_MAX / n) {
            return false;
        }
        *out *= n;
    }
    return true;
}

static void fill_view(const struct safetensors *s, struct st_entry *e, enum dtype dtype,
                      const cJSON *shape)
{
    e->usable = dtype < DTYPE_COUNT;
    e->view = (struct tensor){ .dtype = dtype, .data = s->data + e->begin };
    const cJSON *dim;
    cJSON_ArrayForEach(dim, shape)
    {
        e->view.shape[e->view.n_dim++] = (int64_t)dim->valuedouble;
    }
}

static enum galley_status read_offsets(const struct safetensors *s, const cJSON *item,
                                       struct st_entry *e, struct galley_err *err)
{
    const cJSON *pair = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
    if (!cJSON_IsArray(pair) || cJSON_GetArraySize(pair) != 2 ||
        !whole_number(pair->child, &e->begin) || !whole_number(pair->child->next, &e->end)) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: data_offsets of %s are not two whole numbers", s->where,
                              e->name);
    }
    if (e->begin > e->end || e->end > s->n_data) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: %s claims bytes %llu to %llu of %llu: the file is damaged or "
                              "cut short",
                              s->where, e->name, (unsigned long long)e->begin,
                              (unsigned long long)e->end, (unsigned long long)s->n_data);
    }
    return GALLEY_OK;
}

static enum galley_status read_entry(const struct safetensors *s, const cJSON *item,
                                     struct st_entry *e, struct galley_err *err)
{
    e->name = item->string;
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(item, "shape");
    if (!cJSON_IsString(dtype) || !cJSON_IsArray(shape)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: %s has no dtype or no shape", s->where,
                              e->name);
    }
    e->dtype = dtype->valuestring;
    const struct dtype_row *row = lookup_dtype(e->dtype);
    if (!row) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: %s has unknown dtype %s", s->where, e->name,
                              e->dtype);
    }
    const enum galley_status rc = read_offsets(s, item, e, err);
    if (rc) {
        return rc;
    }
    uint64_t n_elements;
    const int n_dim = cJSON_GetArraySize(shape);
    if (n_dim > DIMS_MAX || !shape_product(shape, &n_elements)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: shape of %s is not usable", s->where,
                              e->name);
    }
    /* n_elements <= 2^53 and bits <= 64: no overflow. */
    const uint64_t bits = n_elements * row->bits;
    if (bits % 8 || bits / 8 != e->end - e->begin) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: %s has %llu bytes, its shape and %s make %llu", s->where,
                              e->name, (unsigned long long)(e->end - e->begin), e->dtype,
                              (unsigned long long)((bits + 7) / 8));
    }
    e->view.dtype = DTYPE_COUNT;
    if (n_dim <= TENSOR_DIM_MAX) {
        fill_view(s, e, row->dtype, shape);
    }
    return GALLEY_OK;
}

static int by_begin(const void *a, const void *b)
{
    const struct st_entry *x = a, *y = b;
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return x->end < y->end ? -1 : x->end > y->end;
}

static int by_name(const void *a, const void *b)
{
    const struct st_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Leaves the entries in name order. */
static enum galley_status check_entries(struct safetensors *s, struct galley_err *err)
{
    const size_t n = (size_t)s->n_entries;
    qsort(s->entries, n, sizeof(*s->entries), by_begin);
    for (size_t i = 1; i < n; i++) {
        const struct st_entry *a = &s->entries[i - 1], *b = &s->entries[i];
        if (b->begin < a->end) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: %s and %s overlap at byte %llu",
                                  s->where, a->name, b->name, (unsigned long long)b->begin);
        }
    }
    qsort(s->entries, n, sizeof(*s->entries), by_name);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(s->entries[i - 1].name, s->entries[i].name) == 0) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: %s is there twice", s->where,
                                  s->entries[i].name);
        }
    }
    return GALLEY_OK;
}

static enum galley_status read_entries(struct safetensors *s, struct galley_err *err)
{
    const int n = cJSON_GetArraySize(s->header);
    s->entries = mem_many(struct st_entry, (size_t)n);
    if (!s->entries) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for %d tensors", s->where, n);
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, s->header)
    {
        if (strcmp(item->string, "__metadata__") == 0) {
            continue;
        }
        const enum galley_status rc = read_entry(s, item, &s->entries[s->n_entries], err);
        if (rc) {
            return rc;
        }
        s->n_entries++;
    }
    return check_entries(s, err);
}

static uint64_t load_le64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) {
        v = v << 8 | p[i];
    }
    return v;
}

static enum galley_status read_header(struct safetensors *s, const uint8_t *bytes, size_t n,
                                      struct galley_err *err)
{
    if (n < 8) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: %zu bytes are no safetensors file", s->where,
                              n);
    }
    /* The length comes from the file: compare before any arithmetic on it. */
    const uint64_t n_header = load_le64(bytes);
    if (n_header > SAFETENSORS_HEADER_MAX || n_header > n - 8) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: header claims %llu bytes, the file has %zu and the limit is "
                              "%zu: no safetensors file, or cut short",
                              s->where, (unsigned long long)n_header, n, SAFETENSORS_HEADER_MAX);
    }
    s->data = bytes + 8 + n_header;
    s->n_data = n - 8 - n_header;
    enum galley_status rc =
        json_parse(&s->header, s->where, (const char *)bytes + 8, (size_t)n_header, err);
    if (rc == GALLEY_EINPUT) {
        rc = GALLEY_EMODEL;
    } else if (!rc && !cJSON_IsObject(s->header)) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: header is not a JSON object", s->where);
    }
    if (err && rc) {
        err->status = rc;
    }
    return rc;
}

static enum galley_status new_file(struct safetensors **out, const char *where,
                                   struct galley_err *err)
{
    struct safetensors *s = mem_new(struct safetensors);
    if (s) {
        s->where = mem_strdup(where);
    }
    if (!s || !s->where) {
        safetensors_close(s);
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open it", where);
    }
    *out = s;
    return GALLEY_OK;
}

enum galley_status safetensors_open_memory(struct safetensors **out, const char *where,
                                           const void *bytes, size_t n, struct galley_err *err)
{
    *out = NULL;
    struct safetensors *s = NULL;
    enum galley_status rc = new_file(&s, where, err);
    if (rc) {
        return rc;
    }
    rc = read_header(s, bytes, n, err);
    if (!rc) {
        rc = read_entries(s, err);
    }
    if (rc) {
        safetensors_close(s);
        return rc;
    }
    *out = s;
    return GALLEY_OK;
}

enum galley_status safetensors_open(struct safetensors **out, const char *path,
                                    struct galley_err *err)
{
    *out = NULL;
    struct map map;
    enum galley_status rc = map_open(&map, path, err);
    if (rc) {
        return rc;
    }
    rc = safetensors_open_memory(out, path, map.base, map.n, err);
    if (rc) {
        map_close(&map);
        return rc;
    }
    (*out)->map = map;
    for (int i = 0; i < (*out)->n_entries; i++) {
        (*out)->entries[i].view.file = &(*out)->map;
    }
    return GALLEY_OK;
}

void safetensors_close(struct safetensors *s)
{
    if (!s) {
        return;
    }
    cJSON_Delete(s->header);
    map_close(&s->map);
    mem_free(s->entries);
    mem_free(s->where);
    mem_free(s);
}

int safetensors_count(const struct safetensors *s)
{
    return s->n_entries;
}

const struct st_entry *safetensors_at(const struct safetensors *s, int i)
{
    assert(i >= 0 && i < s->n_entries);
    return &s->entries[i];
}
