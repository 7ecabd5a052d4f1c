/* quantize_source.c - what a checkpoint's output consists of, tensor by tensor.
 *
 * From a directory: GGUF's names, q, k and v of the tower apart, its patch embedding as two
 * moments, llama's heads in pairs, llama 3's rotary scaling as a tensor, Gemma's norms with the 1
 * that they are stored without.  From a GGUF file: what it has, in its order. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/path.h"
#include "src/format/gguf_config.h"
#include "src/format/quantize_impl.h"

static enum galley_status no_memory(const struct quantize_source *s, struct galley_err *err)
{
    return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for the list of tensors", s->path);
}

static struct quantize_tensor *add(struct quantize_list *l)
{
    if (l->n == l->cap) {
        const int cap = l->cap ? 2 * l->cap : 256;
        struct quantize_tensor *items = mem_resize_array(l->items, (size_t)cap, sizeof(*items));
        if (!items) {
            return NULL;
        }
        l->items = items;
        l->cap = cap;
    }
    struct quantize_tensor *t = &l->items[l->n++];
    memset(t, 0, sizeof(*t));
    return t;
}

struct quantize_tensor *quantize_lookup(const struct quantize_list *l, const char *name)
{
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->items[i].name, name) == 0) {
            return &l->items[i];
        }
    }
    return NULL;
}

/* Adds src, all of it, under a name. */
static struct quantize_tensor *add_whole(struct quantize_list *l, const char *name,
                                         const struct tensor *src, const char *from)
{
    struct quantize_tensor *t = add(l);
    if (!t) {
        return NULL;
    }
    snprintf(t->name, sizeof(t->name), "%s", name);
    t->src = src;
    t->from = from;
    t->n_dim = src->n_dim;
    t->src_rows = 1;
    for (int i = 0; i < src->n_dim; i++) {
        t->shape[i] = src->shape[i];
        t->src_rows *= i < src->n_dim - 1 ? src->shape[i] : 1;
    }
    t->src_cols = src->shape[src->n_dim - 1];
    return t;
}

/* "v.blk.3.attn_qkv.weight" as attn_q, attn_k and attn_v. */
static enum galley_status add_thirds(struct quantize_source *s, const char *name,
                                     const struct tensor *src, const char *from,
                                     struct galley_err *err)
{
    const char *at = strstr(name, "_qkv.");
    const int64_t third = src->shape[0] / 3;
    if (src->shape[0] % 3 || src->n_dim > 2) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: tensor %s does not split into q, k and v",
                              s->path, name);
    }
    for (int i = 0; i < 3; i++) {
        char part[QUANTIZE_NAME_MAX];
        snprintf(part, sizeof(part), "%.*s_%c%s", (int)(at - name), name, "qkv"[i], at + 4);
        struct quantize_tensor *t = add_whole(&s->vision, part, src, from);
        if (!t) {
            return no_memory(s, err);
        }
        t->shape[0] = third;
        if (src->n_dim == 2) {
            t->row_0 = i * third;
            t->src_rows = third;
        } else {
            t->row_0 = i * third; /* elements */
            t->src_cols = third;
        }
    }
    return GALLEY_OK;
}

/* [n][ch][2][s][s] as two tensors [n][ch][s][s]. */
static enum galley_status add_moments(struct quantize_source *s, const char *name,
                                      const struct tensor *src, const char *from,
                                      struct galley_err *err)
{
    if (src->shape[2] != 2) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: tensor %s has %lld moments, GGUF knows 2",
                              s->path, name, (long long)src->shape[2]);
    }
    for (int i = 0; i < 2; i++) {
        char part[QUANTIZE_NAME_MAX];
        snprintf(part, sizeof(part), "%s%s", name, i ? ".1" : "");
        struct quantize_tensor *t = add_whole(&s->vision, part, src, from);
        if (!t) {
            return no_memory(s, err);
        }
        t->order = ORDER_MOMENT;
        t->n_order = i;
        t->n_dim = 4;
        t->shape[2] = src->shape[3];
        t->shape[3] = src->shape[4];
        t->src_rows /= 2;
    }
    return GALLEY_OK;
}

/* What follows a prefix; NULL: it is not there. */
static const char *behind(const char *name, const char *prefix)
{
    const size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

/* Gemma's tower and what joins it to the text model: Galley does not read pictures with it. */
static bool is_left_out(const char *name, enum hf_family family)
{
    const char *rest = behind(name, "model.");
    rest = rest ? rest : name;
    return family == HF_GEMMA3 &&
           (behind(rest, "vision_tower.") || behind(rest, "multi_modal_projector."));
}

/* The classic name of what newer checkpoints nest: model.language_model.layers.0 ... */
static bool unnest(char *out, size_t size, const char *name)
{
    static const char *const prefixes[][2] = { { "model.language_model.", "model." },
                                               { "language_model.model.", "model." },
                                               { "model.visual.", "visual." },
                                               { "", "" } };
    size_t i = 0;
    while (!behind(name, prefixes[i][0])) {
        i++;
    }
    const int n = snprintf(out, size, "%s%s", prefixes[i][1], behind(name, prefixes[i][0]));
    return n >= 0 && (size_t)n < size;
}

static enum galley_status add_hf(struct quantize_source *s, const char *full,
                                 const struct tensor *src, const char *from, struct galley_err *err)
{
    char gguf[QUANTIZE_NAME_MAX - 4]; /* moments get a tail */
    char name[QUANTIZE_NAME_MAX];
    if (is_left_out(full, s->cfg.family)) {
        return GALLEY_OK;
    }
    const bool fits = unnest(name, sizeof(name), full);
    if (fits && strcmp(name, "lm_head.weight") == 0 && s->cfg.text.tied) {
        return GALLEY_OK; /* a copy of the embedding table */
    }
    if (!fits || !gguf_tensor_from_hf(gguf, sizeof(gguf), name, s->cfg.family)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: GGUF has no name for the tensor %s", s->path,
                              full);
    }
    if (src->dtype == DTYPE_COUNT || src->n_dim < 1) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: tensor %s is %s; F32, F16 and BF16 are supported", s->path, name,
                              from);
    }
    if (strstr(gguf, ".attn_qkv.")) {
        return add_thirds(s, gguf, src, from, err);
    }
    if (src->n_dim == 5) {
        return add_moments(s, gguf, src, from, err);
    }
    const bool vision = strncmp(name, "visual.", 7) == 0;
    struct quantize_tensor *t = add_whole(vision ? &s->vision : &s->text, gguf, src, from);
    if (!t) {
        return no_memory(s, err);
    }
    t->plus = s->cfg.text.norm_plus_one && src->n_dim == 1 ? 1 : 0; /* Gemma has norms only */
    if (s->cfg.family == HF_LLAMA && src->n_dim == 2 &&
        (strstr(gguf, ".attn_q.") || strstr(gguf, ".attn_k."))) {
        t->order = ORDER_HEADS;
        t->n_order = s->cfg.text.head_dim;
        if (t->src_rows % t->n_order) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: tensor %s is not heads of %d", s->path,
                                  name, t->n_order);
        }
    }
    return GALLEY_OK;
}

/* Llama 3's rule as divisors of the frequencies: rope_freqs.weight. */
static enum galley_status add_rope(struct quantize_source *s, struct galley_err *err)
{
    const struct hf_rope *r = &s->cfg.text.rope;
    const int n = s->cfg.text.head_dim / 2;
    struct quantize_tensor *t = add(&s->text);
    if (!t) {
        return no_memory(s, err);
    }
    snprintf(t->name, sizeof(t->name), "rope_freqs.weight");
    t->from = "F32";
    t->order = ORDER_MADE;
    t->n_dim = 1;
    t->shape[0] = t->src_cols = n;
    t->src_rows = 1;
    t->made = mem_array((size_t)n, sizeof(float));
    if (!t->made) {
        return no_memory(s, err);
    }
    const double pi = 3.14159265358979323846;
    const double longest = r->original_context / r->low, shortest = r->original_context / r->high;
    for (int i = 0; i < n; i++) {
        const double wave = 2 * pi * pow(r->theta, 2.0 * i / s->cfg.text.head_dim);
        double factor = 1;
        if (wave > longest) {
            factor = r->factor;
        } else if (wave > shortest) {
            const double smooth = (r->original_context / wave - r->low) / (r->high - r->low);
            factor = 1 / ((1 - smooth) / r->factor + smooth);
        }
        t->made[i] = (float)factor;
    }
    return GALLEY_OK;
}

/* What GGUF has no key for would silently change every value. */
static enum galley_status check_sayable(const struct quantize_source *s, struct galley_err *err)
{
    const struct hf_text_config *t = &s->cfg.text;
    const bool gemma = s->cfg.family == HF_GEMMA3;
    const double scale = gemma ? gguf_gemma_scale(t) : 0;
    const char *what = !gemma && t->window > 0 ? "a sliding window"
                       : t->attn_softcap != 0  ? "attn_logit_softcapping"
                       : gemma && t->rope_local.kind != HF_ROPE_PLAIN
                           ? "rotary scaling of sliding layers"
                       : gemma && fabs(t->query_scale / scale - 1) > 1e-6
                           ? "a query_pre_attn_scalar that is not the size of a head"
                           : NULL;
    return what ? galley_err_set(err, GALLEY_EUNSUP, "%s: GGUF has no key for %s in %s models",
                                 s->path, what, s->cfg.model_type)
                : GALLEY_OK;
}

static enum galley_status open_directory(struct quantize_source *s, struct galley_err *err)
{
    enum galley_status rc = hf_config_read(&s->cfg, s->path, err);
    rc = rc ? rc : check_sayable(s, err);
    rc = rc ? rc : weights_open(&s->weights, s->path, err);
    for (int i = 0; !rc && i < weights_count(s->weights); i++) {
        rc = add_hf(s, weights_name_at(s->weights, i), weights_tensor_at(s->weights, i),
                    weights_dtype_at(s->weights, i), err);
    }
    if (!rc && s->cfg.text.rope.kind == HF_ROPE_LLAMA3) {
        rc = add_rope(s, err);
    }
    if (!rc && !quantize_lookup(&s->text, "token_embd.weight")) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: no tensor model.embed_tokens.weight", s->path);
    }
    return rc;
}

static enum galley_status open_file(struct quantize_source *s, struct galley_err *err)
{
    enum galley_status rc = gguf_open(&s->gguf, s->path, err);
    for (int i = 0; !rc && i < gguf_n_tensors(s->gguf); i++) {
        const struct gguf_tensor *g = gguf_tensor_at(s->gguf, i);
        if (!g->known) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: tensor %s is %s, which is not supported",
                                  s->path, g->name, g->type);
        }
        if (strlen(g->name) >= QUANTIZE_NAME_MAX || g->view.n_dim < 1 || g->view.n_dim > 4) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "%s: tensor %.40s... has a name of %zu bytes and %d dimensions",
                                  s->path, g->name, strlen(g->name), g->view.n_dim);
        }
        if (!add_whole(&s->text, g->name, &g->view, g->type)) {
            return no_memory(s, err);
        }
    }
    if (!rc && s->text.n == 0) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: has no tensors", s->path);
    }
    return rc;
}

enum galley_status quantize_source_open(struct quantize_source *s, const char *path,
                                        struct galley_err *err)
{
    *s = (struct quantize_source){ .path = path };
    const enum galley_status rc = path_is_dir(path) ? open_directory(s, err) : open_file(s, err);
    if (rc) {
        quantize_source_close(s);
    }
    return rc;
}

static void free_list(struct quantize_list *l)
{
    for (int i = 0; i < l->n; i++) {
        mem_free(l->items[i].made);
    }
    mem_free(l->items);
}

void quantize_source_close(struct quantize_source *s)
{
    free_list(&s->text);
    free_list(&s->vision);
    weights_close(s->weights);
    gguf_close(s->gguf);
    memset(s, 0, sizeof(*s));
}
