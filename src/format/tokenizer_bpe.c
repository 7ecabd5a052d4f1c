/* tokenizer_bpe.c - byte pair merging of one word.
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
    int32_t id; /* -1: merged into the symbol before */
    int32_t prev, next;
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

/* Offers the pair whose left symbol is at. */
static void offer(struct tok_bpe *b, const struct tokenizer *t, int32_t at)
{
    if (at < 0 || b->symbols[at].next < 0) {
        return;
    }
    const struct tok_merge *m =
        tok_merge_find(t, b->symbols[at].id, b->symbols[b->symbols[at].next].id);
    if (m) {
        heap_push(b, (struct bpe_merge){ m->rank, at, m->id });
    }
}

static void merge_all(struct tok_bpe *b, const struct tokenizer *t, size_t n)
{
    b->n_heap = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        offer(b, t, (int32_t)i);
    }
    while (b->n_heap > 0) {
        const struct bpe_merge top = heap_pop(b);
        struct bpe_symbol *left = &b->symbols[top.at];
        if (left->id < 0 || left->next < 0) {
            continue;
        }
        struct bpe_symbol *right = &b->symbols[left->next];
        const struct tok_merge *m = tok_merge_find(t, left->id, right->id);
        if (!m || m->id != top.id) {
            continue; /* stale: one side has merged with another neighbour */
        }
        left->id = top.id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) {
            b->symbols[left->next].prev = top.at;
        }
        offer(b, t, left->prev);
        offer(b, t, top.at);
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
    for (size_t i = 0; i < n; i++) {
        b->symbols[i] = (struct bpe_symbol){ .id = t->byte_id[(uint8_t)s[i]],
                                             .prev = (int32_t)i - 1,
                                             .next = i + 1 < n ? (int32_t)i + 1 : -1 };
    }
    merge_all(b, t, n);
    for (int32_t i = 0; i >= 0 && !rc; i = b->symbols[i].next) {
        rc = tok_ids_add(out, b->symbols[i].id, err);
    }
    return rc;
}
