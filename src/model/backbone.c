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
    float *cos[ROPE_KINDS_MAX], *sin[ROPE_KINDS_MAX]; /* [rows][head_dim / 2] */
    int32_t *seq, *n_keys;                            /* [n_want] of the wanted rows */
    uint64_t bytes;
};

/* The widest of every kind of row over all layers, in floats. */
struct widths {
    uint64_t q, qkv, intermediate, half;
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
        w.intermediate = max_u64(w.intermediate, (uint64_t)l->intermediate);
        w.half = max_u64(w.half, (uint64_t)l->head_dim / 2);
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
        s.cos[i] = scratch_take(&at, rows, w.half);
        s.sin[i] = scratch_take(&at, rows, w.half);
    }
    s.seq = scratch_take(&at, (uint64_t)n_want, 1);
    s.n_keys = scratch_take(&at, (uint64_t)n_want, 1);
    s.bytes = at.bytes;
    return s;
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
            m->dev->ops->embed(m->dev, x + (size_t)r * hidden, &m->embed, b->token + r, end - r);
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
    const int32_t *seq, *n_keys;
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
    }
    return (struct live_rows){ b->n_want, s->seq, s->n_keys };
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
    struct live_rows live = { b->n_rows, b->seq, b->n_keys };

    ops->rms_norm(m->dev, s->h, s->x, l->attn_norm, b->n_rows, m->desc.hidden,
                  (float)m->desc.norm_eps);
    ops->matmul(m->dev, s->qkv, ld, l->qkv, s->h, hidden, b->n_rows);
    ops->rope(m->dev, &(struct rope_args){ /* q and k heads lie side by side */
                                           .x = s->qkv,
                                           .ld = ld,
                                           .cos = s->cos[d->i_rope],
                                           .sin = s->sin[d->i_rope],
                                           .rows = b->n_rows,
                                           .n_head = d->n_head + d->n_kv_head,
                                           .head_dim = d->head_dim });
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
                                                       .scale = d->attn_scale });
    ops->matmul(m->dev, s->h, hidden, l->o, s->attn, n_q, live.n);
    ops->add(m->dev, s->x, s->h, (size_t)live.n * hidden);
    return live;
}

static void layer_feed(struct model *m, int i, int n_rows, const struct rows_scratch *s)
{
    const struct dev_ops *ops = m->dev->ops;
    const struct layer *l = &m->layers[i];
    const struct layer_desc *d = &m->desc.layers[i];
    const size_t hidden = (size_t)m->desc.hidden, n = (size_t)d->intermediate;
    ops->rms_norm(m->dev, s->h, s->x, l->ffn_norm, n_rows, m->desc.hidden, (float)m->desc.norm_eps);
    ops->matmul(m->dev, s->gate_up, 2 * n, l->gate_up, s->h, hidden, n_rows);
    ops->gated(m->dev, s->mid, s->gate_up, n_rows, d->intermediate, d->act);
    ops->matmul(m->dev, s->h, hidden, l->down, s->mid, n, n_rows);
    ops->add(m->dev, s->x, s->h, (size_t)n_rows * hidden);
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
        rope_table(s.cos[i], s.sin[i], b->pos, d->rope[i].section, b->n_rows, d->layers[0].head_dim,
                   d->rope[i].theta);
    }
    rows_embed(m, s.x, b);
    for (int i = 0; i < d->n_layers; i++) {
        const struct live_rows live = layer_attend(m, i, kv, b, &s);
        if (live.n == 0) {
            return GALLEY_OK; /* last layer, nothing wanted: the cache is written */
        }
        layer_feed(m, i, live.n, &s);
    }
    m->dev->ops->rms_norm(m->dev, s.h, s.x, m->final_norm, b->n_want, d->hidden,
                          (float)d->norm_eps);
    m->dev->ops->matmul(m->dev, b->logits, (size_t)d->n_vocab, m->head, s.h, (size_t)d->hidden,
                        b->n_want);
    return GALLEY_OK;
}
