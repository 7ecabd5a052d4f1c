/* cpu_attn.c - attention over segments and over the paged cache: the walk of attn.h.
 *
 * A piece of work is a few query rows of one head group.  Its queries meet one block of
 * KV_BLOCK keys after the other; all of them share each block's k and v. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/ref/ref_math.h"

#define PIECES_PER_CPU 4

static_assert(ATTN_LANES == REF_LANES, "one tree folds both");

/* Query vectors that see the same keys, or prefixes of them. */
struct tile {
    const struct cpu_kernels *k;
    struct cpu_scratch *s;
    int n, head_dim;
    size_t o_ld; /* head_dim rounded up to whole vectors */
};

/* The plain types keep their place in both enumerations. */
static enum dtype dense_of(enum kv_type t)
{
    assert(t <= KV_BF16);
    return (enum dtype)t;
}

static struct tile tile_begin(const struct cpu_kernels *k, struct cpu_scratch *s, int n,
                              int head_dim)
{
    struct tile t = { k, s, n, head_dim, ((size_t)head_dim + 15) & ~(size_t)15 };
    assert(n <= CPU_TILE_ROWS && (size_t)n * t.o_ld <= CPU_TILE_FLOATS);
    memset(s->o, 0, (size_t)n * t.o_ld * sizeof(float));
    memset(s->sum, 0, (size_t)n * ATTN_LANES * sizeof(float));
    for (int i = 0; i < n; i++) {
        s->max[i] = -INFINITY;
    }
    return t;
}

static int tile_rows_max(int head_dim)
{
    const int fit = CPU_TILE_FLOATS / ((head_dim + 15) & ~15);
    return fit < CPU_TILE_ROWS ? fit : CPU_TILE_ROWS;
}

static void tile_query(const struct tile *t, int i, const float *q, float scale)
{
    float *to = t->s->q + (size_t)i * (size_t)t->head_dim;
    for (int d = 0; d < t->head_dim; d++) {
        to[d] = q[d] * scale;
    }
}

static void tile_result(const struct tile *t, int i, float *out)
{
    float lane[ATTN_LANES];
    memcpy(lane, t->s->sum + (size_t)i * ATTN_LANES, sizeof(lane));
    const float sum = ref_tree(lane);
    const float inv = sum > 0.0f ? 1.0f / sum : 0.0f; /* no keys at all: zeros */
    const float *o = t->s->o + (size_t)i * t->o_ld;
    for (int d = 0; d < t->head_dim; d++) {
        out[d] = o[d] * inv;
    }
}

/* Queries from..from+rows-1 meet the first n keys of a block: kt [head_dim][KV_BLOCK]. */
static void block_meet(const struct tile *t, int from, int rows, int n, const float *kt,
                       const float *v, size_t v_ld)
{
    struct cpu_scratch *s = t->s;
    const size_t f = (size_t)from, dim = (size_t)t->head_dim;
    const struct gemm_tile scores = {
        .c = s->s + f * KV_BLOCK,
        .c_ld = KV_BLOCK,
        .x = s->q + f * dim,
        .x_ld = dim,
        .w = kt,
        .w_type = DTYPE_F32,
        .w_ld = KV_BLOCK,
        .rows = rows,
        .n = n,
        .k = t->head_dim,
    };
    t->k->gemm_tile(&scores);
    const struct attn_soft soft = {
        .s = s->s + f * KV_BLOCK,
        .max = s->max + f,
        .sum = s->sum + f * ATTN_LANES,
        .o = s->o + f * t->o_ld,
        .o_ld = t->o_ld,
        .rows = rows,
        .n = n,
    };
    t->k->attn_soft(&soft);
    const struct gemm_tile sums = {
        .c = s->o + f * t->o_ld,
        .c_ld = t->o_ld,
        .x = s->s + f * KV_BLOCK,
        .x_ld = KV_BLOCK,
        .w = v,
        .w_type = DTYPE_F32,
        .w_ld = v_ld,
        .panel = GEMM_NR,
        .rows = rows,
        .n = t->head_dim,
        .k = n,
        .more = true,
    };
    t->k->gemm_tile(&sums);
}

/* s->n[i] says how many keys of the block query i sees; equals run together. */
static void block_run(const struct tile *t, const float *kt, const float *v, size_t v_ld)
{
    const int *n = t->s->n;
    for (int i = 0, end; i < t->n; i = end) {
        end = i + 1;
        while (end < t->n && n[end] == n[i]) {
            end++;
        }
        if (n[i] > 0) {
            block_meet(t, i, end - i, n[i], kt, v, v_ld);
        }
    }
}

/* Asks for n rows of some bytes each: rows lie a stride apart, where no hardware prefetcher
 * looks, and the block before them takes long enough to hide the way from memory. */
static void rows_prefetch(const void *p, size_t stride, size_t bytes, int n)
{
    for (int i = 0; i < n; i++) {
        for (size_t b = 0; b < bytes; b += 64) {
            GALLEY_PREFETCH((const char *)p + (size_t)i * stride + b);
        }
    }
}

/* Rows a piece should take so that every thread finds a few pieces, at most `most`. */
static int rows_each(struct cpu_device *c, int rows, int n_groups, int least, int most)
{
    const int cuts = (PIECES_PER_CPU * pool_n_threads(c->pool) + n_groups - 1) / n_groups;
    int each = (rows + cuts - 1) / cuts;
    each = each < least ? least : each;
    return each > most ? most : each;
}

struct seg_job {
    struct cpu_device *c;
    const struct attn_seg_args *a;
    int rows, each;
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

/* Rows r0..r1-1, all of segment s, one head. */
static void seg_tile(const struct seg_job *j, struct cpu_scratch *scratch, int head, int s, int r0,
                     int r1)
{
    const struct attn_seg_args *a = j->a;
    const struct cpu_kernels *k = &j->c->k;
    const size_t at_head = (size_t)head * (size_t)a->head_dim;
    const struct tile t = tile_begin(k, scratch, r1 - r0, a->head_dim);
    for (int r = r0; r < r1; r++) {
        tile_query(&t, r - r0, a->q + (size_t)r * a->ld + at_head, a->scale);
    }
    for (int key = a->seg[s]; key < a->seg[s + 1]; key += KV_BLOCK) {
        const int left = a->seg[s + 1] - key;
        const int n = left < KV_BLOCK ? left : KV_BLOCK;
        const size_t at = (size_t)key * a->ld + at_head, next = at + KV_BLOCK * a->ld;
        const int n_next = left - n < KV_BLOCK ? left - n : KV_BLOCK;
        const size_t row = (size_t)a->head_dim * sizeof(float), stride = a->ld * sizeof(float);
        rows_prefetch(a->k + next, stride, row, n_next);
        rows_prefetch(a->v + next, stride, row, n_next);
        k->attn_turn(scratch->k, a->k + at, a->ld, n, a->head_dim);
        block_meet(&t, 0, t.n, n, scratch->k, a->v + at, a->ld);
    }
    for (int r = r0; r < r1; r++) {
        tile_result(&t, r - r0, a->out + (size_t)r * a->out_ld + at_head);
    }
}

static void seg_piece(void *arg, int i, int i_thread)
{
    const struct seg_job *j = arg;
    const int n_head = j->a->n_head;
    int r = i / n_head * j->each;
    const int end = r + j->each < j->rows ? r + j->each : j->rows;
    while (r < end) {
        const int s = seg_find(j->a, r);
        const int stop = j->a->seg[s + 1] < end ? j->a->seg[s + 1] : end;
        seg_tile(j, &j->c->scratch[i_thread], i % n_head, s, r, stop);
        r = stop;
    }
}

void cpu_attn_seg(struct device *d, const struct attn_seg_args *a)
{
    assert(a->head_dim > 0 && a->head_dim <= ATTN_HEAD_DIM_MAX);
    struct cpu_device *c = cpu_of(d);
    struct seg_job j = { c, a, a->n_seg > 0 ? a->seg[a->n_seg] : 0, 0 };
    double pairs = 0.0;
    for (int s = 0; s < a->n_seg; s++) {
        const double n = a->seg[s + 1] - a->seg[s];
        pairs += n * n;
    }
    j.each = rows_each(c, j.rows, a->n_head, 32, tile_rows_max(a->head_dim));
    cpu_run(c, seg_piece, &j, (j.rows + j.each - 1) / j.each * a->n_head,
            pairs * 4.0 * a->head_dim * a->n_head / (0.5 * c->k.flops_per_us));
}

struct paged_job {
    struct cpu_device *c;
    const struct attn_paged_args *a;
    int each;
};

/* Block b's k and v of one head as f32: in place, or widened into scratch. */
static void block_load(const struct paged_job *j, struct cpu_scratch *s, int32_t block, int kv_head,
                       const float **k, const float **v)
{
    const struct attn_paged_args *a = j->a;
    const size_t n = (size_t)KV_BLOCK * (size_t)a->head_dim;
    const size_t at = ((size_t)block * (size_t)a->n_kv_head + (size_t)kv_head) * n;
    if (a->kv_type == KV_F32) {
        *k = (const float *)a->k_cache + at;
        *v = (const float *)a->v_cache + at;
        return;
    }
    j->c->k.widen(s->k, (const char *)a->k_cache + 2 * at, dense_of(a->kv_type), n);
    j->c->k.widen(s->v, (const char *)a->v_cache + 2 * at, dense_of(a->kv_type), n);
    *k = s->k;
    *v = s->v;
}

static void block_prefetch(const struct attn_paged_args *a, int32_t block, int kv_head)
{
    const size_t bytes = (size_t)KV_BLOCK * (size_t)a->head_dim * dtype_bytes(dense_of(a->kv_type));
    const size_t at = ((size_t)block * (size_t)a->n_kv_head + (size_t)kv_head) * bytes;
    rows_prefetch((const char *)a->k_cache + at, 0, bytes, 1);
    rows_prefetch((const char *)a->v_cache + at, 0, bytes, 1);
}

/* Rows r0..r1-1, all of one sequence, heads h0..h1-1 of one kv head's group. */
static void paged_tile(const struct paged_job *j, struct cpu_scratch *s, int r0, int r1, int h0,
                       int h1)
{
    const struct attn_paged_args *a = j->a;
    const int heads = h1 - h0, n = (r1 - r0) * heads;
    const int kv_head = h0 / (a->n_head / a->n_kv_head);
    const struct tile t = tile_begin(&j->c->k, s, n, a->head_dim);
    const size_t dim = (size_t)a->head_dim;
    int n_keys = 0;
    for (int i = 0; i < n; i++) {
        const size_t r = (size_t)(r0 + i / heads), h = (size_t)(h0 + i % heads);
        tile_query(&t, i, a->q + r * a->q_ld + h * dim, a->scale);
        n_keys = a->n_keys[r] > n_keys ? a->n_keys[r] : n_keys;
    }
    const int32_t *table = a->block_table[a->seq[r0]];
    for (int key = 0; key < n_keys; key += KV_BLOCK) {
        for (int i = 0; i < n; i++) {
            const int left = a->n_keys[r0 + i / heads] - key;
            s->n[i] = left < 0 ? 0 : left > KV_BLOCK ? KV_BLOCK : left;
        }
        if (key + KV_BLOCK < n_keys) {
            block_prefetch(a, table[key / KV_BLOCK + 1], kv_head);
        }
        const float *k, *v;
        block_load(j, s, table[key / KV_BLOCK], kv_head, &k, &v);
        block_run(&t, k, v, dim);
    }
    for (int i = 0; i < n; i++) {
        const size_t r = (size_t)(r0 + i / heads), h = (size_t)(h0 + i % heads);
        tile_result(&t, i, a->out + r * a->out_ld + h * dim);
    }
}

static void paged_piece(void *arg, int i, int i_thread)
{
    const struct paged_job *j = arg;
    const struct attn_paged_args *a = j->a;
    const int group = a->n_head / a->n_kv_head, fit = tile_rows_max(a->head_dim);
    const int heads = group < fit ? group : fit;
    const int first = i % a->n_kv_head * group;
    int r = i / a->n_kv_head * j->each;
    const int end = r + j->each < a->rows ? r + j->each : a->rows;
    for (int stop; r < end; r = stop) {
        stop = r + 1;
        while (stop < end && a->seq[stop] == a->seq[r]) {
            stop++;
        }
        for (int h = first; h < first + group; h += heads) {
            const int h1 = h + heads < first + group ? h + heads : first + group;
            paged_tile(j, &j->c->scratch[i_thread], r, stop, h, h1);
        }
    }
}

void cpu_attn_paged(struct device *d, const struct attn_paged_args *a)
{
    assert(a->head_dim > 0 && a->head_dim <= ATTN_HEAD_DIM_MAX);
    assert(a->n_head % a->n_kv_head == 0);
    struct cpu_device *c = cpu_of(d);
    const int group = a->n_head / a->n_kv_head, fit = tile_rows_max(a->head_dim);
    double keys = 0.0;
    for (int r = 0; r < a->rows; r++) {
        keys += a->n_keys[r];
    }
    struct paged_job j = { c, a, 0 };
    j.each = rows_each(c, a->rows, a->n_kv_head, 1, group < fit ? fit / group : 1);
    cpu_run(c, paged_piece, &j, (a->rows + j.each - 1) / j.each * a->n_kv_head,
            keys * 4.0 * a->head_dim * a->n_head / (0.25 * c->k.flops_per_us));
}

struct write_job {
    const struct kv_write_args *a;
    int each;
};

static void write_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct write_job *j = arg;
    const struct kv_write_args *a = j->a;
    const size_t dim = (size_t)a->head_dim, n_kv = (size_t)a->n_kv_head;
    const size_t size = dtype_bytes(dense_of(a->kv_type));
    for (int r = i * j->each; r < a->rows && r < (i + 1) * j->each; r++) {
        if (a->slot[r] < 0) {
            continue;
        }
        const size_t block = (size_t)a->slot[r] / KV_BLOCK, at = (size_t)a->slot[r] % KV_BLOCK;
        for (size_t h = 0; h < n_kv; h++) {
            const size_t base = (block * n_kv + h) * KV_BLOCK * dim;
            const size_t from = (size_t)r * a->ld + h * dim;
            narrow_strided((char *)a->k_cache + (base + at) * size, KV_BLOCK, dense_of(a->kv_type),
                           a->k + from, dim);
            narrow_strided((char *)a->v_cache + (base + at * dim) * size, 1, dense_of(a->kv_type),
                           a->v + from, dim);
        }
    }
}

void cpu_kv_write(struct device *d, const struct kv_write_args *a)
{
    /* Whole blocks' worth of rows per piece: two threads rarely meet in a cache line. */
    struct write_job j = { a, KV_BLOCK };
    cpu_run(cpu_of(d), write_piece, &j, (a->rows + KV_BLOCK - 1) / KV_BLOCK,
            2e-3 * a->rows * a->n_kv_head * a->head_dim);
}
