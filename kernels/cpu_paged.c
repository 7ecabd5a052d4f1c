/* cpu_paged.c - attention over the paged cache: windows, softcaps, draft trees.
 *
 * A piece of work is a tile of query rows of one kv head's group; all of them share each block
 * of k and v.  Where tiles are too few for the threads, the spans of attn.h are shared out too:
 * each piece then leaves its state in c->spans, and a second loop merges them. */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "kernels/cpu_tile.h"
#include "kernels/kv_store.h"

#define PIECES_PER_CPU 4
#define SPLIT_TILES    64 /* more tiles than this are pieces enough */

/* Rows r0..r1-1: one sequence; chains, or one tree over the keys up to `base`. */
struct paged_rows {
    int r0, r1;
    int base;      /* -1: chains */
    int low, high; /* logical keys any of them sees: low..high-1 */
};

struct paged_job {
    struct cpu_device *c;
    const struct attn_paged_args *a;
    int each, group;
    /* Only where spans are shared out: */
    int n_tiles, n_pieces;
    struct paged_split {
        struct paged_rows rows;
        int span0, n_spans, piece0; /* its pieces: [n_kv_head][n_spans] */
        size_t at;                  /* its states in c->spans: [n_kv_head][n_spans] */
    } split[SPLIT_TILES];
};

/* The logical keys a row sees: first..n-1. */
static void row_sees(const struct attn_paged_args *a, int r, int *first, int *n)
{
    const bool tree = a->tree && a->tree[r] != 0;
    *n = tree ? a->tree_base[r] + __builtin_popcountll(a->tree[r]) : a->n_keys[r];
    *first = a->window > 0 && *n > a->window ? *n - a->window : 0;
}

static int row_base(const struct attn_paged_args *a, int r)
{
    return a->tree && a->tree[r] != 0 ? a->tree_base[r] : -1;
}

/* The rows from r on, before end, that one tile can take. */
static struct paged_rows rows_take(const struct attn_paged_args *a, int r, int end)
{
    struct paged_rows t = { r, r, row_base(a, r), INT_MAX, 0 };
    while (t.r1 < end && a->seq[t.r1] == a->seq[r] && row_base(a, t.r1) == t.base) {
        int first, n;
        row_sees(a, t.r1++, &first, &n);
        t.low = first < t.low ? first : t.low;
        t.high = n > t.high ? n : t.high;
    }
    return t;
}

/* Codes and scales of one head in a block. */
struct kv_place {
    const char *codes;
    const float *scale;
};

static struct kv_place place_of(const struct attn_paged_args *a, const void *cache, int32_t block,
                                int kv_head)
{
    const size_t n = (size_t)KV_BLOCK * (size_t)a->head_dim, width = kv_width(a->kv_type);
    const char *base = (const char *)cache +
                       (size_t)block * kv_array_block_bytes(a->kv_type, a->n_kv_head, a->head_dim);
    const void *scales = base + n * (size_t)a->n_kv_head * width;
    return (struct kv_place){ base + (size_t)kv_head * n * width,
                              (const float *)scales + (size_t)kv_head * KV_BLOCK };
}

/* A block's k of one head as f32 [head_dim][KV_BLOCK]: in place, or widened into scratch. */
static const float *keys_load(const struct paged_job *j, struct cpu_scratch *s, int32_t block,
                              int kv_head)
{
    const struct attn_paged_args *a = j->a;
    const struct kv_place p = place_of(a, a->k_cache, block, kv_head);
    if (a->kv_type == KV_F32) {
        return (const float *)(const void *)p.codes;
    }
    j->c->k.kv_widen(&(struct kv_widen){ .dst = s->k,
                                         .dst_ld = KV_BLOCK,
                                         .src = p.codes,
                                         .type = a->kv_type,
                                         .column_scale = p.scale,
                                         .rows = a->head_dim,
                                         .n = KV_BLOCK });
    return s->k;
}

/* Its first n values as f32 [n][o_ld], whole vectors; widened to where the keys lay, so that L1
 * holds them and what they are made of. */
static const float *values_load(const struct paged_job *j, struct cpu_scratch *s, int32_t block,
                                int kv_head, int n)
{
    const struct attn_paged_args *a = j->a;
    const struct kv_place p = place_of(a, a->v_cache, block, kv_head);
    const size_t o_ld = tile_o_ld(a->head_dim);
    if (a->kv_type == KV_F32 && o_ld == (size_t)a->head_dim) {
        return (const float *)(const void *)p.codes;
    }
    j->c->k.kv_widen(&(struct kv_widen){ .dst = s->k,
                                         .dst_ld = o_ld,
                                         .src = p.codes,
                                         .type = a->kv_type,
                                         .row_scale = p.scale,
                                         .rows = n,
                                         .n = a->head_dim });
    return s->k;
}

/* One tile on its way: rows and heads h0..h1-1 of one group. */
struct paged_walk {
    const struct paged_job *j;
    const struct paged_rows *rows;
    const int32_t *table;
    int h0, h1, kv_head;
    struct tile t;
    int whole_from, whole_to; /* blocks within these keys are seen whole by all */
};

static int clamp_block(int n)
{
    return n < 0 ? 0 : n > KV_BLOCK ? KV_BLOCK : n;
}

/* Which keys of the block at `key` each vector sees. */
static void block_seen(const struct paged_walk *w, int key)
{
    struct cpu_scratch *s = w->t.s;
    for (int i = 0; i < w->t.n; i++) {
        s->first[i] = clamp_block(s->row_first[i] - key);
        s->n[i] = clamp_block(s->row_n[i] - key);
    }
}

/* Says which block comes next, to be fetched meanwhile; -1: none. */
static void block_next(struct paged_walk *w, int32_t block)
{
    const struct attn_paged_args *a = w->j->a;
    w->t.next_k = block < 0 ? NULL : place_of(a, a->k_cache, block, w->kv_head).codes;
    w->t.next_v = block < 0 ? NULL : place_of(a, a->v_cache, block, w->kv_head).codes;
    w->t.next_bytes = (size_t)KV_BLOCK * (size_t)a->head_dim * kv_width(a->kv_type);
}

/* The blocks in lo..hi-1 that lie where their logical positions say. */
static void walk_plain(struct paged_walk *w, int lo, int hi)
{
    bool whole = false;
    for (int key = lo; key < hi; key += KV_BLOCK) {
        const bool now = key >= w->whole_from && key + KV_BLOCK <= w->whole_to;
        if (!whole || !now) {
            block_seen(w, key);
        }
        whole = now;
        const bool last = key + KV_BLOCK >= w->rows->high;
        block_next(w, last ? -1 : w->table[key / KV_BLOCK + 1]);
        const int n = w->rows->high - key;
        const int32_t block = w->table[key / KV_BLOCK];
        tile_meet_keys(&w->t, keys_load(w->j, w->t.s, block, w->kv_head));
        const int n_values = n < KV_BLOCK ? n : KV_BLOCK;
        tile_meet_values(&w->t, values_load(w->j, w->t.s, block, w->kv_head, n_values), w->t.o_ld);
    }
}

/* --- trees: from the block that straddles the base on, keys do not lie where they count --- */

static int tail_n(const struct paged_walk *w) /* keys of the cache any row may see there */
{
    uint64_t any = 0;
    for (int r = w->rows->r0; r < w->rows->r1; r++) {
        any |= w->j->a->tree[r];
    }
    return w->rows->base % KV_BLOCK + 64 - __builtin_clzll(any);
}

/* Where the score of vector i and key `at` behind the tail's beginning lies. */
static int tail_index(const struct paged_walk *w, int i, int at)
{
    return (at / KV_BLOCK * w->t.n + i) * KV_BLOCK + at % KV_BLOCK;
}

/* Scores of every vector against all of them: they do not depend on the position. */
static void tail_scores(const struct paged_walk *w, int tail, int n)
{
    struct cpu_scratch *s = w->t.s;
    for (int b = 0; b * KV_BLOCK < n; b++) {
        const float *k = keys_load(w->j, s, w->table[tail / KV_BLOCK + b], w->kv_head);
        tile_scores(&w->t, s->tail_s + tail_index(w, 0, b * KV_BLOCK), 0, w->t.n, k);
    }
}

/* Where the logical keys key..key+31 of row r lie behind `tail`: at[0..n-1]. */
static void tail_places(const struct paged_walk *w, int r, int tail, int key, int n, uint8_t *at)
{
    uint64_t left = w->j->a->tree[r];
    int i = key;
    for (; i < key + n && i < w->rows->base; i++) {
        at[i - key] = (uint8_t)(i - tail);
    }
    for (int skip = w->rows->base; skip < i; skip++) {
        left &= left - 1;
    }
    for (; i < key + n; i++, left &= left - 1) {
        at[i - key] = (uint8_t)(w->rows->base - tail + __builtin_ctzll(left));
    }
}

/* o += p v where the vectors see different keys of one block, none of them a neighbour. */
static void tail_sums(const struct paged_walk *w, int b, int n, const float *v)
{
    const struct tile *t = &w->t;
    struct cpu_scratch *s = t->s;
    const int from = b * KV_BLOCK;
    if (tile_tame(t, v, t->o_ld, n)) {
        tile_sums(t, 0, t->n, s->tail_p + tail_index(w, 0, from), n, v, t->o_ld);
        return;
    }
    for (int i = 0; i < t->n; i++) {
        for (int k = s->first[i]; k < s->n[i]; k++) {
            const int at = s->tail_at[i * KV_BLOCK + k];
            if (at >= from && at < from + n) {
                tile_sums(t, i, i + 1, s->tail_p + tail_index(w, i, at), 1,
                          v + (size_t)(at - from) * t->o_ld, t->o_ld);
            }
        }
    }
}

static void walk_tail(struct paged_walk *w, int tail, int lo, int hi)
{
    struct cpu_scratch *s = w->t.s;
    const int n_tail = tail_n(w), heads = w->h1 - w->h0;
    assert(n_tail <= CPU_TAIL_KEYS);
    block_next(w, -1);
    tail_scores(w, tail, n_tail);
    for (int key = lo; key < hi; key += KV_BLOCK) {
        int from = n_tail, to = 0;
        block_seen(w, key);
        for (int i = 0; i < w->t.n; i++) {
            uint8_t *at = s->tail_at + i * KV_BLOCK;
            if (i % heads == 0) {
                tail_places(w, w->rows->r0 + i / heads, tail, key, s->n[i], at);
            } else {
                memcpy(at, at - KV_BLOCK, KV_BLOCK);
            }
            for (int k = 0; k < s->n[i]; k++) {
                s->s[i * KV_BLOCK + k] = s->tail_s[tail_index(w, i, at[k])];
                from = at[k] < from ? at[k] : from;
                to = at[k] >= to ? at[k] + 1 : to;
            }
        }
        tile_soft(&w->t, 0, w->t.n);
        memset(s->tail_p, 0, (size_t)w->t.n * CPU_TAIL_KEYS * sizeof(float));
        for (int i = 0; i < w->t.n; i++) {
            for (int k = s->first[i]; k < s->n[i]; k++) {
                s->tail_p[tail_index(w, i, s->tail_at[i * KV_BLOCK + k])] = s->s[i * KV_BLOCK + k];
            }
        }
        for (int b = from / KV_BLOCK; b * KV_BLOCK < to; b++) {
            const int n = n_tail - b * KV_BLOCK < KV_BLOCK ? n_tail - b * KV_BLOCK : KV_BLOCK;
            tail_sums(w, b, n, values_load(w->j, s, w->table[tail / KV_BLOCK + b], w->kv_head, n));
        }
    }
}

/* --- tiles --- */

static struct paged_walk walk_new(const struct paged_job *j, struct cpu_scratch *s,
                                  const struct paged_rows *rows, int h0, int h1)
{
    const struct attn_paged_args *a = j->a;
    const int heads = h1 - h0, n = (rows->r1 - rows->r0) * heads;
    struct paged_walk w = { .j = j,
                            .rows = rows,
                            .table = a->block_table[a->seq[rows->r0]],
                            .h0 = h0,
                            .h1 = h1,
                            .kv_head = h0 / j->group,
                            .whole_to = INT_MAX };
    w.t = tile_new(&j->c->k, s, n, a->head_dim, a->scale, a->softcap);
    const float *q[ATTN_GROUP];
    for (int i = 0; i < n; i++) {
        const int r = rows->r0 + i / heads, h = h0 + i % heads, g = i % ATTN_GROUP;
        q[g] = a->q + (size_t)r * a->q_ld + (size_t)h * (size_t)a->head_dim;
        if (g == ATTN_GROUP - 1 || i == n - 1) {
            for (int rest = g + 1; rest < ATTN_GROUP; rest++) {
                q[rest] = NULL;
            }
            tile_pack(&w.t, i - g, q);
        }
        row_sees(a, r, &s->row_first[i], &s->row_n[i]);
        w.whole_from = s->row_first[i] > w.whole_from ? s->row_first[i] : w.whole_from;
        w.whole_to = s->row_n[i] < w.whole_to ? s->row_n[i] : w.whole_to;
    }
    return w;
}

/* The blocks of one span. */
static void walk_span(struct paged_walk *w, int span)
{
    const struct paged_rows *rows = w->rows;
    int lo = span * ATTN_SPAN, hi = lo + ATTN_SPAN;
    lo = rows->low > lo ? rows->low / KV_BLOCK * KV_BLOCK : lo;
    hi = rows->high < hi ? rows->high : hi;
    const int tail = rows->base < 0 ? INT_MAX : rows->base / KV_BLOCK * KV_BLOCK;
    walk_plain(w, lo, hi < tail ? hi : tail);
    if (hi > tail) {
        walk_tail(w, tail, lo > tail ? lo : tail, hi);
    }
}

static int span_first(const struct paged_rows *rows)
{
    return rows->high > rows->low ? rows->low / ATTN_SPAN : 0;
}

static int span_count(const struct paged_rows *rows)
{
    return rows->high > rows->low ? (rows->high - 1) / ATTN_SPAN - rows->low / ATTN_SPAN + 1 : 0;
}

static void walk_results(const struct paged_walk *w)
{
    const struct attn_paged_args *a = w->j->a;
    const int heads = w->h1 - w->h0;
    for (int i = 0; i < w->t.n; i++) {
        const size_t r = (size_t)(w->rows->r0 + i / heads), h = (size_t)(w->h0 + i % heads);
        tile_result(&w->t, i, a->out + r * a->out_ld + h * (size_t)a->head_dim);
    }
}

/* All spans one after the other. */
static void tile_walk(const struct paged_job *j, struct cpu_scratch *s,
                      const struct paged_rows *rows, int h0, int h1)
{
    struct paged_walk w = walk_new(j, s, rows, h0, h1);
    const struct attn_part sum = tile_part(s, 0), next = tile_part(s, 1);
    const int first = span_first(rows), n = span_count(rows);
    tile_begin(&w.t, sum);
    for (int i = 0; i < n; i++) {
        if (i > 0) {
            tile_begin(&w.t, next);
        }
        walk_span(&w, first + i);
        w.t.at = sum;
        if (i > 0) {
            tile_merge(&w.t, &next);
        }
    }
    walk_results(&w);
}

static void paged_piece(void *arg, int i, int i_thread)
{
    const struct paged_job *j = arg;
    const struct attn_paged_args *a = j->a;
    const int fit = tile_rows_max(a->head_dim), heads = j->group < fit ? j->group : fit;
    const int h_first = i % a->n_kv_head * j->group;
    /* Late rows see most keys: they go first, so that the last piece to end is a small one. */
    const int n_cuts = (a->rows + j->each - 1) / j->each;
    int r = (n_cuts - 1 - i / a->n_kv_head) * j->each;
    const int end = r + j->each < a->rows ? r + j->each : a->rows;
    while (r < end) {
        const struct paged_rows rows = rows_take(a, r, end);
        for (int h = h_first; h < h_first + j->group; h += heads) {
            const int h1 = h + heads < h_first + j->group ? h + heads : h_first + j->group;
            tile_walk(j, &j->c->scratch[i_thread], &rows, h, h1);
        }
        r = rows.r1;
    }
}

/* --- spans shared out --- */

static size_t state_floats(const struct paged_job *j, const struct paged_rows *rows)
{
    const size_t n = (size_t)(rows->r1 - rows->r0) * (size_t)j->group;
    return n * (tile_o_ld(j->a->head_dim) + ATTN_LANES) + ((n + 15) & ~(size_t)15);
}

static struct attn_part state_at(const struct paged_job *j, const struct paged_split *p,
                                 int kv_head, int span)
{
    const size_t n = (size_t)(p->rows.r1 - p->rows.r0) * (size_t)j->group;
    float *o =
        j->c->spans + p->at + (size_t)(kv_head * p->n_spans + span) * state_floats(j, &p->rows);
    float *sum = o + n * tile_o_ld(j->a->head_dim);
    return (struct attn_part){ sum + n * ATTN_LANES, sum, o };
}

static void split_piece(void *arg, int i, int i_thread)
{
    const struct paged_job *j = arg;
    int t = j->n_tiles - 1;
    while (j->split[t].piece0 > i) {
        t--;
    }
    const struct paged_split *p = &j->split[t];
    const int kv_head = (i - p->piece0) / p->n_spans, span = (i - p->piece0) % p->n_spans;
    const int h0 = kv_head * j->group;
    struct paged_walk w = walk_new(j, &j->c->scratch[i_thread], &p->rows, h0, h0 + j->group);
    tile_begin(&w.t, state_at(j, p, kv_head, span));
    walk_span(&w, p->span0 + span);
}

static void merge_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct paged_job *j = arg;
    const struct paged_split *p = &j->split[i / j->a->n_kv_head];
    const int kv_head = i % j->a->n_kv_head, h0 = kv_head * j->group;
    struct paged_walk w = { .j = j, .rows = &p->rows, .h0 = h0, .h1 = h0 + j->group };
    w.t = (struct tile){ .k = &j->c->k,
                         .n = (p->rows.r1 - p->rows.r0) * j->group,
                         .head_dim = j->a->head_dim,
                         .o_ld = tile_o_ld(j->a->head_dim),
                         .at = state_at(j, p, kv_head, 0) };
    for (int s = 1; s < p->n_spans; s++) {
        const struct attn_part span = state_at(j, p, kv_head, s);
        tile_merge(&w.t, &span);
    }
    walk_results(&w);
}

/* Fills j->split; false when there is nothing to share out, or no room for the states. */
static bool split_plan(struct paged_job *j, int each)
{
    size_t used = 0;
    bool more = false;
    for (int r = 0; r < j->a->rows; j->n_tiles++) {
        if (j->n_tiles == SPLIT_TILES) {
            return false;
        }
        struct paged_split *p = &j->split[j->n_tiles];
        const int end = r + each < j->a->rows ? r + each : j->a->rows;
        p->rows = rows_take(j->a, r, end);
        p->span0 = span_first(&p->rows);
        p->n_spans = span_count(&p->rows);
        p->n_spans = p->n_spans < 1 ? 1 : p->n_spans;
        p->piece0 = j->n_pieces;
        p->at = used;
        const int n = j->a->n_kv_head * p->n_spans;
        if ((size_t)n > (CPU_SPAN_FLOATS - used) / state_floats(j, &p->rows)) {
            return false;
        }
        used += (size_t)n * state_floats(j, &p->rows);
        j->n_pieces += n;
        more |= p->n_spans > 1;
        r = p->rows.r1;
    }
    return more;
}

static double paged_us(const struct paged_job *j)
{
    double keys = 0.0;
    for (int r = 0; r < j->a->rows; r++) {
        int first, n;
        row_sees(j->a, r, &first, &n);
        keys += n - first;
    }
    return keys * 4.0 * j->a->head_dim * j->a->n_head / (0.5 * j->c->k.flops_per_us);
}

void cpu_attn_paged(struct device *d, const struct attn_paged_args *a)
{
    assert(a->head_dim > 0 && a->head_dim <= ATTN_HEAD_DIM_MAX);
    assert(a->n_head % a->n_kv_head == 0 && (!a->tree || a->tree_base));
    struct cpu_device *c = cpu_of(d);
    struct paged_job j = { .c = c, .a = a, .group = a->n_head / a->n_kv_head };
    const int fit = tile_rows_max(a->head_dim);
    const int most = j.group < fit ? fit / j.group : 1;
    const double us = paged_us(&j);
    j.each = a->rows < most ? a->rows : most;
    const int n_wanted = cpu_pays(c, us) ? PIECES_PER_CPU * pool_n_threads(c->pool) : 1;
    if (a->rows < 1) {
        return;
    }
    if ((a->rows + j.each - 1) / j.each * a->n_kv_head < n_wanted) {
        if (j.group <= fit && split_plan(&j, j.each)) {
            cpu_run(c, split_piece, &j, j.n_pieces, us);
            cpu_run(c, merge_piece, &j, j.n_tiles * a->n_kv_head,
                    1e-3 * (double)j.n_pieces * state_floats(&j, &j.split[0].rows));
            return;
        }
        const int cuts = (n_wanted + a->n_kv_head - 1) / a->n_kv_head;
        const int each = (a->rows + cuts - 1) / cuts;
        j.each = each < j.each ? each : j.each;
    }
    cpu_run(c, paged_piece, &j, (a->rows + j.each - 1) / j.each * a->n_kv_head, us);
}
