/* tokenizer_table.c - the tokenizer's lookup tables. */
#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/tokenizer_impl.h"

/* UTF-8 never holds 13 of the 256, and control characters are rare. */
#define BYTES_MIN 192

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

static GALLEY_INLINE uint64_t load_bytes(const char *s, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, s, n);
    return v;
}

/* Eight bytes a step; the last step may overlap, so that every length takes the same two loads. */
static uint64_t hash_bytes(const char *s, size_t n)
{
    const uint64_t k = 0x9e3779b97f4a7c15u;
    uint64_t h = n * k;
    while (n > 8) {
        h = (h ^ load_bytes(s, 8)) * k;
        h ^= h >> 32;
        s += 8;
        n -= 8;
    }
    const uint64_t tail = n >= 4   ? load_bytes(s, 4) | load_bytes(s + n - 4, 4) << 32
                          : n >= 2 ? load_bytes(s, 2) | load_bytes(s + n - 2, 2) << 16
                          : n == 1 ? (uint64_t)(unsigned char)s[0]
                                   : 0;
    h = (h ^ tail) * k;
    return h ^ h >> 29;
}

#define SLOT_EMPTY UINT32_MAX
#define SLOT_ID    ((uint32_t)TOK_VOCAB_MAX - 1)

/* Twelve bits of the hash that the index does not use; never all ones, so that no slot looks
 * empty. */
static uint32_t slot_tag(uint64_t hash)
{
    return (uint32_t)((hash >> 32) * 4095u >> 32) * (SLOT_ID + 1);
}

/* The slot that holds s, or the empty one where it belongs. */
static size_t slot_of(const struct tokenizer *t, const char *s, size_t n, uint64_t hash)
{
    size_t i = (size_t)hash & (t->n_slots - 1);
    const uint32_t tag = slot_tag(hash);
    for (; t->slots[i] != SLOT_EMPTY; i = (i + 1) & (t->n_slots - 1)) {
        if ((t->slots[i] & ~SLOT_ID) != tag) {
            continue;
        }
        const struct tok_entry *e = &t->entries[t->slots[i] & SLOT_ID];
        if (e->n == n && memcmp(t->text + e->at, s, n) == 0) {
            break;
        }
    }
    return i;
}

int32_t tok_find(const struct tokenizer *t, const char *s, size_t n)
{
    const uint32_t slot = t->slots[slot_of(t, s, n, hash_bytes(s, n))];
    return slot == SLOT_EMPTY ? -1 : (int32_t)(slot & SLOT_ID);
}

void tok_insert(struct tokenizer *t, int32_t id)
{
    const struct tok_entry *e = &t->entries[id];
    assert(e->flags & TOK_PRESENT);
    const uint64_t hash = hash_bytes(t->text + e->at, e->n);
    t->slots[slot_of(t, t->text + e->at, e->n, hash)] = (uint32_t)id | slot_tag(hash);
}

enum galley_status tok_find_bytes(struct tokenizer *t, const char *where, struct galley_err *err)
{
    int n = 0, missing = -1;
    for (int b = 0; b < 256; b++) {
        char c[4];
        const int len = utf8_encode(tok_alphabet((uint8_t)b), c);
        t->byte_id[b] = tok_find(t, c, (size_t)len);
        n += t->byte_id[b] >= 0;
        missing = t->byte_id[b] < 0 ? b : missing;
    }
    if (n < BYTES_MIN) {
        return galley_err_set(err, GALLEY_EUNSUP,
                              "%s: only %d bytes have a token (0x%02x has none): not a byte-level "
                              "vocabulary",
                              where, n, (unsigned)missing);
    }
    return GALLEY_OK;
}

enum galley_status tok_reserve(struct tokenizer *t, const char *where, size_t n,
                               struct galley_err *err)
{
    t->n_slots = 16;
    while (t->n_slots < n * 2) {
        t->n_slots *= 2;
    }
    t->entries = mem_many(struct tok_entry, (size_t)t->n_vocab);
    t->text = mem_array(t->text_cap, 1);
    t->slots = mem_array(t->n_slots, sizeof(*t->slots));
    if (!t->entries || !t->text || !t->slots) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for %zu tokens", where, n);
    }
    memset(t->slots, 0xff, t->n_slots * sizeof(*t->slots));
    return GALLEY_OK;
}

void tok_put(struct tokenizer *t, int32_t id, const char *s, size_t n, unsigned flags)
{
    assert(id >= 0 && id < t->n_vocab && n < t->text_cap - t->text_n);
    struct tok_entry *e = &t->entries[id];
    e->at = (uint32_t)t->text_n;
    e->n = (uint32_t)n;
    e->flags = (uint8_t)(flags | TOK_PRESENT);
    memcpy(t->text + t->text_n, s, n);
    t->text[t->text_n + n] = '\0';
    t->text_n += n + 1;
}

/* Text may be cut before a U+2581 wherever no token has one behind the byte that is there. */
static void survey_spaces(struct tokenizer *t, const char *s, size_t n)
{
    const char *const end = s + n;
    for (const char *p = s; p < end;) {
        p = memchr(p, TOK_SPACE[0], (size_t)(end - p));
        if (!p) {
            return;
        }
        if (p > s && end - p >= 3 && memcmp(p, TOK_SPACE, 3) == 0) {
            t->before_space[(unsigned char)p[-1]] = true;
        }
        p++;
    }
}

void tok_survey(struct tokenizer *t)
{
    for (int i = 0; i < t->n_vocab; i++) {
        const struct tok_entry *e = &t->entries[i];
        if (!(e->flags & TOK_MODEL)) {
            continue;
        }
        t->token_max = e->n > t->token_max ? e->n : t->token_max;
        survey_spaces(t, t->text + e->at, e->n);
    }
    const int32_t space = tok_find(t, TOK_SPACE, 3);
    if (space < 0 || !(t->entries[space].flags & TOK_MODEL)) { /* unknowns may fuse across it */
        memset(t->before_space, true, sizeof(t->before_space));
    }
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

enum galley_status tok_reserve_merges(struct tokenizer *t, const char *where, size_t n,
                                      struct galley_err *err)
{
    t->n_merge_slots = 16;
    while (t->n_merge_slots < n + n / 2) {
        t->n_merge_slots *= 2;
    }
    t->merges = mem_array(t->n_merge_slots, sizeof(*t->merges));
    if (!t->merges) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for %zu merges", where, n);
    }
    memset(t->merges, 0xff, t->n_merge_slots * sizeof(*t->merges)); /* left = -1 */
    return GALLEY_OK;
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
