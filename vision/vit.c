/* vit.c - opening a vision tower of Qwen2-VL or Qwen2.5-VL: its checks and weights.  vit_job.c runs
 * it, vit_hash.c says which it is. */
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "vision/vit_impl.h"

uint64_t vit_weight_bytes(const struct vit *v)
{
    return v->weight_bytes;
}

static enum galley_status config_check(const struct hf_vision_config *c, struct galley_err *err)
{
    if (c->n_head < 1 || c->hidden % c->n_head != 0 || c->hidden / c->n_head % 4 != 0) {
        return galley_err_set(
            err, GALLEY_EMODEL,
            "the vision tower's width %d does not make %d heads of a multiple of 4", c->hidden,
            c->n_head);
    }
    const int cell = c->merge * c->patch;
    if (cell < 1 || c->merge * c->merge > VIT_SLICE_ROWS || c->window < 0 ||
        (c->window > 0 && c->window < cell)) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "the vision tower's window of %d pixels holds no cell of %d",
                              c->window, cell);
    }
    return GALLEY_OK;
}

/* One fused matrix, or the three that GGUF files keep apart. */
static struct linear *qkv_bind(struct binder *b, int64_t hidden)
{
    const struct bind_part parts[] = {
        { "attn.q.weight", "attn.q.bias", hidden },
        { "attn.k.weight", "attn.k.bias", hidden },
        { "attn.v.weight", "attn.v.bias", hidden },
    };
    char apart[sizeof(b->scope) + 16];
    snprintf(apart, sizeof(apart), "%s%s", b->scope, parts[0].weight);
    return weights_has(b->w, apart)
               ? bind_stack(b, parts, COUNT(parts), 1, &hidden)
               : bind_linear(b, "attn.qkv.weight", "attn.qkv.bias", 3 * hidden, hidden);
}

static void block_bind(struct vit_block *k, struct binder *b, const struct hf_vision_config *c)
{
    const int64_t hidden = c->hidden, inter = c->intermediate;
    const struct bind_part gate_up[] = {
        { "mlp.gate_proj.weight", "mlp.gate_proj.bias", inter },
        { "mlp.up_proj.weight", "mlp.up_proj.bias", inter },
    };
    k->norm1 = bind_vector(b, "norm1.weight", hidden);
    k->norm2 = bind_vector(b, "norm2.weight", hidden);
    k->qkv = qkv_bind(b, hidden);
    k->proj = bind_linear(b, "attn.proj.weight", "attn.proj.bias", hidden, hidden);
    if (c->gated_rms) {
        k->up = bind_stack(b, gate_up, COUNT(gate_up), 1, &hidden);
        k->down = bind_linear(b, "mlp.down_proj.weight", "mlp.down_proj.bias", hidden, inter);
    } else {
        k->norm1_bias = bind_vector(b, "norm1.bias", hidden);
        k->norm2_bias = bind_vector(b, "norm2.bias", hidden);
        k->up = bind_linear(b, "mlp.fc1.weight", "mlp.fc1.bias", inter, hidden);
        k->down = bind_linear(b, "mlp.fc2.weight", "mlp.fc2.bias", hidden, inter);
    }
}

const char *vit_prefix(const struct weights *w)
{
    return weights_has(w, "model.visual.patch_embed.proj.weight") ? "model." : "";
}

static enum galley_status vit_bind(struct vit *v, struct weights *w, struct galley_err *err)
{
    const struct hf_vision_config *c = &v->cfg;
    struct binder b = { .dev = v->dev, .w = w, .err = err };
    const int64_t patch[] = { c->in_channels, c->temporal_patch, c->patch, c->patch };
    const struct bind_part embed = { "patch_embed.proj.weight", NULL, c->hidden };
    binder_scope(&b, "%svisual.", vit_prefix(w));
    v->patch_embed = bind_stack(&b, &embed, 1, COUNT(patch), patch);
    for (int i = 0; !b.rc && i < c->depth; i++) {
        binder_scope(&b, "%svisual.blocks.%d.", vit_prefix(w), i);
        block_bind(&v->blocks[i], &b, c);
        v->blocks[i].full = c->window == 0;
    }
    for (int i = 0; i < c->n_fullatt; i++) {
        if (c->fullatt[i] >= 0 && c->fullatt[i] < c->depth) {
            v->blocks[c->fullatt[i]].full = true;
        }
    }
    binder_scope(&b, "%svisual.merger.", vit_prefix(w));
    merger_bind(&v->merger, &b, c);
    v->weight_bytes = b.bytes;
    return b.rc;
}

enum galley_status vit_open(struct vit **out, struct device *dev, const struct hf_config *cfg,
                            struct weights *w, struct galley_err *err)
{
    *out = NULL;
    enum galley_status rc = config_check(&cfg->vision, err);
    if (rc) {
        return rc;
    }
    struct vit *v = mem_new(struct vit);
    struct vit_block *blocks = mem_many(struct vit_block, (size_t)cfg->vision.depth);
    if (!v || !blocks) {
        mem_free(v);
        mem_free(blocks);
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: %d vision blocks",
                              cfg->vision.depth);
    }
    *v = (struct vit){ .dev = dev, .cfg = cfg->vision, .blocks = blocks };
    rc = vit_bind(v, w, err);
    if (rc) {
        vit_close(v);
        return rc;
    }
    *out = v;
    return GALLEY_OK;
}

static void block_close(struct vit_block *k, struct device *dev)
{
    dev->ops->free(dev, k->norm1);
    dev->ops->free(dev, k->norm1_bias);
    dev->ops->free(dev, k->norm2);
    dev->ops->free(dev, k->norm2_bias);
    dev->ops->linear_free(dev, k->qkv);
    dev->ops->linear_free(dev, k->proj);
    dev->ops->linear_free(dev, k->up);
    dev->ops->linear_free(dev, k->down);
}

void vit_close(struct vit *v)
{
    if (!v) {
        return;
    }
    for (int i = 0; i < v->cfg.depth; i++) {
        block_close(&v->blocks[i], v->dev);
    }
    merger_deinit(&v->merger, v->dev);
    v->dev->ops->linear_free(v->dev, v->patch_embed);
    scratch_deinit(&v->scratch, v->dev);
    mem_free(v->blocks);
    mem_free(v);
}
