/* test_kv.c - the pool's arithmetic: grow, rewind, exhaustion, failing memory. */
#include "src/base/mem.h"
#include "src/model/kv.h"
#include "tests/t.h"

static void *plain_alloc(struct device *d, size_t bytes)
{
    (void)d;
    return mem_aligned(bytes);
}

static void plain_free(struct device *d, void *p)
{
    (void)d;
    mem_free(p);
}

static const struct dev_ops plain_ops = { .alloc = plain_alloc, .free = plain_free };
static struct device plain = { &plain_ops };
static const struct kv_shape shape = { 3, 2, 8, KV_F32 };

static struct kv_pool *pool_of(int n_blocks)
{
    struct kv_pool *p = NULL;
    T_EQ(kv_pool_open(&p, &plain, &shape, n_blocks, NULL), GALLEY_OK);
    return p;
}

static void test_resize(void)
{
    struct kv_pool *p = pool_of(4);
    struct kv_seq s = { 0 };
    T_EQ(kv_block_bytes(&shape), 2u * 3 * 2 * KV_BLOCK * 8 * 4);
    T_OK(kv_seq_resize(p, &s, 0) && s.n_blocks == 0);
    T_OK(kv_seq_resize(p, &s, 1) && s.n_blocks == 1);
    T_OK(kv_seq_resize(p, &s, KV_BLOCK) && s.n_blocks == 1);
    T_OK(kv_seq_resize(p, &s, KV_BLOCK + 1) && s.n_blocks == 2);
    T_EQ(kv_pool_n_free(p), 2);
    const int32_t first = s.blocks[0];
    T_OK(kv_seq_resize(p, &s, KV_BLOCK) && s.n_blocks == 1 && s.blocks[0] == first);
    T_OK(!kv_seq_resize(p, &s, 4 * KV_BLOCK + 1)); /* one too many: as before */
    T_OK(s.n_tokens == KV_BLOCK && s.n_blocks == 1 && kv_pool_n_free(p) == 3);
    T_OK(kv_seq_resize(p, &s, 4 * KV_BLOCK) && kv_pool_n_free(p) == 0);
    kv_check_lists(p, (const struct kv_seq *const[]){ &s }, 1);
    kv_seq_clear(p, &s);
    T_OK(!s.blocks && s.n_tokens == 0 && kv_pool_n_free(p) == 4);
    kv_seq_clear(p, &s);
    kv_check(p);
    kv_pool_close(p);
}

/* Slots of live tokens of all sequences are distinct and inside the pool. */
static void slots_check(const struct kv_seq *s, int n, int n_blocks)
{
    char seen[16 * KV_BLOCK] = { 0 };
    T_OK(n_blocks <= 16);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < s[i].n_tokens; k++) {
            const int32_t slot = kv_seq_slot(&s[i], k);
            T_OK(slot >= 0 && slot < n_blocks * KV_BLOCK && !seen[slot]);
            T_EQ(slot % KV_BLOCK, k % KV_BLOCK);
            seen[slot] = 1;
        }
    }
}

static void test_random_walk(void)
{
    struct kv_pool *p = pool_of(16);
    struct kv_seq s[3] = { 0 };
    const struct kv_seq *const lists[] = { &s[0], &s[1], &s[2] };
    unsigned r = 12345;
    int n_short = 0;
    for (int step = 0; step < 2000; step++) {
        r = r * 1664525u + 1013904223u;
        struct kv_seq *q = &s[(r >> 8) % 3];
        const int n = (int)((r >> 12) % (10 * KV_BLOCK)), was = q->n_tokens;
        if ((r >> 28) == 0) {
            kv_seq_clear(p, q);
        } else if (!kv_seq_resize(p, q, n)) {
            T_EQ(q->n_tokens, was);
            n_short++;
        } else {
            T_EQ(q->n_tokens, n);
        }
        kv_check_lists(p, lists, 3);
        slots_check(s, 3, 16);
    }
    T_OK(n_short > 10);
    for (int i = 0; i < 3; i++) {
        kv_seq_clear(p, &s[i]);
    }
    T_EQ(kv_pool_n_free(p), 16);
    kv_pool_close(p);
}

static void test_no_memory(void)
{
    struct kv_pool *p = NULL;
    struct galley_err err = { 0 };
    int n = 1;
    for (; !p; n++) {
        mem_fail_at(n);
        const enum galley_status rc = kv_pool_open(&p, &plain, &shape, 2, &err);
        mem_fail_at(0);
        T_OK(rc == (p ? GALLEY_OK : GALLEY_ENOMEM) && n < 50);
    }
    T_OK(n > 10); /* record, four arrays, two caches per layer */
    struct kv_seq s = { 0 };
    mem_fail_at(1);
    T_OK(!kv_seq_resize(p, &s, 1));
    mem_fail_at(0);
    kv_check_lists(p, (const struct kv_seq *const[]){ &s }, 1);
    kv_pool_close(p);
}

static const struct t_case cases[] = {
    { "resize", test_resize },
    { "random_walk", test_random_walk },
    { "no_memory", test_no_memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
