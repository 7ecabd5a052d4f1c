/* tokenizer_pieces.c - a tokenizer of characters in SentencePiece's words: types and scores.
 *
 * tokenizer.json lists the pairs that may be joined, best first.  SentencePiece joins whatever
 * makes a token, the best score first.  Both mean the same when the pairs that make one token stand
 * together in the list and no pair is missing whose union is a token: then a place in the list is a
 * score.  Files that were converted from a SentencePiece model are like that.  Merges that were
 * learned as merges are not: they are refused. */
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/gguf.h"
#include "src/format/tokenizer_impl.h"

/* Bytes of a token that merging makes: every place where it could be cut is looked at.  Gemma's
 * longest has 93. */
#define PIECE_MAX 256

/* The merges that make a token. */
struct making {
    int32_t first, last; /* ranks */
    int32_t n;
};

struct pieces {
    const struct tokenizer *t;
    struct making *made; /* [n_vocab] */
    int32_t *types;      /* [n_vocab], the caller's */
    const char *where;
    struct galley_err *err;
};

static enum galley_status refuse(const struct pieces *p, const char *what, const char *token)
{
    return galley_err_set(p->err, GALLEY_EUNSUP,
                          "%s: GGUF has no form for a tokenizer of characters with %s%s%.40s; "
                          "convert the model with its author's tools and give the GGUF file",
                          p->where, what, token[0] ? ": " : "", token);
}

static const char *text_of(const struct pieces *p, int32_t id)
{
    return p->t->text + p->t->entries[id].at;
}

/* What holds for the tokenizer as a whole. */
static enum galley_status check_whole(const struct pieces *p)
{
    const struct tokenizer *t = p->t;
    if (!t->chars || !t->byte_fallback) {
        return refuse(p, "no bytes to fall back on", "");
    }
    if (t->ignore_merges) {
        return refuse(p, "ignore_merges", "");
    }
    if (t->prefix == TOK_PREFIX_FIRST) {
        return refuse(p, "a space before the first piece only", "");
    }
    for (int b = 0; b < 256; b++) {
        const char c = (char)b;
        /* Gemma has a token for the tab itself instead */
        if (t->byte_id[b] < 0 && (b >= 0x80 || b == 0 || tok_find(t, &c, 1) < 0)) {
            return refuse(p, "a byte that has no token", "");
        }
    }
    return GALLEY_OK;
}

static int32_t find_makings(struct making *made, const struct tokenizer *t)
{
    int32_t n_merges = 0;
    for (size_t i = 0; i < t->n_merge_slots; i++) {
        const struct tok_merge *m = &t->merges[i];
        if (m->left < 0) {
            continue;
        }
        struct making *k = &made[m->id];
        k->first = k->n == 0 || m->rank < k->first ? m->rank : k->first;
        k->last = m->rank > k->last ? m->rank : k->last;
        k->n++;
        n_merges++;
    }
    return n_merges;
}

static enum gguf_token_type type_of(const struct pieces *p, int32_t id)
{
    const unsigned flags = p->t->entries[id].flags;
    if (id == p->t->unk) {
        return GGUF_TOKEN_UNKNOWN;
    }
    if (flags & TOK_SPECIAL) {
        return GGUF_TOKEN_CONTROL;
    }
    if (flags & TOK_BYTE) {
        return GGUF_TOKEN_BYTE;
    }
    /* An added token is found in the text as it is written.  A run of spaces is not written as
     * U+2581 there: merges make it. */
    if ((flags & TOK_ADDED) && !(p->made[id].n > 0 && strstr(text_of(p, id), TOK_SPACE))) {
        return GGUF_TOKEN_USER;
    }
    return flags & TOK_MODEL ? GGUF_TOKEN_NORMAL : GGUF_TOKEN_UNUSED;
}

/* Whether merging may come to hold s[0..n) as one part.  Added tokens are cut out before. */
static bool is_part(const struct pieces *p, const char *s, size_t n, int32_t *id)
{
    uint32_t cp;
    *id = tok_find(p->t, s, n);
    const bool one_char = (size_t)utf8_decode(s, n, &cp) == n;
    return *id < 0 ? one_char
                   : p->types[*id] == GGUF_TOKEN_NORMAL ||
                         (one_char && p->types[*id] != GGUF_TOKEN_USER);
}

/* Every pair of parts that makes the token must be a merge, and those must stand together. */
static enum galley_status check_token(const struct pieces *p, int32_t id)
{
    static const char why[] = "merges that are not SentencePiece's, as of the token";
    const struct tok_entry *e = &p->t->entries[id];
    const struct making *k = &p->made[id];
    const char *s = text_of(p, id);
    uint32_t cp;
    if (e->flags & (TOK_LSTRIP | TOK_RSTRIP | TOK_SINGLE_WORD)) {
        return refuse(p, "lstrip, rstrip or single_word, as of the token", s);
    }
    if (p->types[id] == GGUF_TOKEN_BYTE && k->n > 0) {
        return refuse(p, why, s);
    }
    if (p->types[id] != GGUF_TOKEN_NORMAL) {
        return GALLEY_OK; /* merging does not make it */
    }
    if (e->n > PIECE_MAX) {
        return refuse(p, "so long a token", s);
    }
    if (k->n > 0 && k->last - k->first + 1 != k->n) {
        return refuse(p, why, s);
    }
    for (size_t i = (size_t)utf8_decode(s, e->n, &cp); i < e->n;
         i += (size_t)utf8_decode(s + i, e->n - i, &cp)) {
        int32_t left, right;
        if (is_part(p, s, i, &left) && is_part(p, s + i, e->n - i, &right) &&
            (left < 0 || right < 0 || !tok_merge_find(p->t, left, right))) {
            return refuse(p, why, s);
        }
    }
    return GALLEY_OK;
}

enum galley_status tokenizer_pieces(const struct tokenizer *t, const char *where, int32_t *types,
                                    float *scores, struct galley_err *err)
{
    struct pieces p = { .t = t, .types = types, .where = where, .err = err };
    enum galley_status rc = check_whole(&p);
    if (rc) {
        return rc;
    }
    p.made = mem_many(struct making, (size_t)t->n_vocab);
    if (!p.made) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for the merges of %d tokens",
                              where, t->n_vocab);
    }
    const int32_t n_merges = find_makings(p.made, t);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        types[id] = (int32_t)type_of(&p, id);
        /* exact: TOK_MERGES_MAX is far below 2^24 */
        scores[id] = -(float)(p.made[id].n > 0 ? p.made[id].first : n_merges);
    }
    for (int32_t id = 0; !rc && id < t->n_vocab; id++) {
        rc = check_token(&p, id);
    }
    mem_free(p.made);
    return rc;
}
