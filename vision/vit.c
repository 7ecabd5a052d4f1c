/* vit.c - the vision towers of Qwen2-VL and Qwen2.5-VL over dev_ops.
 *
 * Rows are patches, all images of a call behind one another, in window order from the patch
 * embedding to the merger; the embeddings go back to reading order at the end.  Attention is
 * the only step that mixes rows, inside an image or a window; everything else may run in
 * slices of rows, which keeps the scratch of the wide feed-forward small.  One thread. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/scratch.h"
#include "src/base/mem.h"
#include "src/format/bind.h"
#include "vision/merger.h"
#include "vision/vision.h"
#include "vision/window.h"

#define SLICE_ROWS 1024 /* rows of the feed-forward in flight */
#define ROPE_THETA 10000.0

struct vit_block {
    float *norm1, *norm1_bias, *norm2, *norm2_bias; /* biases: LayerNorm only */
    struct linear *qkv, *proj;
    struct linear *up, *down; /* up: gate over up when gated, else fc1; down: or fc2 */
    bool full;                /* attends across windows */
};

struct vit {
    /* fixed after open */
    struct device *dev;
    struct hf_vision_config cfg;
    struct linear *patch_embed;
    struct vit_block *blocks; /* [depth] */
    struct merger merger;
    uint64_t weight_bytes;
    /* the thread that encodes */
    struct scratch scratch;
};

/* Where everything lies in the scratch block, for n rows in u units. */
struct vit_scratch {
    float *x;         /* [n][hidden] residual stream */
    float *h;         /* [n][hidden] normed input, attention output */
    float *qkv;       /* [n][3 hidden] */
    float *slice;     /* [SLICE_ROWS][hidden] what a sublayer adds */
    float *wide;      /* [SLICE_ROWS][2 intermediate] */
    float *mid;       /* [SLICE_ROWS][intermediate], or [SLICE_ROWS / merge^2][merge^2 hidden] */
    float *merged;    /* [u][out_hidden] in work order */
    float *cos, *sin; /* [n][head_dim / 2] */
    float *axis_cos, *axis_sin; /* [coordinate][head_dim / 4] */
    int32_t *coord;             /* [coordinate] 0, 1, 2 ... */
    int32_t *plan;              /* the window plan's arrays */
    uint64_t bytes;
};

/* A side has at most as many patches as the image. */
static struct vit_scratch scratch_lay(const struct vit *v, char *base, uint64_t n)
{
    const struct hf_vision_config *c = &v->cfg;
    const uint64_t hidden = (uint64_t)c->hidden, inter = (uint64_t)c->intermediate;
    const uint64_t unit = (uint64_t)c->merge * (uint64_t)c->merge, u = n / unit;
    const uint64_t half = hidden / (uint64_t)c->n_head / 2;
    const uint64_t slice = n < SLICE_ROWS ? n : SLICE_ROWS;
    struct scratch_cursor at = { base, 0 };
    struct vit_scratch s;
    s.x = scratch_take(&at, n, hidden);
    s.h = scratch_take(&at, n, hidden);
    s.qkv = scratch_take(&at, n, 3 * hidden);
    s.slice = scratch_take(&at, slice, hidden);
    s.wide = scratch_take(&at, slice, c->gated_rms ? 2 * inter : 0);
    s.mid = scratch_take(&at, slice, inter > hidden ? inter : hidden);
    s.merged = scratch_take(&at, u, (uint64_t)c->out_hidden);
    s.cos = scratch_take(&at, n, half);
    s.sin = scratch_take(&at, n, half);
    s.axis_cos = scratch_take(&at, n, half / 2);
    s.axis_sin = scratch_take(&at, n, half / 2);
    s.coord = scratch_take(&at, n, 1);
    s.plan = scratch_take(&at, window_plan_values((int64_t)u), 1);
    s.bytes = at.bytes;
    return s;
}

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
    if (cell < 1 || c->merge * c->merge > SLICE_ROWS || c->window < 0 ||
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

static enum galley_status vit_bind(struct vit *v, struct weights *w, struct galley_err *err)
{
    const struct hf_vision_config *c = &v->cfg;
    const char *prefix = weights_has(w, "model.visual.patch_embed.proj.weight") ? "model." : "";
    struct binder b = { .dev = v->dev, .w = w, .err = err };
    const int64_t patch[] = { c->in_channels, c->temporal_patch, c->patch, c->patch };
    const struct bind_part embed = { "patch_embed.proj.weight", NULL, c->hidden };
    binder_scope(&b, "%svisual.", prefix);
    v->patch_embed = bind_stack(&b, &embed, 1, COUNT(patch), patch);
    for (int i = 0; !b.rc && i < c->depth; i++) {
        binder_scope(&b, "%svisual.blocks.%d.", prefix, i);
        block_bind(&v->blocks[i], &b, c);
        v->blocks[i].full = c->window == 0;
    }
    for (int i = 0; i < c->n_fullatt; i++) {
        if (c->fullatt[i] >= 0 && c->fullatt[i] < c->depth) {
            v->blocks[c->fullatt[i]].full = true;
        }
    }
    binder_scope(&b, "%svisual.merger.", prefix);
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

static void norm(const struct vit *v, float *y, const float *x, const float *weight,
                 const float *bias, int rows)
{
    const float eps = (float)v->cfg.norm_eps;
    if (bias) {
        v->dev->ops->layer_norm(v->dev, y, x, weight, bias, rows, v->cfg.hidden, eps);
    } else {
        v->dev->ops->rms_norm(v->dev, y, x, weight, rows, v->cfg.hidden, eps);
    }
}

/* Rotary tables: the first half of the pairs turns with the patch's row, the second with its
 * column, both from frequency 0 on. */
static void tables_fill(const struct vit *v, const struct vit_scratch *s,
                        const struct window_plan *p)
{
    const int half = v->cfg.hidden / v->cfg.n_head / 2, quarter = half / 2, m = v->cfg.merge;
    const int section[3] = { quarter, 0, 0 };
    for (int i = 0; i < p->n_side; i++) {
        s->coord[i] = i;
    }
    const int32_t *const pos[3] = { s->coord, s->coord, s->coord };
    rope_table(s->axis_cos, s->axis_sin, pos, section, p->n_side, half, ROPE_THETA);
    const size_t bytes = (size_t)quarter * sizeof(float);
    for (int r = 0; r < p->n_units * m * m; r++) {
        const int unit = r / (m * m), i = r % (m * m);
        const size_t y = (size_t)(p->row[unit] * m + i / m) * (size_t)quarter;
        const size_t x = (size_t)(p->col[unit] * m + i % m) * (size_t)quarter;
        float *cos_row = s->cos + (size_t)r * (size_t)half;
        float *sin_row = s->sin + (size_t)r * (size_t)half;
        memcpy(cos_row, s->axis_cos + y, bytes);
        memcpy(cos_row + quarter, s->axis_cos + x, bytes);
        memcpy(sin_row, s->axis_sin + y, bytes);
        memcpy(sin_row + quarter, s->axis_sin + x, bytes);
    }
}

/* Patches to embeddings, units in work order. */
static void patches_embed(const struct vit *v, const struct vit_scratch *s,
                          const struct window_plan *p, const float *patches)
{
    const struct hf_vision_config *c = &v->cfg;
    const size_t unit = (size_t)(c->merge * c->merge) * (size_t)c->hidden;
    v->dev->ops->matmul(v->dev, p->n_win ? s->h : s->x, (size_t)c->hidden, v->patch_embed, patches,
                        vision_patch_floats(c), p->n_units * c->merge * c->merge);
    for (int i = 0; p->n_win && i < p->n_units; i++) {
        memcpy(s->x + (size_t)i * unit, s->h + (size_t)p->source[i] * unit, unit * sizeof(float));
    }
}

static void block_attend(const struct vit *v, const struct vit_block *k,
                         const struct vit_scratch *s, const struct window_plan *p, int rows)
{
    const struct dev_ops *ops = v->dev->ops;
    const size_t hidden = (size_t)v->cfg.hidden, ld = 3 * hidden;
    const int head_dim = v->cfg.hidden / v->cfg.n_head;
    norm(v, s->h, s->x, k->norm1, k->norm1_bias, rows);
    ops->matmul(v->dev, s->qkv, ld, k->qkv, s->h, hidden, rows);
    ops->rope(v->dev, &(struct rope_args){ /* q and k heads lie side by side */
                                           .x = s->qkv,
                                           .ld = ld,
                                           .cos = s->cos,
                                           .sin = s->sin,
                                           .rows = rows,
                                           .n_head = 2 * v->cfg.n_head,
                                           .head_dim = head_dim });
    ops->attn_seg(v->dev, &(struct attn_seg_args){ .out = s->h,
                                                   .out_ld = hidden,
                                                   .q = s->qkv,
                                                   .k = s->qkv + hidden,
                                                   .v = s->qkv + 2 * hidden,
                                                   .ld = ld,
                                                   .seg = k->full ? p->full : p->win,
                                                   .n_seg = k->full ? p->n_full : p->n_win,
                                                   .n_head = v->cfg.n_head,
                                                   .head_dim = head_dim,
                                                   .scale = (float)(1.0 / sqrt(head_dim)) });
}

/* Output projection and feed-forward for one slice of rows from x and h on. */
static void block_finish(const struct vit *v, const struct vit_block *k,
                         const struct vit_scratch *s, float *x, const float *h, int rows)
{
    const struct dev_ops *ops = v->dev->ops;
    const struct hf_vision_config *c = &v->cfg;
    const size_t hidden = (size_t)c->hidden, inter = (size_t)c->intermediate;
    ops->matmul(v->dev, s->slice, hidden, k->proj, h, hidden, rows);
    ops->add(v->dev, x, s->slice, (size_t)rows * hidden);
    norm(v, s->slice, x, k->norm2, k->norm2_bias, rows);
    if (c->gated_rms) {
        ops->matmul(v->dev, s->wide, 2 * inter, k->up, s->slice, hidden, rows);
        ops->gated(v->dev, s->mid, s->wide, rows, c->intermediate, ACT_SILU);
    } else {
        ops->matmul(v->dev, s->mid, inter, k->up, s->slice, hidden, rows);
        ops->act(v->dev, s->mid, (size_t)rows * inter, ACT_QUICK_GELU);
    }
    ops->matmul(v->dev, s->slice, hidden, k->down, s->mid, inter, rows);
    ops->add(v->dev, x, s->slice, (size_t)rows * hidden);
}

/* Merges in slices, then puts embeddings back into reading order. */
static void units_merge(const struct vit *v, const struct vit_scratch *s,
                        const struct window_plan *p, float *out)
{
    const int unit = v->cfg.merge * v->cfg.merge, step = SLICE_ROWS / unit;
    const size_t n_out = (size_t)v->cfg.out_hidden;
    float *y = p->n_win ? s->merged : out;
    for (int i = 0; i < p->n_units; i += step) {
        const int n = p->n_units - i < step ? p->n_units - i : step;
        merger_run(&v->merger, v->dev, y + (size_t)i * n_out,
                   s->x + (size_t)(i * unit) * (size_t)v->cfg.hidden, s->mid, n);
    }
    for (int i = 0; p->n_win && i < p->n_units; i++) {
        memcpy(out + (size_t)p->source[i] * n_out, y + (size_t)i * n_out, n_out * sizeof(*out));
    }
}

enum galley_status vit_encode(struct vit *v, float *out, const float *patches,
                              const struct vision_grid *grids, int n, struct galley_err *err)
{
    int64_t n_patches = 0;
    for (int i = 0; i < n; i++) {
        n_patches += (int64_t)grids[i].t * grids[i].h * grids[i].w;
    }
    if (n_patches == 0) {
        return GALLEY_OK;
    }
    if (n_patches > INT32_MAX) {
        return galley_err_set(err, GALLEY_ELIMIT, "%lld patches are too many for one call",
                              (long long)n_patches);
    }
    const uint64_t bytes = scratch_lay(v, NULL, (uint64_t)n_patches).bytes;
    if (!scratch_reserve(&v->scratch, v->dev, bytes)) {
        return galley_err_set(err, GALLEY_ENOMEM,
                              "out of memory: %llu bytes to encode %lld patches",
                              (unsigned long long)bytes, (long long)n_patches);
    }
    const int rows = (int)n_patches;
    const size_t hidden = (size_t)v->cfg.hidden;
    const struct vit_scratch s = scratch_lay(v, v->scratch.base, (uint64_t)rows);
    struct window_plan p;
    window_plan_make(&p, s.plan, grids, n, &v->cfg);
    tables_fill(v, &s, &p);
    patches_embed(v, &s, &p, patches);
    for (int i = 0; i < v->cfg.depth; i++) {
        block_attend(v, &v->blocks[i], &s, &p, rows);
        for (int r = 0; r < rows; r += SLICE_ROWS) {
            block_finish(v, &v->blocks[i], &s, s.x + (size_t)r * hidden, s.h + (size_t)r * hidden,
                         rows - r < SLICE_ROWS ? rows - r : SLICE_ROWS);
        }
    }
    units_merge(v, &s, &p, out);
    return GALLEY_OK;
}
