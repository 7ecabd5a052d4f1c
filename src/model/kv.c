/* kv.c - the paged key/value pool.
 *
 * Free blocks are a stack, so a rewound block is the next one taken while its lines are still
 * warm.  The pool never looks inside a block: it counts.  Sharing (a second list taking a
 * reference) needs no change here; whoever adds it makes the last, partly filled block of a
 * list private before growing into it (kv_seq_resize asserts that). */
#include "src/model/kv.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "src/base/mem.h"

struct kv_pool {
    struct device *dev;
    struct kv_shape shape;
    void **k, **v; /* [n_layers] device arrays [n_blocks][n_kv_head][KV_BLOCK][head_dim] */
    int32_t *refs; /* [n_blocks] lists that hold the block */
    int32_t *free; /* [n_free] used, a stack */
    int n_blocks, n_free;
    int64_t n_held; /* entries over all lists: the sum of refs */
};

/* Bytes of one block in one of the two arrays of one layer. */
static uint64_t array_block_bytes(const struct kv_shape *s)
{
    return kv_array_block_bytes(s->type, s->n_kv_head, s->head_dim);
}

uint64_t kv_block_bytes(const struct kv_shape *shape)
{
    return 2 * (uint64_t)shape->n_layers * array_block_bytes(shape);
}

static bool pool_alloc(struct kv_pool *p)
{
    const struct kv_shape *s = &p->shape;
    p->k = mem_many(void *, (size_t)s->n_layers);
    p->v = mem_many(void *, (size_t)s->n_layers);
    p->refs = mem_many(int32_t, (size_t)p->n_blocks);
    p->free = mem_many(int32_t, (size_t)p->n_blocks);
    if (!p->k || !p->v || !p->refs || !p->free) {
        return false;
    }
    const uint64_t bytes = array_block_bytes(s) * (uint64_t)p->n_blocks;
    for (int i = 0; i < s->n_layers; i++) {
        p->k[i] = p->dev->ops->alloc(p->dev, bytes);
        p->v[i] = p->dev->ops->alloc(p->dev, bytes);
        if (!p->k[i] || !p->v[i]) {
            return false;
        }
    }
    return true;
}

enum galley_status kv_pool_open(struct kv_pool **out, struct device *dev,
                                const struct kv_shape *shape, int n_blocks, struct galley_err *err)
{
    *out = NULL;
    assert(shape->n_layers > 0 && shape->n_kv_head > 0 && shape->head_dim > 0);
    assert(n_blocks > 0 && n_blocks <= INT32_MAX / KV_BLOCK); /* slots fit int32 */
    struct kv_pool *p = mem_new(struct kv_pool);
    if (p) {
        *p = (struct kv_pool){ .dev = dev, .shape = *shape, .n_blocks = n_blocks };
    }
    if (!p || !pool_alloc(p)) {
        kv_pool_close(p);
        return galley_err_set(err, GALLEY_ENOMEM,
                              "out of memory: %d KV blocks of %llu bytes do not fit", n_blocks,
                              (unsigned long long)kv_block_bytes(shape));
    }
    while (p->n_free < n_blocks) { /* block 0 on top */
        p->free[p->n_free] = n_blocks - 1 - p->n_free;
        p->n_free++;
    }
    *out = p;
    return GALLEY_OK;
}

void kv_pool_close(struct kv_pool *p)
{
    if (!p) {
        return;
    }
    for (int i = 0; p->k && p->v && i < p->shape.n_layers; i++) {
        p->dev->ops->free(p->dev, p->k[i]);
        p->dev->ops->free(p->dev, p->v[i]);
    }
    mem_free(p->k);
    mem_free(p->v);
    mem_free(p->refs);
    mem_free(p->free);
    mem_free(p);
}

int kv_pool_n_free(const struct kv_pool *p)
{
    return p->n_free;
}

int kv_pool_n_blocks(const struct kv_pool *p)
{
    return p->n_blocks;
}

const struct kv_shape *kv_pool_shape(const struct kv_pool *p)
{
    return &p->shape;
}

void *kv_pool_k(const struct kv_pool *p, int layer)
{
    assert(layer >= 0 && layer < p->shape.n_layers);
    return p->k[layer];
}

void *kv_pool_v(const struct kv_pool *p, int layer)
{
    assert(layer >= 0 && layer < p->shape.n_layers);
    return p->v[layer];
}

static int32_t block_take(struct kv_pool *p)
{
    const int32_t b = p->free[--p->n_free];
    assert(p->refs[b] == 0);
    p->refs[b] = 1;
    p->n_held++;
    return b;
}

static void block_drop(struct kv_pool *p, int32_t b)
{
    assert(b >= 0 && b < p->n_blocks && p->refs[b] > 0);
    p->n_held--;
    p->refs[b]--;
    if (p->refs[b] == 0) {
        p->free[p->n_free++] = b;
    }
}

void kv_block_ref(struct kv_pool *p, int32_t b)
{
    assert(b >= 0 && b < p->n_blocks && p->refs[b] > 0);
    p->refs[b]++;
    p->n_held++;
}

void kv_block_unref(struct kv_pool *p, int32_t b)
{
    block_drop(p, b);
}

int kv_block_refs(const struct kv_pool *p, int32_t b)
{
    assert(b >= 0 && b < p->n_blocks);
    return p->refs[b];
}

/* Room for n entries in the list; doubles, so that decoding does not allocate per block. */
static bool seq_reserve(struct kv_seq *s, int n)
{
    if (n <= s->cap) {
        return true;
    }
    const int cap = s->cap > INT_MAX / 2 ? n : (2 * s->cap > n ? 2 * s->cap : n);
    int32_t *blocks = mem_resize_array(s->blocks, (size_t)cap, sizeof(*blocks));
    if (!blocks) {
        return false;
    }
    s->blocks = blocks;
    s->cap = cap;
    return true;
}

bool kv_seq_resize(struct kv_pool *p, struct kv_seq *s, int n_tokens)
{
    assert(n_tokens >= 0);
    const int n_blocks = n_tokens / KV_BLOCK + (n_tokens % KV_BLOCK != 0);
    const int n_more = n_blocks - s->n_blocks;
    if (n_more > 0 && (n_more > p->n_free || !seq_reserve(s, n_blocks))) {
        return false;
    }
    /* Growing writes into the last block: nobody else may be reading it. */
    assert(n_tokens <= s->n_tokens || s->n_tokens % KV_BLOCK == 0 ||
           p->refs[s->blocks[s->n_blocks - 1]] == 1);
    while (s->n_blocks < n_blocks) {
        s->blocks[s->n_blocks++] = block_take(p);
    }
    while (s->n_blocks > n_blocks) {
        block_drop(p, s->blocks[--s->n_blocks]);
    }
    s->n_tokens = n_tokens;
    return true;
}

bool kv_seq_share(struct kv_pool *p, struct kv_seq *s, const int32_t *blocks, int n_tokens)
{
    assert(s->n_blocks == 0 && n_tokens >= 0 && n_tokens % KV_BLOCK == 0);
    const int n = n_tokens / KV_BLOCK;
    if (!seq_reserve(s, n)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        kv_block_ref(p, blocks[i]);
        s->blocks[i] = blocks[i];
    }
    s->n_blocks = n;
    s->n_tokens = n_tokens;
    return true;
}

void kv_seq_clear(struct kv_pool *p, struct kv_seq *s)
{
    while (s->n_blocks > 0) {
        block_drop(p, s->blocks[--s->n_blocks]);
    }
    mem_free(s->blocks);
    *s = (struct kv_seq){ 0 };
}

int32_t kv_seq_slot(const struct kv_seq *s, int i)
{
    assert(i >= 0 && i < s->n_tokens);
    return s->blocks[i / KV_BLOCK] * KV_BLOCK + i % KV_BLOCK;
}

void kv_check(const struct kv_pool *p)
{
    int n_live = 0;
    int64_t n_held = 0;
    for (int b = 0; b < p->n_blocks; b++) {
        assert(p->refs[b] >= 0);
        n_live += p->refs[b] > 0;
        n_held += p->refs[b];
    }
    assert(p->n_free + n_live == p->n_blocks);
    assert(n_held == p->n_held);
    for (int i = 0; i < p->n_free; i++) {
        assert(p->refs[p->free[i]] == 0);
    }
    (void)n_live; /* read by asserts only */
    (void)n_held;
}

void kv_check_lists(const struct kv_pool *p, const struct kv_seq *const *seqs, int n)
{
    kv_check(p);
    int64_t n_held = 0;
    for (int i = 0; i < n; i++) {
        const struct kv_seq *s = seqs[i];
        assert(s->n_blocks == s->n_tokens / KV_BLOCK + (s->n_tokens % KV_BLOCK != 0));
        for (int j = 0; j < s->n_blocks; j++) {
            assert(s->blocks[j] >= 0 && s->blocks[j] < p->n_blocks);
            assert(p->refs[s->blocks[j]] > 0);
        }
        n_held += s->n_blocks;
    }
    assert(n_held == p->n_held);
    (void)n_held;
}
