/* model.c - opening and closing: tensors of a checkpoint bound to the description. */
#include "src/model/model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/format/bind.h"
#include "src/model/backbone.h"

/* The prefix whose embedding table is there; the first when none is, so that the error names
 * the classic tensor. */
static const char *find_prefix(const struct model_names *names, const struct weights *w)
{
    for (const char *const *p = names->prefixes; *p; p++) {
        char name[128];
        snprintf(name, sizeof(name), "%s%s", *p, names->embed);
        if (weights_has(w, name)) {
            return *p;
        }
    }
    return names->prefixes[0];
}

/* A norm's weights in device memory; NULL when the description has no such norm. */
static float *norm_bind(struct binder *b, const struct model_desc *d, bool there, const char *name,
                        int64_t n)
{
    float *w = there ? bind_vector(b, name, n) : NULL;
    for (int64_t i = 0; w && d->norm_plus_one && i < n; i++) {
        w[i] += 1.0f;
    }
    return w;
}

static void layer_bind(struct layer *l, struct binder *b, const struct model_desc *d, int i)
{
    const struct layer_desc *ld = &d->layers[i];
    const struct model_names *n = &d->names;
    const int64_t hidden = d->hidden;
    const int64_t n_q = (int64_t)ld->n_head * ld->head_dim;
    const int64_t n_kv = (int64_t)ld->n_kv_head * ld->head_dim;
    const struct bind_part qkv[] = {
        { n->q_weight, ld->qkv_bias ? n->q_bias : NULL, n_q },
        { n->k_weight, ld->qkv_bias ? n->k_bias : NULL, n_kv },
        { n->v_weight, ld->qkv_bias ? n->v_bias : NULL, n_kv },
    };
    const struct ffn_desc *f = &ld->ffn;
    const struct bind_part gate_up[] = {
        { n->gate, f->bias ? n->gate_bias : NULL, f->intermediate },
        { n->up, f->bias ? n->up_bias : NULL, f->intermediate },
    };
    l->attn_norm = norm_bind(b, d, ld->norms & NORM_PRE_ATTN, n->attn_norm, hidden);
    l->qkv = bind_stack(b, qkv, COUNT(qkv), 1, &hidden);
    l->q_norm = norm_bind(b, d, ld->qk_norm != QK_NORM_NONE, n->q_norm, ld->head_dim);
    l->k_norm = norm_bind(b, d, ld->qk_norm != QK_NORM_NONE, n->k_norm, ld->head_dim);
    l->o = bind_linear(b, n->o_weight, ld->o_bias ? n->o_bias : NULL, hidden, n_q);
    l->attn_post_norm = norm_bind(b, d, ld->norms & NORM_POST_ATTN, n->attn_post_norm, hidden);
    l->ffn_norm = norm_bind(b, d, ld->norms & NORM_PRE_FFN, n->ffn_norm, hidden);
    l->gate_up = bind_stack(b, gate_up, COUNT(gate_up), 1, &hidden);
    l->down = bind_linear(b, n->down, f->bias ? n->down_bias : NULL, hidden, f->intermediate);
    l->ffn_post_norm = norm_bind(b, d, ld->norms & NORM_POST_FFN, n->ffn_post_norm, hidden);
}

/* The table and the head.  Some tied checkpoints carry a head all the same: it is what they were
 * saved with. */
static void vocab_bind(struct model *m, struct binder *b, const char *prefix)
{
    const struct model_desc *d = &m->desc;
    binder_scope(b, "%s", prefix);
    m->embed = bind_linear(b, d->names.embed, NULL, d->n_vocab, d->hidden);
    binder_scope(b, "%s", "");
    m->head = d->tied && !weights_has(b->w, d->names.head)
                  ? m->embed
                  : bind_linear(b, d->names.head, NULL, d->n_vocab, d->hidden);
}

static enum galley_status model_bind(struct model *m, struct weights *w, struct galley_err *err)
{
    const struct model_desc *d = &m->desc;
    const char *prefix = find_prefix(&d->names, w);
    struct binder b = { .dev = m->dev, .w = w, .err = err };
    vocab_bind(m, &b, prefix);
    for (int i = 0; !b.rc && i < d->n_layers; i++) {
        binder_scope(&b, "%s%s%d.", prefix, d->names.layer, i);
        layer_bind(&m->layers[i], &b, d, i);
    }
    binder_scope(&b, "%s", prefix);
    m->final_norm = norm_bind(&b, d, true, d->names.final_norm, d->hidden);
    m->weight_bytes = b.bytes;
    return b.rc;
}

enum galley_status model_open(struct model **out, struct device *dev, const struct hf_config *cfg,
                              struct weights *w, struct galley_err *err)
{
    *out = NULL;
    struct model *m = mem_new(struct model);
    if (!m) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: the model's own record");
    }
    m->dev = dev;
    enum galley_status rc = model_desc_init(&m->desc, cfg, err);
    if (rc) {
        goto fail;
    }
    m->layers = mem_many(struct layer, (size_t)m->desc.n_layers);
    if (!m->layers) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "out of memory: %d layers", m->desc.n_layers);
        goto fail;
    }
    rc = model_hash_make(m->hash, &m->desc, w, err);
    rc = rc ? rc : model_bind(m, w, err);
    if (rc) {
        goto fail;
    }
    *out = m;
    return GALLEY_OK;
fail:
    model_close(m);
    return rc;
}

static void layer_close(struct device *dev, struct layer *l)
{
    float *const norms[] = { l->attn_norm,     l->attn_post_norm, l->ffn_norm,
                             l->ffn_post_norm, l->q_norm,         l->k_norm };
    for (size_t i = 0; i < COUNT(norms); i++) {
        dev->ops->free(dev, norms[i]);
    }
    dev->ops->linear_free(dev, l->qkv);
    dev->ops->linear_free(dev, l->o);
    dev->ops->linear_free(dev, l->gate_up);
    dev->ops->linear_free(dev, l->down);
}

void model_close(struct model *m)
{
    if (!m) {
        return;
    }
    for (int i = 0; m->layers && i < m->desc.n_layers; i++) {
        layer_close(m->dev, &m->layers[i]);
    }
    m->dev->ops->free(m->dev, m->final_norm);
    m->dev->ops->linear_free(m->dev, m->embed);
    if (m->head != m->embed) {
        m->dev->ops->linear_free(m->dev, m->head);
    }
    scratch_deinit(&m->scratch, m->dev);
    mem_free(m->layers);
    model_desc_deinit(&m->desc);
    mem_free(m);
}

struct kv_shape model_kv_shape(const struct model *m, enum kv_type type)
{
    const struct layer_desc *l = &m->desc.layers[0];
    return (struct kv_shape){ m->desc.n_layers, l->n_kv_head, l->head_dim, type };
}

int model_hidden(const struct model *m)
{
    return m->desc.hidden;
}

int model_n_vocab(const struct model *m)
{
    return m->desc.n_vocab;
}

uint64_t model_weight_bytes(const struct model *m)
{
    return m->weight_bytes;
}

void model_hash(const struct model *m, uint8_t out[HASH_BYTES])
{
    memcpy(out, m->hash, HASH_BYTES);
}

const char *const *model_ignored_tensors(const struct model *m)
{
    return m->desc.names.ignored;
}
