/* model_hash.c - the identity of a model, for cache keys; what it covers stands in model.h.
 *
 * The description is hashed number by number, as text would be: no padding, no pointers, the same
 * on every build. */
#include "src/format/tensor_hash.h"
#include "src/model/backbone.h"

static void add_layer(struct hash *h, const struct layer_desc *l)
{
    const struct ffn_desc *f = &l->ffn;
    const int64_t ints[] = {
        l->n_head,
        l->n_kv_head,
        l->head_dim,
        l->window,
        l->chunk,
        l->i_rope,
        l->qkv_bias,
        l->o_bias,
        l->attn_gated,
        (int64_t)l->qk_norm,
        l->qk_norm_plain,
        l->norms,
        f->intermediate,
        (int64_t)f->act,
        f->bias,
        f->n_experts,
        f->top_k,
        f->n_shared,
        f->shared_intermediate,
        (int64_t)f->router,
        f->renormalise,
        f->shared_gated,
        f->scale_input,
    };
    const float numbers[] = { l->attn_scale, l->attn_softcap, l->temp_scale, l->temp_floor };
    for (size_t i = 0; i < COUNT(ints); i++) {
        hash_add_int(h, ints[i]);
    }
    for (size_t i = 0; i < COUNT(numbers); i++) {
        hash_add_number(h, (double)numbers[i]);
    }
}

static void add_rope(struct hash *h, const struct rope_desc *r)
{
    hash_add_int(h, r->rot_dim);
    hash_add_int(h, r->pairs);
    hash_add_number(h, r->gain);
    for (int i = 0; i < r->rot_dim / 2; i++) {
        hash_add_number(h, r->freq[i]);
        hash_add_int(h, r->axis[i]);
    }
}

static void add_desc(struct hash *h, const struct model_desc *d)
{
    const int64_t ints[] = { d->hidden, d->n_layers, d->n_vocab, d->norm_plus_one,
                             d->tied,   d->n_mtp,    d->n_rope };
    const double numbers[] = { d->norm_eps, (double)d->embed_scale, (double)d->residual_scale,
                               (double)d->logit_scale, (double)d->final_softcap };
    for (size_t i = 0; i < COUNT(ints); i++) {
        hash_add_int(h, ints[i]);
    }
    for (size_t i = 0; i < COUNT(numbers); i++) {
        hash_add_number(h, numbers[i]);
    }
    for (int i = 0; i < d->n_rope; i++) {
        add_rope(h, &d->rope[i]);
    }
    for (int i = 0; i < d->n_layers; i++) {
        add_layer(h, &d->layers[i]);
    }
}

enum galley_status model_hash_make(uint8_t out[HASH_BYTES], const struct model_desc *d,
                                   const struct weights *w, struct galley_err *err)
{
    struct hash h;
    hash_init(&h);
    add_desc(&h, d);
    hash_add_int(&h, weights_count(w));
    for (int i = 0; i < weights_count(w); i++) {
        if (!tensor_hash(&h, weights_name_at(w, i), weights_tensor_at(w, i))) {
            return weights_cut(w, weights_name_at(w, i), err);
        }
    }
    hash_finish(&h, out);
    return GALLEY_OK;
}
