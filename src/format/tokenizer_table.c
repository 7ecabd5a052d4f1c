/* tokenizer_table.c - the tokenizer's lookup tables. */
#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/format/tokenizer_impl.h"

/* Bytes that print stand for themselves; the 68 others are counted up from U+0100. */
static bool prints(unsigned b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
}

uint32_t tok_alphabet(uint8_t byte)
{
    if (prints(byte)) {
        return byte;
    }
    if (byte <= 32) {
        return 256u + byte;
    }
    return byte == 173 ? 323u : 256u + 33u + (byte - 127u);
}

int tok_alphabet_byte(uint32_t cp)
{
    if (cp < 256) {
        return prints(cp) ? (int)cp : -1;
    }
    if (cp <= 288) {
        return (int)cp - 256;
    }
    if (cp <= 322) {
        return (int)cp - 289 + 127;
    }
    return cp == 323 ? 173 : -1;
}

static uint64_t hash_bytes(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    }
    return h ^ h >> 29;
}

/* The slot that holds s, or the empty one where it belongs. */
static size_t slot_of(const struct tokenizer *t, const char *s, size_t n)
{
    size_t i = (size_t)hash_bytes(s, n) & (t->n_slots - 1);
    while (t->slots[i] >= 0) {
        const struct tok_entry *e = &t->entries[t->slots[i]];
        if (e->n == n && memcmp(t->text + e->at, s, n) == 0) {
            break;
        }
        i = (i + 1) & (t->n_slots - 1);
    }
    return i;
}

int32_t tok_find(const struct tokenizer *t, const char *s, size_t n)
{
    return t->slots[slot_of(t, s, n)];
}

void tok_insert(struct tokenizer *t, int32_t id)
{
    const struct tok_entry *e = &t->entries[id];
    assert(e->flags & TOK_PRESENT);
    t->slots[slot_of(t, t->text + e->at, e->n)] = id;
}

static size_t merge_slot(const struct tokenizer *t, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (t->n_merge_slots - 1);
    while (t->merges[i].left >= 0 && (t->merges[i].left != left || t->merges[i].right != right)) {
        i = (i + 1) & (t->n_merge_slots - 1);
    }
    return i;
}

const struct tok_merge *tok_merge_find(const struct tokenizer *t, int32_t left, int32_t right)
{
    if (t->n_merge_slots == 0) {
        return NULL;
    }
    const struct tok_merge *m = &t->merges[merge_slot(t, left, right)];
    return m->left >= 0 ? m : NULL;
}

void tok_merge_insert(struct tokenizer *t, struct tok_merge m)
{
    t->merges[merge_slot(t, m.left, m.right)] = m;
}

/* Node 0 is the root, so that 0 can mean "none" in the links. */
static enum galley_status trie_grow(struct tok_trie *trie, struct galley_err *err)
{
    if (trie->n < trie->cap) {
        return GALLEY_OK;
    }
    const int32_t cap = trie->cap ? trie->cap * 2 : 64;
    struct tok_node *more = mem_resize_array(trie->nodes, (size_t)cap, sizeof(*more));
    if (!more) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d added-token nodes", cap);
    }
    trie->nodes = more;
    trie->cap = cap;
    if (trie->n == 0) {
        trie->nodes[trie->n++] = (struct tok_node){ .id = -1 };
    }
    return GALLEY_OK;
}

static int32_t trie_child(const struct tok_trie *trie, int32_t at, uint8_t byte)
{
    if (at == 0) {
        return trie->first[byte];
    }
    int32_t c = trie->nodes[at].child;
    while (c && trie->nodes[c].byte != byte) {
        c = trie->nodes[c].sibling;
    }
    return c;
}

enum galley_status tok_trie_add(struct tok_trie *trie, const char *s, size_t n, int32_t id,
                                struct galley_err *err)
{
    assert(n > 0);
    int32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t byte = (uint8_t)s[i];
        int32_t c = trie_child(trie, at, byte);
        if (c == 0) {
            const enum galley_status rc = trie_grow(trie, err);
            if (rc) {
                return rc;
            }
            c = trie->n++;
            trie->nodes[c] = (struct tok_node){ .id = -1, .byte = byte };
            if (at == 0) {
                trie->first[byte] = c;
            } else {
                trie->nodes[c].sibling = trie->nodes[at].child;
                trie->nodes[at].child = c;
            }
        }
        at = c;
    }
    trie->nodes[at].id = id;
    return GALLEY_OK;
}

size_t tok_trie_match(const struct tok_trie *trie, const char *s, size_t n, int32_t *id)
{
    size_t longest = 0;
    int32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        at = trie_child(trie, at, (uint8_t)s[i]);
        if (at == 0) {
            break;
        }
        if (trie->nodes[at].id >= 0) {
            *id = trie->nodes[at].id;
            longest = i + 1;
        }
    }
    return longest;
}
