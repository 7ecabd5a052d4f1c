/* tokenizer_stages.c - what surrounds the model in tokenizer.json: normalizer, pre-tokenizer,
 * decoder, post-processor.
 *
 * Two sorts are known, told apart by the decoder.  ByteLevel: NFC or nothing; Split patterns and
 * Digits, then ByteLevel.  A Sequence that ends in ByteFallback and Fuse: spaces become U+2581,
 * by Replace (with or without Prepend) or by Metaspace. */
#include <string.h>

#include "src/base/mem.h"
#include "src/format/tokenizer_json.h"

const cJSON *tok_json_item(const cJSON *obj, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(obj, key);
    return v && !cJSON_IsNull(v) ? v : NULL;
}

const char *tok_json_type(const cJSON *obj)
{
    const cJSON *v = tok_json_item(obj, "type");
    return cJSON_IsString(v) ? v->valuestring : "(no type)";
}

enum galley_status tok_json_refuse(const struct tok_source *src, const char *what, const char *name)
{
    return galley_err_set(src->err, GALLEY_EUNSUP, "%s: %s \"%s\" is not supported", src->where,
                          what, name);
}

enum galley_status tok_json_flag(const struct tok_source *src, const cJSON *obj, const char *key,
                                 bool fallback, bool *out)
{
    *out = fallback;
    return json_get_bool(obj, src->where, key, false, out, src->err);
}

enum galley_status tok_json_off(const struct tok_source *src, const cJSON *obj, const char *key)
{
    const cJSON *v = tok_json_item(obj, key);
    if (!v || cJSON_IsFalse(v) || (cJSON_IsString(v) && v->valuestring[0] == '\0') ||
        (cJSON_IsNumber(v) && v->valuedouble == 0)) {
        return GALLEY_OK;
    }
    return tok_json_refuse(src, "setting", key);
}

/* ---- of bytes ---- */

static enum galley_status read_split(struct tokenizer *t, const struct tok_source *src,
                                     const cJSON *obj)
{
    const char *behavior = "(none)";
    enum galley_status rc = json_get_string(obj, src->where, "behavior", true, &behavior, src->err);
    if (!rc && strcmp(behavior, "Isolated") != 0) {
        rc = tok_json_refuse(src, "split behavior", behavior);
    }
    rc = rc ? rc : tok_json_off(src, obj, "invert");
    if (rc) {
        return rc;
    }
    const cJSON *regex = tok_json_item(tok_json_item(obj, "pattern"), "Regex");
    if (!cJSON_IsString(regex)) {
        return tok_json_refuse(src, "split pattern other than", "Regex");
    }
    return tok_split_compile(t, src->where, regex->valuestring, src->err);
}

/* A stage before the last: cuts the text further. */
static enum galley_status read_cut(struct tokenizer *t, const struct tok_source *src,
                                   const cJSON *obj)
{
    if (strcmp(tok_json_type(obj), "Split") == 0) {
        return read_split(t, src, obj);
    }
    if (strcmp(tok_json_type(obj), "Digits") != 0) {
        return tok_json_refuse(src, "pre-tokenizer", tok_json_type(obj));
    }
    bool each = false;
    const enum galley_status rc = tok_json_flag(src, obj, "individual_digits", false, &each);
    return rc ? rc : tok_split_compile(t, src->where, each ? "\\p{N}" : "\\p{N}+", src->err);
}

static enum galley_status read_byte_level(struct tokenizer *t, const struct tok_source *src,
                                          const cJSON *obj)
{
    bool use_regex = false;
    if (strcmp(tok_json_type(obj), "ByteLevel") != 0) {
        return tok_json_refuse(src, "pre-tokenizer", tok_json_type(obj));
    }
    enum galley_status rc = tok_json_off(src, obj, "add_prefix_space");
    rc = rc ? rc : tok_json_flag(src, obj, "use_regex", true, &use_regex);
    return rc || !use_regex ? rc : tok_split_compile(t, src->where, TOK_GPT2_PATTERN, src->err);
}

/* Either ByteLevel alone, or a Sequence of cuts that ends in it. */
static enum galley_status read_byte_words(struct tokenizer *t, const struct tok_source *src,
                                          const cJSON *obj)
{
    if (strcmp(tok_json_type(obj), "Sequence") != 0) {
        return read_byte_level(t, src, obj);
    }
    const cJSON *list = tok_json_item(obj, "pretokenizers");
    const int n = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || n < 1 || n > TOK_SPLITS_MAX) {
        return tok_json_refuse(src, "pre-tokenizer", "Sequence of other than one to four parts");
    }
    enum galley_status rc = GALLEY_OK;
    for (int i = 0; i + 1 < n && !rc; i++) {
        rc = read_cut(t, src, cJSON_GetArrayItem(list, i));
    }
    return rc ? rc : read_byte_level(t, src, cJSON_GetArrayItem(list, n - 1));
}

static enum galley_status read_bytes(struct tokenizer *t, const struct tok_source *src,
                                     const cJSON *root)
{
    const cJSON *normalizer = tok_json_item(root, "normalizer");
    t->nfc = normalizer && strcmp(tok_json_type(normalizer), "NFC") == 0;
    if (normalizer && !t->nfc) {
        return tok_json_refuse(src, "normalizer", tok_json_type(normalizer));
    }
    const enum galley_status rc = tok_json_off(src, src->model, "byte_fallback");
    return rc ? rc : read_byte_words(t, src, tok_json_item(root, "pre_tokenizer"));
}

/* ---- of characters ---- */

static bool text_is(const cJSON *obj, const char *key, const char *want)
{
    const cJSON *v = tok_json_item(obj, key);
    return cJSON_IsString(v) && strcmp(v->valuestring, want) == 0;
}

static bool is_replace(const cJSON *obj, const char *from, const char *to)
{
    return text_is(obj, "type", "Replace") &&
           text_is(tok_json_item(obj, "pattern"), "String", from) && text_is(obj, "content", to);
}

/* Replace alone, or Prepend and Replace; nothing when Metaspace does the work. */
static enum galley_status read_escapes(struct tokenizer *t, const struct tok_source *src,
                                       const cJSON *obj)
{
    const cJSON *list = tok_json_item(obj, "normalizers");
    const cJSON *first = list ? list->child : NULL, *second = first ? first->next : NULL;
    if (is_replace(obj, " ", TOK_SPACE)) {
        return GALLEY_OK;
    }
    if (text_is(obj, "type", "Sequence") && text_is(first, "type", "Prepend") &&
        text_is(first, "prepend", TOK_SPACE) && is_replace(second, " ", TOK_SPACE) &&
        !second->next) {
        t->prefix = TOK_PREFIX_PIECES;
        return GALLEY_OK;
    }
    return tok_json_refuse(src, "normalizer", tok_json_type(obj));
}

static enum galley_status read_metaspace(struct tokenizer *t, const struct tok_source *src,
                                         const cJSON *obj)
{
    const char *scheme = "always";
    bool split = true;
    enum galley_status rc =
        json_get_string(obj, src->where, "prepend_scheme", false, &scheme, src->err);
    rc = rc ? rc : tok_json_flag(src, obj, "split", true, &split);
    if (!rc && (split || !text_is(obj, "replacement", TOK_SPACE))) {
        rc = tok_json_refuse(src, "pre-tokenizer", "Metaspace that splits or has another sign");
    }
    if (!rc && strcmp(scheme, "first") != 0 && strcmp(scheme, "never") != 0) {
        rc = tok_json_refuse(src, "prepend_scheme", scheme);
    }
    t->prefix = strcmp(scheme, "first") == 0 ? TOK_PREFIX_FIRST : TOK_PREFIX_NONE;
    return rc;
}

/* Gemma's files split at spaces, of which there are none left by then. */
static bool splits_at_spaces(const cJSON *obj)
{
    return text_is(obj, "type", "Split") && text_is(tok_json_item(obj, "pattern"), "String", " ") &&
           !cJSON_IsTrue(tok_json_item(obj, "invert"));
}

static enum galley_status read_chars(struct tokenizer *t, const struct tok_source *src,
                                     const cJSON *root)
{
    const cJSON *normalizer = tok_json_item(root, "normalizer");
    const cJSON *pre = tok_json_item(root, "pre_tokenizer");
    t->chars = true;
    const enum galley_status rc =
        tok_json_flag(src, src->model, "byte_fallback", false, &t->byte_fallback);
    if (rc) {
        return rc;
    }
    if (!normalizer) {
        return text_is(pre, "type", "Metaspace")
                   ? read_metaspace(t, src, pre)
                   : tok_json_refuse(src, "pre-tokenizer", tok_json_type(pre));
    }
    if (pre && !splits_at_spaces(pre)) {
        return tok_json_refuse(src, "pre-tokenizer", tok_json_type(pre));
    }
    return read_escapes(t, src, normalizer);
}

/* Replace, ByteFallback, Fuse, and perhaps Strip of the space that was put in front. */
static bool decodes_chars(const cJSON *decoder)
{
    const cJSON *d = tok_json_item(decoder, "decoders");
    d = d ? d->child : NULL;
    if (!text_is(decoder, "type", "Sequence") || !is_replace(d, TOK_SPACE, " ")) {
        return false;
    }
    d = d->next;
    if (!text_is(d, "type", "ByteFallback") || !text_is(d->next, "type", "Fuse")) {
        return false;
    }
    d = d->next->next;
    return !d || (text_is(d, "type", "Strip") && text_is(d, "content", " ") && !d->next);
}

enum galley_status tok_read_stages(struct tokenizer *t, const struct tok_source *src,
                                   const cJSON *root)
{
    const cJSON *decoder = tok_json_item(root, "decoder");
    if (strcmp(tok_json_type(decoder), "ByteLevel") == 0) {
        return read_bytes(t, src, root);
    }
    return decodes_chars(decoder) ? read_chars(t, src, root)
                                  : tok_json_refuse(src, "decoder", tok_json_type(decoder));
}

/* ---- what is put around a text ---- */

/* "single": at most one special token, then the text. */
static enum galley_status read_template(struct tokenizer *t, const struct tok_source *src,
                                        const cJSON *post)
{
    const cJSON *item = tok_json_item(post, "single");
    item = item ? item->child : NULL;
    const cJSON *token = tok_json_item(tok_json_item(item, "SpecialToken"), "id");
    if (cJSON_IsString(token)) {
        t->bos = tok_find(t, token->valuestring, strlen(token->valuestring));
        if (t->bos < 0) {
            return tok_json_refuse(src, "post-processor's token", token->valuestring);
        }
        item = item->next;
    }
    if (!tok_json_item(item, "Sequence") || item->next) {
        return tok_json_refuse(src, "post-processor",
                               "TemplateProcessing with other than one token in front");
    }
    return GALLEY_OK;
}

/* ByteLevel moves offsets, never ids. */
enum galley_status tok_read_post(struct tokenizer *t, const struct tok_source *src,
                                 const cJSON *post)
{
    if (!post || strcmp(tok_json_type(post), "ByteLevel") == 0) {
        return GALLEY_OK;
    }
    if (strcmp(tok_json_type(post), "TemplateProcessing") == 0) {
        return read_template(t, src, post);
    }
    const cJSON *list = tok_json_item(post, "processors"), *item;
    if (strcmp(tok_json_type(post), "Sequence") != 0 || !cJSON_IsArray(list)) {
        return tok_json_refuse(src, "post-processor", tok_json_type(post));
    }
    enum galley_status rc = GALLEY_OK;
    cJSON_ArrayForEach(item, list)
    {
        if (!rc && strcmp(tok_json_type(item), "TemplateProcessing") == 0) {
            rc = read_template(t, src, item);
        } else if (!rc && strcmp(tok_json_type(item), "ByteLevel") != 0) {
            rc = tok_json_refuse(src, "post-processor", tok_json_type(item));
        }
    }
    return rc;
}
