/* cpu_tile.c - the steps of attn.h for one tile of query vectors. */
#include "kernels/cpu_tile.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static_assert(ATTN_SPAN % KV_BLOCK == 0, "spans are whole blocks");

int tile_rows_max(int head_dim)
{
    const int fit = (int)(CPU_TILE_FLOATS / tile_o_ld(head_dim)) & -ATTN_GROUP;
    return fit < CPU_TILE_ROWS ? fit : CPU_TILE_ROWS;
}

struct tile tile_new(const struct cpu_kernels *k, struct cpu_scratch *s, int n, int head_dim,
                     float scale, float softcap)
{
    struct tile t = { .k = k, .s = s, .n = n, .head_dim = head_dim, .o_ld = tile_o_ld(head_dim) };
    assert(n <= tile_rows_max(head_dim));
    t.by = softcap > 0.0f ? scale / softcap : scale * ATTN_LOG2E;
    t.cap = softcap * ATTN_LOG2E;
    return t;
}

struct attn_part tile_part(struct cpu_scratch *s, int i)
{
    return (struct attn_part){ s->max[i], s->sum[i], s->o[i] };
}

void tile_begin(struct tile *t, struct attn_part at)
{
    t->at = at;
    memset(at.o, 0, (size_t)t->n * t->o_ld * sizeof(float));
    memset(at.sum, 0, (size_t)t->n * ATTN_LANES * sizeof(float));
    for (int i = 0; i < t->n; i++) {
        at.max[i] = -INFINITY;
    }
}

void tile_pack(const struct tile *t, int i, const float *const q[ATTN_GROUP])
{
    assert(i % ATTN_GROUP == 0);
    t->k->attn_pack(t->s->q + (size_t)i * (size_t)t->head_dim, q, t->by, t->head_dim);
}

void tile_result(const struct tile *t, int i, float *out)
{
    t->k->attn_result(out, t->at.o + (size_t)i * t->o_ld, t->at.sum + (size_t)i * ATTN_LANES,
                      t->head_dim);
}

void tile_merge(const struct tile *t, const struct attn_part *span)
{
    for (size_t i = 0; i < (size_t)t->n; i++) {
        const struct attn_part to = { t->at.max + i, t->at.sum + i * ATTN_LANES,
                                      t->at.o + i * t->o_ld };
        const struct attn_part from = { span->max + i, span->sum + i * ATTN_LANES,
                                        span->o + i * t->o_ld };
        t->k->attn_merge(&to, &from, t->o_ld);
    }
}

void tile_soft(const struct tile *t, int from, int to)
{
    const size_t f = (size_t)from;
    const struct attn_soft soft = {
        .s = t->s->s + f * KV_BLOCK,
        .max = t->at.max + f,
        .sum = t->at.sum + f * ATTN_LANES,
        .o = t->at.o + f * t->o_ld,
        .o_ld = t->o_ld,
        .first = t->s->first + f,
        .n = t->s->n + f,
        .rows = to - from,
        .cap = t->cap,
    };
    t->k->attn_soft(&soft);
}

void tile_scores(const struct tile *t, float *s, int from, int to, const float *kt)
{
    assert(from % ATTN_GROUP == 0);
    const struct attn_scores scores = {
        .s = s,
        .q = t->s->q + (size_t)from * (size_t)t->head_dim,
        .k = kt,
        .rows = to - from,
        .head_dim = t->head_dim,
        .next = t->next_k ? t->next_k : (const char *)kt, /* nothing comes: step 0 */
        .next_step = t->next_k ? t->next_bytes / (size_t)t->head_dim : 0,
    };
    t->k->attn_scores(&scores);
}

void tile_sums(const struct tile *t, int from, int to, const float *p, int n, const float *v,
               size_t v_ld)
{
    struct attn_sums sums = {
        .o = t->at.o + (size_t)from * t->o_ld,
        .o_ld = t->o_ld,
        .p = p,
        .v = v,
        .v_ld = v_ld,
        .rows = to - from,
        .n_vec = (int)(t->o_ld / ATTN_LANES),
        .n = n,
        .next = t->next_v ? t->next_v : (const char *)v,
    };
    if (t->next_v && n > 0) {
        const size_t passes = (t->o_ld + ATTN_NEXT * ATTN_LANES - 1) / (ATTN_NEXT * ATTN_LANES);
        sums.next_step = t->next_bytes / (passes * (size_t)n);
    }
    t->k->attn_sums(&sums);
}

bool tile_tame(const struct tile *t, const float *v, size_t v_ld, int n)
{
    uint32_t wild = 0;
    for (int j = 0; j < n; j++) {
        for (size_t d = 0; d < t->o_ld; d++) {
            uint32_t u;
            memcpy(&u, v + (size_t)j * v_ld + d, sizeof(u));
            wild |= (u & 0x7f800000) == 0x7f800000;
        }
    }
    return !wild;
}

void tile_meet_keys(struct tile *t, const float *kt)
{
    struct cpu_scratch *s = t->s;
    int from = 0, to = t->n;
    while (from < to && s->first[from] >= s->n[from]) {
        from++;
    }
    while (to > from && s->first[to - 1] >= s->n[to - 1]) {
        to--;
    }
    from -= from % ATTN_GROUP;
    t->from = from;
    t->to = to;
    if (from < to) {
        tile_scores(t, s->s + from * KV_BLOCK, from, to, kt);
        tile_soft(t, from, to);
    }
}

void tile_meet_values(const struct tile *t, const float *v, size_t v_ld)
{
    struct cpu_scratch *s = t->s;
    const int from = t->from, to = t->to;
    int first = KV_BLOCK, n = 0;
    bool mixed = false;
    for (int i = from; i < to; i++) {
        mixed |= s->first[i] != s->first[from] || s->n[i] != s->n[from];
        first = s->first[i] < first ? s->first[i] : first;
        n = s->n[i] > n ? s->n[i] : n;
    }
    if (n <= first) {
        return;
    }
    const float *v0 = v + (size_t)first * v_ld;
    if (!mixed || tile_tame(t, v0, v_ld, n - first)) {
        tile_sums(t, from, to, s->s + from * KV_BLOCK + first, n - first, v0, v_ld);
        return;
    }
    for (int i = from; i < to; i++) {
        const int j = s->first[i];
        if (j < s->n[i]) {
            tile_sums(t, i, i + 1, s->s + i * KV_BLOCK + j, s->n[i] - j, v + (size_t)j * v_ld,
                      v_ld);
        }
    }
}

void tile_meet(struct tile *t, const float *kt, const float *v, size_t v_ld)
{
    tile_meet_keys(t, kt);
    tile_meet_values(t, v, v_ld);
}

/* Rows lie a stride apart, where no hardware prefetcher looks, and the block before them takes
 * long enough to hide the way from memory. */
void rows_prefetch(const void *p, size_t stride, size_t bytes, int n)
{
    for (int i = 0; i < n; i++) {
        for (size_t b = 0; b < bytes; b += 64) {
            GALLEY_PREFETCH((const char *)p + (size_t)i * stride + b);
        }
    }
}
