/* backbone.c - the forward pass: one ragged batch of rows through every layer.
 *
 * Prefill chunks, decode rows and drafts to verify are the same thing here.  Every operator is
 * row-invariant (kernels/device.h), and nothing below mixes rows except attention through the
 * cache, so the logits of a row depend on its sequence's tokens alone. */
#include "src/model/backbone.h"

#include <assert.h>
#include <string.h>

/* Where everything lies in the scratch block; sized and filled by the same function. */
struct rows_scratch {
    float *x;       /* [rows][hidden] residual stream */
    float *h;       /* [rows][hidden] normed input, or what a sublayer adds */
    float *qkv;     /* [rows][q + 2 kv] */
    float *attn;    /* [rows][q] */
    float *gate_up; /* [rows][2 intermediate] */
    float *mid;     /* [rows][intermediate] */
    float *cos[ROPE_KINDS_MAX], *sin[ROPE_KINDS_MAX]; /* [rows][rot_dim / 2] */
    /* of the wanted rows: [n_want] */
    int32_t *seq, *n_keys, *tree_base;
    uint64_t *tree;
    uint64_t bytes;
};

/* The widest of every kind of row over all layers, in floats. */
struct widths {
    uint64_t q, qkv, intermediate;
};

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct widths widths_of(const struct model_desc *d)
{
    struct widths w = { 0 };
    for (int i = 0; i < d->n_layers; i++) {
        const struct layer_desc *l = &d->layers[i];
        w.q = max_u64(w.q, (uint64_t)l->n_head * (uint64_t)l->head_dim);
        w.qkv = max_u64(w.qkv, (uint64_t)(l->n_head + 2 * l->n_kv_head) * (uint64_t)l->head_dim);
        w.intermediate = max_u64(w.intermediate, (uint64_t)l->ffn.intermediate);
    }
    return w;
}

static struct rows_scratch scratch_lay(const struct model_desc *d, char *base, int n_rows,
                                       int n_want)
{
    const struct widths w = widths_of(d);
    const uint64_t rows = (uint64_t)n_rows, hidden = (uint64_t)d->hidden;
    struct scratch_cursor at = { base, 0 };
    struct rows_scratch s = { 0 };
    s.x = scratch_take(&at, rows, hidden);
    s.h = scratch_take(&at, rows, hidden);
    s.qkv = scratch_take(&at, rows, w.qkv);
    s.attn = scratch_take(&at, rows, w.q);
    s.gate_up = scratch_take(&at, rows, 2 * w.intermediate);
    s.mid = scratch_take(&at, rows, w.intermediate);
    for (int i = 0; i < d->n_rope; i++) {
        s.cos[i] = scratch_take(&at, rows, (uint64_t)d->rope[i].rot_dim / 2);
        s.sin[i] = scratch_take(&at, rows, (uint64_t)d->rope[i].rot_dim / 2);
    }
    s.seq = scratch_take(&at, (uint64_t)n_want, 1);
    s.n_keys = scratch_take(&at, (uint64_t)n_want, 1);
    s.tree_base = scratch_take(&at, (uint64_t)n_want, 1);
    s.tree = scratch_take(&at, (uint64_t)n_want, 2);
    s.bytes = at.bytes;
    return s;
}

uint64_t model_step_bytes(const struct model_desc *d, int n_rows, int n_want)
{
    return scratch_lay(d, NULL, n_rows, n_want).bytes;
}

static void batch_check(const struct model *m, const struct kv_pool *kv,
                        const struct model_batch *b)
{
    const struct kv_shape *s = kv_pool_shape(kv);
    assert(s->n_layers == m->desc.n_layers);
    assert(s->n_kv_head == m->desc.layers[0].n_kv_head);
    assert(s->head_dim == m->desc.layers[0].head_dim);
    assert(b->n_rows >= 0 && b->n_want >= 0 && b->n_want <= b->n_rows);
    for (int i = 0; i < b->n_want; i++) {
        assert(b->want[i] >= (i ? b->want[i - 1] + 1 : 0) && b->want[i] < b->n_rows);
    }
    for (int r = 1; r < b->n_rows; r++) {
        assert(b->seq[r] != b->seq[r - 1] || b->n_keys[r] > b->n_keys[r - 1]);
    }
    (void)m; /* read by asserts only */
    (void)s;
}

static enum galley_status ids_check(const struct model *m, const struct model_batch *b,
                                    struct galley_err *err)
{
    for (int r = 0; r < b->n_rows; r++) {
        if (b->embd && b->embd[r]) {
            continue;
        }
        if (b->token[r] < 0 || b->token[r] >= m->desc.n_vocab) {
            return galley_err_set(err, GALLEY_EINPUT,
                                  "token %d is outside the vocabulary of %d tokens", b->token[r],
                                  m->desc.n_vocab);
        }
    }
    return GALLEY_OK;
}

static void rows_scale(struct model *m, float *x, size_t n, float by)
{
    if (by != 1.0f) {
        m->dev->ops->scale(m->dev, x, n, by);
    }
}

/* Token rows from the table, embedding rows as they are: runs of one kind at a time. */
static void rows_embed(struct model *m, float *x, const struct model_batch *b)
{
    const size_t hidden = (size_t)m->desc.hidden;
    for (int r = 0; r < b->n_rows;) {
        int end = r;
        while (end < b->n_rows && !(b->embd && b->embd[end])) {
            end++;
        }
        if (end > r) {
            m->dev->ops->embed(m->dev, x + (size_t)r * hidden, m->embed, b->token + r, end - r);
            rows_scale(m, x + (size_t)r * hidden, (size_t)(end - r) * hidden, m->desc.embed_scale);
        }
        for (r = end; r < b->n_rows && b->embd && b->embd[r]; r++) {
            memcpy(x + (size_t)r * hidden, b->embd[r], hidden * sizeof(*x));
        }
    }
}

/* Rows that go on behind this point: all of them, or in the last layer the wanted ones, moved
 * to the front.  want ascends, so a row only ever moves down, onto one already used. */
struct live_rows {
    int n;
    const int32_t *seq, *n_keys, *tree_base;
    const uint64_t *tree;
};

static struct live_rows rows_keep_wanted(const struct rows_scratch *s, const struct model_batch *b,
                                         size_t hidden, size_t n_q, size_t ld)
{
    for (int i = 0; i < b->n_want; i++) {
        const size_t from = (size_t)b->want[i], to = (size_t)i;
        memmove(s->x + to * hidden, s->x + from * hidden, hidden * sizeof(float));
        memmove(s->qkv + to * ld, s->qkv + from * ld, n_q * sizeof(float));
        s->seq[i] = b->seq[from];
        s->n_keys[i] = b->n_keys[from];
        if (b->tree) {
            s->tree[i] = b->tree[from];
            s->tree_base[i] = b->tree_base[from];
        }
    }
    return (struct live_rows){ b->n_want, s->seq, s->n_keys, s->tree_base,
                               b->tree ? s->tree : NULL };
}

/* y = norm of x, or x itself: what the first half of a sublayer reads. */
static const float *rows_norm(struct model *m, float *y, const float *x, const float *norm,
                              int n_rows)
{
    if (!norm) {
        return x;
    }
    m->dev->ops->rms_norm(m->dev, y, x, norm, n_rows, m->desc.hidden, (float)m->desc.norm_eps);
    return y;
}

/* x += what a sublayer made, after the norm and the scale that may stand between. */
static void rows_join(struct model *m, float *x, float *h, const float *norm, int n_rows)
{
    const size_t n = (size_t)n_rows * (size_t)m->desc.hidden;
    rows_norm(m, h, h, norm, n_rows);
    rows_scale(m, h, n, m->desc.residual_scale);
    m->dev->ops->add(m->dev, x, h, n);
}

/* q and k as attention sees them: normed head by head, then turned.  In qkv they lie side by
 * side, all q heads before all k heads. */
static void rows_rotate(struct model *m, int i, int n_rows, const struct rows_scratch *s)
{
    const struct dev_ops *ops = m->dev->ops;
    const struct layer *l = &m->layers[i];
    const struct layer_desc *d = &m->desc.layers[i];
    const size_t n_q = (size_t)d->n_head * (size_t)d->head_dim;
    const size_t ld = n_q + 2 * (size_t)d->n_kv_head * (size_t)d->head_dim;
    const float eps = (float)m->desc.norm_eps;
    if (d->qk_norm == QK_NORM_BEFORE_ROPE) {
        ops->head_norm(m->dev, s->qkv, ld, l->q_norm, n_rows, d->n_head, d->head_dim, eps);
        ops->head_norm(m->dev, s->qkv + n_q, ld, l->k_norm, n_rows, d->n_kv_head, d->head_dim, eps);
    }
    if (d->i_rope < 0) {
        return;
    }
    const struct rope_desc *r = &m->desc.rope[d->i_rope];
    ops->rope(m->dev, &(struct rope_args){ .x = s->qkv,
                                           .ld = ld,
                                           .cos = s->cos[d->i_rope],
                                           .sin = s->sin[d->i_rope],
                                           .rows = n_rows,
                                           .n_head = d->n_head + d->n_kv_head,
                                           .head_dim = d->head_dim,
                                           .rot_dim = r->rot_dim,
                                           .pairs = r->pairs });
}

/* Projections, rotation, cache write, attention, output projection onto x. */
static struct live_rows layer_attend(struct model *m, int i, struct kv_pool *kv,
                                     const struct model_batch *b, const struct rows_scratch *s)
{
    const struct dev_ops *ops = m->dev->ops;
    const struct layer *l = &m->layers[i];
    const struct layer_desc *d = &m->desc.layers[i];
    const size_t hidden = (size_t)m->desc.hidden, hd = (size_t)d->head_dim;
    const size_t n_q = (size_t)d->n_head * hd, n_kv = (size_t)d->n_kv_head * hd;
    const size_t ld = n_q + 2 * n_kv;
    const enum kv_type kv_type = kv_pool_shape(kv)->type;
    struct live_rows live = { b->n_rows, b->seq, b->n_keys, b->tree_base, b->tree };

    const float *in = rows_norm(m, s->h, s->x, l->attn_norm, b->n_rows);
    ops->matmul(m->dev, s->qkv, ld, l->qkv, in, hidden, b->n_rows);
    rows_rotate(m, i, b->n_rows, s);
    ops->kv_write(m->dev, &(struct kv_write_args){ .k_cache = kv_pool_k(kv, i),
                                                   .v_cache = kv_pool_v(kv, i),
                                                   .kv_type = kv_type,
                                                   .k = s->qkv + n_q,
                                                   .v = s->qkv + n_q + n_kv,
                                                   .ld = ld,
                                                   .slot = b->slot,
                                                   .rows = b->n_rows,
                                                   .n_kv_head = d->n_kv_head,
                                                   .head_dim = d->head_dim });
    if (i == m->desc.n_layers - 1) {
        live = rows_keep_wanted(s, b, hidden, n_q, ld);
    }
    ops->attn_paged(m->dev, &(struct attn_paged_args){ .out = s->attn,
                                                       .out_ld = n_q,
                                                       .q = s->qkv,
                                                       .q_ld = ld,
                                                       .k_cache = kv_pool_k(kv, i),
                                                       .v_cache = kv_pool_v(kv, i),
                                                       .kv_type = kv_type,
                                                       .block_table = b->block_table,
                                                       .seq = live.seq,
                                                       .n_keys = live.n_keys,
                                                       .rows = live.n,
                                                       .n_head = d->n_head,
                                                       .n_kv_head = d->n_kv_head,
                                                       .head_dim = d->head_dim,
                                                       .scale = d->attn_scale,
                                                       .window = d->window,
                                                       .softcap = d->attn_softcap,
                                                       .tree = live.tree,
                                                       .tree_base = live.tree_base });
    ops->matmul(m->dev, s->h, hidden, l->o, s->attn, n_q, live.n);
    rows_join(m, s->x, s->h, l->attn_post_norm, live.n);
    return live;
}

static void layer_feed(struct model *m, int i, int n_rows, const struct rows_scratch *s)
{
    const struct dev_ops *ops = m->dev->ops;
    const struct layer *l = &m->layers[i];
    const struct ffn_desc *d = &m->desc.layers[i].ffn;
    const size_t hidden = (size_t)m->desc.hidden, n = (size_t)d->intermediate;
    const float *in = rows_norm(m, s->h, s->x, l->ffn_norm, n_rows);
    ops->matmul(m->dev, s->gate_up, 2 * n, l->gate_up, in, hidden, n_rows);
    ops->gated(m->dev, s->mid, s->gate_up, n_rows, d->intermediate, d->act);
    ops->matmul(m->dev, s->h, hidden, l->down, s->mid, n, n_rows);
    rows_join(m, s->x, s->h, l->ffn_post_norm, n_rows);
}

/* The final norm, the head, and what is done to its logits. */
static void rows_logits(struct model *m, const struct model_batch *b, const struct rows_scratch *s)
{
    const struct model_desc *d = &m->desc;
    const size_t n_vocab = (size_t)d->n_vocab;
    m->dev->ops->rms_norm(m->dev, s->h, s->x, m->final_norm, b->n_want, d->hidden,
                          (float)d->norm_eps);
    m->dev->ops->matmul(m->dev, b->logits, n_vocab, m->head, s->h, (size_t)d->hidden, b->n_want);
    rows_scale(m, b->logits, (size_t)b->n_want * n_vocab, d->logit_scale);
    if (d->final_softcap > 0) {
        m->dev->ops->softcap(m->dev, b->logits, (size_t)b->n_want * n_vocab, d->final_softcap);
    }
}

enum galley_status model_forward(struct model *m, struct kv_pool *kv, const struct model_batch *b,
                                 struct galley_err *err)
{
    const struct model_desc *d = &m->desc;
    batch_check(m, kv, b);
    if (b->n_rows == 0) {
        return GALLEY_OK;
    }
    enum galley_status rc = ids_check(m, b, err);
    if (rc) {
        return rc;
    }
    const uint64_t bytes = scratch_lay(d, NULL, b->n_rows, b->n_want).bytes;
    if (!scratch_reserve(&m->scratch, m->dev, bytes)) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: %llu bytes for one step",
                              (unsigned long long)bytes);
    }
    const struct rows_scratch s = scratch_lay(d, m->scratch.base, b->n_rows, b->n_want);
    for (int i = 0; i < d->n_rope; i++) {
        const struct rope_desc *r = &d->rope[i];
        rope_angles(s.cos[i], s.sin[i], b->pos, r->axis, r->freq, b->n_rows, r->rot_dim / 2,
                    r->gain);
    }
    rows_embed(m, s.x, b);
    for (int i = 0; i < d->n_layers; i++) {
        const struct live_rows live = layer_attend(m, i, kv, b, &s);
        if (live.n == 0) {
            return GALLEY_OK; /* last layer, nothing wanted: the cache is written */
        }
        layer_feed(m, i, live.n, &s);
    }
    rows_logits(m, b, &s);
    return GALLEY_OK;
}
