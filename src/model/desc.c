/* desc.c - the family table and the checks every description must pass. */
#include "src/model/desc.h"

#include <assert.h>

#include "src/base/mem.h"

struct family {
    enum hf_family id;
    void (*describe)(struct model_desc *d, const struct hf_config *cfg);
};

static const struct family families[] = {
    { HF_QWEN2_VL, family_qwen_describe },
    { HF_QWEN2_5_VL, family_qwen_describe },
};

static enum galley_status layer_check(const struct model_desc *d, int i, struct galley_err *err)
{
    const struct layer_desc *l = &d->layers[i];
    assert(l->i_rope >= 0 && l->i_rope < d->n_rope);
    /* one KV pool serves all layers */
    assert(l->n_kv_head == d->layers[0].n_kv_head && l->head_dim == d->layers[0].head_dim);
    if (l->n_head < 1 || l->n_kv_head < 1 || l->n_head % l->n_kv_head != 0) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "layer %d: %d attention heads cannot be shared by %d key/value heads",
                              i, l->n_head, l->n_kv_head);
    }
    const int *s = d->rope[l->i_rope].section;
    if (l->head_dim < 2 || l->head_dim % 2 != 0 || s[0] + s[1] + s[2] != l->head_dim / 2) {
        return galley_err_set(
            err, GALLEY_EMODEL,
            "layer %d: rotary sections %d, %d, %d do not make half of the head size %d", i, s[0],
            s[1], s[2], l->head_dim);
    }
    return GALLEY_OK;
}

enum galley_status model_desc_init(struct model_desc *out, const struct hf_config *cfg,
                                   struct galley_err *err)
{
    *out = (struct model_desc){ 0 };
    const struct family *f = NULL;
    for (size_t i = 0; i < COUNT(families); i++) {
        f = families[i].id == cfg->family ? &families[i] : f;
    }
    assert(f);
    assert(cfg->text.n_layers > 0 && cfg->text.hidden > 0 && cfg->text.n_vocab > 0);
    out->layers = mem_many(struct layer_desc, (size_t)cfg->text.n_layers);
    if (!out->layers) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: %d layer descriptions",
                              cfg->text.n_layers);
    }
    out->n_layers = cfg->text.n_layers;
    f->describe(out, cfg);
    enum galley_status rc = GALLEY_OK;
    for (int i = 0; !rc && i < out->n_layers; i++) {
        rc = layer_check(out, i, err);
    }
    if (rc) {
        model_desc_deinit(out);
    }
    return rc;
}

void model_desc_deinit(struct model_desc *d)
{
    mem_free(d->layers);
    *d = (struct model_desc){ 0 };
}
