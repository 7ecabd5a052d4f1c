/* weights.c - the files of a checkpoint merged into one table sorted by name. */
#include "src/format/weights.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/format/weights_impl.h"

#define SINGLE     "model.safetensors"
#define INDEX      "model.safetensors.index.json"
#define INDEX_MAX  ((size_t)100 << 20)
#define SHARDS_MAX 1024
#define SHAPE_TEXT 128
#define PLACE_TEXT 512

static enum galley_status no_memory(struct galley_err *err, const char *dir)
{
    return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open the model", dir);
}

/* A shard's name comes from a file: it must not lead out of the directory. */
static bool plain_name(const char *name)
{
    return name[0] && strlen(name) < 256 && !strchr(name, '/') && !strchr(name, '\\') &&
           name[0] != '.' && !strstr(name, "..");
}

static struct shard *lookup_shard(struct weights *w, const char *name)
{
    for (int i = 0; i < w->n_shards; i++) {
        if (strcmp(w->shards[i].name, name) == 0) {
            return &w->shards[i];
        }
    }
    return NULL;
}

static enum galley_status open_shard(struct weights *w, const char *name, struct galley_err *err)
{
    if (w->n_shards == SHARDS_MAX) {
        return galley_err_set(err, GALLEY_EMODEL, "%s/%s: more than %d shards", w->place, INDEX,
                              SHARDS_MAX);
    }
    struct shard *s = &w->shards[w->n_shards];
    s->name = mem_strdup(name);
    char *path = path_join(w->place, name);
    enum galley_status rc;
    if (!s->name || !path) {
        rc = no_memory(err, w->place);
    } else {
        rc = safetensors_open(&s->file, path, err);
        rc = rc == GALLEY_EIO ? galley_err_prefix(err, GALLEY_EMODEL, "model file") : rc;
    }
    mem_free(path);
    if (rc) {
        mem_free(s->name);
        return rc;
    }
    w->n_shards++;
    return GALLEY_OK;
}

static enum galley_status open_shards(struct weights *w, const char *path, const cJSON *map,
                                      struct galley_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, map)
    {
        if (!cJSON_IsString(item) || !plain_name(item->valuestring)) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: the shard of %s is no plain file name",
                                  path, item->string);
        }
        if (!lookup_shard(w, item->valuestring)) {
            const enum galley_status rc = open_shard(w, item->valuestring, err);
            if (rc) {
                return rc;
            }
        }
    }
    if (w->n_shards == 0) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"weight_map\" is empty", path);
    }
    return GALLEY_OK;
}

static int compare_items(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    return strcmp(x->name, y->name);
}

enum galley_status weights_sort(struct weights *w, struct galley_err *err)
{
    qsort(w->items, (size_t)w->n_items, sizeof(*w->items), compare_items);
    for (int i = 1; i < w->n_items; i++) {
        const struct weight *a = &w->items[i - 1], *b = &w->items[i];
        if (compare_items(a, b) != 0) {
            continue;
        }
        if (!a->file || !b->file) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: two tensors stand for %s", w->place,
                                  a->name);
        }
        return galley_err_set(err, GALLEY_EMODEL, "%s: %s is in both %s and %s", w->place, a->name,
                              a->file, b->file);
    }
    return GALLEY_OK;
}

/* All tensors of all shards, whatever the index says about them. */
static enum galley_status merge(struct weights *w, struct galley_err *err)
{
    size_t n = 0;
    for (int i = 0; i < w->n_shards; i++) {
        n += (size_t)safetensors_count(w->shards[i].file);
    }
    w->items = mem_many(struct weight, n);
    if (!w->items) {
        return no_memory(err, w->place);
    }
    for (int i = 0; i < w->n_shards; i++) {
        const struct shard *s = &w->shards[i];
        for (int k = 0; k < safetensors_count(s->file); k++) {
            const struct st_entry *e = safetensors_at(s->file, k);
            w->items[w->n_items++] = (struct weight){
                .name = e->name, .dtype = e->dtype, .view = &e->view, .file = s->name
            };
        }
    }
    return weights_sort(w, err);
}

static struct weight *lookup(const struct weights *w, const char *name)
{
    const struct weight key = { .name = name };
    return bsearch(&key, w->items, (size_t)w->n_items, sizeof(*w->items), compare_items);
}

/* What the index promises must be there. */
static enum galley_status check_index(const struct weights *w, const char *path, const cJSON *map,
                                      struct galley_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, map)
    {
        const struct weight *found = lookup(w, item->string);
        if (!found || strcmp(found->file, item->valuestring) != 0) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: %s is not in %s", path, item->string,
                                  item->valuestring);
        }
    }
    return GALLEY_OK;
}

static enum galley_status read_index(struct weights *w, const char *path, struct galley_err *err)
{
    cJSON *tree;
    enum galley_status rc = json_read(&tree, path, INDEX_MAX, err);
    if (rc) {
        return rc == GALLEY_ENOMEM ? rc : galley_err_prefix(err, GALLEY_EMODEL, "model index");
    }
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(tree, "weight_map");
    if (!cJSON_IsObject(map)) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: \"weight_map\" is missing", path);
    } else {
        rc = open_shards(w, path, map, err);
        rc = rc ? rc : merge(w, err);
        rc = rc ? rc : check_index(w, path, map, err);
    }
    cJSON_Delete(tree);
    return rc;
}

/* The single file first, as Hugging Face does. */
static enum galley_status open_files(struct weights *w, const char *single, const char *index,
                                     struct galley_err *err)
{
    if (access(single, F_OK) == 0) {
        const enum galley_status rc = open_shard(w, SINGLE, err);
        return rc ? rc : merge(w, err);
    }
    if (access(index, F_OK) == 0) {
        return read_index(w, index, err);
    }
    return galley_err_set(err, GALLEY_EMODEL,
                          "%s: neither %s nor %s is there: give a Hugging Face model directory",
                          w->place, SINGLE, INDEX);
}

enum galley_status weights_open(struct weights **out, const char *dir, struct galley_err *err)
{
    *out = NULL;
    struct weights *w = mem_new(struct weights);
    if (!w) {
        return no_memory(err, dir);
    }
    w->place = mem_strdup(dir);
    w->shards = mem_many(struct shard, SHARDS_MAX);
    char *single = path_join(dir, SINGLE), *index = path_join(dir, INDEX);
    const enum galley_status rc = w->place && w->shards && single && index
                                      ? open_files(w, single, index, err)
                                      : no_memory(err, dir);
    mem_free(single);
    mem_free(index);
    if (rc) {
        weights_close(w);
        return rc;
    }
    *out = w;
    return GALLEY_OK;
}

void weights_close(struct weights *w)
{
    if (!w) {
        return;
    }
    for (int i = 0; i < w->n_shards; i++) {
        safetensors_close(w->shards[i].file);
        mem_free(w->shards[i].name);
    }
    for (int i = 0; w->names && i < w->n_names; i++) {
        mem_free(w->names[i]);
    }
    if (w->made) {
        mem_free((void *)(uintptr_t)w->made->data);
    }
    mem_free(w->made);
    mem_free(w->names);
    mem_free(w->shards);
    gguf_close(w->gguf);
    mem_free(w->items);
    mem_free(w->place);
    mem_free(w);
}

const struct gguf *weights_gguf(const struct weights *w)
{
    return w->gguf;
}

const char *weights_place(const struct weights *w)
{
    return w->place;
}

int weights_count(const struct weights *w)
{
    return w->n_items;
}

const char *weights_name_at(const struct weights *w, int i)
{
    assert(i >= 0 && i < w->n_items);
    return w->items[i].name;
}

const struct tensor *weights_tensor_at(const struct weights *w, int i)
{
    assert(i >= 0 && i < w->n_items);
    return w->items[i].view;
}

const char *weights_dtype_at(const struct weights *w, int i)
{
    assert(i >= 0 && i < w->n_items);
    return w->items[i].dtype;
}

static void shape_text(char out[SHAPE_TEXT], int n_dim, const int64_t *shape)
{
    int n = snprintf(out, SHAPE_TEXT, "[");
    for (int i = 0; i < n_dim && n < SHAPE_TEXT - 24; i++) {
        n += snprintf(out + n, (size_t)(SHAPE_TEXT - n), "%s%lld", i ? ", " : "",
                      (long long)shape[i]);
    }
    snprintf(out + n, (size_t)(SHAPE_TEXT - n), "]");
}

/* Where the tensor lies: "DIR/SHARD", or the file. */
static void place_text(char out[PLACE_TEXT], const struct weights *w, const struct weight *item)
{
    snprintf(out, PLACE_TEXT, "%s%s%s", w->place, item->file ? "/" : "",
             item->file ? item->file : "");
}

enum galley_status weights_lookup(struct weights *w, const char *name, int n_dim,
                                  const int64_t *shape, const struct tensor **out,
                                  struct galley_err *err)
{
    assert(n_dim >= 0 && n_dim <= TENSOR_DIM_MAX);
    *out = NULL;
    char want[SHAPE_TEXT], has[SHAPE_TEXT];
    shape_text(want, n_dim, shape);
    struct weight *found = lookup(w, name);
    if (!found) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: tensor %s %s is missing", w->place, name,
                              want);
    }
    const struct tensor *view = found->view;
    char place[PLACE_TEXT];
    place_text(place, w, found);
    if (view->dtype == DTYPE_COUNT && w->gguf) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: tensor %s is %s; F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, "
                              "IQ4_NL, IQ4_XS and MXFP4 are supported",
                              place, name, found->dtype);
    }
    if (view->dtype == DTYPE_COUNT) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: tensor %s is %s; F32, F16 and BF16 with at most %d dimensions "
                              "are supported",
                              place, name, found->dtype, TENSOR_DIM_MAX);
    }
    bool same = view->n_dim == n_dim;
    for (int i = 0; same && i < n_dim; i++) {
        same = view->shape[i] == shape[i];
    }
    if (!same) {
        shape_text(has, view->n_dim, view->shape);
        return galley_err_set(err, GALLEY_EMODEL, "%s: tensor %s is %s, the config wants %s", place,
                              name, has, want);
    }
    found->used = true;
    *out = view;
    return GALLEY_OK;
}

enum galley_status weights_cut(const struct weights *w, const char *name, struct galley_err *err)
{
    return galley_err_set(err, GALLEY_EMODEL, "%s: tensor %s: " TENSOR_UNREADABLE, w->place, name);
}

bool weights_are_quantised(const struct weights *w)
{
    uint64_t dense = 0, blocks = 0;
    for (int i = 0; i < weights_count(w); i++) {
        const struct tensor *t = weights_tensor_at(w, i);
        if ((size_t)t->dtype < DTYPE_COUNT) { /* else nobody can read it: binding will say so */
            *(dtype_is_dense(t->dtype) ? &dense : &blocks) += tensor_bytes(t);
        }
    }
    return blocks > dense;
}

bool weights_has(const struct weights *w, const char *name)
{
    return lookup(w, name) != NULL;
}

static bool is_ignored(const char *name, const char *const *ignored)
{
    for (; ignored && *ignored; ignored++) {
        if (strncmp(name, *ignored, strlen(*ignored)) == 0) {
            return true;
        }
    }
    return false;
}

enum galley_status weights_check_all_used(const struct weights *w, const char *const *ignored,
                                          struct galley_err *err)
{
    for (int i = 0; i < w->n_items; i++) {
        const struct weight *item = &w->items[i];
        if (!item->used && !is_ignored(item->name, ignored)) {
            char place[PLACE_TEXT];
            place_text(place, w, item);
            return galley_err_set(err, GALLEY_EMODEL,
                                  "%s: tensor %s is not part of this model: config and weights "
                                  "do not belong together",
                                  place, item->name);
        }
    }
    return GALLEY_OK;
}
