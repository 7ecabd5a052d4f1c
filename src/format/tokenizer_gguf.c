/* tokenizer_gguf.c - from GGUF metadata to the tokenizer's tables.
 *
 * GGUF names the pre-tokenizer instead of spelling it out; the table below spells it as the
 * families' tokenizer.json does.  Where that file normalises to NFC we do so, too: llama.cpp does
 * not, so the ids of text that is not NFC differ from its.
 * Start-up waits for this: 150,000 tokens and as many merges are read in one pass each, with no
 * allocation per token. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/gguf.h"
#include "src/format/tokenizer_impl.h"

#define APOSTROPHES "'s|'t|'re|'ve|'m|'ll|'d"
#define DIGIT       "\\p{N}"
#define DIGITS3     "\\p{N}{1,3}"
#define SPACE_TAIL  "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS(letters, digits, not_marks)                                                        \
    "(?i:" APOSTROPHES ")|[^\\r\\n\\p{L}\\p{N}]?" letters "+|" digits "| ?[^\\s\\p{L}" not_marks \
    "\\p{N}]+[\\r\\n]*|" SPACE_TAIL
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
/* Words that begin with capitals: first some with a small letter at the end, then others. */
#define CASED                                                                                      \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+(?i:" APOSTROPHES ")?|[^\\r\\n\\p{L}\\p{N}]?" UPPER \
    "+" LOWER "*(?i:" APOSTROPHES ")?|" DIGITS3 "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACE_TAIL
#define HAN_KANA "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"
#define DEEPSEEK                                                                          \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[" \
    "\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACE_TAIL

struct pre {
    const char *name;
    const char *patterns[TOK_SPLITS_MAX];
    bool nfc, ignore_merges, add_bos;
};

static const struct pre pres[] = {
    { "gpt-2", { TOK_GPT2_PATTERN }, false, false, false },
    { "phi-2", { TOK_GPT2_PATTERN }, false, false, false },
    { "olmo", { TOK_GPT2_PATTERN }, false, false, false },
    { "exaone4", { TOK_GPT2_PATTERN }, false, false, false },
    { "granite-docling", { TOK_GPT2_PATTERN }, false, false, false },
    { "smollm", { DIGIT, TOK_GPT2_PATTERN }, false, false, false },
    { "starcoder", { DIGIT, TOK_GPT2_PATTERN }, false, false, false },
    { "refact", { DIGIT, TOK_GPT2_PATTERN }, false, false, false },
    { "command-r", { DIGIT, TOK_GPT2_PATTERN }, false, false, false },
    { "qwen2", { WORDS("\\p{L}", DIGIT, "") }, true, false, false },
    { "hunyuan", { WORDS("\\p{L}", DIGIT, "") }, false, false, false },
    { "qwen35", { WORDS("[\\p{L}\\p{M}]", DIGIT, "\\p{M}") }, true, false, false },
    { "llama-bpe", { WORDS("\\p{L}", DIGITS3, "") }, false, true, true },
    { "llama3", { WORDS("\\p{L}", DIGITS3, "") }, false, true, true },
    { "llama-v3", { WORDS("\\p{L}", DIGITS3, "") }, false, true, true },
    { "glm4", { WORDS("\\p{L}", DIGITS3, "") }, false, false, false },
    { "chatglm-bpe", { WORDS("\\p{L}", DIGITS3, "") }, false, false, false },
    { "gpt-4o", { CASED }, false, false, false },
    { "llama4", { CASED }, false, false, false },
    { "deepseek-v3", { DIGITS3, HAN_KANA, DEEPSEEK }, false, false, false },
    { "hunyuan-dense", { DIGITS3, HAN_KANA, DEEPSEEK }, false, false, false },
};

struct source {
    const struct gguf *g;
    const char *where;
    const struct gguf_value *tokens, *types, *scores;
    struct galley_err *err;
};

/* ---- which tokenizer ---- */

static enum galley_status refuse_pre(const struct source *src, const struct gguf_string *name)
{
    char known[512] = "";
    size_t n = 0;
    for (size_t i = 0; i < COUNT(pres) && n < sizeof(known); i++) {
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", pres[i].name);
    }
    return galley_err_set(src->err, GALLEY_EUNSUP,
                          "%s: tokenizer.ggml.pre \"%.*s\" is not supported; these are: %s",
                          src->where, (int)(name->n < 64 ? name->n : 64), name->text, known);
}

static enum galley_status find_pre(const struct source *src, const struct pre **out)
{
    struct gguf_string name = { "gpt-2", 5 };
    const enum galley_status rc =
        gguf_read_string(src->g, "tokenizer.ggml.pre", false, &name, src->err);
    if (rc) {
        return rc;
    }
    if (gguf_string_is(&name, "default")) { /* of a model with the pattern of its time */
        name = (struct gguf_string){ "gpt-2", 5 };
    }
    for (size_t i = 0; i < COUNT(pres); i++) {
        if (gguf_string_is(&name, pres[i].name)) {
            *out = &pres[i];
            return GALLEY_OK;
        }
    }
    return refuse_pre(src, &name);
}

/* An array of `type` with one element a token, or nothing. */
static enum galley_status find_array(const struct source *src, const char *key, enum gguf_type type,
                                     const struct gguf_value **out)
{
    *out = gguf_lookup(src->g, key);
    if (!*out) {
        return GALLEY_OK;
    }
    if (!(*out)->is_array || (*out)->type != type || (src->tokens && (*out)->n != src->tokens->n)) {
        return galley_err_set(src->err, GALLEY_EMODEL,
                              "%s: %s has %llu elements of type %d, not one of type %d a token",
                              src->where, key, (unsigned long long)(*out)->n, (int)(*out)->type,
                              (int)type);
    }
    return GALLEY_OK;
}

static enum galley_status find_arrays(struct source *src)
{
    enum galley_status rc = find_array(src, "tokenizer.ggml.tokens", GGUF_STRING, &src->tokens);
    if (rc) {
        return rc;
    }
    if (!src->tokens || src->tokens->n == 0 || src->tokens->n > TOK_VOCAB_MAX) {
        return galley_err_set(
            src->err, GALLEY_EMODEL, "%s: tokenizer.ggml.tokens has %llu tokens, allowed 1 to %d",
            src->where, src->tokens ? (unsigned long long)src->tokens->n : 0ull, TOK_VOCAB_MAX);
    }
    rc = find_array(src, "tokenizer.ggml.token_type", GGUF_I32, &src->types);
    return rc ? rc : find_array(src, "tokenizer.ggml.scores", GGUF_F32, &src->scores);
}

/* ---- tokens ---- */

/* The byte of "<0x41>", or -1. */
static int byte_of(const struct gguf_string *s)
{
    char hex[3] = "", *end;
    if (s->n != 6 || memcmp(s->text, "<0x", 3) != 0 || s->text[5] != '>') {
        return -1;
    }
    memcpy(hex, s->text + 3, 2);
    const long byte = strtol(hex, &end, 16);
    return end == hex + 2 && hex[0] != '-' && hex[0] != '+' && hex[0] != ' ' ? (int)byte : -1;
}

static enum galley_status put_token(struct tokenizer *t, const struct source *src, int32_t id,
                                    int64_t type)
{
    const struct gguf_string *s = &src->tokens->strings[id];
    unsigned flags = 0;
    switch (type) {
    case GGUF_TOKEN_NORMAL:
        flags = TOK_MODEL;
        break;
    case GGUF_TOKEN_UNKNOWN:
    case GGUF_TOKEN_CONTROL:
        flags = TOK_ADDED | TOK_SPECIAL;
        break;
    case GGUF_TOKEN_USER:
        flags = TOK_ADDED;
        break;
    case GGUF_TOKEN_UNUSED:
        break;
    case GGUF_TOKEN_BYTE:
        flags = t->chars ? TOK_BYTE : TOK_MODEL;
        break;
    default:
        return galley_err_set(src->err, GALLEY_EMODEL, "%s: token %d has type %lld, known 1 to 6",
                              src->where, (int)id, (long long)type);
    }
    if (s->n == 0) { /* a gap in the ids */
        return GALLEY_OK;
    }
    if (flags & TOK_BYTE) {
        const int byte = byte_of(s);
        if (byte < 0) {
            return galley_err_set(src->err, GALLEY_EMODEL,
                                  "%s: byte token %d is \"%.*s\", not \"<0x00>\" to \"<0xFF>\"",
                                  src->where, (int)id, (int)(s->n < 40 ? s->n : 40), s->text);
        }
        t->byte_id[byte] = id;
    }
    tok_put(t, id, s->text, s->n, flags);
    if (tok_find(t, s->text, s->n) < 0) { /* of two alike the first is found */
        tok_insert(t, id);
    }
    if (!(flags & TOK_ADDED)) {
        return GALLEY_OK;
    }
    if (s->n > TOK_CONTENT_MAX) {
        return galley_err_set(src->err, GALLEY_ELIMIT,
                              "%s: special token %d has %zu bytes, limit %d", src->where, (int)id,
                              s->n, TOK_CONTENT_MAX);
    }
    return tok_trie_add(&t->raw, s->text, s->n, id, src->err);
}

static enum galley_status read_tokens(struct tokenizer *t, const struct source *src)
{
    const size_t n = (size_t)src->tokens->n;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += src->tokens->strings[i].n + 1; /* no overflow: they lie in the file */
    }
    if (bytes > TOK_FILE_MAX) {
        return galley_err_set(src->err, GALLEY_ELIMIT, "%s: tokens of %zu bytes, limit %zu",
                              src->where, bytes, TOK_FILE_MAX);
    }
    t->n_vocab = (int)n;
    t->text_cap = bytes;
    memset(t->byte_id, 0xff, sizeof(t->byte_id)); /* -1 */
    enum galley_status rc = tok_reserve(t, src->where, n, src->err);
    for (size_t i = 0; i < n && !rc; i++) {
        rc =
            put_token(t, src, (int32_t)i, src->types ? gguf_int(src->types, i) : GGUF_TOKEN_NORMAL);
    }
    return rc;
}

/* ---- byte-level BPE ---- */

static bool spells(const struct tokenizer *t, int32_t id, const char *a, size_t n_a, const char *b,
                   size_t n_b)
{
    if (id < 0 || id >= t->n_vocab || t->entries[id].n != n_a + n_b) {
        return false;
    }
    const char *s = t->text + t->entries[id].at;
    return memcmp(s, a, n_a) == 0 && memcmp(s + n_a, b, n_b) == 0;
}

/* Most vocabularies list tokens in the order of their merges: `guess` saves the search. */
static int32_t find_joined(const struct tokenizer *t, int32_t guess, const char *a, size_t n_a,
                           const char *b, size_t n_b)
{
    char joined[4 * TOK_CONTENT_MAX];
    if (spells(t, guess, a, n_a, b, n_b)) {
        return guess;
    }
    if (n_a + n_b > sizeof(joined)) {
        return -1;
    }
    memcpy(joined, a, n_a);
    memcpy(joined + n_a, b, n_b);
    return tok_find(t, joined, n_a + n_b);
}

static enum galley_status read_merge(struct tokenizer *t, const struct source *src,
                                     const struct gguf_string *s, int32_t rank, int32_t *guess)
{
    const char *gap = s->n > 2 ? memchr(s->text + 1, ' ', s->n - 2) : NULL;
    if (!gap) {
        return galley_err_set(src->err, GALLEY_EMODEL, "%s: merge %d is not a pair of tokens",
                              src->where, (int)rank);
    }
    const size_t n_a = (size_t)(gap - s->text), n_b = s->n - n_a - 1;
    const struct tok_merge m = { .left = tok_find(t, s->text, n_a),
                                 .right = tok_find(t, gap + 1, n_b),
                                 .rank = rank,
                                 .id = find_joined(t, *guess, s->text, n_a, gap + 1, n_b) };
    /* A merge that made a control token would let a text forge it. */
    if (m.left < 0 || m.right < 0 || m.id < 0 || !(t->entries[m.id].flags & TOK_MODEL)) {
        return galley_err_set(src->err, GALLEY_EMODEL,
                              "%s: merge %d (\"%.*s\") needs a token the vocabulary lacks",
                              src->where, (int)rank, (int)(s->n < 80 ? s->n : 80), s->text);
    }
    tok_merge_insert(t, m);
    *guess = m.id + 1;
    return GALLEY_OK;
}

static enum galley_status read_merges(struct tokenizer *t, const struct source *src)
{
    const struct gguf_value *v = gguf_lookup(src->g, "tokenizer.ggml.merges");
    if (!v || !v->is_array || v->type != GGUF_STRING || v->n > TOK_MERGES_MAX) {
        return galley_err_set(src->err, GALLEY_EMODEL,
                              "%s: tokenizer.ggml.merges is no list of at most %d strings",
                              src->where, TOK_MERGES_MAX);
    }
    if (v->n == 0) {
        return GALLEY_OK;
    }
    enum galley_status rc = tok_reserve_merges(t, src->where, (size_t)v->n, src->err);
    int32_t guess = -1;
    for (uint64_t i = 0; i < v->n && !rc; i++) {
        rc = read_merge(t, src, &v->strings[i], (int32_t)i, &guess);
    }
    return rc;
}

static enum galley_status build_byte_level(struct tokenizer *t, const struct source *src,
                                           bool *add_bos)
{
    const struct pre *pre = NULL;
    enum galley_status rc = find_pre(src, &pre);
    for (size_t i = 0; !rc && i < TOK_SPLITS_MAX && pre->patterns[i]; i++) {
        rc = tok_split_compile(t, src->where, pre->patterns[i], src->err);
    }
    if (rc) {
        return rc;
    }
    t->nfc = pre->nfc;
    t->ignore_merges = pre->ignore_merges;
    *add_bos = pre->add_bos;
    rc = read_tokens(t, src);
    rc = rc ? rc : tok_find_bytes(t, src->where, src->err);
    return rc ? rc : read_merges(t, src);
}

/* ---- SentencePiece ---- */

/* The order of scores, highest first, as integers. */
static int32_t rank_of(float score)
{
    const float low_first = score == 0 ? 0 : -score; /* no negative zero */
    int32_t bits;
    memcpy(&bits, &low_first, sizeof(bits));
    return bits < 0 ? INT32_MIN + (int32_t) ~(uint32_t)bits : bits;
}

static enum galley_status read_scores(struct tokenizer *t, const struct source *src)
{
    t->ranks = mem_array((size_t)t->n_vocab, sizeof(*t->ranks));
    if (!t->ranks) {
        return galley_err_set(src->err, GALLEY_ENOMEM, "%s: no memory for %d scores", src->where,
                              t->n_vocab);
    }
    for (int i = 0; i < t->n_vocab; i++) {
        const double score = gguf_number(src->scores, (uint64_t)i);
        if (!isfinite(score)) {
            return galley_err_set(src->err, GALLEY_EMODEL, "%s: token %d has no finite score",
                                  src->where, i);
        }
        t->ranks[i] = t->entries[i].flags & TOK_MODEL ? rank_of((float)score) : TOK_RANK_NEVER;
    }
    return GALLEY_OK;
}

static enum galley_status must_be_off(const struct source *src, const char *key)
{
    bool on = false;
    const enum galley_status rc = gguf_read_bool(src->g, key, false, &on, src->err);
    if (rc || !on) {
        return rc;
    }
    return galley_err_set(src->err, GALLEY_EUNSUP, "%s: %s is not supported", src->where, key);
}

static enum galley_status build_sentencepiece(struct tokenizer *t, const struct source *src)
{
    if (!src->scores) {
        return galley_err_set(src->err, GALLEY_EMODEL, "%s: has no tokenizer.ggml.scores",
                              src->where);
    }
    if (gguf_lookup(src->g, "tokenizer.ggml.precompiled_charsmap")) {
        return galley_err_set(src->err, GALLEY_EUNSUP,
                              "%s: tokenizer.ggml.precompiled_charsmap is not supported",
                              src->where);
    }
    bool prefix = true;
    enum galley_status rc = must_be_off(src, "tokenizer.ggml.remove_extra_whitespaces");
    rc = rc ? rc
            : gguf_read_bool(src->g, "tokenizer.ggml.add_space_prefix", false, &prefix, src->err);
    t->chars = t->byte_fallback = t->fuse_unk = true;
    t->prefix = prefix ? TOK_PREFIX_PIECES : TOK_PREFIX_NONE;
    rc = rc ? rc : read_tokens(t, src);
    rc = rc ? rc : read_scores(t, src);
    if (!rc) {
        tok_survey(t);
    }
    return rc;
}

/* ---- ids with a meaning ---- */

/* A missing key gives `fallback`; an id the vocabulary lacks is refused. */
static enum galley_status read_id(const struct tokenizer *t, const struct source *src,
                                  const char *key, int64_t fallback, int32_t *out)
{
    int64_t id = fallback < t->n_vocab ? fallback : -1;
    const enum galley_status rc =
        gguf_read_int(src->g, key, false, 0, t->n_vocab - 1, &id, src->err);
    *out = (int32_t)id;
    return rc;
}

/* Keys name one end as a rule (gguf_config.c reads them); the others of the supported families are
 * known by their text, whatever type a file gives them. */
static void find_ends(struct tokenizer *t)
{
    static const char *const names[] = { "<|im_end|>", "<|endoftext|>",   "<|eot_id|>",
                                         "<|eom_id|>", "<|end_of_text|>", "<end_of_turn>",
                                         "<eos>" };
    static_assert(COUNT(names) <= TOK_EOS_MAX, "room for all of them");
    for (size_t i = 0; i < COUNT(names); i++) {
        const int32_t id = tok_find(t, names[i], strlen(names[i]));
        if (id >= 0) {
            t->eos[t->n_eos++] = id;
        }
    }
}

static enum galley_status read_ids(struct tokenizer *t, const struct source *src, bool add_bos)
{
    enum galley_status rc =
        gguf_read_bool(src->g, "tokenizer.ggml.add_bos_token", false, &add_bos, src->err);
    int32_t bos = -1;
    rc = rc ? rc : read_id(t, src, "tokenizer.ggml.bos_token_id", t->chars ? 1 : -1, &bos);
    t->bos = add_bos ? bos : -1;
    if (!rc && t->chars) {
        rc = read_id(t, src, "tokenizer.ggml.unknown_token_id", 0, &t->unk);
    }
    find_ends(t);
    return rc;
}

static enum galley_status build(struct tokenizer *t, struct source *src)
{
    struct gguf_string model;
    enum galley_status rc =
        gguf_read_string(src->g, "tokenizer.ggml.model", true, &model, src->err);
    rc = rc ? rc : find_arrays(src);
    if (rc) {
        return rc;
    }
    bool add_bos = true;
    if (gguf_string_is(&model, "gpt2")) {
        rc = build_byte_level(t, src, &add_bos);
    } else if (gguf_string_is(&model, "llama")) {
        rc = build_sentencepiece(t, src);
    } else {
        rc =
            galley_err_set(src->err, GALLEY_EUNSUP,
                           "%s: tokenizer.ggml.model \"%.*s\" is not supported; gpt2 and llama are",
                           src->where, (int)(model.n < 64 ? model.n : 64), model.text);
    }
    return rc ? rc : read_ids(t, src, add_bos);
}

enum galley_status tokenizer_open_gguf(struct tokenizer **out, const struct gguf *g,
                                       struct galley_err *err)
{
    *out = NULL;
    struct source src = { .g = g, .where = gguf_path(g), .err = err };
    struct tokenizer *t = mem_new(struct tokenizer);
    if (!t) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for a tokenizer", src.where);
    }
    t->unk = t->bos = -1;
    const enum galley_status rc = build(t, &src);
    if (rc) {
        tokenizer_close(t);
        return rc;
    }
    *out = t;
    return GALLEY_OK;
}
