/* cpu_attn.c - attention over segments: the walk of attn.h, a segment being one span. */
#include <assert.h>
#include <string.h>

#include "kernels/cpu_tile.h"

#define PIECES_PER_CPU 4

struct seg_job {
    struct cpu_device *c;
    const struct attn_seg_args *a;
    int row0, rows, each; /* the rows asked for, and those of a piece */
};

/* The segment that holds row r. */
static int seg_find(const struct attn_seg_args *a, int r)
{
    int low = 0, high = a->n_seg; /* seg[low] <= r < seg[high] */
    while (high - low > 1) {
        const int mid = low + (high - low) / 2;
        if (a->seg[mid] <= r) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

/* n rows of v side by side, in whole vectors: every row of the tile reads them again, and a
 * stride of pages is hard on cache and TLB. */
static void seg_values(float *dst, size_t dst_ld, const float *v, size_t ld, int n, int head_dim)
{
    for (int j = 0; j < n; j++) {
        memcpy(dst + (size_t)j * dst_ld, v + (size_t)j * ld, (size_t)head_dim * sizeof(float));
    }
}

/* Rows r0..r1-1, all of segment s, one head. */
static void seg_tile(const struct seg_job *j, struct cpu_scratch *scratch, int head, int s, int r0,
                     int r1)
{
    const struct attn_seg_args *a = j->a;
    const struct cpu_kernels *k = &j->c->k;
    const size_t at_head = (size_t)head * (size_t)a->head_dim;
    struct tile t = tile_new(k, scratch, r1 - r0, a->head_dim, a->scale, 0.0f);
    tile_begin(&t, tile_part(scratch, 0));
    for (int i = 0; i < t.n; i += ATTN_GROUP) {
        const float *q[ATTN_GROUP];
        for (int g = 0; g < ATTN_GROUP; g++) {
            q[g] = i + g < t.n ? a->q + (size_t)(r0 + i + g) * a->ld + at_head : NULL;
        }
        tile_pack(&t, i, q);
    }
    memset(scratch->first, 0, (size_t)t.n * sizeof(int));
    memset(scratch->v, 0, KV_BLOCK * t.o_ld * sizeof(float)); /* the columns behind head_dim */
    for (int key = a->seg[s]; key < a->seg[s + 1]; key += KV_BLOCK) {
        const int left = a->seg[s + 1] - key;
        const int n = left < KV_BLOCK ? left : KV_BLOCK;
        const size_t at = (size_t)key * a->ld + at_head, next = at + KV_BLOCK * a->ld;
        const int n_next = left - n < KV_BLOCK ? left - n : KV_BLOCK;
        const size_t row = (size_t)a->head_dim * sizeof(float), stride = a->ld * sizeof(float);
        rows_prefetch(a->k + next, stride, row, n_next);
        rows_prefetch(a->v + next, stride, row, n_next);
        k->attn_turn(scratch->k, a->k + at, a->ld, n, a->head_dim);
        seg_values(scratch->v, t.o_ld, a->v + at, a->ld, n, a->head_dim);
        for (int i = 0; i < t.n; i++) {
            scratch->n[i] = n;
        }
        /* Before the last block: where the results go, which they would wait for. */
        if (left <= KV_BLOCK) {
            rows_prefetch(a->out + (size_t)r0 * a->out_ld + at_head, a->out_ld * sizeof(float), row,
                          r1 - r0);
        }
        tile_meet(&t, scratch->k, scratch->v, t.o_ld);
    }
    for (int r = r0; r < r1; r++) {
        tile_result(&t, r - r0, a->out + (size_t)r * a->out_ld + at_head);
    }
}

static void seg_piece(void *arg, int i, int i_thread)
{
    const struct seg_job *j = arg;
    const int n_head = j->a->n_head;
    int r = j->row0 + i / n_head * j->each;
    const int last = j->row0 + j->rows, end = r + j->each < last ? r + j->each : last;
    while (r < end) {
        const int s = seg_find(j->a, r);
        const int stop = j->a->seg[s + 1] < end ? j->a->seg[s + 1] : end;
        seg_tile(j, &j->c->scratch[i_thread], i % n_head, s, r, stop);
        r = stop;
    }
}

/* Rows a piece should take so that every thread finds a few pieces, at most `most`. */
static int rows_each(struct cpu_device *c, int rows, int n_groups, int most)
{
    const int least = 32;
    const int cuts = (PIECES_PER_CPU * pool_n_threads(c->pool) + n_groups - 1) / n_groups;
    int each = (rows + cuts - 1) / cuts;
    each = each < least ? least : each;
    return each > most ? most : each;
}

void cpu_attn_seg(struct device *d, const struct attn_seg_args *a)
{
    assert(a->head_dim > 0 && a->head_dim <= ATTN_HEAD_DIM_MAX);
    struct cpu_device *c = cpu_of(d);
    const int all = a->n_seg > 0 ? a->seg[a->n_seg] : 0;
    struct seg_job j = { c, a, a->row0, a->n_rows ? a->n_rows : all - a->row0, 0 };
    assert(j.row0 >= 0 && j.rows >= 0 && j.rows <= all - j.row0);
    double pairs = 0.0;
    for (int s = 0; s < a->n_seg; s++) {
        const double n = a->seg[s + 1] - a->seg[s];
        pairs += n * n;
    }
    pairs *= all ? (double)j.rows / all : 0; /* near enough to choose threads by */
    j.each = rows_each(c, j.rows, a->n_head, tile_rows_max(a->head_dim));
    cpu_run(c, seg_piece, &j, (j.rows + j.each - 1) / j.each * a->n_head,
            pairs * 4.0 * a->head_dim * a->n_head / (0.5 * c->k.flops_per_us));
}
