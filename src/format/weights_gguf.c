/* weights_gguf.c - the tensors of a GGUF file under Hugging Face's names.
 *
 * llama's q and k rows stay in the order the file has them (rope_pairs says so to the model).  The
 * one tensor that is copied is the patch embedding of an mmproj file: its two moments lie apart
 * there. */
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/format/gguf_config.h"
#include "src/format/weights_impl.h"

#define NAME_TEXT 256
#define PATCH_0   "v.patch_embd.weight"
#define PATCH_1   "v.patch_embd.weight.1"

static enum galley_status no_memory(const struct weights *w, struct galley_err *err)
{
    return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open the model",
                          gguf_path(w->gguf));
}

/* Old converters called a tower's first feed-forward matrix ffn_down and its second ffn_up: their
 * shapes tell. */
static bool has_swapped_ffn(const struct gguf *g)
{
    const struct gguf_tensor *down = gguf_tensor_lookup(g, "v.blk.0.ffn_down.weight");
    const struct gguf_tensor *norm = gguf_tensor_lookup(g, "v.blk.0.ln1.weight");
    return down && norm && down->view.n_dim == 2 && norm->view.n_dim == 1 &&
           down->view.shape[1] == norm->view.shape[0] && down->view.shape[0] != norm->view.shape[0];
}

/* "v.blk.3.ffn_up.bias" <-> "v.blk.3.ffn_down.bias"; other names as they are. */
static void swap_ffn(char out[NAME_TEXT], const char *name)
{
    const char *up = strstr(name, ".ffn_up."), *down = strstr(name, ".ffn_down.");
    if (strncmp(name, "v.blk.", 6) == 0 && (up || down)) {
        const char *at = up ? up : down;
        snprintf(out, NAME_TEXT, "%.*s.ffn_%s%s", (int)(at - name), name, up ? "down" : "up",
                 strrchr(at, '.'));
    } else {
        snprintf(out, NAME_TEXT, "%s", name);
    }
}

static enum galley_status add_item(struct weights *w, const struct gguf_tensor *t, bool swapped,
                                   enum hf_family family, struct galley_err *err)
{
    char name[NAME_TEXT], renamed[NAME_TEXT];
    struct weight *item = &w->items[w->n_items++];
    *item = (struct weight){ .name = t->name, .dtype = t->type, .view = &t->view };
    /* rope_freqs.weight is part of the configuration (gguf_rope.h) */
    item->used = strcmp(t->name, "rope_freqs.weight") == 0;
    if (swapped) {
        swap_ffn(name, t->name);
    }
    if (gguf_tensor_name(renamed, sizeof(renamed), swapped ? name : t->name, family)) {
        char *copy = mem_strdup(renamed);
        if (!copy) {
            return no_memory(w, err);
        }
        w->names[w->n_names++] = copy;
        item->name = copy;
    }
    return GALLEY_OK;
}

/* [n][ch][s][s] of each moment, into [n][ch][2][s][s]. */
static void interleave(uint8_t *out, const struct tensor *a, const struct tensor *b, size_t n,
                       size_t bytes)
{
    const uint8_t *from[2] = { a->data, b->data };
    for (size_t i = 0; i < 2 * n; i++) {
        memcpy(out + i * bytes, from[i % 2] + i / 2 * bytes, bytes);
    }
}

static enum galley_status join_patches(struct weights *w, const struct gguf_tensor *a,
                                       const struct gguf_tensor *b, struct galley_err *err)
{
    const struct tensor *x = &a->view, *y = &b->view;
    bool same = a->known && b->known && x->dtype == y->dtype && dtype_is_dense(x->dtype) &&
                x->n_dim == 4 && y->n_dim == 4;
    for (int i = 0; same && i < 4; i++) {
        same = x->shape[i] == y->shape[i];
    }
    if (!same) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: %s and %s are not of one shape in F32, F16 or BF16",
                              gguf_path(w->gguf), PATCH_0, PATCH_1);
    }
    const size_t bytes = (size_t)(a->bytes / (uint64_t)(x->shape[0] * x->shape[1]));
    w->made = mem_new(struct tensor);
    uint8_t *data = w->made ? mem_array(2, (size_t)a->bytes) : NULL;
    if (!data) {
        return no_memory(w, err);
    }
    interleave(data, x, y, (size_t)(x->shape[0] * x->shape[1]), bytes);
    *w->made = (struct tensor){
        x->dtype, 5, { x->shape[0], x->shape[1], 2, x->shape[2], x->shape[3] }, data, NULL
    };
    w->items[w->n_items++] = (struct weight){ .name = "visual.patch_embed.proj.weight",
                                              .dtype = a->type,
                                              .view = w->made };
    return GALLEY_OK;
}

static enum galley_status add_items(struct weights *w, enum hf_family family,
                                    struct galley_err *err)
{
    const struct gguf *g = w->gguf;
    const struct gguf_tensor *patch[2] = { gguf_tensor_lookup(g, PATCH_0),
                                           gguf_tensor_lookup(g, PATCH_1) };
    const bool both = patch[0] && patch[1], swapped = has_swapped_ffn(g);
    enum galley_status rc = both ? join_patches(w, patch[0], patch[1], err) : GALLEY_OK;
    for (int i = 0; !rc && i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        if (!both || (t != patch[0] && t != patch[1])) {
            rc = add_item(w, t, swapped, family, err);
        }
    }
    return rc ? rc : weights_sort(w, err);
}

enum galley_status weights_open_gguf(struct weights **out, struct gguf *g, enum hf_family family,
                                     struct galley_err *err)
{
    *out = NULL;
    const size_t n = (size_t)gguf_n_tensors(g) + 1;
    struct weights *w = mem_new(struct weights);
    if (!w) {
        const enum galley_status rc =
            galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to open the model", gguf_path(g));
        gguf_close(g);
        return rc;
    }
    w->gguf = g;
    w->place = mem_strdup(gguf_path(g));
    w->items = mem_many(struct weight, n);
    w->names = mem_many(char *, n);
    const enum galley_status rc =
        w->place && w->items && w->names ? add_items(w, family, err) : no_memory(w, err);
    if (rc) {
        weights_close(w);
        return rc;
    }
    *out = w;
    return GALLEY_OK;
}
