/* model.c - opening and closing: tensors of a checkpoint bound to the description. */
#include "src/model/model.h"

#include <assert.h>
#include <stdio.h>

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

static void layer_bind(struct layer *l, struct binder *b, const struct model_desc *d, int i)
{
    const struct layer_desc *ld = &d->layers[i];
    const struct model_names *n = d->names;
    const int64_t hidden = d->hidden;
    const int64_t n_q = (int64_t)ld->n_head * ld->head_dim;
    const int64_t n_kv = (int64_t)ld->n_kv_head * ld->head_dim;
    const struct bind_part qkv[] = {
        { n->q_weight, ld->qkv_bias ? n->q_bias : NULL, n_q },
        { n->k_weight, ld->qkv_bias ? n->k_bias : NULL, n_kv },
        { n->v_weight, ld->qkv_bias ? n->v_bias : NULL, n_kv },
    };
    const struct bind_part gate_up[] = {
        { n->gate, NULL, ld->intermediate },
        { n->up, NULL, ld->intermediate },
    };
    l->attn_norm = bind_vector(b, n->attn_norm, hidden);
    l->qkv = bind_stack(b, qkv, COUNT(qkv), 1, &hidden);
    l->o = bind_linear(b, n->o_weight, ld->o_bias ? n->o_bias : NULL, hidden, n_q);
    l->ffn_norm = bind_vector(b, n->ffn_norm, hidden);
    l->gate_up = bind_stack(b, gate_up, COUNT(gate_up), 1, &hidden);
    l->down = bind_linear(b, n->down, NULL, hidden, ld->intermediate);
}

static enum galley_status head_bind(struct model *m, struct binder *b)
{
    const struct model_desc *d = &m->desc;
    const int64_t shape[2] = { d->n_vocab, d->hidden };
    const struct tensor *unused;
    if (!d->tied) {
        m->head = bind_linear(b, d->names->head, NULL, d->n_vocab, d->hidden);
        return b->rc;
    }
    /* Some tied checkpoints carry the table twice: it is accounted for and left alone. */
    if (weights_has(b->w, d->names->head)) {
        b->rc = weights_lookup(b->w, d->names->head, 2, shape, &unused, b->err);
    }
    if (!b->rc) {
        b->rc = m->dev->ops->linear_new(m->dev, &m->head, &m->embed, NULL, b->err);
        b->bytes += (uint64_t)d->n_vocab * (uint64_t)d->hidden * dtype_bytes(m->embed.dtype);
    }
    return b->rc;
}

static enum galley_status model_bind(struct model *m, struct weights *w, struct galley_err *err)
{
    const struct model_desc *d = &m->desc;
    const char *prefix = find_prefix(d->names, w);
    struct binder b = { .dev = m->dev, .w = w, .err = err };
    const int64_t shape[2] = { d->n_vocab, d->hidden };
    char name[128];
    const struct tensor *embed;
    snprintf(name, sizeof(name), "%s%s", prefix, d->names->embed);
    b.rc = weights_lookup(w, name, 2, shape, &embed, err);
    if (b.rc) {
        return b.rc;
    }
    m->embed = *embed;
    for (int i = 0; !b.rc && i < d->n_layers; i++) {
        binder_scope(&b, "%s%s%d.", prefix, d->names->layer, i);
        layer_bind(&m->layers[i], &b, d, i);
    }
    binder_scope(&b, "%s", prefix);
    m->final_norm = bind_vector(&b, d->names->final_norm, d->hidden);
    binder_scope(&b, "%s", "");
    if (!b.rc) {
        b.rc = head_bind(m, &b);
    }
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
    rc = model_bind(m, w, err);
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
    dev->ops->free(dev, l->attn_norm);
    dev->ops->free(dev, l->ffn_norm);
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
    m->dev->ops->linear_free(m->dev, m->head);
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
