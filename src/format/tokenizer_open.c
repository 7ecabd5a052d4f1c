/* tokenizer_open.c - from tokenizer.json to the tokenizer's tables.
 *
 * What would change ids and is not implemented is refused by name.  "truncation" and "padding"
 * are ignored: they are a caller's settings that some files carry along.  tokenizer_stages.c reads
 * what surrounds the model. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/tokenizer_json.h"

static enum galley_status no_memory(const struct tok_source *src, size_t n, const char *what)
{
    return galley_err_set(src->err, GALLEY_ENOMEM, "%s: no memory for %zu %s", src->where, n, what);
}

/* ---- strings and ids ---- */

static enum galley_status check_id(const struct tok_source *src, const cJSON *v, const char *name,
                                   int32_t *id)
{
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble < TOK_VOCAB_MAX) ||
        v->valuedouble != (double)(int32_t)v->valuedouble) {
        return galley_err_set(src->err, GALLEY_EINPUT, "%s: token \"%.40s\" has no id from 0 to %d",
                              src->where, name, TOK_VOCAB_MAX - 1);
    }
    *id = (int32_t)v->valuedouble;
    return GALLEY_OK;
}

static const char *content_of(const cJSON *added)
{
    const cJSON *v = tok_json_item(added, "content");
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* First pass: the highest id, and room for all strings. */
static enum galley_status measure(struct tokenizer *t, const struct tok_source *src,
                                  size_t *n_strings)
{
    int32_t id = 0;
    size_t n = 0, bytes = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, src->vocab)
    {
        const enum galley_status rc = check_id(src, v, v->string, &id);
        if (rc) {
            return rc;
        }
        t->n_vocab = id >= t->n_vocab ? id + 1 : t->n_vocab;
        bytes += strlen(v->string) + 1;
        n++;
    }
    cJSON_ArrayForEach(v, src->added)
    {
        const enum galley_status rc = check_id(src, tok_json_item(v, "id"), content_of(v), &id);
        if (rc) {
            return rc;
        }
        t->n_vocab = id >= t->n_vocab ? id + 1 : t->n_vocab;
        bytes += strlen(content_of(v)) + 1;
        n++;
    }
    t->text_cap = bytes; /* below 4 GiB: the file has at most TOK_FILE_MAX bytes */
    *n_strings = n;
    return GALLEY_OK;
}

static enum galley_status reserve(struct tokenizer *t, const struct tok_source *src)
{
    size_t n_strings = 0;
    const enum galley_status rc = measure(t, src, &n_strings);
    return rc ? rc : tok_reserve(t, src->where, n_strings, src->err);
}

/* Second pass: gives `id` its string.  The same string at the same id again only adds flags. */
static enum galley_status put(struct tokenizer *t, const struct tok_source *src, const char *s,
                              int32_t id, unsigned flags)
{
    const size_t n = strlen(s);
    struct tok_entry *e = &t->entries[id];
    const int32_t old = tok_find(t, s, n);
    if (old == id && (flags & TOK_ADDED) && !(e->flags & TOK_ADDED)) {
        e->flags = (uint8_t)(e->flags | flags);
        return GALLEY_OK;
    }
    if (old >= 0 || e->flags) {
        return galley_err_set(src->err, GALLEY_EINPUT, "%s: token \"%.40s\" at id %d: %s",
                              src->where, s, (int)id,
                              old >= 0 ? "the token is there twice" : "the id is taken");
    }
    tok_put(t, id, s, n, flags);
    tok_insert(t, id);
    return GALLEY_OK;
}

/* With `chars`: "<0x41>" and its like stand for bytes, if the model says so. */
static void find_byte_tokens(struct tokenizer *t)
{
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof(name), "<0x%02X>", b);
        t->byte_id[b] = tok_find(t, name, 6);
        if (t->byte_id[b] >= 0) {
            t->entries[t->byte_id[b]].flags |= TOK_BYTE;
        }
    }
}

static enum galley_status read_unknown(struct tokenizer *t, const struct tok_source *src)
{
    const char *name = NULL;
    enum galley_status rc =
        json_get_string(src->model, src->where, "unk_token", false, &name, src->err);
    if (rc || !name) {
        return rc;
    }
    t->unk = tok_find(t, name, strlen(name));
    if (t->unk < 0) {
        return galley_err_set(src->err, GALLEY_EINPUT,
                              "%s: the vocabulary lacks unk_token \"%.40s\"", src->where, name);
    }
    return GALLEY_OK;
}

static enum galley_status read_vocab(struct tokenizer *t, const struct tok_source *src)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, src->vocab)
    {
        if (v->string[0] == '\0') {
            return galley_err_set(src->err, GALLEY_EINPUT, "%s: the vocabulary has an empty token",
                                  src->where);
        }
        const enum galley_status rc = put(t, src, v->string, (int32_t)v->valuedouble, TOK_MODEL);
        if (rc) {
            return rc;
        }
    }
    enum galley_status rc = read_unknown(t, src);
    if (!rc && t->chars) {
        find_byte_tokens(t);
        tok_survey(t);
        return GALLEY_OK;
    }
    rc = rc ? rc : tok_find_bytes(t, src->where, src->err);
    for (int b = 0; b < 256 && !rc && t->unk >= 0; b++) {
        if (t->byte_id[b] < 0 && t->fuse_unk) {
            rc = tok_json_refuse(src, "bytes without a token and", "fuse_unk");
        } else if (t->byte_id[b] < 0) {
            t->byte_id[b] = t->unk;
        }
    }
    return rc;
}

/* ---- added tokens ---- */

static enum galley_status added_flags(const struct tok_source *src, const cJSON *obj,
                                      unsigned *flags, bool *normalized)
{
    static const struct {
        const char *key;
        unsigned bit;
    } keys[] = { { "special", TOK_SPECIAL },
                 { "lstrip", TOK_LSTRIP },
                 { "rstrip", TOK_RSTRIP },
                 { "single_word", TOK_SINGLE_WORD } };
    *flags = TOK_ADDED;
    for (size_t i = 0; i < COUNT(keys); i++) {
        bool on;
        const enum galley_status rc = tok_json_flag(src, obj, keys[i].key, false, &on);
        if (rc) {
            return rc;
        }
        *flags |= on ? keys[i].bit : 0;
    }
    return tok_json_flag(src, obj, "normalized", !(*flags & TOK_SPECIAL), normalized);
}

static enum galley_status read_added_one(struct tokenizer *t, const struct tok_source *src,
                                         const cJSON *obj)
{
    const char *s = content_of(obj);
    const size_t n = strlen(s);
    if (n == 0 || n > TOK_CONTENT_MAX || !utf8_valid(s, n)) {
        return galley_err_set(src->err, GALLEY_EINPUT,
                              "%s: added token of %zu bytes, allowed 1 to %d of UTF-8", src->where,
                              n, TOK_CONTENT_MAX);
    }
    unsigned flags;
    bool normalized;
    const int32_t id =
        (int32_t)tok_json_item(obj, "id")->valuedouble; /* measure() has checked it */
    enum galley_status rc = added_flags(src, obj, &flags, &normalized);
    rc = rc ? rc : put(t, src, s, id, flags);
    if (rc || !normalized) {
        return rc ? rc : tok_trie_add(&t->raw, s, n, id, src->err);
    }
    if (t->prefix != TOK_PREFIX_NONE) {
        return tok_json_refuse(src, "normalized added token beside a space put in front", s);
    }
    char *changed = NULL;
    size_t changed_n = 0;
    if (t->chars) {
        rc = tok_escape(s, n, false, &changed, &changed_n, src->err);
    } else if (t->nfc) {
        rc = tok_nfc(s, n, &changed, &changed_n, src->err);
    }
    rc = rc ? rc
            : tok_trie_add(&t->normalized, changed ? changed : s, changed ? changed_n : n, id,
                           src->err);
    mem_free(changed);
    return rc;
}

static enum galley_status read_added(struct tokenizer *t, const struct tok_source *src)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, src->added)
    {
        const enum galley_status rc = read_added_one(t, src, v);
        if (rc) {
            return rc;
        }
    }
    return GALLEY_OK;
}

/* ---- merges ---- */

/* Lends the two halves of "a b" or ["a", "b"]; false when v is neither. */
static bool merge_halves(const cJSON *v, const char *half[2], size_t n[2])
{
    if (cJSON_IsString(v)) {
        const char *gap = strchr(v->valuestring, ' ');
        if (!gap || strchr(gap + 1, ' ')) {
            return false;
        }
        half[0] = v->valuestring;
        n[0] = (size_t)(gap - v->valuestring);
        half[1] = gap + 1;
    } else {
        const cJSON *a = cJSON_IsArray(v) ? v->child : NULL, *b = a ? a->next : NULL;
        if (!cJSON_IsString(a) || !cJSON_IsString(b) || b->next) {
            return false;
        }
        half[0] = a->valuestring;
        n[0] = strlen(half[0]);
        half[1] = b->valuestring;
    }
    n[1] = strlen(half[1]);
    return n[0] > 0 && n[1] > 0;
}

static enum galley_status read_merge(struct tokenizer *t, const struct tok_source *src,
                                     const cJSON *v, int32_t rank, struct buf *joined)
{
    const char *half[2];
    size_t n[2];
    if (!merge_halves(v, half, n)) {
        return galley_err_set(src->err, GALLEY_EINPUT, "%s: merge %d is not a pair of tokens",
                              src->where, (int)rank);
    }
    buf_cut(joined, 0);
    buf_add(joined, half[0], n[0]);
    buf_add(joined, half[1], n[1]);
    if (!buf_ok(joined)) {
        return no_memory(src, n[0] + n[1], "bytes of a merge");
    }
    const struct tok_merge m = { .left = tok_find(t, half[0], n[0]),
                                 .right = tok_find(t, half[1], n[1]),
                                 .rank = rank,
                                 .id = tok_find(t, joined->data, joined->n) };
    if (m.left < 0 || m.right < 0 || m.id < 0) {
        return galley_err_set(src->err, GALLEY_EINPUT,
                              "%s: merge %d (\"%.40s\") needs a token the vocabulary lacks",
                              src->where, (int)rank, joined->data);
    }
    tok_merge_insert(t, m);
    return GALLEY_OK;
}

static enum galley_status read_merges(struct tokenizer *t, const struct tok_source *src)
{
    const int n = cJSON_GetArraySize(src->merges);
    if (n == 0) {
        return GALLEY_OK;
    }
    if (n > TOK_MERGES_MAX) {
        return galley_err_set(src->err, GALLEY_ELIMIT, "%s: %d merges, limit %d", src->where, n,
                              TOK_MERGES_MAX);
    }
    enum galley_status rc = tok_reserve_merges(t, src->where, (size_t)n, src->err);
    if (rc) {
        return rc;
    }
    struct buf joined;
    buf_init(&joined, TOK_FILE_MAX);
    int32_t rank = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, src->merges)
    {
        rc = read_merge(t, src, v, rank++, &joined);
        if (rc) {
            break;
        }
    }
    buf_deinit(&joined);
    return rc;
}

/* ---- the whole file ---- */

static enum galley_status find_model(struct tok_source *src, const cJSON *root)
{
    static const char *const off[] = { "dropout", "continuing_subword_prefix",
                                       "end_of_word_suffix" };
    src->model = tok_json_item(root, "model");
    if (strcmp(tok_json_type(src->model), "BPE") != 0) {
        return tok_json_refuse(src, "model", tok_json_type(src->model));
    }
    for (size_t i = 0; i < COUNT(off); i++) {
        const enum galley_status rc = tok_json_off(src, src->model, off[i]);
        if (rc) {
            return rc;
        }
    }
    src->vocab = tok_json_item(src->model, "vocab");
    src->merges = tok_json_item(src->model, "merges");
    src->added = tok_json_item(root, "added_tokens");
    if (!cJSON_IsObject(src->vocab) || !cJSON_IsArray(src->merges) ||
        (src->added && !cJSON_IsArray(src->added))) {
        return galley_err_set(src->err, GALLEY_EINPUT,
                              "%s: needs a vocab object, a merges array and an added_tokens array",
                              src->where);
    }
    return GALLEY_OK;
}

static enum galley_status build(struct tokenizer *t, struct tok_source *src, const cJSON *root)
{
    enum galley_status rc = find_model(src, root);
    rc = rc ? rc : tok_json_flag(src, src->model, "ignore_merges", false, &t->ignore_merges);
    rc = rc ? rc : tok_json_flag(src, src->model, "fuse_unk", false, &t->fuse_unk);
    rc = rc ? rc : tok_read_stages(t, src, root);
    rc = rc ? rc : reserve(t, src);
    rc = rc ? rc : read_vocab(t, src);
    rc = rc ? rc : read_merges(t, src);
    rc = rc ? rc : read_added(t, src);
    return rc ? rc : tok_read_post(t, src, tok_json_item(root, "post_processor"));
}

static enum galley_status open_tree(struct tokenizer **out, const char *where, const cJSON *root,
                                    struct galley_err *err)
{
    struct tokenizer *t = mem_new(struct tokenizer);
    if (!t) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for a tokenizer", where);
    }
    t->unk = t->bos = -1;
    struct tok_source src = { .where = where, .err = err };
    const enum galley_status rc = build(t, &src, root);
    if (rc) {
        tokenizer_close(t);
        return rc;
    }
    *out = t;
    return GALLEY_OK;
}

enum galley_status tokenizer_open(struct tokenizer **out, const char *path, struct galley_err *err)
{
    *out = NULL;
    cJSON *root;
    enum galley_status rc = json_read(&root, path, TOK_FILE_MAX, err);
    if (!rc) {
        rc = open_tree(out, path, root, err);
        cJSON_Delete(root);
    }
    return rc;
}

enum galley_status tokenizer_open_memory(struct tokenizer **out, const char *where,
                                         const char *text, size_t n, struct galley_err *err)
{
    *out = NULL;
    if (n > TOK_FILE_MAX) {
        return galley_err_set(err, GALLEY_ELIMIT, "%s: tokenizer has %zu bytes, limit %zu", where,
                              n, TOK_FILE_MAX);
    }
    cJSON *root;
    enum galley_status rc = json_parse(&root, where, text, n, err);
    if (!rc) {
        rc = open_tree(out, where, root, err);
        cJSON_Delete(root);
    }
    return rc;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t) {
        return;
    }
    tok_split_free(t);
    mem_free(t->entries);
    mem_free(t->text);
    mem_free(t->slots);
    mem_free(t->merges);
    mem_free(t->ranks);
    mem_free(t->raw.nodes);
    mem_free(t->normalized.nodes);
    mem_free(t);
}
