/* quantize_vocab.c - tokenizer.json and chat template of a directory as tokenizer.* keys.
 *
 * Byte-level BPE: GGUF names the pre-tokenizer instead of spelling it out, so the pattern in the
 * file must be one that has a name.  BPE of characters: SentencePiece's form, scores for merges
 * (tokenizer_pieces.c).  Ids that the file does not give (padded tables) become unused tokens. */
#include <stdio.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/format/hf_json.h"
#include "src/format/quantize_impl.h"
#include "src/format/tokenizer.h"

#define TOKENIZER_MAX ((size_t)256 << 20)
#define TEMPLATE_MAX  ((size_t)4 << 20)
#define TEXT_MAX      ((size_t)256 << 20)

struct vocab {
    const char *where;          /* path of tokenizer.json */
    struct gguf_string *tokens; /* [n] lent by the tree, or by `text` */
    int32_t *types;             /* enum gguf_token_type; 0: no such id so far */
    struct tokenizer *tok;      /* of characters, else NULL */
    int n;
    struct buf text; /* contents made here: names of unused ids, merges */
    struct galley_err *err;
};

static enum galley_status bad(const struct vocab *v, const char *what)
{
    return galley_err_set(v->err, GALLEY_EMODEL, "%s: %s", v->where, what);
}

static enum galley_status no_memory(const struct vocab *v)
{
    return galley_err_set(v->err, GALLEY_ENOMEM, "%s: no memory for the vocabulary", v->where);
}

static const char *string_of(const cJSON *obj, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(obj, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

/* --- pre-tokenizer ------------------------------------------------------------------------- */

#define SPLIT_HEAD "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define SPLIT_TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Names the pattern of one step; NULL: none we know.  Steps without a pattern of their own
 * (ByteLevel after a Split) leave the name alone. */
static bool name_step(const cJSON *step, const char **name)
{
    const char *type = string_of(step, "type");
    if (!type) {
        return false;
    }
    if (strcmp(type, "Split") == 0) {
        const char *regex = string_of(cJSON_GetObjectItemCaseSensitive(step, "pattern"), "Regex");
        if (!regex || *name) {
            return false;
        }
        *name = strcmp(regex, SPLIT_HEAD "\\p{N}" SPLIT_TAIL) == 0        ? "qwen2"
                : strcmp(regex, SPLIT_HEAD "\\p{N}{1,3}" SPLIT_TAIL) == 0 ? "llama-bpe"
                                                                          : NULL;
        return *name != NULL;
    }
    if (strcmp(type, "Digits") == 0) {
        const bool first = !*name;
        *name = "smollm";
        return first && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(step, "individual_digits"));
    }
    if (strcmp(type, "ByteLevel") != 0) {
        return false;
    }
    const cJSON *regex = cJSON_GetObjectItemCaseSensitive(step, "use_regex");
    const bool splits = !regex || !cJSON_IsFalse(regex);
    if (splits && !*name) {
        *name = "gpt-2";
        return true;
    }
    return splits == (*name && strcmp(*name, "smollm") == 0);
}

static enum galley_status name_pre(const struct vocab *v, const cJSON *root, const char **name)
{
    const cJSON *pre = cJSON_GetObjectItemCaseSensitive(root, "pre_tokenizer");
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(pre, "pretokenizers"), *step;
    bool known = cJSON_IsObject(pre);
    *name = NULL;
    if (known && cJSON_IsArray(steps)) {
        cJSON_ArrayForEach(step, steps)
        {
            known = known && name_step(step, name);
        }
    } else {
        known = known && name_step(pre, name);
    }
    return known && *name ? GALLEY_OK
                          : bad(v, "GGUF has no name for this pre_tokenizer; known are those of "
                                   "Qwen 2, Llama 3, SmolLM and GPT-2");
}

/* --- tokens -------------------------------------------------------------------------------- */

static enum galley_status put_token(struct vocab *v, int64_t id, const char *text, int32_t type)
{
    if (id < 0 || id >= v->n) {
        return galley_err_set(v->err, GALLEY_EMODEL,
                              "%s: token \"%.40s\" has id %lld, the config's vocabulary is %d",
                              v->where, text, (long long)id, v->n);
    }
    if (v->types[id] != 0 && strcmp(v->tokens[id].text, text) != 0) {
        return galley_err_set(v->err, GALLEY_EMODEL,
                              "%s: \"%.40s\" and \"%.40s\" share the id %lld", v->where,
                              v->tokens[id].text, text, (long long)id);
    }
    v->tokens[id] = (struct gguf_string){ text, strlen(text) };
    v->types[id] = type;
    return GALLEY_OK;
}

static enum galley_status read_tokens(struct vocab *v, const cJSON *root, const cJSON *model)
{
    const cJSON *item;
    enum galley_status rc = GALLEY_OK;
    const cJSON *words = cJSON_GetObjectItemCaseSensitive(model, "vocab");
    const cJSON *added = cJSON_GetObjectItemCaseSensitive(root, "added_tokens");
    if (!cJSON_IsObject(words)) {
        return bad(v, "model.vocab is not an object");
    }
    cJSON_ArrayForEach(item, words)
    {
        if (!rc && !cJSON_IsNumber(item)) {
            rc = bad(v, "an id in model.vocab is not a number");
        }
        const bool fits = item->valuedouble >= 0 && item->valuedouble < v->n;
        rc = rc ? rc
                : put_token(v, fits ? (int64_t)item->valuedouble : -1, item->string,
                            GGUF_TOKEN_NORMAL);
    }
    cJSON_ArrayForEach(item, added)
    {
        int64_t id = -1;
        const char *text = string_of(item, "content");
        if (!rc && !text) {
            rc = bad(v, "an added token has no content");
        }
        rc = rc ? rc : json_get_int(item, v->where, "id", true, 0, v->n - 1, &id, v->err);
        const cJSON *special = cJSON_GetObjectItemCaseSensitive(item, "special");
        rc = rc ? rc
                : put_token(v, id, text,
                            cJSON_IsTrue(special) ? GGUF_TOKEN_CONTROL : GGUF_TOKEN_USER);
    }
    return rc;
}

/* Ids that nothing stands for. */
static enum galley_status fill_gaps(struct vocab *v)
{
    enum { GAP_MAX = 24 };
    size_t n_gaps = 0;
    for (int i = 0; i < v->n; i++) {
        n_gaps += v->types[i] == 0;
    }
    if (n_gaps == 0) {
        return GALLEY_OK;
    }
    /* Reserved at once: the strings must not move. */
    buf_init(&v->text, n_gaps * GAP_MAX + 1);
    for (int i = 0; i < v->n; i++) {
        if (v->types[i] == 0) {
            buf_addf(&v->text, "[PAD%d]", i);
            buf_add_char(&v->text, '\0');
        }
    }
    if (!buf_ok(&v->text)) {
        return no_memory(v);
    }
    const char *at = v->text.data;
    for (int i = 0; i < v->n; i++) {
        if (v->types[i] == 0) {
            v->tokens[i] = (struct gguf_string){ at, strlen(at) };
            v->types[i] = GGUF_TOKEN_UNUSED;
            at += strlen(at) + 1;
        }
    }
    return GALLEY_OK;
}

static void write_strings(struct gguf_writer *w, const char *key, const struct gguf_string *s,
                          uint64_t n)
{
    const struct gguf_value v = { .type = GGUF_STRING, .is_array = true, .n = n, .strings = s };
    gguf_write_key(w, key, &v);
}

/* Merges as "left right": strings stay, pairs are put together. */
static enum galley_status write_merges(struct gguf_writer *w, struct vocab *v, const cJSON *model)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(model, "merges"), *item;
    const size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    struct gguf_string *out = mem_many(struct gguf_string, n + 1);
    struct buf text;
    buf_init(&text, TEXT_MAX);
    enum galley_status rc = out ? GALLEY_OK : no_memory(v);
    size_t i = 0;
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *a = cJSON_IsArray(item) ? item->child : NULL;
        const bool pair = a && cJSON_IsString(a) && cJSON_IsString(a->next) && !a->next->next;
        if (rc || (!pair && !cJSON_IsString(item))) {
            rc = rc ? rc : bad(v, "a merge is neither a string nor a pair of strings");
            break;
        }
        const size_t at = text.n;
        if (pair) {
            buf_addf(&text, "%s %s", a->valuestring, a->next->valuestring);
        } else {
            buf_add_str(&text, item->valuestring);
        }
        out[i++].n = text.n - at;
    }
    if (!rc && !buf_ok(&text)) {
        rc = no_memory(v);
    }
    const char *at = text.data;
    for (i = 0; !rc && i < n; i++) {
        out[i].text = at;
        at += out[i].n;
    }
    if (!rc) {
        write_strings(w, "tokenizer.ggml.merges", out, n);
    }
    buf_deinit(&text);
    mem_free(out);
    return rc;
}

static int32_t find_token(const struct vocab *v, const char *text)
{
    for (int i = 0; i < v->n; i++) {
        if (strcmp(v->tokens[i].text, text) == 0) {
            return i;
        }
    }
    return -1;
}

/* --- tokenizer_config.json and the chat template --------------------------------------------- */

/* "bos_token" is a string, or an object with its content. */
static void write_id(struct gguf_writer *w, const struct vocab *v, const cJSON *config,
                     const char *name, const char *key, int32_t fallback)
{
    const cJSON *token = cJSON_GetObjectItemCaseSensitive(config, name);
    const char *text = cJSON_IsString(token) ? token->valuestring : string_of(token, "content");
    const int32_t found = text ? find_token(v, text) : -1;
    const int32_t id = found >= 0 ? found : fallback;
    if (id >= 0) {
        gguf_write_u32(w, key, (uint32_t)id);
    }
}

/* The token in front of every text: the file's own template decides, where it is read. */
static void write_bos(struct gguf_writer *w, const struct vocab *v, const cJSON *config)
{
    static const char key[] = "tokenizer.ggml.bos_token_id",
                      add_key[] = "tokenizer.ggml.add_bos_token";
    const cJSON *add = cJSON_GetObjectItemCaseSensitive(config, "add_bos_token");
    const int32_t bos = v->tok ? tokenizer_bos(v->tok) : -1;
    if (bos >= 0) {
        gguf_write_u32(w, key, (uint32_t)bos);
    } else {
        write_id(w, v, config, "bos_token", key, -1);
    }
    if (v->tok || cJSON_IsBool(add)) {
        gguf_write_bool(w, add_key, v->tok ? bos >= 0 : cJSON_IsTrue(add));
    }
}

/* A file that may be missing: *out NULL then. */
static enum galley_status read_optional(char **out, size_t *n, const char *dir, const char *name,
                                        struct galley_err *err)
{
    char *path;
    *out = NULL;
    enum galley_status rc = hf_path(&path, dir, name, err);
    if (!rc && hf_exists(path)) {
        rc = file_read(path, TEMPLATE_MAX, out, n, err);
    }
    mem_free(path);
    return rc;
}

static enum galley_status parse_optional(cJSON **out, const char *dir, const char *name,
                                         struct galley_err *err)
{
    char *text;
    size_t n = 0;
    *out = NULL;
    enum galley_status rc = read_optional(&text, &n, dir, name, err);
    if (!rc && text) {
        rc = json_parse(out, name, text, n, err);
    }
    mem_free(text);
    return rc;
}

static enum galley_status write_template(struct gguf_writer *w, const char *dir,
                                         const cJSON *config, struct galley_err *err)
{
    static const char key[] = "tokenizer.chat_template";
    char *text;
    size_t n = 0;
    cJSON *json = NULL;
    enum galley_status rc = read_optional(&text, &n, dir, "chat_template.jinja", err);
    if (!rc && !text) {
        rc = parse_optional(&json, dir, "chat_template.json", err);
    }
    const char *found = text ? text : string_of(json, "chat_template");
    found = found ? found : string_of(config, "chat_template");
    if (!rc && found) {
        gguf_write_string(w, key, found);
    }
    cJSON_Delete(json);
    mem_free(text);
    return rc;
}

static enum galley_status write_config(struct gguf_writer *w, const struct vocab *v,
                                       const char *dir, const struct hf_config *cfg)
{
    cJSON *config;
    enum galley_status rc = parse_optional(&config, dir, "tokenizer_config.json", v->err);
    if (rc) {
        return rc;
    }
    write_bos(w, v, config);
    write_id(w, v, config, "eos_token", "tokenizer.ggml.eos_token_id",
             cfg->n_eos > 0 ? cfg->eos[0] : -1);
    write_id(w, v, config, "pad_token", "tokenizer.ggml.padding_token_id", -1);
    rc = write_template(w, dir, config, v->err);
    cJSON_Delete(config);
    return rc;
}

/* --- all of it ----------------------------------------------------------------------------- */

static void write_tokens(struct gguf_writer *w, const struct vocab *v)
{
    const struct gguf_value types = {
        .type = GGUF_I32, .is_array = true, .n = (uint64_t)v->n, .data = (const uint8_t *)v->types
    };
    write_strings(w, "tokenizer.ggml.tokens", v->tokens, (uint64_t)v->n);
    gguf_write_key(w, "tokenizer.ggml.token_type", &types);
}

static enum galley_status write_byte_level(struct gguf_writer *w, struct vocab *v,
                                           const cJSON *root, const cJSON *model)
{
    const char *pre;
    const enum galley_status rc = name_pre(v, root, &pre);
    if (rc) {
        return rc;
    }
    gguf_write_string(w, "tokenizer.ggml.model", "gpt2");
    gguf_write_string(w, "tokenizer.ggml.pre", pre);
    write_tokens(w, v);
    return write_merges(w, v, model);
}

static enum galley_status write_sentencepiece(struct gguf_writer *w, struct vocab *v)
{
    float *scores = mem_many(float, (size_t)v->n); /* unused ids at the end: 0 */
    enum galley_status rc = scores ? tokenizer_open(&v->tok, v->where, v->err) : no_memory(v);
    if (!rc && tokenizer_n_vocab(v->tok) > v->n) { /* it is read a second time */
        rc = bad(v, "changes while it is read");
    }
    rc = rc ? rc : tokenizer_pieces(v->tok, v->where, v->types, scores, v->err);
    if (!rc) {
        const struct gguf_value values = {
            .type = GGUF_F32, .is_array = true, .n = (uint64_t)v->n, .data = (uint8_t *)scores
        };
        gguf_write_string(w, "tokenizer.ggml.model", "llama");
        gguf_write_string(w, "tokenizer.ggml.pre", "default");
        write_tokens(w, v);
        gguf_write_key(w, "tokenizer.ggml.scores", &values);
        gguf_write_bool(w, "tokenizer.ggml.add_space_prefix", tokenizer_adds_space(v->tok));
    }
    for (int i = 0; !rc && i < v->n; i++) {
        if (v->types[i] == GGUF_TOKEN_UNKNOWN) {
            gguf_write_u32(w, "tokenizer.ggml.unknown_token_id", (uint32_t)i);
        }
    }
    mem_free(scores);
    return rc;
}

static enum galley_status write_vocab(struct gguf_writer *w, struct vocab *v, const cJSON *root)
{
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model");
    const char *type = string_of(model, "type");
    if (!type || strcmp(type, "BPE") != 0) {
        return bad(v, "not BPE, the one kind of tokenizer that quantize writes");
    }
    enum galley_status rc = read_tokens(v, root, model);
    rc = rc ? rc : fill_gaps(v);
    if (rc) {
        return rc;
    }
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(model, "byte_fallback"))
               ? write_sentencepiece(w, v)
               : write_byte_level(w, v, root, model);
}

enum galley_status quantize_vocab(struct gguf_writer *w, const char *dir,
                                  const struct hf_config *cfg, struct galley_err *err)
{
    char *path;
    cJSON *root = NULL;
    enum galley_status rc = hf_tokenizer_path(&path, dir, err);
    if (rc) {
        return rc;
    }
    struct vocab v = { .where = path, .n = cfg->text.n_vocab, .err = err };
    v.tokens = mem_many(struct gguf_string, (size_t)v.n);
    v.types = mem_many(int32_t, (size_t)v.n);
    rc = v.tokens && v.types ? json_read(&root, path, TOKENIZER_MAX, err) : no_memory(&v);
    rc = rc ? rc : write_vocab(w, &v, root);
    rc = rc ? rc : write_config(w, &v, dir, cfg);
    cJSON_Delete(root);
    buf_deinit(&v.text);
    tokenizer_close(v.tok);
    mem_free(v.tokens);
    mem_free(v.types);
    mem_free(path);
    return rc == GALLEY_EINPUT || rc == GALLEY_EIO ? GALLEY_EMODEL : rc;
}
