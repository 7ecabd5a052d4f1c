/* test_prefix.c - the prefix cache: what its keys tell apart, and a long random life beside a
 * plain model of it. */
#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/model/prefix.h"
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
static const uint8_t root[HASH_BYTES] = "model a, f16 keys";
static const uint8_t picture[2][HASH_BYTES] = { "one picture", "one more of equal size" };

struct fixture {
    struct kv_pool *kv;
    struct prefix_cache *c;
};

static struct fixture fixture_open(int n_blocks)
{
    static const struct kv_shape shape = { 1, 1, 8, KV_F32 };
    struct fixture f = { 0 };
    T_EQ(kv_pool_open(&f.kv, &plain, &shape, n_blocks, NULL), GALLEY_OK);
    T_EQ(prefix_open(&f.c, f.kv, root, NULL), GALLEY_OK);
    T_EQ(kv_pool_n_blocks(f.kv), n_blocks);
    return f;
}

static void fixture_close(struct fixture *f)
{
    const int n_blocks = kv_pool_n_blocks(f->kv);
    prefix_close(f->c);
    kv_check(f->kv);
    T_EQ(kv_pool_n_free(f->kv), n_blocks);
    kv_pool_close(f->kv);
}

/* ---- keys ---- */

enum { N_ROWS = 3 * KV_BLOCK + 5 };

/* Text with a picture in the middle of it, from inside block 0 to inside block 2. */
static void prompt_fill(struct prefix_row *rows, const uint8_t *image)
{
    for (int i = 0; i < N_ROWS; i++) {
        const bool inside = i >= 20 && i < 80;
        rows[i] = (struct prefix_row){ .token = inside ? 0 : 1000 + i,
                                       .image = inside ? image : NULL,
                                       .i_row = inside ? i - 20 : 0,
                                       .pos = { i, i, i } };
    }
}

/* How many of the three keys are those of the plain prompt; once different, always different. */
static int keys_alike(const struct fixture *f, const struct prefix_row *rows)
{
    struct prefix_row plain_rows[N_ROWS];
    struct prefix_key a[3], b[3];
    int n = 0;
    prompt_fill(plain_rows, picture[0]);
    prefix_keys(f->c, a, plain_rows, N_ROWS);
    prefix_keys(f->c, b, rows, N_ROWS);
    while (n < 3 && memcmp(&a[n], &b[n], HASH_BYTES) == 0) {
        n++;
    }
    for (int i = n; i < 3; i++) {
        T_OK(memcmp(&a[i], &b[i], HASH_BYTES) != 0);
    }
    return n;
}

static void keys_tell_apart(void)
{
    struct fixture f = fixture_open(4);
    struct prefix_row rows[N_ROWS];
    prompt_fill(rows, picture[0]);
    T_EQ(keys_alike(&f, rows), 3);
    rows[3 * KV_BLOCK].token++; /* not in a full block */
    T_EQ(keys_alike(&f, rows), 3);
    prompt_fill(rows, picture[1]); /* same size, same text */
    T_EQ(keys_alike(&f, rows), 0);
    prompt_fill(rows, picture[0]);
    rows[40].image = picture[1]; /* changes inside the second block */
    T_EQ(keys_alike(&f, rows), 1);
    rows[40].image = picture[0];
    rows[70].i_row = 49; /* the same picture, another of its rows */
    T_EQ(keys_alike(&f, rows), 2);
    prompt_fill(rows, picture[0]);
    rows[33].pos[2]++;
    T_EQ(keys_alike(&f, rows), 1);
    prompt_fill(rows, picture[0]);
    rows[95].token = -1; /* above 24 bits */
    T_EQ(keys_alike(&f, rows), 2);
    prompt_fill(rows, picture[0]);
    for (int i = 20; i < 80; i++) { /* image_pad tokens without a picture */
        rows[i].image = NULL;
    }
    T_EQ(keys_alike(&f, rows), 0);

    static const uint8_t other[HASH_BYTES] = "model b, f16 keys";
    struct prefix_cache *c = NULL;
    struct prefix_key a, b;
    T_EQ(prefix_open(&c, f.kv, other, NULL), GALLEY_OK);
    prefix_keys(f.c, &a, rows, KV_BLOCK);
    prefix_keys(c, &b, rows, KV_BLOCK);
    T_OK(memcmp(&a, &b, HASH_BYTES) != 0);
    prefix_keys(c, NULL, rows, KV_BLOCK - 1); /* no full block: nothing is written */
    prefix_close(c);
    fixture_close(&f);
}

/* The first key of this prompt, by Python's hashlib (struct.pack('<B i 3i') of each row). */
static void key_bytes(void)
{
    struct fixture f = fixture_open(1);
    struct prefix_row rows[KV_BLOCK];
    struct prefix_key key;
    char hex[HASH_HEX_BYTES];
    for (int i = 0; i < KV_BLOCK; i++) {
        rows[i] = (struct prefix_row){ .token = 151643 - i, .pos = { i, 2 * i, 3 * i } };
    }
    rows[9].image = picture[1];
    rows[9].i_row = 70000;
    prefix_keys(f.c, &key, rows, KV_BLOCK);
    hash_hex(key.bytes, hex);
    T_STR(hex, "c399f6355e707a31f255e54a3f974381eb98f3f61f377577825e0de1a41c629c");
    fixture_close(&f);
}

/* ---- use ---- */

/* Keys of a made-up conversation: block i of prompt `name`. */
static void chain(struct prefix_key *keys, int n, const struct prefix_cache *c, int name,
                  int n_common)
{
    struct prefix_row rows[8 * KV_BLOCK] = { 0 };
    T_OK(n <= 8);
    for (int i = 0; i < n * KV_BLOCK; i++) {
        rows[i].token = i / KV_BLOCK < n_common ? i : 5000 * name + i;
    }
    prefix_keys(c, keys, rows, n * KV_BLOCK);
}

static void seq_add(struct fixture *f, struct kv_seq *s, const struct prefix_key *keys, int n)
{
    int32_t blocks[8];
    const int n_known = prefix_find(f->c, keys, n, blocks);
    T_OK(kv_seq_share(f->kv, s, blocks, n_known * KV_BLOCK));
    T_OK(kv_seq_resize(f->kv, s, n * KV_BLOCK));
    for (int i = n_known; i < n; i++) {
        prefix_add(f->c, keys, i, s->blocks[i]);
    }
}

static void shares_and_evicts(void)
{
    struct fixture f = fixture_open(8);
    struct kv_seq a = { 0 }, b = { 0 };
    struct prefix_key ka[4], kb[4];
    int32_t blocks[4];
    chain(ka, 4, f.c, 1, 2);
    chain(kb, 4, f.c, 2, 2);
    T_EQ(prefix_find(f.c, ka, 4, blocks), 0);
    seq_add(&f, &a, ka, 4);
    seq_add(&f, &b, kb, 4);
    T_EQ(prefix_n_blocks(f.c), 6);
    T_OK(b.blocks[1] == a.blocks[1] && b.blocks[2] != a.blocks[2]);
    T_EQ(kv_block_refs(f.kv, a.blocks[1]), 3);
    T_EQ(kv_pool_n_free(f.kv), 2);
    T_EQ(prefix_n_evictable(f.c), 0);
    T_EQ(prefix_evict(f.c, 8), 0);
    const int32_t last = a.blocks[3];
    kv_seq_clear(f.kv, &a);
    T_EQ(prefix_n_evictable(f.c), 2); /* the common two still serve b */
    T_EQ(prefix_evict(f.c, 1), 1);
    T_EQ(kv_pool_n_free(f.kv), 3);
    T_EQ(kv_block_refs(f.kv, last), 0); /* the leaf went first */
    T_EQ(prefix_find(f.c, ka, 4, blocks), 3);
    kv_seq_clear(f.kv, &b);
    T_EQ(prefix_n_evictable(f.c), 5);
    /* Found last, a's remaining chain outlives b's own part, and the root outlives all. */
    T_EQ(prefix_evict(f.c, 2), 2);
    T_EQ(prefix_find(f.c, kb, 4, blocks), 2);
    T_EQ(prefix_find(f.c, ka, 4, blocks), 3);
    T_EQ(prefix_evict(f.c, 2), 2);
    T_EQ(prefix_find(f.c, ka, 4, blocks), 1);
    T_EQ(prefix_evict(f.c, 99), 1);
    T_EQ(prefix_n_blocks(f.c), 0);
    fixture_close(&f);
}

/* Two sequences prefill the same prompt at once: the second one's blocks are its own, what it adds
 * hangs on the first one's, and a child nobody can reach is not remembered. */
static void same_prompt_twice(void)
{
    struct fixture f = fixture_open(8);
    struct kv_seq a = { 0 }, b = { 0 };
    struct prefix_key k[4];
    int32_t blocks[4];
    chain(k, 4, f.c, 1, 4);
    T_OK(kv_seq_resize(f.kv, &a, 4 * KV_BLOCK) && kv_seq_resize(f.kv, &b, 4 * KV_BLOCK));
    prefix_add(f.c, k, 1, b.blocks[1]); /* its parent is not there */
    T_EQ(prefix_n_blocks(f.c), 0);
    prefix_add(f.c, k, 0, a.blocks[0]);
    prefix_add(f.c, k, 0, b.blocks[0]);
    prefix_add(f.c, k, 1, b.blocks[1]);
    prefix_add(f.c, k, 1, a.blocks[1]);
    T_EQ(prefix_n_blocks(f.c), 2);
    T_EQ(prefix_find(f.c, k, 4, blocks), 2);
    T_OK(blocks[0] == a.blocks[0] && blocks[1] == b.blocks[1]);
    T_OK(kv_block_refs(f.kv, b.blocks[0]) == 1 && kv_block_refs(f.kv, b.blocks[1]) == 2);
    kv_seq_clear(f.kv, &a);
    T_EQ(prefix_n_evictable(f.c), 0); /* a's block carries b's */
    T_EQ(prefix_evict(f.c, 9), 0);
    kv_seq_clear(f.kv, &b);
    T_EQ(prefix_evict(f.c, 9), 2);
    fixture_close(&f);
}

/* ---- a long random life ---- */

enum { N_BLOCKS = 40, N_SEQS = 6, N_PROMPTS = 24, DEPTH = 6 };

/* The plain model: every block's key, and when it was used. */
struct shadow {
    struct prefix_key keys[N_PROMPTS][DEPTH];
    struct {
        struct prefix_key key;
        int parent, used;
        bool known;
    } block[N_BLOCKS];
    int clock;
};

static int shadow_find(const struct shadow *s, const struct prefix_key *key)
{
    for (int b = 0; b < N_BLOCKS; b++) {
        if (s->block[b].known && memcmp(&s->block[b].key, key, HASH_BYTES) == 0) {
            return b;
        }
    }
    return -1;
}

static void shadow_use(struct shadow *s, int b)
{
    for (; b >= 0; b = s->block[b].parent) {
        s->block[b].used = ++s->clock; /* parents later */
    }
}

static bool shadow_has_child(const struct shadow *s, int b)
{
    for (int k = 0; k < N_BLOCKS; k++) {
        if (s->block[k].known && s->block[k].parent == b) {
            return true;
        }
    }
    return false;
}

/* Takes out the least recently used leaf that only the cache holds. */
static bool shadow_evict(struct shadow *s, int *refs)
{
    int best = -1;
    for (int b = 0; b < N_BLOCKS; b++) {
        if (s->block[b].known && refs[b] == 1 && !shadow_has_child(s, b) &&
            (best < 0 || s->block[b].used < s->block[best].used)) {
            best = b;
        }
    }
    if (best >= 0) {
        s->block[best].known = false;
        refs[best] = 0;
    }
    return best >= 0;
}

static void refs_take(const struct fixture *f, int *refs)
{
    for (int b = 0; b < N_BLOCKS; b++) {
        refs[b] = kv_block_refs(f->kv, b);
    }
}

static void evict_beside(struct fixture *f, struct shadow *s, int n)
{
    int refs[N_BLOCKS], n_want = 0;
    refs_take(f, refs);
    struct shadow all = *s;
    int n_all = 0, left[N_BLOCKS];
    memcpy(left, refs, sizeof(left));
    while (shadow_evict(&all, left)) {
        n_all++;
    }
    T_EQ(prefix_n_evictable(f->c), n_all);
    while (n_want < n && shadow_evict(s, refs)) {
        n_want++;
    }
    T_EQ(prefix_evict(f->c, n), n_want);
    for (int b = 0; b < N_BLOCKS; b++) {
        T_EQ(kv_block_refs(f->kv, b), refs[b]); /* the very same blocks went */
    }
}

static void request_beside(struct fixture *f, struct shadow *s, struct kv_seq *q, int prompt, int n)
{
    const struct prefix_key *keys = s->keys[prompt];
    int32_t blocks[DEPTH];
    int n_known = 0;
    while (n_known < n && shadow_find(s, &keys[n_known]) >= 0) {
        n_known++;
    }
    T_EQ(prefix_find(f->c, keys, n, blocks), n_known);
    for (int i = 0; i < n_known; i++) {
        T_EQ(blocks[i], shadow_find(s, &keys[i]));
    }
    shadow_use(s, n_known ? blocks[n_known - 1] : -1);
    kv_seq_clear(f->kv, q);
    T_OK(kv_seq_share(f->kv, q, blocks, n_known * KV_BLOCK));
    if (!kv_seq_resize(f->kv, q, n * KV_BLOCK)) {
        return;
    }
    for (int i = n_known; i < n; i++) {
        const int b = q->blocks[i];
        prefix_add(f->c, keys, i, b);
        s->block[b].key = keys[i];
        s->block[b].known = true;
        s->block[b].parent = i > 0 ? shadow_find(s, &keys[i - 1]) : -1;
        shadow_use(s, b);
    }
}

static void random_life(void)
{
    static struct shadow s;
    struct fixture f = fixture_open(N_BLOCKS);
    struct kv_seq q[N_SEQS] = { 0 };
    for (int p = 0; p < N_PROMPTS; p++) {
        chain(s.keys[p], DEPTH, f.c, p + 1, 0);
        for (int i = 0; p % 4 && i < p % 4; i++) { /* families with a common beginning */
            s.keys[p][i] = s.keys[p - 1][i];
        }
    }
    int n_hits = 0, n_short = 0;
    for (int step = 0; step < 20000; step++) {
        const uint64_t at = 4 * (uint64_t)step;
        const int i = (int)(rng_uniform(3, at) * N_SEQS);
        const int prompt = (int)(rng_uniform(3, at + 1) * N_PROMPTS);
        const int n = 1 + (int)(rng_uniform(3, at + 2) * DEPTH);
        const double what = rng_uniform(3, at + 3);
        if (what < 0.6) {
            request_beside(&f, &s, &q[i], prompt, n);
            n_hits += q[i].n_blocks > 0;
            n_short += q[i].n_blocks < n;
        } else if (what < 0.8) {
            kv_seq_clear(f.kv, &q[i]);
        } else {
            evict_beside(&f, &s, n);
        }
        int refs[N_BLOCKS] = { 0 }, n_known = 0;
        for (int k = 0; k < N_SEQS; k++) {
            for (int j = 0; j < q[k].n_blocks; j++) {
                refs[q[k].blocks[j]]++;
            }
        }
        for (int b = 0; b < N_BLOCKS; b++) {
            T_EQ(kv_block_refs(f.kv, b), refs[b] + s.block[b].known);
            n_known += s.block[b].known;
        }
        T_EQ(prefix_n_blocks(f.c), n_known);
        kv_check(f.kv);
        prefix_check(f.c);
    }
    T_OK(n_hits > 1000 && n_short > 100);
    for (int k = 0; k < N_SEQS; k++) {
        kv_seq_clear(f.kv, &q[k]);
    }
    fixture_close(&f);
}

static void memory(void)
{
    struct fixture f = fixture_open(4);
    struct prefix_cache *c = NULL;
    struct galley_err err = { 0 };
    for (int n = 1; n <= 3; n++) {
        mem_fail_at(n);
        T_EQ(prefix_open(&c, f.kv, root, &err), GALLEY_ENOMEM);
        mem_fail_at(0);
        T_OK(!c);
    }
    prefix_close(NULL);
    fixture_close(&f);
}

static const struct t_case cases[] = {
    { "keys_tell_apart", keys_tell_apart },
    { "key_bytes", key_bytes },
    { "shares_and_evicts", shares_and_evicts },
    { "same_prompt_twice", same_prompt_twice },
    { "random_life", random_life },
    { "memory", memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
