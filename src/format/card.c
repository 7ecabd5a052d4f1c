/* card.c - galley.json: a table of keys, so that an unknown one can be named. */
#include "src/format/card.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/hf_json.h"

#define CARD_FILE     "galley.json"
#define CARD_FILE_MAX ((size_t)1 << 20)

static const char *const script_names[] = { "latin",  "greek",  "cyrillic", "han",  "kana",
                                            "hangul", "arabic", "hebrew",   "other" };

static const char *const kind_names[] = {
    "heading", "paragraph", "list",     "table",       "figure",      "caption",
    "formula", "code",      "footnote", "page_header", "page_footer", "page_number",
};

int card_kind_count(void)
{
    return (int)COUNT(kind_names);
}

const char *card_kind_name(int i)
{
    assert(i >= 0 && i < (int)COUNT(kind_names));
    return kind_names[i];
}

void card_default(struct card *c)
{
    *c = (struct card){
        .prompt_region = "Convert to Markdown.",
        .system = "You are a helpful assistant.", /* what Qwen's template sends by itself */
        .inline_markup = true,
        .tau_text = 1,
        .tau_ocr = 1,
        .scripts = CARD_ALL_SCRIPTS,
        .kinds = CARD_ALL_KINDS,
    };
}

enum key_type {
    KEY_TEXT,
    KEY_NUMBER,
    KEY_INT,
    KEY_PIXELS,
    KEY_BOOL,
    KEY_SCRIPTS,
    KEY_KINDS,
    KEY_ABOUT
};

struct card_key {
    const char *name;
    enum key_type type;
    size_t offset; /* in struct card */
    double lo, hi;
};

#define AT(field) offsetof(struct card, field)

static const struct card_key keys[] = {
    { "about", KEY_ABOUT, 0, 0, 0 },
    { "prompt_region", KEY_TEXT, AT(prompt_region), 0, 0 },
    { "prompt_table", KEY_TEXT, AT(prompt_table), 0, 0 },
    { "system", KEY_TEXT, AT(system), 0, 0 },
    { "text_height", KEY_NUMBER, AT(text_height), 0, 1000 },
    { "heading_height", KEY_NUMBER, AT(heading_height), 0, 1000 },
    { "max_lines", KEY_INT, AT(max_lines), 0, 100000 },
    { "max_visual_tokens", KEY_INT, AT(max_visual_tokens), 0, 1 << 24 },
    { "inline_markup", KEY_BOOL, AT(inline_markup), 0, 0 },
    { "min_pixels", KEY_PIXELS, AT(min_pixels), 0, 1e12 },
    { "max_pixels", KEY_PIXELS, AT(max_pixels), 0, 1e12 },
    { "tau_text", KEY_NUMBER, AT(tau_text), 0, 1 },
    { "tau_ocr", KEY_NUMBER, AT(tau_ocr), 0, 1 },
    { "doubt_logprob", KEY_NUMBER, AT(doubt_logprob), -100, 0 },
    { "scripts", KEY_SCRIPTS, AT(scripts), 0, 0 },
    { "kinds", KEY_KINDS, AT(kinds), 0, 0 },
    { "max_new_tokens", KEY_INT, AT(max_new_tokens), 0, 1 << 24 },
};

static enum galley_status read_text(char *out, const cJSON *root, const char *where,
                                    const char *key, struct galley_err *err)
{
    const char *text = out;
    const enum galley_status rc = json_get_string(root, where, key, false, &text, err);
    if (rc || text == out) {
        return rc;
    }
    const size_t n = strlen(text);
    if (n >= CARD_TEXT_MAX) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" has %zu bytes, limit %d", where, key,
                              n, CARD_TEXT_MAX - 1);
    }
    if (!utf8_valid(text, n)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is not UTF-8", where, key);
    }
    memcpy(out, text, n + 1);
    return GALLEY_OK;
}

/* A list of names as bits. */
static enum galley_status read_set(uint32_t *out, const cJSON *list, const char *where,
                                   const char *key, const char *const *names, size_t n_names,
                                   struct galley_err *err)
{
    if (!cJSON_IsArray(list) || !list->child) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is not a list of names", where, key);
    }
    *out = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        size_t i = 0;
        while (cJSON_IsString(item) && i < n_names && strcmp(item->valuestring, names[i]) != 0) {
            i++;
        }
        if (!cJSON_IsString(item) || i == n_names) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" holds unknown \"%.64s\"", where,
                                  key, cJSON_IsString(item) ? item->valuestring : "(no string)");
        }
        *out |= UINT32_C(1) << i;
    }
    return GALLEY_OK;
}

static enum galley_status read_key(struct card *c, const struct card_key *k, const cJSON *root,
                                   const cJSON *item, const char *where, struct galley_err *err)
{
    void *at = (char *)c + k->offset;
    const int64_t lo = (int64_t)k->lo, hi = (int64_t)k->hi;
    switch (k->type) {
    case KEY_ABOUT:
        return GALLEY_OK;
    case KEY_TEXT:
        return read_text(at, root, where, k->name, err);
    case KEY_NUMBER:
        return json_get_number(root, where, k->name, false, k->lo, k->hi, at, err);
    case KEY_PIXELS:
        return json_get_int(root, where, k->name, false, lo, hi, at, err);
    case KEY_BOOL:
        return json_get_bool(root, where, k->name, false, at, err);
    case KEY_INT: {
        const struct hf_int key = { k->name, false, (int)lo, (int)hi, at };
        return hf_read_ints(root, where, &key, 1, err);
    }
    case KEY_SCRIPTS:
        return read_set(at, item, where, k->name, script_names, COUNT(script_names), err);
    case KEY_KINDS:
        return read_set(at, item, where, k->name, kind_names, COUNT(kind_names), err);
    }
    return GALLEY_EINTERNAL;
}

static enum galley_status read_root(struct card *c, const cJSON *root, const char *where,
                                    struct galley_err *err)
{
    if (!cJSON_IsObject(root)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: not a JSON object", where);
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, root)
    {
        size_t i = 0;
        while (i < COUNT(keys) && strcmp(item->string, keys[i].name) != 0) {
            i++;
        }
        if (i == COUNT(keys)) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "%s: unknown key \"%.64s\" (docs/model-card.md lists them)",
                                  where, item->string);
        }
        if (cJSON_GetObjectItemCaseSensitive(root, item->string) != item) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is there twice", where,
                                  item->string);
        }
        const enum galley_status rc = read_key(c, &keys[i], root, item, where, err);
        if (rc) {
            return rc;
        }
    }
    if (c->min_pixels && c->max_pixels && c->min_pixels > c->max_pixels) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: min_pixels %lld is over max_pixels %lld",
                              where, (long long)c->min_pixels, (long long)c->max_pixels);
    }
    return GALLEY_OK;
}

enum galley_status card_parse(struct card *out, const char *where, const char *text, size_t n,
                              struct galley_err *err)
{
    card_default(out);
    cJSON *root;
    enum galley_status rc = json_parse(&root, where, text, n, err);
    rc = rc ? rc : read_root(out, root, where, err);
    cJSON_Delete(root);
    return hf_status(rc, err);
}

enum galley_status card_read(struct card *out, const char *dir, bool *found, struct galley_err *err)
{
    card_default(out);
    *found = false;
    char *path, *text = NULL;
    size_t n;
    enum galley_status rc = hf_path(&path, dir, CARD_FILE, err);
    if (rc) {
        return rc;
    }
    if (hf_exists(path)) {
        *found = true;
        rc = file_read(path, CARD_FILE_MAX, &text, &n, err);
        rc = rc ? hf_status(rc, err) : card_parse(out, path, text, n, err);
    }
    mem_free(text);
    mem_free(path);
    return rc;
}
