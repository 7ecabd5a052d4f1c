/* prefix.c - see prefix.h.
 *
 * A block has at most one key, so entries are indexed by block and nothing is allocated after
 * open.  A table of blocks by key (open addressing; keys are hashes already) finds them.
 *
 * All entries form one list by last use.  Whoever uses an entry uses its parents after it, so
 * parents are always more recent than their children: one walk from the old end meets every leaf
 * before what it hangs on. */
#include "src/model/prefix.h"

#include <assert.h>
#include <string.h>

#include "src/base/mem.h"

#define NONE (-1)

struct entry {
    struct prefix_key key;
    bool known;
    bool pinned;        /* scratch of prefix_n_evictable */
    int32_t parent;     /* block of the key before, or NONE */
    int32_t n_children; /* entries whose parent this is */
    int32_t older, newer;
};

struct prefix_cache {
    struct kv_pool *kv;
    uint8_t root[HASH_BYTES];
    struct entry *entry; /* [n_blocks] by block */
    int32_t *slot;       /* [n_slots] block, or NONE */
    uint32_t n_slots;    /* a power of two, twice the blocks at least */
    int32_t oldest, newest;
    int n_known;
};

enum galley_status prefix_open(struct prefix_cache **out, struct kv_pool *kv,
                               const uint8_t root[HASH_BYTES], struct galley_err *err)
{
    *out = NULL;
    const int n_blocks = kv_pool_n_blocks(kv);
    uint32_t n_slots = 4;
    while (n_slots / 2 < (uint32_t)n_blocks) {
        n_slots *= 2;
    }
    struct prefix_cache *c = mem_new(struct prefix_cache);
    if (c) {
        *c = (struct prefix_cache){ .kv = kv, .n_slots = n_slots, .oldest = NONE, .newest = NONE };
        c->entry = mem_many(struct entry, (size_t)n_blocks);
        c->slot = mem_many(int32_t, n_slots);
    }
    if (!c || !c->entry || !c->slot) {
        prefix_close(c);
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: a prefix cache of %d blocks",
                              n_blocks);
    }
    memcpy(c->root, root, HASH_BYTES);
    for (uint32_t i = 0; i < n_slots; i++) {
        c->slot[i] = NONE;
    }
    *out = c;
    return GALLEY_OK;
}

void prefix_close(struct prefix_cache *c)
{
    if (!c) {
        return;
    }
    for (int32_t b = c->oldest; c->entry && b != NONE; b = c->entry[b].newer) {
        kv_block_unref(c->kv, b);
    }
    mem_free(c->entry);
    mem_free(c->slot);
    mem_free(c);
}

/* ---- keys ---- */

static uint8_t *put_i32(uint8_t *at, int32_t value)
{
    const uint32_t u = (uint32_t)value;
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(u >> (8 * i));
    }
    return at + 4;
}

/* Kind, identity, positions: no row is the beginning of another kind's. */
static void row_hash(struct hash *h, const struct prefix_row *r)
{
    uint8_t bytes[1 + HASH_BYTES + 4 + 3 * 4];
    uint8_t *at = bytes;
    *at++ = r->image != NULL;
    if (r->image) {
        memcpy(at, r->image, HASH_BYTES);
        at += HASH_BYTES;
    }
    at = put_i32(at, r->image ? r->i_row : r->token);
    for (int i = 0; i < 3; i++) {
        at = put_i32(at, r->pos[i]);
    }
    hash_add(h, bytes, (size_t)(at - bytes));
}

void prefix_keys(const struct prefix_cache *c, struct prefix_key *keys,
                 const struct prefix_row *rows, int n)
{
    for (int i = 0; i < n / KV_BLOCK; i++) {
        struct hash h;
        hash_init(&h);
        hash_add(&h, i > 0 ? keys[i - 1].bytes : c->root, HASH_BYTES);
        for (int k = 0; k < KV_BLOCK; k++) {
            row_hash(&h, &rows[i * KV_BLOCK + k]);
        }
        hash_finish(&h, keys[i].bytes);
    }
}

/* ---- the table ---- */

static uint32_t slot_home(const struct prefix_cache *c, const struct prefix_key *key)
{
    uint32_t u;
    memcpy(&u, key->bytes, sizeof(u)); /* any bits do: the order of slots is nobody's business */
    return u & (c->n_slots - 1);
}

/* The slot that holds the key, or the free one where it would go. */
static uint32_t slot_find(const struct prefix_cache *c, const struct prefix_key *key)
{
    uint32_t i = slot_home(c, key);
    while (c->slot[i] != NONE && memcmp(&c->entry[c->slot[i]].key, key, sizeof(*key)) != 0) {
        i = (i + 1) & (c->n_slots - 1);
    }
    return i;
}

/* Empties a slot and moves those behind it up, so that no search stops early. */
static void slot_empty(struct prefix_cache *c, uint32_t i)
{
    const uint32_t mask = c->n_slots - 1;
    c->slot[i] = NONE;
    for (uint32_t j = (i + 1) & mask; c->slot[j] != NONE; j = (j + 1) & mask) {
        const uint32_t home = slot_home(c, &c->entry[c->slot[j]].key);
        if (((j - home) & mask) >= ((j - i) & mask)) { /* home lies at i or before it */
            c->slot[i] = c->slot[j];
            c->slot[j] = NONE;
            i = j;
        }
    }
}

/* ---- the list ---- */

static void list_remove(struct prefix_cache *c, int32_t b)
{
    const struct entry *e = &c->entry[b];
    *(e->older == NONE ? &c->oldest : &c->entry[e->older].newer) = e->newer;
    *(e->newer == NONE ? &c->newest : &c->entry[e->newer].older) = e->older;
}

static void list_append(struct prefix_cache *c, int32_t b)
{
    c->entry[b].older = c->newest;
    c->entry[b].newer = NONE;
    *(c->newest == NONE ? &c->oldest : &c->entry[c->newest].newer) = b;
    c->newest = b;
}

/* The entry and then its parents become the most recent. */
static void chain_touch(struct prefix_cache *c, int32_t b)
{
    for (; b != NONE; b = c->entry[b].parent) {
        list_remove(c, b);
        list_append(c, b);
    }
}

/* ---- use ---- */

int prefix_find(struct prefix_cache *c, const struct prefix_key *keys, int n_keys, int32_t *blocks)
{
    int n = 0;
    for (; n < n_keys; n++) {
        blocks[n] = c->slot[slot_find(c, &keys[n])];
        if (blocks[n] == NONE) {
            break;
        }
        assert(c->entry[blocks[n]].parent == (n > 0 ? blocks[n - 1] : NONE));
    }
    if (n > 0) {
        chain_touch(c, blocks[n - 1]);
    }
    return n;
}

void prefix_add(struct prefix_cache *c, const struct prefix_key *keys, int i, int32_t block)
{
    const int32_t parent = i > 0 ? c->slot[slot_find(c, &keys[i - 1])] : NONE;
    const uint32_t slot = slot_find(c, &keys[i]);
    if ((i > 0 && parent == NONE) || c->slot[slot] != NONE) {
        return;
    }
    struct entry *e = &c->entry[block];
    assert(!e->known); /* one content, one key */
    *e = (struct entry){ .key = keys[i], .known = true, .parent = parent };
    c->slot[slot] = block;
    if (parent != NONE) {
        c->entry[parent].n_children++;
    }
    kv_block_ref(c->kv, block);
    c->n_known++;
    list_append(c, block);
    chain_touch(c, parent);
}

static void entry_drop(struct prefix_cache *c, int32_t b)
{
    struct entry *e = &c->entry[b];
    assert(e->known && e->n_children == 0);
    slot_empty(c, slot_find(c, &e->key));
    list_remove(c, b);
    if (e->parent != NONE) {
        c->entry[e->parent].n_children--;
    }
    e->known = false;
    c->n_known--;
    kv_block_unref(c->kv, b);
}

int prefix_evict(struct prefix_cache *c, int n)
{
    int n_done = 0;
    for (int32_t b = c->oldest, next; b != NONE && n_done < n; b = next) {
        next = c->entry[b].newer;
        if (c->entry[b].n_children == 0 && kv_block_refs(c->kv, b) == 1) {
            entry_drop(c, b);
            n_done++;
        }
    }
    return n_done;
}

int prefix_n_blocks(const struct prefix_cache *c)
{
    return c->n_known;
}

bool prefix_holds(const struct prefix_cache *c, int32_t block)
{
    return c->entry[block].known;
}

int prefix_n_evictable(const struct prefix_cache *c)
{
    int n = 0;
    for (int32_t b = c->oldest; b != NONE; b = c->entry[b].newer) {
        c->entry[b].pinned = false;
    }
    for (int32_t b = c->oldest; b != NONE; b = c->entry[b].newer) {
        const struct entry *e = &c->entry[b]; /* its children came before it */
        const bool pinned = e->pinned || kv_block_refs(c->kv, b) > 1;
        n += !pinned;
        if (pinned && e->parent != NONE) {
            c->entry[e->parent].pinned = true;
        }
    }
    return n;
}

void prefix_check(const struct prefix_cache *c)
{
    int n = 0, n_children = 0, n_parents = 0;
    for (int32_t b = c->oldest, older = NONE; b != NONE; older = b, b = c->entry[b].newer, n++) {
        const struct entry *e = &c->entry[b];
        assert(e->known && e->older == older && n < c->n_known);
        assert(c->slot[slot_find(c, &e->key)] == b);
        assert(kv_block_refs(c->kv, b) > 0);
        assert(e->parent == NONE || c->entry[e->parent].known);
        n_children += e->n_children;
        n_parents += e->parent != NONE;
    }
    assert(n == c->n_known && n_children == n_parents);
    (void)n_children; /* read by asserts only */
    (void)n_parents;
}
