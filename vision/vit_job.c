/* vit_job.c - running a vision tower in pieces.
 *
 * Rows are patches, all images of a job behind one another, in window order from the patch
 * embedding to the merger; the embeddings go back to reading order at the end.  Attention is the
 * only step that mixes rows, inside an image or a window, and heads do not meet in it; everything
 * else runs in slices of rows, which keeps the scratch of the wide feed-forward small.  A piece is
 * one slice, or as many heads, or rows of one head, as cost about that. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/mem.h"
#include "vision/vit_impl.h"
#include "vision/window.h"

#define ROPE_THETA  10000.0
#define ATTEND_ROWS 64 /* fewer do not keep the threads busy */

/* Where everything lies in the workspace, for n rows in u units. */
struct workspace {
    float *x;                   /* [n][hidden] residual stream */
    float *h;                   /* [n][hidden] patches as they came, then attention output */
    float *qkv;                 /* [n][3 hidden]; at the end [u][out_hidden] in work order */
    float *slice;               /* [slice][hidden] normed input, then what a sublayer adds */
    float *wide;                /* [slice][2 intermediate] */
    float *mid;                 /* [slice][intermediate], or [slice / merge^2][merge^2 hidden] */
    float *cos, *sin;           /* [n][head_dim / 2] */
    float *axis_cos, *axis_sin; /* [coordinate][head_dim / 4] */
    int32_t *coord;             /* [coordinate] 0, 1, 2 ... */
    int32_t *plan;              /* the window plan's arrays */
    uint64_t bytes;
};

enum stage { STAGE_EMBED, STAGE_QKV, STAGE_ATTEND, STAGE_FINISH, STAGE_MERGE, STAGE_DONE };

struct vit_job {
    const struct vit *v;
    const float *patches; /* lent, until the rows are embedded */
    char *base;           /* the workspace */
    struct workspace w;
    struct window_plan p;
    int rows;
    /* what comes next */
    enum stage stage;
    int i_block;
    int at;     /* row or head to go on from */
    int at_row; /* of that head */
};

struct totals {
    uint64_t rows, side; /* patches of all images; the longest side in patches */
};

static struct totals totals_of(const struct vision_grid *grids, int n)
{
    struct totals t = { 0 };
    for (int i = 0; i < n; i++) {
        const struct vision_grid *g = &grids[i];
        const uint64_t side = (uint64_t)(g->h > g->w ? g->h : g->w);
        t.rows += (uint64_t)g->t * (uint64_t)g->h * (uint64_t)g->w;
        t.side = side > t.side ? side : t.side;
    }
    return t;
}

static struct workspace workspace_lay(const struct hf_vision_config *c, char *base, struct totals t)
{
    const uint64_t n = t.rows, hidden = (uint64_t)c->hidden, inter = (uint64_t)c->intermediate;
    const uint64_t u = n / ((uint64_t)c->merge * (uint64_t)c->merge);
    const uint64_t half = hidden / (uint64_t)c->n_head / 2;
    const uint64_t slice = n < VIT_SLICE_ROWS ? n : VIT_SLICE_ROWS;
    const uint64_t merged = u * (uint64_t)c->out_hidden;
    struct scratch_cursor at = { base, 0 };
    struct workspace w;
    w.x = scratch_take(&at, n, hidden);
    w.h = scratch_take(&at, n, hidden);
    w.qkv = scratch_take(&at, 1, n * 3 * hidden > merged ? n * 3 * hidden : merged);
    w.slice = scratch_take(&at, slice, hidden);
    w.wide = scratch_take(&at, slice, c->gated_rms ? 2 * inter : 0);
    w.mid = scratch_take(&at, slice, inter > hidden ? inter : hidden);
    w.cos = scratch_take(&at, n, half);
    w.sin = scratch_take(&at, n, half);
    w.axis_cos = scratch_take(&at, t.side, half / 2);
    w.axis_sin = scratch_take(&at, t.side, half / 2);
    w.coord = scratch_take(&at, t.side, 1);
    w.plan = scratch_take(&at, window_plan_values((int64_t)u), 1);
    w.bytes = at.bytes;
    return w;
}

/* Rotary tables: the first half of the pairs turns with the patch's row, the second with its
 * column, both from frequency 0 on. */
static void tables_fill(const struct hf_vision_config *c, const struct workspace *w,
                        const struct window_plan *p)
{
    const int half = c->hidden / c->n_head / 2, quarter = half / 2, m = c->merge;
    const int section[3] = { quarter, 0, 0 };
    for (int i = 0; i < p->n_side; i++) {
        w->coord[i] = i;
    }
    const int32_t *const pos[3] = { w->coord, w->coord, w->coord };
    rope_table(w->axis_cos, w->axis_sin, pos, section, p->n_side, half, ROPE_THETA);
    const size_t bytes = (size_t)quarter * sizeof(float);
    for (int r = 0; r < p->n_units * m * m; r++) {
        const int unit = r / (m * m), i = r % (m * m);
        const size_t y = (size_t)(p->row[unit] * m + i / m) * (size_t)quarter;
        const size_t x = (size_t)(p->col[unit] * m + i % m) * (size_t)quarter;
        float *cos_row = w->cos + (size_t)r * (size_t)half;
        float *sin_row = w->sin + (size_t)r * (size_t)half;
        memcpy(cos_row, w->axis_cos + y, bytes);
        memcpy(cos_row + quarter, w->axis_cos + x, bytes);
        memcpy(sin_row, w->axis_sin + y, bytes);
        memcpy(sin_row + quarter, w->axis_sin + x, bytes);
    }
}

/* ---- pieces ---- */

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

/* Patches to embeddings as they came; units in work order once all are there. */
static void piece_embed(const struct vit_job *j, int r, int rows)
{
    const struct vit *v = j->v;
    const struct hf_vision_config *c = &v->cfg;
    const size_t hidden = (size_t)c->hidden, n_in = vision_patch_floats(c);
    const size_t unit = (size_t)(c->merge * c->merge) * hidden;
    float *y = j->p.n_win ? j->w.h : j->w.x;
    v->dev->ops->matmul(v->dev, y + (size_t)r * hidden, hidden, v->patch_embed,
                        j->patches + (size_t)r * n_in, n_in, rows);
    for (int i = 0; j->p.n_win && r + rows == j->rows && i < j->p.n_units; i++) {
        memcpy(j->w.x + (size_t)i * unit, y + (size_t)j->p.source[i] * unit, unit * sizeof(*y));
    }
}

static void piece_qkv(const struct vit_job *j, int r, int rows)
{
    const struct vit *v = j->v;
    const struct vit_block *k = &v->blocks[j->i_block];
    const size_t hidden = (size_t)v->cfg.hidden, ld = 3 * hidden;
    const int head_dim = v->cfg.hidden / v->cfg.n_head;
    const size_t half = (size_t)head_dim / 2;
    float *qkv = j->w.qkv + (size_t)r * ld;
    norm(v, j->w.slice, j->w.x + (size_t)r * hidden, k->norm1, k->norm1_bias, rows);
    v->dev->ops->matmul(v->dev, qkv, ld, k->qkv, j->w.slice, hidden, rows);
    v->dev->ops->rope(v->dev, &(struct rope_args){ /* q and k heads lie side by side */
                                                   .x = qkv,
                                                   .ld = ld,
                                                   .cos = j->w.cos + (size_t)r * half,
                                                   .sin = j->w.sin + (size_t)r * half,
                                                   .rows = rows,
                                                   .n_head = 2 * v->cfg.n_head,
                                                   .head_dim = head_dim });
}

static void piece_attend(const struct vit_job *j, int head, int n_head, int r, int rows)
{
    const struct vit *v = j->v;
    const bool full = v->blocks[j->i_block].full;
    const size_t hidden = (size_t)v->cfg.hidden;
    const int head_dim = v->cfg.hidden / v->cfg.n_head;
    const size_t first = (size_t)head * (size_t)head_dim;
    v->dev->ops->attn_seg(v->dev, &(struct attn_seg_args){ .out = j->w.h + first,
                                                           .out_ld = hidden,
                                                           .q = j->w.qkv + first,
                                                           .k = j->w.qkv + hidden + first,
                                                           .v = j->w.qkv + 2 * hidden + first,
                                                           .ld = 3 * hidden,
                                                           .seg = full ? j->p.full : j->p.win,
                                                           .n_seg = full ? j->p.n_full : j->p.n_win,
                                                           .n_head = n_head,
                                                           .head_dim = head_dim,
                                                           .scale = (float)(1.0 / sqrt(head_dim)),
                                                           .row0 = r,
                                                           .n_rows = rows });
}

/* Output projection and feed-forward. */
static void piece_finish(const struct vit_job *j, int r, int rows)
{
    const struct vit *v = j->v;
    const struct dev_ops *ops = v->dev->ops;
    const struct vit_block *k = &v->blocks[j->i_block];
    const struct workspace *w = &j->w;
    const size_t hidden = (size_t)v->cfg.hidden, inter = (size_t)v->cfg.intermediate;
    float *x = w->x + (size_t)r * hidden;
    ops->matmul(v->dev, w->slice, hidden, k->proj, w->h + (size_t)r * hidden, hidden, rows);
    ops->add(v->dev, x, w->slice, (size_t)rows * hidden);
    norm(v, w->slice, x, k->norm2, k->norm2_bias, rows);
    if (v->cfg.gated_rms) {
        ops->matmul(v->dev, w->wide, 2 * inter, k->up, w->slice, hidden, rows);
        ops->gated(v->dev, w->mid, w->wide, rows, v->cfg.intermediate, ACT_SILU);
    } else {
        ops->matmul(v->dev, w->mid, inter, k->up, w->slice, hidden, rows);
        ops->act(v->dev, w->mid, (size_t)rows * inter, ACT_QUICK_GELU);
    }
    ops->matmul(v->dev, w->slice, hidden, k->down, w->mid, inter, rows);
    ops->add(v->dev, x, w->slice, (size_t)rows * hidden);
}

/* The embeddings take the place of q, k and v; into reading order once all are there. */
static void piece_merge(const struct vit_job *j, float *out, int r, int rows)
{
    const struct vit *v = j->v;
    const int unit = v->cfg.merge * v->cfg.merge;
    const size_t n_out = (size_t)v->cfg.out_hidden, bytes = n_out * sizeof(*out);
    merger_run(&v->merger, v->dev, j->w.qkv + (size_t)(r / unit) * n_out,
               j->w.x + (size_t)r * (size_t)v->cfg.hidden, j->w.mid, rows / unit);
    for (int i = 0; r + rows == j->rows && i < j->p.n_units; i++) {
        const size_t to = (size_t)(j->p.n_win ? j->p.source[i] : i);
        memcpy(out + to * n_out, j->w.qkv + (size_t)i * n_out, bytes);
    }
}

/* ---- the order of pieces ---- */

/* Heads whose attention costs about what a slice of the rest does: under 1 when one costs more. */
static double heads_per_slice(const struct vit_job *j)
{
    const struct hf_vision_config *c = &j->v->cfg;
    const bool full = j->v->blocks[j->i_block].full;
    const int32_t *seg = full ? j->p.full : j->p.win;
    const int n_seg = full ? j->p.n_full : j->p.n_win;
    double head = 0;
    for (int i = 0; i < n_seg; i++) {
        head += (double)(seg[i + 1] - seg[i]) * (seg[i + 1] - seg[i]);
    }
    head *= 2.0 * c->hidden / c->n_head;
    return (double)VIT_SLICE_ROWS * c->hidden * (c->hidden + 3.0 * c->intermediate) / head;
}

static int clamp(double x, int low, int high)
{
    return x < low ? low : x > high ? high : (int)x;
}

/* One piece of attention; returns how many heads it finished. */
static int attend(struct vit_job *j)
{
    const double heads = heads_per_slice(j);
    const int rows = clamp(heads * j->rows, ATTEND_ROWS, j->rows), left = j->rows - j->at_row;
    if (rows >= j->rows) {
        const int n = clamp(heads, 1, j->v->cfg.n_head - j->at);
        piece_attend(j, j->at, n, 0, j->rows);
        return n;
    }
    const int n = left < rows ? left : rows;
    piece_attend(j, j->at, 1, j->at_row, n);
    j->at_row = n < left ? j->at_row + n : 0;
    return n == left;
}

/* After n of `of` are done: on in this stage, or to the first piece of the next. */
static void stage_advance(struct vit_job *j, int n, int of, enum stage next)
{
    j->at += n;
    assert(j->at <= of);
    if (j->at == of) {
        j->at = 0;
        j->stage = next;
    }
}

bool vit_job_step(struct vit_job *j, float *out)
{
    const int depth = j->v->cfg.depth;
    const int unit = j->v->cfg.merge * j->v->cfg.merge;
    const int whole = VIT_SLICE_ROWS / unit * unit; /* the merger's slices hold whole units */
    const int left = j->rows - j->at, rows = left < whole ? left : whole;
    switch (j->stage) {
    case STAGE_EMBED:
        piece_embed(j, j->at, rows);
        stage_advance(j, rows, j->rows, depth > 0 ? STAGE_QKV : STAGE_MERGE);
        break;
    case STAGE_QKV:
        piece_qkv(j, j->at, rows);
        stage_advance(j, rows, j->rows, STAGE_ATTEND);
        break;
    case STAGE_ATTEND:
        stage_advance(j, attend(j), j->v->cfg.n_head, STAGE_FINISH);
        break;
    case STAGE_FINISH:
        piece_finish(j, j->at, rows);
        stage_advance(j, rows, j->rows, j->i_block + 1 < depth ? STAGE_QKV : STAGE_MERGE);
        j->i_block += j->stage == STAGE_QKV;
        break;
    case STAGE_MERGE:
        piece_merge(j, out, j->at, rows);
        stage_advance(j, rows, j->rows, STAGE_DONE);
        break;
    case STAGE_DONE:
        break;
    }
    return j->stage == STAGE_DONE;
}

bool vit_job_reads_patches(const struct vit_job *j)
{
    return j->stage == STAGE_EMBED;
}

/* ---- life ---- */

static enum galley_status totals_check(struct totals t, struct galley_err *err)
{
    if (t.rows > INT32_MAX) {
        return galley_err_set(err, GALLEY_ELIMIT, "%llu patches are too many for one call",
                              (unsigned long long)t.rows);
    }
    return GALLEY_OK;
}

static enum galley_status no_workspace(struct totals t, uint64_t bytes, struct galley_err *err)
{
    return galley_err_set(err, GALLEY_ENOMEM, "out of memory: %llu bytes to encode %llu patches",
                          (unsigned long long)bytes, (unsigned long long)t.rows);
}

/* base: room for workspace_lay(...).bytes. */
static void job_init(struct vit_job *j, const struct vit *v, char *base, const float *patches,
                     const struct vision_grid *grids, int n)
{
    const struct totals t = totals_of(grids, n);
    *j = (struct vit_job){ .v = v,
                           .patches = patches,
                           .base = base,
                           .w = workspace_lay(&v->cfg, base, t),
                           .rows = (int)t.rows,
                           .stage = t.rows > 0 ? STAGE_EMBED : STAGE_DONE };
    window_plan_make(&j->p, j->w.plan, grids, n, &v->cfg);
    tables_fill(&v->cfg, &j->w, &j->p);
}

uint64_t vit_job_bytes(const struct hf_vision_config *v, const struct vision_grid *grids, int n)
{
    return sizeof(struct vit_job) + workspace_lay(v, NULL, totals_of(grids, n)).bytes;
}

enum galley_status vit_job_new(struct vit_job **out, struct vit *v, const float *patches,
                               const struct vision_grid *grids, int n, struct galley_err *err)
{
    *out = NULL;
    const struct totals t = totals_of(grids, n);
    const enum galley_status rc = totals_check(t, err);
    if (rc) {
        return rc;
    }
    const uint64_t bytes = workspace_lay(&v->cfg, NULL, t).bytes;
    struct vit_job *j = mem_new(struct vit_job);
    char *base = v->dev->ops->alloc(v->dev, bytes);
    if (!j || !base) {
        v->dev->ops->free(v->dev, base);
        mem_free(j);
        return no_workspace(t, bytes, err);
    }
    job_init(j, v, base, patches, grids, n);
    *out = j;
    return GALLEY_OK;
}

void vit_job_free(struct vit_job *j)
{
    if (j) {
        j->v->dev->ops->free(j->v->dev, j->base);
        mem_free(j);
    }
}

enum galley_status vit_encode(struct vit *v, float *out, const float *patches,
                              const struct vision_grid *grids, int n, struct galley_err *err)
{
    const struct totals t = totals_of(grids, n);
    const enum galley_status rc = totals_check(t, err);
    if (rc) {
        return rc;
    }
    const uint64_t bytes = workspace_lay(&v->cfg, NULL, t).bytes;
    if (!scratch_reserve(&v->scratch, v->dev, bytes)) {
        return no_workspace(t, bytes, err);
    }
    struct vit_job j;
    job_init(&j, v, v->scratch.base, patches, grids, n);
    while (!vit_job_step(&j, out)) {
    }
    return GALLEY_OK;
}
