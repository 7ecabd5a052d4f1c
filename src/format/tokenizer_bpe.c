/* tokenizer_bpe.c - byte pair merging of one word, by merge rank or by token score.
 *
 * Symbols form a linked list, possible merges a heap ordered by (rank, position), as in Hugging
 * Face tokenizers; a heap entry whose pair has changed since is stale and skipped.  n bytes
 * cost O(n log n), so a megabyte without a space is fine. */
#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/tokenizer_impl.h"

struct bpe_symbol {
    int32_t id;         /* -1: no token */
    int32_t prev, next; /* -1: none; next is -1 too in one that was merged into the one before */
};

struct bpe_merge {
    int32_t rank, at; /* at: index of the left symbol */
    int32_t id;
};

enum galley_status tok_ids_add(struct tok_ids *ids, int32_t id, struct galley_err *err)
{
    if (ids->n == ids->cap) {
        const size_t cap = ids->cap ? ids->cap * 2 : 64;
        int32_t *more = mem_resize_array(ids->v, cap, sizeof(*more));
        if (!more) {
            return galley_err_set(err, GALLEY_ENOMEM, "no memory for %zu token ids", cap);
        }
        ids->v = more;
        ids->cap = cap;
    }
    ids->v[ids->n++] = id;
    return GALLEY_OK;
}

/* n - 1 pairs at first, and each of at most n - 1 merges adds two: 3 n entries are enough. */
static enum galley_status reserve(struct tok_bpe *b, size_t n, struct galley_err *err)
{
    if (n <= b->cap) {
        return GALLEY_OK;
    }
    const size_t cap = n < 128 ? 128 : n + n / 2;
    tok_bpe_deinit(b);
    b->symbols = mem_array(cap, sizeof(*b->symbols));
    b->heap = mem_array(cap, 3 * sizeof(*b->heap));
    b->spelled = mem_array(cap, 2);
    if (!b->symbols || !b->heap || !b->spelled) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a word of %zu bytes", n);
    }
    b->cap = cap;
    return GALLEY_OK;
}

void tok_bpe_deinit(struct tok_bpe *b)
{
    mem_free(b->symbols);
    mem_free(b->heap);
    mem_free(b->spelled);
    *b = (struct tok_bpe){ 0 };
}

static bool before(const struct bpe_merge *a, const struct bpe_merge *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(struct tok_bpe *b, struct bpe_merge m)
{
    size_t i = b->n_heap++;
    assert(b->n_heap <= 3 * b->cap);
    while (i > 0) {
        const size_t up = (i - 1) / 2;
        if (!before(&m, &b->heap[up])) {
            break;
        }
        b->heap[i] = b->heap[up];
        i = up;
    }
    b->heap[i] = m;
}

static struct bpe_merge heap_pop(struct tok_bpe *b)
{
    assert(b->n_heap > 0);
    const struct bpe_merge top = b->heap[0], last = b->heap[--b->n_heap];
    size_t i = 0;
    for (;;) {
        size_t down = 2 * i + 1;
        if (down >= b->n_heap) {
            break;
        }
        if (down + 1 < b->n_heap && before(&b->heap[down + 1], &b->heap[down])) {
            down++;
        }
        if (!before(&b->heap[down], &last)) {
            break;
        }
        b->heap[i] = b->heap[down];
        i = down;
    }
    b->heap[i] = last;
    return top;
}

/* A word being merged: symbol i stands for the bytes from i up to the next symbol. */
struct bpe_word {
    struct tok_bpe *b;
    const struct tokenizer *t;
    const char *s;
    size_t n;
};

/* Bytes of the pair whose left symbol is at. */
static size_t pair_bytes(const struct bpe_word *w, int32_t at)
{
    const int32_t end = w->b->symbols[w->b->symbols[at].next].next;
    return (end >= 0 ? (size_t)end : w->n) - (size_t)at;
}

/* By score: whatever the two spell together, when that is a token. */
static bool find_by_score(const struct bpe_word *w, int32_t at, struct bpe_merge *m)
{
    const size_t n = pair_bytes(w, at);
    if (n > w->t->token_max) {
        return false;
    }
    m->at = at;
    m->id = tok_find(w->t, w->s + at, n);
    m->rank = m->id >= 0 ? w->t->ranks[m->id] : TOK_RANK_NEVER;
    return m->rank != TOK_RANK_NEVER;
}

/* Offers the pair whose left symbol is at. */
static void offer(const struct bpe_word *w, int32_t at)
{
    const struct bpe_symbol *symbols = w->b->symbols;
    if (at < 0 || symbols[at].next < 0) {
        return;
    }
    struct bpe_merge found;
    if (w->t->ranks) {
        if (find_by_score(w, at, &found)) {
            heap_push(w->b, found);
        }
        return;
    }
    const struct tok_merge *m = tok_merge_find(w->t, symbols[at].id, symbols[symbols[at].next].id);
    if (m) {
        heap_push(w->b, (struct bpe_merge){ m->rank, at, m->id });
    }
}

/* Whether the pair is still what was offered: neither side has merged with another neighbour. */
static bool is_fresh(const struct bpe_word *w, const struct bpe_merge *m)
{
    const struct bpe_symbol *left = &w->b->symbols[m->at];
    if (left->next < 0) { /* the last one, or merged away */
        return false;
    }
    if (w->t->ranks) {
        return pair_bytes(w, m->at) == w->t->entries[m->id].n;
    }
    const struct tok_merge *now = tok_merge_find(w->t, left->id, w->b->symbols[left->next].id);
    return now && now->id == m->id;
}

/* head: the first symbol, or -1. */
static void merge_all(const struct bpe_word *w, int32_t head)
{
    struct bpe_symbol *symbols = w->b->symbols;
    w->b->n_heap = 0;
    for (int32_t i = head; i >= 0; i = symbols[i].next) {
        offer(w, i);
    }
    while (w->b->n_heap > 0) {
        const struct bpe_merge top = heap_pop(w->b);
        if (!is_fresh(w, &top)) {
            continue;
        }
        struct bpe_symbol *left = &symbols[top.at], *right = &symbols[left->next];
        left->id = top.id;
        left->next = right->next;
        right->next = -1;
        if (left->next >= 0) {
            symbols[left->next].prev = top.at;
        }
        offer(w, left->prev);
        offer(w, top.at);
    }
}

/* The id of the whole word, when it is a token. */
static int32_t whole_word(struct tok_bpe *b, const struct tokenizer *t, const char *s, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) { /* alphabet characters have one or two bytes */
        char c[4];
        const int len = utf8_encode(tok_alphabet((uint8_t)s[i]), c);
        memcpy(b->spelled + used, c, (size_t)len);
        used += (size_t)len;
    }
    const int32_t id = tok_find(t, b->spelled, used);
    return id >= 0 && (t->entries[id].flags & TOK_MODEL) ? id : -1;
}

/* Bytes become symbols; one without a token is dropped, and its neighbours may merge, as in Hugging
 * Face tokenizers.  The first symbol, or -1. */
static int32_t spell_bytes(struct tok_bpe *b, const struct tokenizer *t, const char *s, size_t n)
{
    int32_t head = -1, prev = -1;
    for (int32_t i = 0; i < (int32_t)n; i++) {
        const int32_t id = t->byte_id[(uint8_t)s[i]];
        if (id < 0) {
            continue;
        }
        b->symbols[i] = (struct bpe_symbol){ .id = id, .prev = prev, .next = -1 };
        if (prev >= 0) {
            b->symbols[prev].next = i;
        } else {
            head = i;
        }
        prev = i;
    }
    return head;
}

enum galley_status tok_bpe_word(struct tok_bpe *b, const struct tokenizer *t, const char *s,
                                size_t n, struct tok_ids *out, struct galley_err *err)
{
    assert(n > 0 && n <= INT32_MAX / 2);
    enum galley_status rc = reserve(b, n, err);
    if (rc) {
        return rc;
    }
    if (t->ignore_merges) {
        const int32_t id = whole_word(b, t, s, n);
        if (id >= 0) {
            return tok_ids_add(out, id, err);
        }
    }
    const int32_t head = spell_bytes(b, t, s, n);
    merge_all(&(struct bpe_word){ b, t, s, n }, head);
    for (int32_t i = head; i >= 0 && !rc; i = b->symbols[i].next) {
        rc = tok_ids_add(out, b->symbols[i].id, err);
    }
    return rc;
}

/* ---- characters ---- */

static int32_t model_token(const struct tokenizer *t, const char *s, size_t n)
{
    const int32_t id = tok_find(t, s, n);
    return id >= 0 && (t->entries[id].flags & TOK_MODEL) ? id : -1;
}

static bool has_byte_tokens(const struct tokenizer *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (t->byte_id[(uint8_t)s[i]] < 0) {
            return false;
        }
    }
    return t->byte_fallback;
}

/* Characters become symbols; those without a token become their bytes' tokens, if there are. */
static void spell_chars(struct tok_bpe *b, const struct tokenizer *t, const char *s, size_t n)
{
    int32_t prev = -1;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        const size_t len = (size_t)utf8_decode(s + i, n - i, &cp);
        const int32_t id = model_token(t, s + i, len);
        const bool bytes = id < 0 && has_byte_tokens(t, s + i, len);
        for (size_t k = 0; k < (bytes ? len : 1); k++) {
            const int32_t at = (int32_t)(i + k);
            b->symbols[at] = (struct bpe_symbol){ .id = bytes ? t->byte_id[(uint8_t)s[at]] : id,
                                                  .prev = prev,
                                                  .next = -1 };
            if (prev >= 0) {
                b->symbols[prev].next = at;
            }
            prev = at;
        }
        i += len;
    }
}

enum galley_status tok_bpe_chars(struct tok_bpe *b, const struct tokenizer *t, const char *s,
                                 size_t n, struct tok_ids *out, struct galley_err *err)
{
    assert(n > 0 && n <= INT32_MAX / 2);
    if (t->ignore_merges) {
        const int32_t id = model_token(t, s, n);
        if (id >= 0) {
            return tok_ids_add(out, id, err);
        }
    }
    enum galley_status rc = reserve(b, n, err);
    if (rc) {
        return rc;
    }
    spell_chars(b, t, s, n);
    merge_all(&(struct bpe_word){ b, t, s, n }, 0);
    bool unknown = false; /* the symbol before was */
    for (int32_t i = 0; i >= 0 && !rc; i = b->symbols[i].next) {
        const int32_t id = b->symbols[i].id;
        if (id >= 0) {
            rc = tok_ids_add(out, id, err);
        } else if (t->unk >= 0 && !(unknown && t->fuse_unk)) {
            rc = tok_ids_add(out, t->unk, err);
        }
        unknown = id < 0;
    }
    return rc;
}
