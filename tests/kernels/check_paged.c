/* check_paged.c - attention over the paged cache: every cache type, windows, softcaps, draft trees.
 *
 * Truth is softmax in double over the values as stored, rounded here by formulas of their own.
 * Sameness is bytes: of instruction sets, threads, chunks, rows alone, and of tree rows against
 * plain decoding along their path. */
#include "kernels/kv_store.h"
#include "tests/kernels/check.h"

#define N_BLOCKS 100
#define KEYS_MAX 1216 /* two spans and a bit, in whole blocks */
#define N_SEQ    2

/* What is the same in all calls of a test: the cache and what was put into it. */
struct world {
    int n_head, n_kv_head, head_dim;
    enum kv_type type;
    int window;
    float softcap;
    float *k, *v; /* [N_SEQ][KEYS_MAX][n_kv_head][head_dim], not yet rounded */
    void *k_cache, *v_cache;
    int32_t table[N_SEQ][KEYS_MAX / KV_BLOCK]; /* blocks lie in disorder */
    const int32_t *tables[N_SEQ];
};

static size_t kv_row(const struct world *w)
{
    return (size_t)w->n_kv_head * (size_t)w->head_dim;
}

static size_t q_row(const struct world *w)
{
    return (size_t)w->n_head * (size_t)w->head_dim;
}

static struct world world_new(const struct world *like)
{
    struct world w = *like;
    const size_t n = N_SEQ * KEYS_MAX * kv_row(&w);
    const size_t bytes = N_BLOCKS * kv_array_block_bytes(w.type, w.n_kv_head, w.head_dim);
    w.k = mem_array(n, sizeof(float));
    w.v = mem_array(n, sizeof(float));
    w.k_cache = mem_aligned(bytes);
    w.v_cache = mem_aligned(bytes);
    T_OK(w.k && w.v && w.k_cache && w.v_cache);
    fill(w.k, n, FILL_RANDOM);
    fill(w.v, n, FILL_RANDOM);
    memset(w.k_cache, 0xff, bytes); /* NaN in every type but q8, whose scales are: none may show */
    memset(w.v_cache, 0xff, bytes);
    for (int i = 0; i < N_SEQ * KEYS_MAX / KV_BLOCK; i++) {
        w.table[i / (KEYS_MAX / KV_BLOCK)][i % (KEYS_MAX / KV_BLOCK)] = (i * 37 + 5) % N_BLOCKS;
    }
    return w;
}

static void world_free(struct world *w)
{
    mem_free(w->k);
    mem_free(w->v);
    mem_free(w->k_cache);
    mem_free(w->v_cache);
}

/* Writes keys 0..n-1 of a sequence, and some rows to skip. */
static void world_write(struct device *d, const struct world *w, int seq, int n)
{
    int32_t slot[KEYS_MAX];
    for (int i = 0; i < KEYS_MAX; i++) {
        slot[i] = i < n ? w->table[seq][i / KV_BLOCK] * KV_BLOCK + i % KV_BLOCK : -1;
    }
    const size_t at = (size_t)seq * KEYS_MAX * kv_row(w);
    d->ops->kv_write(d, &(struct kv_write_args){ .k_cache = w->k_cache,
                                                 .v_cache = w->v_cache,
                                                 .kv_type = w->type,
                                                 .k = w->k + at,
                                                 .v = w->v + at,
                                                 .ld = kv_row(w),
                                                 .slot = slot,
                                                 .rows = n + 3 < KEYS_MAX ? n + 3 : KEYS_MAX,
                                                 .n_kv_head = w->n_kv_head,
                                                 .head_dim = w->head_dim });
}

/* Rows to attend. */
#define ROWS_MAX 1200
struct rows {
    int n;
    const float *q;
    int32_t seq[ROWS_MAX], n_keys[ROWS_MAX], base[ROWS_MAX];
    uint64_t tree[ROWS_MAX]; /* all 0: passed as NULL */
};

/* Rows from..from+n-1 of r. */
static void attend(struct device *d, struct world *w, const struct rows *r, int from, int n,
                   float *out, size_t out_ld)
{
    bool any_tree = false;
    for (int i = 0; i < r->n; i++) {
        any_tree |= r->tree[i] != 0;
    }
    for (int s = 0; s < N_SEQ; s++) {
        w->tables[s] = w->table[s];
    }
    const struct attn_paged_args a = { .out = out,
                                       .out_ld = out_ld,
                                       .q = r->q + (size_t)from * q_row(w),
                                       .q_ld = q_row(w),
                                       .k_cache = w->k_cache,
                                       .v_cache = w->v_cache,
                                       .kv_type = w->type,
                                       .block_table = w->tables,
                                       .seq = r->seq + from,
                                       .n_keys = r->n_keys + from,
                                       .rows = n,
                                       .n_head = w->n_head,
                                       .n_kv_head = w->n_kv_head,
                                       .head_dim = w->head_dim,
                                       .scale = 1.0f / sqrtf((float)w->head_dim),
                                       .window = w->window,
                                       .softcap = w->softcap,
                                       .tree = any_tree ? r->tree + from : NULL,
                                       .tree_base = any_tree ? r->base + from : NULL };
    d->ops->attn_paged(d, &a);
}

/* --- truth --- */

/* E4M3 by its definition: the nearest of all 127 values, the even code of two. */
static double nearest_f8(double x)
{
    double best = 0.0, best_gap = INFINITY;
    for (int code = 0; code < 127; code++) {
        const int e = code >> 3, f = code & 7;
        const double v = e == 0 ? ldexp(f, -9) : ldexp(8 + f, e - 10);
        const double gap = fabs(fabs(x) - v);
        if (gap < best_gap || (gap == best_gap && code % 2 == 0)) {
            best = v;
            best_gap = gap;
        }
    }
    return x < 0.0 ? -best : best;
}

/* One vector as the cache holds it. */
static void stored(double *out, const float *x, int n, enum kv_type type)
{
    float amax = 0.0f;
    for (int i = 0; i < n; i++) {
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    }
    for (int i = 0; i < n; i++) {
        out[i] = type == KV_F32    ? (double)x[i]
                 : type == KV_F16  ? (double)f16_to_f32(f16_from_f32(x[i]))
                 : type == KV_BF16 ? (double)bf16_to_f32(bf16_from_f32(x[i]))
                 : type == KV_FP8  ? nearest_f8((double)x[i])
                 : amax < KV_Q8_MIN
                     ? 0.0
                     : (double)(nearbyintf(x[i] * (127.0f / amax)) * (amax / 127.0f));
    }
}

/* Softmax attention of one head of row r in double; returns max |v| among what it sees. */
static double oracle(double *out, const struct world *w, const struct rows *r, int i, int head)
{
    const int dim = w->head_dim, seq = r->seq[i];
    const float *q = r->q + (size_t)i * q_row(w) + (size_t)head * (size_t)dim;
    const size_t kv = (size_t)(head / (w->n_head / w->n_kv_head)) * (size_t)dim;
    double p[KEYS_MAX], k[ATTN_HEAD_DIM_MAX], v[ATTN_HEAD_DIM_MAX], max = -INFINITY, sum = 0.0;
    int key[KEYS_MAX], n = 0;
    for (int j = 0; j < KEYS_MAX; j++) {
        const int bit = j - r->base[i];
        const bool sees = !r->tree[i] ? j < r->n_keys[i]
                          : bit < 0   ? true
                                      : bit < 64 && (r->tree[i] >> bit & 1);
        if (sees) {
            key[n++] = j;
        }
    }
    const int first = w->window > 0 && n > w->window ? n - w->window : 0;
    for (int j = first; j < n; j++) {
        const size_t at = ((size_t)seq * KEYS_MAX + (size_t)key[j]) * kv_row(w) + kv;
        stored(k, w->k + at, dim, w->type);
        p[j] = 0.0;
        for (int d = 0; d < dim; d++) {
            p[j] += (double)q[d] * k[d];
        }
        p[j] /= sqrt(dim);
        p[j] = w->softcap > 0.0f ? (double)w->softcap * tanh(p[j] / (double)w->softcap) : p[j];
        max = p[j] > max ? p[j] : max;
    }
    double top = 0.0;
    memset(out, 0, (size_t)dim * sizeof(*out));
    for (int j = first; j < n; j++) {
        sum += exp(p[j] - max);
    }
    for (int j = first; j < n; j++) {
        const size_t at = ((size_t)seq * KEYS_MAX + (size_t)key[j]) * kv_row(w) + kv;
        stored(v, w->v + at, dim, w->type);
        for (int d = 0; d < dim; d++) {
            out[d] += exp(p[j] - max) / sum * v[d];
            top = fabs(v[d]) > top ? fabs(v[d]) : top;
        }
    }
    return top;
}

static void check_oracle(const struct world *w, const struct rows *r, const float *out,
                         size_t out_ld)
{
    double want[ATTN_HEAD_DIM_MAX];
    const double tolerance = 6e-6 + 1e-7 * (double)w->softcap; /* attn.h */
    const int step = r->n > 12 ? r->n / 12 : 1;
    for (int i = 0; i < r->n; i += step) {
        for (int h = 0; h < w->n_head; h += 1 + w->n_head / 3) {
            const double top = oracle(want, w, r, i, h);
            for (int d = 0; d < w->head_dim; d++) {
                const size_t at = (size_t)i * out_ld + (size_t)(h * w->head_dim + d);
                T_NEAR((double)out[at], want[d], tolerance * top);
            }
        }
    }
}

/* All rows on all devices have the same bytes, row by row alone as well; they are near the truth.
 */
static void check_rows_all(struct devices *ds, struct world *w, struct rows *r)
{
    const size_t width = q_row(w), out_ld = width + 5;
    struct guarded first = guard_new((size_t)r->n * out_ld);
    struct guarded out = guard_new((size_t)r->n * out_ld), one = guard_new(width);
    for (int i = 0; i < ds->n; i++) {
        struct guarded *g = i == 0 ? &first : &out;
        guard_reset(g);
        attend(ds->d[i], w, r, 0, r->n, g->p, out_ld);
        guard_check(g, out_ld, width, ds->d[i]->ops->name);
        bytes_same(g->p, first.p, (size_t)r->n * out_ld, ds->d[i]->ops->name);
        for (int k = i; k < r->n; k += 1 + r->n / 4) {
            attend(ds->d[i], w, r, k, 1, one.p, width);
            bytes_same(one.p, first.p + (size_t)k * out_ld, width, "row alone");
        }
    }
    check_oracle(w, r, first.p, out_ld);
    guard_free(&first);
    guard_free(&out);
    guard_free(&one);
}

static void queries_new(const struct world *w, struct rows *r, float size)
{
    float *q = mem_array((size_t)r->n * q_row(w), sizeof(float));
    T_OK(q);
    fill(q, (size_t)r->n * q_row(w), FILL_RANDOM);
    for (size_t i = 0; i < (size_t)r->n * q_row(w); i++) {
        q[i] *= size;
    }
    r->q = q;
}

static void queries_free(struct rows *r)
{
    mem_free((void *)r->q);
}

/* --- tests --- */

static void chain(struct rows *r, int seq, int n_keys)
{
    T_OK(r->n < ROWS_MAX);
    r->seq[r->n] = seq;
    r->tree[r->n] = 0;
    r->n_keys[r->n++] = n_keys;
}

/* Decode rows, a prompt's chunk and a draft, across borders of blocks and of a span. */
static void test_types(void)
{
    static const struct {
        int n_head, n_kv_head, head_dim;
        float size;
    } shapes[] = {
        { 4, 2, 64, 1.0f }, { 7, 1, 128, 9.0f }, { 2, 2, 20, 1.0f }, { 6, 3, 80, 4.0f }
    };
    static const int windows[] = { 0, 40, 1 };
    static struct rows r;
    struct devices ds = devices_open();
    for (int i = 0; i < KV_TYPE_COUNT * (int)COUNT(shapes); i++) {
        const size_t s = (size_t)i % COUNT(shapes);
        struct world w = { .n_head = shapes[s].n_head,
                           .n_kv_head = shapes[s].n_kv_head,
                           .head_dim = shapes[s].head_dim,
                           .type = (enum kv_type)(i / (int)COUNT(shapes)),
                           .window = windows[i % 3],
                           .softcap = i % 2 ? 8.0f : 0.0f };
        w = world_new(&w);
        world_write(ds.d[i % ds.n], &w, 0, 100);
        world_write(ds.d[i % ds.n], &w, 1, 530);
        r.n = 0;
        chain(&r, 1, 1);
        for (int k = 0; k < 40; k++) {
            chain(&r, 0, 58 + k);
        }
        for (int k = 0; k < 20; k++) {
            chain(&r, 1, 505 + k);
        }
        queries_new(&w, &r, shapes[s].size);
        check_rows_all(&ds, &w, &r);
        queries_free(&r);
        world_free(&w);
    }
    devices_close(&ds);
}

/* A group larger than a tile, and the longest heads. */
static void test_large_groups(void)
{
    static struct rows r;
    struct devices ds = devices_open();
    struct world w = { .n_head = 66, .n_kv_head = 1, .head_dim = 512, .type = KV_Q8 };
    w = world_new(&w);
    world_write(ds.d[0], &w, 0, 70);
    r.n = 0;
    chain(&r, 0, 64);
    chain(&r, 0, 70);
    queries_new(&w, &r, 1.0f);
    check_rows_all(&ds, &w, &r);
    queries_free(&r);
    world_free(&w);
    devices_close(&ds);
}

/* A prompt in chunks of any size has the bytes it has whole, with any number of threads: few rows
 * share out spans, many share out rows. */
static void test_chunks(void)
{
    static const int sizes[] = { 512, 1, 3, 32, 33, 130 };
    static struct rows r;
    struct devices ds = devices_open();
    struct device *four;
    struct galley_err err = { 0 };
    T_EQ(device_open_cpu(&four, "auto", 4, &err), GALLEY_OK);
    for (int i = 0; i < 3; i++) {
        struct world w = { .n_head = 2,
                           .n_kv_head = 1,
                           .head_dim = 16,
                           .type = i == 0 ? KV_F16 : KV_Q8,
                           .window = i == 2 ? 600 : 0 };
        w = world_new(&w);
        const int n = 1100, width = 32;
        world_write(four, &w, 0, n);
        r.n = 0;
        for (int k = 1; k <= n; k++) {
            chain(&r, 0, k);
        }
        queries_new(&w, &r, 3.0f);
        float *all = mem_array((size_t)(n * width), sizeof(float));
        float *out = mem_array((size_t)(n * width), sizeof(float));
        T_OK(all && out);
        attend(ds.d[ds.n - 1], &w, &r, 0, n, all, (size_t)width);
        for (size_t s = 0; s < COUNT(sizes); s++) {
            struct device *d = s % 2 ? four : ds.d[(size_t)i % (size_t)ds.n];
            /* every chunk would take the reference seconds: the last rows see the most */
            for (int k = n - 4 * sizes[s] > 0 ? n - 4 * sizes[s] : 0; k < n; k += sizes[s]) {
                const int rows = n - k < sizes[s] ? n - k : sizes[s];
                attend(d, &w, &r, k, rows, out + k * width, (size_t)width);
                bytes_same(out + k * width, all + k * width, (size_t)(rows * width), "chunk");
            }
        }
        check_oracle(&w, &r, all, (size_t)width);
        mem_free(all);
        mem_free(out);
        queries_free(&r);
        world_free(&w);
    }
    device_close(four);
    devices_close(&ds);
}

/* Copies the path to node i (and what is before the base) side by side into sequence 1. */
static int path_copy(struct world *w, uint64_t tree, int base)
{
    const size_t row = kv_row(w), other = KEYS_MAX * row;
    int n = base;
    memcpy(w->k + other, w->k, (size_t)base * row * sizeof(float));
    memcpy(w->v + other, w->v, (size_t)base * row * sizeof(float));
    for (; tree; tree &= tree - 1, n++) {
        const size_t from = (size_t)(base + __builtin_ctzll(tree)) * row;
        memcpy(w->k + other + (size_t)n * row, w->k + from, row * sizeof(float));
        memcpy(w->v + other + (size_t)n * row, w->v + from, row * sizeof(float));
    }
    return n;
}

/* Every node of a random tree, all in one call, against decoding its path as a chain. */
static void check_tree(struct devices *ds, struct world w, int base, int n_nodes, int fan)
{
    static struct rows r, plain;
    w = world_new(&w);
    r.n = n_nodes;
    for (int i = 0; i < n_nodes; i++) {
        const int back = 1 + (int)(check_bits() % (unsigned)fan), parent = i - back;
        r.seq[i] = 0;
        r.n_keys[i] = -1; /* not read */
        r.base[i] = base;
        r.tree[i] = (parent >= 0 ? r.tree[parent] : 0) | (uint64_t)1 << i;
    }
    queries_new(&w, &r, 2.0f);
    world_write(ds->d[0], &w, 0, base + n_nodes);
    check_rows_all(ds, &w, &r);
    const size_t width = q_row(&w);
    float *all = mem_array((size_t)n_nodes * width, sizeof(float));
    float *one = mem_array(width, sizeof(float));
    T_OK(all && one);
    struct device *d = ds->d[ds->n - 1];
    attend(d, &w, &r, 0, n_nodes, all, width);
    for (int i = 0; i < n_nodes; i += 1 + n_nodes / 9) {
        const int n = path_copy(&w, r.tree[i], base);
        world_write(d, &w, 1, n);
        plain.n = 1;
        plain.q = r.q + (size_t)i * width;
        plain.seq[0] = 1;
        plain.n_keys[0] = n;
        attend(d, &w, &plain, 0, 1, one, width);
        bytes_same(one, all + (size_t)i * width, width, "tree row against its path");
    }
    mem_free(all);
    mem_free(one);
    queries_free(&r);
    world_free(&w);
}

static void test_trees(void)
{
    static const int bases[] = { 0, 1, 31, 32, 45, 500, 1000 };
    static const int nodes[] = { 16, 64, 64, 1, 24, 40, 7 };
    struct devices ds = devices_open();
    for (int i = 0; i < (int)COUNT(bases); i++) {
        const struct world w = { .n_head = i % 2 ? 6 : 4,
                                 .n_kv_head = 2,
                                 .head_dim = i % 3 ? 32 : 20,
                                 .type = (enum kv_type)(i % KV_TYPE_COUNT),
                                 .window = i % 4 == 2 ? 50 : 0,
                                 .softcap = i == 4 ? 20.0f : 0.0f };
        check_tree(&ds, w, bases[i], nodes[i], i == 1 ? 1 : 4);
    }
    devices_close(&ds);
}

/* What a row does not see leaves no trace, be it infinite: later tokens, siblings, tokens that
 * left the window. */
static void test_poison(void)
{
    static struct rows r;
    struct devices ds = devices_open();
    for (int tree = 0; tree < 2; tree++) {
        struct world w = {
            .n_head = 4, .n_kv_head = 2, .head_dim = 32, .type = KV_F32, .window = tree ? 0 : 20
        };
        w = world_new(&w);
        r.n = 0;
        for (int i = 0; i < 8; i++) {
            chain(&r, 0, 40 + i);
            r.base[i] = 40;
            r.tree[i] = tree ? (uint64_t)1 << i : 0; /* eight siblings */
        }
        const size_t row = kv_row(&w), width = q_row(&w), bad = 43;
        queries_new(&w, &r, 1.0f);
        world_write(ds.d[0], &w, 0, 48);
        float *clean = mem_array(8 * width, sizeof(float));
        float *out = mem_array(8 * width, sizeof(float));
        T_OK(clean && out);
        attend(ds.d[0], &w, &r, 0, 8, clean, width);
        for (size_t i = 0; i < row; i++) {
            w.k[bad * row + i] = NAN;
            w.v[bad * row + i] = i % 2 ? NAN : INFINITY;
            w.v[3 * row + i] = -INFINITY; /* before the window of all */
        }
        if (tree) {
            memcpy(w.v + 3 * row, w.v + 4 * row, row * sizeof(float));
            world_write(ds.d[0], &w, 0, 48);
            attend(ds.d[0], &w, &r, 0, 8, clean, width); /* row 3 is NaN, the others count */
        } else {
            world_write(ds.d[0], &w, 0, 48);
        }
        for (int i = 0; i < ds.n; i++) {
            attend(ds.d[i], &w, &r, 0, 8, out, width);
            for (int k = 0; k < 8; k++) {
                const bool sees = tree ? k == 3 : k >= 4;
                if (sees) {
                    T_OK(isnan(out[(size_t)k * width]));
                } else {
                    T_OK(isfinite(out[(size_t)k * width]));
                    bytes_same(out + (size_t)k * width, clean + (size_t)k * width, width,
                               "row beside an infinite one");
                }
            }
        }
        mem_free(clean);
        mem_free(out);
        queries_free(&r);
        world_free(&w);
    }
    devices_close(&ds);
}

/* With one key to see, a row is that key's value as stored: what kv_write and the widening of
 * every instruction set make of any input. */
static void test_stored_form(void)
{
    static struct rows r;
    struct devices ds = devices_open();
    double want[ATTN_HEAD_DIM_MAX];
    for (int i = 0; i < KV_TYPE_COUNT * FILL_COUNT; i++) {
        const enum fill kind = (enum fill)(i % FILL_COUNT);
        struct world w = { .n_head = 2,
                           .n_kv_head = 2,
                           .head_dim = 36,
                           .type = (enum kv_type)(i / FILL_COUNT),
                           .window = 1 };
        w = world_new(&w);
        const int n = 40;
        fill(w.v, (size_t)n * kv_row(&w), kind);
        r.n = 0;
        for (int k = 1; k <= n; k++) {
            chain(&r, 0, k);
        }
        queries_new(&w, &r, 1.0f);
        float *out = mem_array((size_t)n * q_row(&w), sizeof(float));
        T_OK(out);
        for (int k = 0; k < ds.n; k++) {
            world_write(ds.d[k], &w, 0, n);
            attend(ds.d[k], &w, &r, 0, n, out, q_row(&w));
            for (size_t at = 0; at < (size_t)n * kv_row(&w); at += 36) {
                stored(want, w.v + at, 36, w.type);
                for (int d = 0; d < 36; d++) {
                    const float x = (float)want[d];
                    T_OK(out[at + (size_t)d] == x || (isinf(x) && !isfinite(out[at + (size_t)d])));
                }
            }
        }
        mem_free(out);
        queries_free(&r);
        world_free(&w);
    }
    devices_close(&ds);
}

/* Codes and scales have the same bytes on every instruction set, whatever floats there are: NaN and
 * infinities, subnormals, ties. */
static void test_narrow(void)
{
    struct cpu_kernels k;
    float x[45];
    uint8_t want[46 * 4], got[46 * 4];
    for (int round = 0; round < 20000; round++) {
        const int n = 1 + round % 45;
        const enum kv_type type = (enum kv_type)(round / 45 % KV_TYPE_COUNT);
        for (int i = 0; i < n; i++) {
            uint32_t u = check_bits();
            if (round % 3 == 0) {
                u &= 0xfff80000; /* few bits: ties of the narrow types */
            } else if (round % 3 == 1) {
                u = (u & 0x80ffffff) | 0x3f000000; /* around 1 */
            }
            memcpy(x + i, &u, sizeof(u));
        }
        memset(want, 0xa5, sizeof(want));
        const float scale = kv_narrow_ref(want, type, x, n);
        for (int isa = CPU_AVX2; isa <= (int)cpu_isa_best(); isa++) {
            cpu_kernels_init(&k, (enum cpu_isa)isa);
            memset(got, 0xa5, sizeof(got)); /* nothing behind n codes may change */
            const float s = k.kv_narrow(got, type, x, n);
            T_OK(memcmp(&s, &scale, sizeof(s)) == 0);
            T_OK(memcmp(got, want, sizeof(got)) == 0);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "types", test_types },   { "large_groups", test_large_groups },
        { "chunks", test_chunks }, { "trees", test_trees },
        { "poison", test_poison }, { "stored_form", test_stored_form },
        { "narrow", test_narrow },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
