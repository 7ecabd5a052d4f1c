/* tokenizer.c - text to ids and back.
 *
 * Encoding goes down three levels, as in Hugging Face tokenizers: added tokens are cut out of
 * the text as written; what is between them is normalised and cut again at the added tokens that
 * match normalised text; what is left is split into words by the pattern, and every word is
 * merged by BPE.  Everything a call changes lives in its struct encoder. */
#include "src/format/tokenizer.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/buf.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/tokenizer_impl.h"

struct range {
    size_t begin, end;
};

struct encoder {
    const struct tokenizer *t;
    /* The text, and where in it special tokens may stand: in order, apart from each other. */
    const char *text;
    size_t text_n;
    const struct range *trusted;
    size_t n_trusted;
    const struct range *piece; /* the part of the text at hand once it is normalised; else NULL */
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
static enum galley_status find_word(struct encoder *e, int pass, const char *s, size_t n,
                                    size_t from, size_t *begin, size_t *end)
{
    const PCRE2_SPTR subject = (PCRE2_SPTR)s;
    const pcre2_code *split = e->t->split[pass];
    int rc = pcre2_match(split, subject, n, from, PCRE2_NO_UTF_CHECK, e->match, e->t->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) { /* the interpreter's stack is on the heap */
        rc = pcre2_match(split, subject, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, e->match,
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

static enum galley_status cut_words(struct encoder *e, int pass, const char *s, size_t n);

/* What a pass cut out goes to the next one; after the last it is a word. */
static enum galley_status pass_on(struct encoder *e, int pass, const char *s, size_t n)
{
    return pass + 1 < e->t->n_splits ? cut_words(e, pass + 1, s, n)
                                     : tok_bpe_word(&e->bpe, e->t, s, n, &e->ids, e->err);
}

/* Text between two matches is a word as well ("Isolated"). */
static enum galley_status cut_words(struct encoder *e, int pass, const char *s, size_t n)
{
    size_t done = 0, from = 0;
    enum galley_status rc = GALLEY_OK;
    while (!rc && from < n) {
        size_t begin = n, end = n;
        rc = find_word(e, pass, s, n, from, &begin, &end);
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
            rc = pass_on(e, pass, s + done, begin - done);
            done = begin;
        }
        if (!rc && end > begin) {
            rc = pass_on(e, pass, s + begin, end - begin);
            done = end;
        }
    }
    return !rc && done < n ? pass_on(e, pass, s + done, n - done) : rc;
}

/* Characters merge across the whole text; it is cut only where no token can reach, which changes
 * nothing but keeps the lists short. */
static enum galley_status cut_chars(struct encoder *e, const char *s, size_t n)
{
    const struct tokenizer *t = e->t;
    size_t done = 0;
    enum galley_status rc = GALLEY_OK;
    for (size_t i = 1; i + 3 <= n && !rc && !t->ignore_merges; i++) {
        if (s[i] == TOK_SPACE[0] && memcmp(s + i, TOK_SPACE, 3) == 0 &&
            !t->before_space[(unsigned char)s[i - 1]]) {
            rc = tok_bpe_chars(&e->bpe, t, s + done, i - done, &e->ids, e->err);
            done = i;
        }
    }
    return rc ? rc : tok_bpe_chars(&e->bpe, t, s + done, n - done, &e->ids, e->err);
}

static enum galley_status encode_words(struct encoder *e, const char *s, size_t n)
{
    if (e->t->chars) {
        return cut_chars(e, s, n);
    }
    return e->t->n_splits > 0 ? cut_words(e, 0, s, n)
                              : tok_bpe_word(&e->bpe, e->t, s, n, &e->ids, e->err);
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

enum match {
    MATCH_NO,   /* passed over whole, as Hugging Face does */
    MATCH_STEP, /* half inside a trusted range: one of ours may begin within it */
    MATCH_YES
};

/* Special tokens only stand where the caller wrote them. */
static enum match is_trusted(const struct encoder *e, size_t begin, size_t end)
{
    if (e->piece) {
        begin = e->piece->begin;
        end = e->piece->end;
    }
    size_t low = 0, high = e->n_trusted;
    while (low < high) { /* the first range that ends behind begin */
        const size_t middle = low + (high - low) / 2;
        if (e->trusted[middle].end > begin) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low == e->n_trusted || e->trusted[low].begin >= end) {
        return MATCH_NO;
    }
    return e->trusted[low].begin <= begin && end <= e->trusted[low].end ? MATCH_YES : MATCH_STEP;
}

static enum match may_match(const struct encoder *e, int32_t id, const char *s, size_t n,
                            size_t begin, size_t end)
{
    const unsigned flags = e->t->entries[id].flags;
    const enum match trust = flags & TOK_SPECIAL ? is_trusted(e, begin, end) : MATCH_YES;
    if (trust != MATCH_YES) {
        return trust;
    }
    return (flags & TOK_SINGLE_WORD) && !stands_alone(s, n, begin, end) ? MATCH_NO : MATCH_YES;
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
        const enum match match = may_match(e, id, s, n, begin, end);
        i = match == MATCH_STEP ? i + 1 : end;
        if (begin < done || match != MATCH_YES) {
            continue;
        }
        take_spaces(s, n, e->t->entries[id].flags, done, &begin, &end);
        rc = begin > done ? piece(e, s + done, begin - done) : GALLEY_OK;
        rc = rc ? rc : tok_ids_add(&e->ids, id, e->err);
        done = end;
    }
    return !rc && done < n ? piece(e, s + done, n - done) : rc;
}

/* The text as `chars` tokenizers see it: U+2581 for spaces, and one before it where due. */
static enum galley_status escape(const struct encoder *e, const char *s, size_t n, char **out,
                                 size_t *out_n)
{
    const bool spaced = s[0] == ' ' || (n >= 3 && memcmp(s, TOK_SPACE, 3) == 0);
    const bool prefix = e->t->prefix == TOK_PREFIX_PIECES ||
                        (e->t->prefix == TOK_PREFIX_FIRST && s == e->text && !spaced);
    return tok_escape(s, n, prefix, out, out_n, e->err);
}

static enum galley_status encode_raw(struct encoder *e, const char *s, size_t n)
{
    const struct range piece = { (size_t)(s - e->text), (size_t)(s - e->text) + n };
    char *changed = NULL;
    size_t changed_n = 0;
    enum galley_status rc = GALLEY_OK;
    if (e->t->chars) {
        rc = escape(e, s, n, &changed, &changed_n);
    } else if (e->t->nfc) {
        rc = tok_nfc(s, n, &changed, &changed_n, e->err);
    }
    if (!rc) {
        e->piece = &piece;
        rc = cut_added(e, &e->t->normalized, changed ? changed : s, changed ? changed_n : n,
                       encode_words);
        e->piece = NULL;
    }
    mem_free(changed);
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

/* Encodes e->text into the caller's *ids. */
static enum galley_status encode(struct encoder *e, int32_t **ids, int *n_ids)
{
    enum galley_status rc = GALLEY_OK;
    if (e->t->n_splits > 0) {
        e->match = pcre2_match_data_create(1, e->t->heap);
        rc = e->match ? GALLEY_OK
                      : galley_err_set(e->err, GALLEY_ENOMEM, "no memory for a text search");
    }
    rc = rc ? rc : cut_added(e, &e->t->raw, e->text, e->text_n, encode_raw);
    if (!rc && !e->ids.v) { /* no ids: the caller still gets a block to free */
        e->ids.v = mem_many(int32_t, 1);
        rc =
            e->ids.v ? GALLEY_OK : galley_err_set(e->err, GALLEY_ENOMEM, "no memory for token ids");
    }
    pcre2_match_data_free(e->match);
    tok_bpe_deinit(&e->bpe);
    if (rc) {
        mem_free(e->ids.v);
        return rc;
    }
    assert(e->ids.n <= INT_MAX);
    *ids = e->ids.v;
    *n_ids = (int)e->ids.n;
    return GALLEY_OK;
}

static enum galley_status too_long(size_t n, struct galley_err *err)
{
    return galley_err_set(err, GALLEY_ELIMIT, "text to encode has %zu bytes, limit %zu", n,
                          TOK_TEXT_MAX);
}

enum galley_status tokenizer_encode(const struct tokenizer *t, const char *text, size_t n,
                                    bool parse_special, int32_t **ids, int *n_ids,
                                    struct galley_err *err)
{
    *ids = NULL;
    *n_ids = 0;
    if (n > TOK_TEXT_MAX) {
        return too_long(n, err);
    }
    char *fixed;
    size_t fixed_n;
    enum galley_status rc = repair(text, n, &fixed, &fixed_n, err);
    if (!rc) {
        struct encoder e = { .t = t,
                             .text = fixed ? fixed : text,
                             .text_n = fixed ? fixed_n : n,
                             .n_trusted = parse_special,
                             .err = err };
        const struct range all = { 0, e.text_n };
        e.trusted = &all;
        rc = encode(&e, ids, n_ids);
    }
    mem_free(fixed);
    return rc;
}

/* Joins the parts, each repaired by itself; trusted neighbours become one range. */
static enum galley_status join_parts(const struct tokenizer_part *parts, int n_parts,
                                     struct buf *text, struct range *trusted, size_t *n_trusted,
                                     struct galley_err *err)
{
    size_t n = 0;
    for (int i = 0; i < n_parts; i++) {
        if (parts[i].n > TOK_TEXT_MAX - n) {
            return too_long(n + parts[i].n, err);
        }
        n += parts[i].n;
        const size_t begin = text->n;
        buf_add_utf8(text, parts[i].text, parts[i].n);
        if (!parts[i].trusted || text->n == begin) {
            continue;
        }
        if (*n_trusted > 0 && trusted[*n_trusted - 1].end == begin) {
            trusted[*n_trusted - 1].end = text->n;
        } else {
            trusted[(*n_trusted)++] = (struct range){ begin, text->n };
        }
    }
    return buf_ok(text)
               ? GALLEY_OK
               : galley_err_set(err, GALLEY_ENOMEM, "no memory for a text of %zu bytes", n);
}

enum galley_status tokenizer_encode_parts(const struct tokenizer *t,
                                          const struct tokenizer_part *parts, int n_parts,
                                          int32_t **ids, int *n_ids, struct galley_err *err)
{
    *ids = NULL;
    *n_ids = 0;
    assert(n_parts >= 0);
    struct range *trusted = mem_many(struct range, (size_t)n_parts);
    if (!trusted) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d parts of a text", n_parts);
    }
    struct buf text;
    buf_init(&text, 3 * TOK_TEXT_MAX);
    size_t n_trusted = 0;
    enum galley_status rc = join_parts(parts, n_parts, &text, trusted, &n_trusted, err);
    if (!rc) {
        struct encoder e = { .t = t,
                             .text = text.n > 0 ? text.data : "",
                             .text_n = text.n,
                             .trusted = trusted,
                             .n_trusted = n_trusted,
                             .err = err };
        rc = encode(&e, ids, n_ids);
    }
    buf_deinit(&text);
    mem_free(trusted);
    return rc;
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

int32_t tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

const int32_t *tokenizer_eos(const struct tokenizer *t, int *n)
{
    *n = t->n_eos;
    return t->eos;
}

bool tokenizer_adds_space(const struct tokenizer *t)
{
    return t->prefix != TOK_PREFIX_NONE;
}

int32_t tokenizer_lookup(const struct tokenizer *t, const char *content)
{
    return tok_find(t, content, strlen(content));
}

/* Byte-level: every character of the alphabet is a byte. */
static void decode_alphabet(const char *s, size_t n, struct buf *out)
{
    const size_t start = out->n;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += (size_t)utf8_decode(s + i, n - i, &cp);
        const int byte = tok_alphabet_byte(cp);
        if (byte < 0) { /* not spelled in the alphabet: the string stands for itself */
            buf_cut(out, start < out->n ? start : out->n);
            buf_add(out, s, n);
            return;
        }
        buf_add_char(out, (char)byte);
    }
}

static void decode_spaces(const char *s, size_t n, struct buf *out)
{
    size_t done = 0;
    for (size_t i = 0; i + 3 <= n;) {
        if (memcmp(s + i, TOK_SPACE, 3) != 0) {
            i++;
            continue;
        }
        buf_add(out, s + done, i - done);
        buf_add_char(out, ' ');
        done = i += 3;
    }
    buf_add(out, s + done, n - done);
}

void tokenizer_decode(const struct tokenizer *t, int32_t id, bool special, struct buf *out)
{
    const struct tok_entry *e = entry_of(t, id);
    if (!e || (!special && (e->flags & TOK_SPECIAL))) {
        return;
    }
    const char *s = t->text + e->at;
    if ((e->flags & TOK_ADDED) && !t->chars) {
        buf_add(out, s, e->n); /* the alphabet would spoil it */
    } else if (e->flags & TOK_BYTE) {
        buf_add_char(out, (char)strtoul(s + 3, NULL, 16)); /* "<0x41>" */
    } else if (t->chars) {
        decode_spaces(s, e->n, out);
    } else {
        decode_alphabet(s, e->n, out);
    }
}
