/* tokenizer.c - text to ids and back.
 *
 * Encoding goes down three levels, as in Hugging Face tokenizers: added tokens are cut out of
 * the text as written; what is between them is normalised and cut again at the added tokens that
 * match normalised text; what is left is split into words by the pattern, and every word is
 * merged by BPE.  Everything a call changes lives in its struct encoder. */
#include "src/format/tokenizer.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/buf.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/tokenizer_impl.h"

struct encoder {
    const struct tokenizer *t;
    bool parse_special;
    pcre2_match_data *match;
    struct tok_bpe bpe;
    struct tok_ids ids;
    struct galley_err *err;
};

typedef enum galley_status piece_fn(struct encoder *e, const char *s, size_t n);

/* ---- words ---- */

static enum galley_status search_failed(struct encoder *e, int code, size_t at)
{
    const enum galley_status rc = code == PCRE2_ERROR_NOMEMORY ? GALLEY_ENOMEM : GALLEY_ELIMIT;
    return galley_err_set(e->err, rc, "text cannot be split into words at byte %zu: PCRE2 error %d",
                          at, code);
}

/* The next match in s[from..n): its offsets, or *begin = n when there is none. */
static enum galley_status find_word(struct encoder *e, const char *s, size_t n, size_t from,
                                    size_t *begin, size_t *end)
{
    const PCRE2_SPTR subject = (PCRE2_SPTR)s;
    int rc = pcre2_match(e->t->split, subject, n, from, PCRE2_NO_UTF_CHECK, e->match, e->t->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) { /* the interpreter's stack is on the heap */
        rc = pcre2_match(e->t->split, subject, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, e->match,
                         e->t->limits);
    }
    if (rc == PCRE2_ERROR_NOMATCH) {
        *begin = *end = n;
        return GALLEY_OK;
    }
    if (rc < 0) {
        return search_failed(e, rc, from);
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(e->match);
    *begin = at[0];
    *end = at[1];
    return *begin >= from && *end >= *begin && *end <= n
               ? GALLEY_OK
               : search_failed(e, PCRE2_ERROR_INTERNAL, from);
}

/* Text between two matches is a word as well ("Isolated"). */
static enum galley_status encode_words(struct encoder *e, const char *s, size_t n)
{
    size_t done = 0, from = 0;
    enum galley_status rc = GALLEY_OK;
    while (!rc && e->t->split && from < n) {
        size_t begin = n, end = n;
        rc = find_word(e, s, n, from, &begin, &end);
        if (rc || begin == n) {
            break;
        }
        if (end == begin) { /* an empty match only cuts; look again behind the next character */
            uint32_t cp;
            from = begin + (size_t)utf8_decode(s + begin, n - begin, &cp);
        } else {
            from = end;
        }
        if (begin > done) {
            rc = tok_bpe_word(&e->bpe, e->t, s + done, begin - done, &e->ids, e->err);
            done = begin;
        }
        if (!rc && end > begin) {
            rc = tok_bpe_word(&e->bpe, e->t, s + begin, end - begin, &e->ids, e->err);
            done = end;
        }
    }
    if (!rc && done < n) {
        rc = tok_bpe_word(&e->bpe, e->t, s + done, n - done, &e->ids, e->err);
    }
    return rc;
}

/* ---- added tokens ---- */

static bool is_space(uint32_t cp)
{
    if (cp == 0x20 || (cp >= 9 && cp <= 13) || cp == 0x85) {
        return true;
    }
    const utf8proc_category_t c = utf8proc_category((int32_t)cp);
    return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

/* Rust's \w: letters, marks, decimal and letter numbers, connectors, joiners. */
static bool is_word(uint32_t cp)
{
    const utf8proc_category_t c = utf8proc_category((int32_t)cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC ||
           cp == 0x200c || cp == 0x200d;
}

static size_t char_before(const char *s, size_t at, uint32_t *cp)
{
    size_t begin = at - 1;
    while (begin > 0 && ((unsigned char)s[begin] & 0xc0) == 0x80) {
        begin--;
    }
    utf8_decode(s + begin, at - begin, cp);
    return begin;
}

static bool stands_alone(const char *s, size_t n, size_t begin, size_t end)
{
    uint32_t cp;
    if (begin > 0) {
        char_before(s, begin, &cp);
        if (is_word(cp)) {
            return false;
        }
    }
    if (end < n) {
        utf8_decode(s + end, n - end, &cp);
        return !is_word(cp);
    }
    return true;
}

/* lstrip and rstrip take the white space around the token, down to `low`. */
static void take_spaces(const char *s, size_t n, unsigned flags, size_t low, size_t *begin,
                        size_t *end)
{
    uint32_t cp;
    while ((flags & TOK_LSTRIP) && *begin > low) {
        const size_t before = char_before(s, *begin, &cp);
        if (!is_space(cp)) {
            break;
        }
        *begin = before;
    }
    while ((flags & TOK_RSTRIP) && *end < n) {
        const int used = utf8_decode(s + *end, n - *end, &cp);
        if (!is_space(cp)) {
            break;
        }
        *end += (size_t)used;
    }
}

static bool may_match(const struct encoder *e, int32_t id, const char *s, size_t n, size_t begin,
                      size_t end)
{
    const unsigned flags = e->t->entries[id].flags;
    if ((flags & TOK_SPECIAL) && !e->parse_special) {
        return false;
    }
    return !(flags & TOK_SINGLE_WORD) || stands_alone(s, n, begin, end);
}

/* Cuts s at the trie's tokens and hands the text between them to `piece`. */
static enum galley_status cut_added(struct encoder *e, const struct tok_trie *trie, const char *s,
                                    size_t n, piece_fn *piece)
{
    size_t done = 0;
    enum galley_status rc = GALLEY_OK;
    for (size_t i = 0; i < n && !rc && trie->n;) {
        int32_t id = -1;
        const size_t len = trie->first[(uint8_t)s[i]] ? tok_trie_match(trie, s + i, n - i, &id) : 0;
        if (len == 0) {
            i++;
            continue;
        }
        size_t begin = i, end = i + len;
        i = end; /* a match that may not stand is still passed over whole */
        if (begin < done || !may_match(e, id, s, n, begin, end)) {
            continue;
        }
        take_spaces(s, n, e->t->entries[id].flags, done, &begin, &end);
        rc = begin > done ? piece(e, s + done, begin - done) : GALLEY_OK;
        rc = rc ? rc : tok_ids_add(&e->ids, id, e->err);
        done = end;
    }
    return !rc && done < n ? piece(e, s + done, n - done) : rc;
}

static enum galley_status encode_raw(struct encoder *e, const char *s, size_t n)
{
    char *nfc = NULL;
    size_t nfc_n = 0;
    enum galley_status rc = GALLEY_OK;
    if (e->t->nfc) {
        rc = tok_nfc(s, n, &nfc, &nfc_n, e->err);
    }
    if (!rc) {
        rc = cut_added(e, &e->t->normalized, nfc ? nfc : s, nfc ? nfc_n : n, encode_words);
    }
    mem_free(nfc);
    return rc;
}

/* ---- the call ---- */

/* *out is NULL when the text is UTF-8 as it stands. */
static enum galley_status repair(const char *s, size_t n, char **out, size_t *out_n,
                                 struct galley_err *err)
{
    *out = NULL;
    *out_n = 0;
    if (utf8_valid(s, n)) {
        return GALLEY_OK;
    }
    struct buf fixed;
    buf_init(&fixed, n < SIZE_MAX / 4 ? 3 * n : SIZE_MAX / 2); /* one bad byte becomes three */
    buf_add_utf8(&fixed, s, n);
    *out_n = fixed.n;
    *out = buf_take(&fixed);
    return *out ? GALLEY_OK
                : galley_err_set(err, GALLEY_ENOMEM, "no memory to repair %zu bytes of UTF-8", n);
}

static enum galley_status encode(struct encoder *e, const char *s, size_t n)
{
    char *fixed;
    size_t fixed_n;
    enum galley_status rc = repair(s, n, &fixed, &fixed_n, e->err);
    if (rc) {
        return rc;
    }
    if (e->t->split) {
        e->match = pcre2_match_data_create_from_pattern(e->t->split, e->t->heap);
        if (!e->match) {
            mem_free(fixed);
            return galley_err_set(e->err, GALLEY_ENOMEM, "no memory for a text search");
        }
    }
    rc = cut_added(e, &e->t->raw, fixed ? fixed : s, fixed ? fixed_n : n, encode_raw);
    mem_free(fixed);
    return rc;
}

enum galley_status tokenizer_encode(const struct tokenizer *t, const char *text, size_t n,
                                    bool parse_special, int32_t **ids, int *n_ids,
                                    struct galley_err *err)
{
    *ids = NULL;
    *n_ids = 0;
    if (n > TOK_TEXT_MAX) {
        return galley_err_set(err, GALLEY_ELIMIT, "text to encode has %zu bytes, limit %zu", n,
                              TOK_TEXT_MAX);
    }
    struct encoder e = { .t = t, .parse_special = parse_special, .err = err };
    enum galley_status rc = encode(&e, text, n);
    if (!rc && !e.ids.v) { /* no ids: the caller still gets a block to free */
        e.ids.v = mem_many(int32_t, 1);
        rc = e.ids.v ? GALLEY_OK : galley_err_set(err, GALLEY_ENOMEM, "no memory for token ids");
    }
    pcre2_match_data_free(e.match);
    tok_bpe_deinit(&e.bpe);
    if (rc) {
        mem_free(e.ids.v);
        return rc;
    }
    assert(e.ids.n <= INT_MAX);
    *ids = e.ids.v;
    *n_ids = (int)e.ids.n;
    return GALLEY_OK;
}

/* ---- ids to text ---- */

int tokenizer_n_vocab(const struct tokenizer *t)
{
    return t->n_vocab;
}

static const struct tok_entry *entry_of(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_vocab && t->entries[id].flags ? &t->entries[id] : NULL;
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    const struct tok_entry *e = entry_of(t, id);
    return e && (e->flags & TOK_SPECIAL);
}

int32_t tokenizer_lookup(const struct tokenizer *t, const char *content)
{
    return tok_find(t, content, strlen(content));
}

void tokenizer_decode(const struct tokenizer *t, int32_t id, bool special, struct buf *out)
{
    const struct tok_entry *e = entry_of(t, id);
    if (!e || (!special && (e->flags & TOK_SPECIAL))) {
        return;
    }
    const char *s = t->text + e->at;
    if (e->flags & TOK_ADDED) {
        buf_add(out, s, e->n);
        return;
    }
    const size_t start = out->n;
    for (size_t i = 0; i < e->n;) {
        uint32_t cp;
        i += (size_t)utf8_decode(s + i, e->n - i, &cp);
        const int byte = tok_alphabet_byte(cp);
        if (byte < 0) { /* not spelled in the alphabet: the string stands for itself */
            buf_cut(out, start < out->n ? start : out->n);
            buf_add(out, s, e->n);
            return;
        }
        buf_add_char(out, (char)byte);
    }
}
