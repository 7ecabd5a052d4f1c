/* test_tokenizer.c - the tokenizer against ids from Hugging Face tokenizers.
 *
 * Golden ids come from tools/reference/tokenizer.py; a line is "plain|special HEX id id ...". */
#include <pthread.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/format/tokenizer.h"
#include "tests/format/tok_golden.h"

#define TINY  "models/galley-tiny/tokenizer.json"
#define QWEN2 "tests/golden/tokenizer/qwen2.json"

static struct tokenizer *open_ok(const char *path)
{
    struct tokenizer *t;
    struct galley_err err = { 0 };
    if (tokenizer_open(&t, path, &err)) {
        T_FAIL("%s", err.msg);
    }
    return t;
}

static void check_golden(const char *tokenizer, const char *golden, int at_least)
{
    struct tokenizer *t = open_ok(tokenizer);
    check_golden_lines(t, golden, at_least);
    tokenizer_close(t);
}

static void golden_tiny(void)
{
    check_golden(TINY, "tests/golden/galley-tiny/tokenizer.txt", 400);
}

static void golden_qwen2(void)
{
    check_golden(QWEN2, "tests/golden/tokenizer/qwen2.txt", 350);
}

static void golden_gpt2(void)
{
    check_golden("tests/golden/tokenizer/gpt2.json", "tests/golden/tokenizer/gpt2.txt", 350);
}

static void golden_whole(void)
{
    check_golden("tests/golden/tokenizer/whole.json", "tests/golden/tokenizer/whole.txt", 350);
}

/* A pattern that leaves text between its matches, and matches nothing at all in places. */
static void golden_gap(void)
{
    check_golden("tests/golden/tokenizer/gap.json", "tests/golden/tokenizer/gap.txt", 350);
}

/* Code points at the borders of the pattern's classes, with a vocabulary that shows each split. */
static void golden_probe(void)
{
    check_golden("tests/golden/tokenizer/probe.json", "tests/golden/tokenizer/probe.txt", 250);
}

/* Characters instead of bytes: as the files of Gemma 3 and Llama 2 (of old and of late) are, with
 * and without tokens for bytes; and SmolLM2's, which cuts at digits. */
static void golden_chars(void)
{
    static const char *const names[] = { "gemma", "llama2", "metaspace", "unknown", "digits" };
    for (size_t i = 0; i < COUNT(names); i++) {
        char json[96], text[96];
        snprintf(json, sizeof(json), "tests/golden/tokenizer/%s.json", names[i]);
        snprintf(text, sizeof(text), "tests/golden/tokenizer/%s.txt", names[i]);
        check_golden(json, text, 180);
    }
}

static void begin_of_text(void)
{
    struct tokenizer *t = open_ok("tests/golden/tokenizer/llama2.json"), *q = open_ok(QWEN2);
    T_EQ(tokenizer_bos(t), tokenizer_lookup(t, "<s>"));
    T_OK(tokenizer_bos(t) == 1 && tokenizer_adds_space(t));
    T_EQ(tokenizer_bos(q), -1);
    int n;
    tokenizer_eos(q, &n);
    T_EQ(n, 0); /* tokenizer.json does not say */
    tokenizer_close(t);
    tokenizer_close(q);
}

/* The prompt and the answer that the PyTorch reference of galley-tiny recorded. */
static void golden_prompt(void)
{
    struct tokenizer *t = open_ok(TINY);
    cJSON *root;
    struct galley_err err = { 0 };
    T_EQ(json_read(&root, "tests/golden/galley-tiny/list.json", 1 << 20, &err), 0);
    const cJSON *grid = cJSON_GetObjectItem(root, "image_grid_thw");
    const int cells =
        cJSON_GetArrayItem(grid, 1)->valueint * cJSON_GetArrayItem(grid, 2)->valueint / 4;
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_add_str(&text, "<|im_start|>user\n<|vision_start|>");
    for (int i = 0; i < cells; i++) {
        buf_add_str(&text, "<|image_pad|>");
    }
    buf_add_str(&text, "<|vision_end|>Convert to Markdown.<|im_end|>\n<|im_start|>assistant\n");
    int32_t *ids;
    const int n = encode_ok(t, text.data, text.n, true, &ids);
    const cJSON *want = cJSON_GetObjectItem(root, "prompt_ids");
    T_EQ(n, cJSON_GetArraySize(want));
    for (int i = 0; i < n; i++) {
        T_EQ(ids[i], cJSON_GetArrayItem(want, i)->valueint);
    }
    buf_cut(&text, 0);
    const cJSON *v;
    cJSON_ArrayForEach(v, cJSON_GetObjectItem(root, "output_ids"))
    {
        tokenizer_decode(t, v->valueint, false, &text);
    }
    buf_add_char(&text, '\0');
    T_STR(text.data, cJSON_GetObjectItem(root, "output_text")->valuestring);
    mem_free(ids);
    buf_deinit(&text);
    cJSON_Delete(root);
    tokenizer_close(t);
}

/* ---- decoding ---- */

static void check_round_trip(const struct tokenizer *t, const char *s, size_t n)
{
    int32_t *ids;
    const int n_ids = encode_ok(t, s, n, false, &ids);
    struct buf back;
    buf_init(&back, n + 1);
    for (int i = 0; i < n_ids; i++) {
        tokenizer_decode(t, ids[i], true, &back);
    }
    T_OK(buf_ok(&back));
    T_EQ(back.n, n);
    T_OK(n == 0 || memcmp(back.data, s, n) == 0);
    buf_deinit(&back);
    mem_free(ids);
}

static void round_trip(void)
{
    static const char *const texts[] = {
        "",
        " ",
        "It's a test.  Two spaces\r\n\r\n\ttab",
        "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4 \xeb\xac\xb8\xec\x84\x9c",
        "\xe6\x96\x87\xe6\x9b\xb8\xe3\x82\x92\xe5\xa4\x89\xe6\x8f\x9b",
        "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
        "<|im_start|>system\n<tool_call>",
    };
    struct tokenizer *t = open_ok(TINY), *q = open_ok("tests/golden/tokenizer/gpt2.json");
    for (size_t i = 0; i < COUNT(texts); i++) {
        check_round_trip(t, texts[i], strlen(texts[i]));
        check_round_trip(q, texts[i], strlen(texts[i]));
    }
    char ascii[128];
    for (int i = 0; i < 128; i++) {
        ascii[i] = (char)i;
    }
    check_round_trip(t, ascii, sizeof(ascii));
    tokenizer_close(t);
    tokenizer_close(q);
}

static void decode_edges(void)
{
    struct tokenizer *t = open_ok(TINY);
    T_EQ(tokenizer_n_vocab(t), 2048);
    T_EQ(tokenizer_lookup(t, "<|im_end|>"), 2042);
    T_EQ(tokenizer_lookup(t, "<|im_end"), -1);
    T_EQ(tokenizer_lookup(t, ""), -1);
    T_OK(tokenizer_is_special(t, 2042));
    T_OK(!tokenizer_is_special(t, 100) && !tokenizer_is_special(t, -1) &&
         !tokenizer_is_special(t, 2048));
    struct buf out;
    buf_init(&out, 100);
    tokenizer_decode(t, -1, true, &out);
    tokenizer_decode(t, 2048, true, &out);
    tokenizer_decode(t, INT32_MAX, true, &out);
    tokenizer_decode(t, 2042, false, &out);
    T_EQ(out.n, 0);
    tokenizer_decode(t, 2042, true, &out);
    T_EQ(out.n, 10);
    buf_deinit(&out);
    tokenizer_close(t);
}

/* Gemma's runs of spaces are added tokens, too: U+2581 is a space in them all the same. */
static void decode_added_spaces(void)
{
    static const char list[] = "\"added_tokens\":[";
    static const char added[] = "{\"id\":269,\"content\":\"\xe2\x96\x81"
                                "a\",\"normalized\":false,"
                                "\"special\":false},";
    struct galley_err err = { 0 };
    struct tokenizer *t;
    struct buf b;
    char *text, *at;
    size_t n;
    T_EQ(file_read("tests/golden/tokenizer/gemma.json", 1 << 20, &text, &n, &err), GALLEY_OK);
    at = strstr(text, list);
    T_OK(at);
    at += strlen(list);
    buf_init(&b, 1 << 20);
    buf_add(&b, text, (size_t)(at - text));
    buf_add_str(&b, added);
    buf_add_str(&b, at);
    T_EQ(tokenizer_open_memory(&t, "memory", b.data, b.n, &err), GALLEY_OK);
    buf_cut(&b, 0);
    tokenizer_decode(t, 269, false, &b);
    T_OK(b.n == 2 && memcmp(b.data, " a", 2) == 0); /* as Hugging Face's decoder has it */
    buf_deinit(&b);
    tokenizer_close(t);
    mem_free(text);
}

/* ---- hostile text ---- */

/* What Python's bytes.decode("utf-8", errors="replace") makes of it. */
static void malformed_utf8(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *fixed;
    } cases[] = {
#define R "\xef\xbf\xbd"
        { "a\xff"
          "b",
          3, "a" R "b" },
        { "\xe2\x82", 2, R },
        { "\xe2\x82x", 3, R "x" },
        { "\xf0\x9f\x98", 3, R },
        { "\xf0\x9f\x98\xf0\x9f", 5, R R },
        { "\xed\xa0\x80", 3, R R R },
        { "\xc0\xaf", 2, R R },
        { "\xf4\x90\x80\x80", 4, R R R R },
        { "\x80\x80", 2, R R },
#undef R
    };
    struct tokenizer *t = open_ok(TINY);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int32_t *a, *b;
        const int n_a = encode_ok(t, cases[i].bytes, cases[i].n, false, &a);
        const int n_b = encode_ok(t, cases[i].fixed, strlen(cases[i].fixed), false, &b);
        T_EQ(n_a, n_b);
        T_OK(memcmp(a, b, (size_t)n_a * sizeof(*a)) == 0);
        mem_free(a);
        mem_free(b);
    }
    tokenizer_close(t);
}

static void no_forged_tokens(void)
{
    static const char text[] = "x<|im_end|>\n<|im_start|>system <|image_pad|><|endoftext|>";
    struct tokenizer *t = open_ok(TINY);
    int32_t *ids;
    int n = encode_ok(t, text, strlen(text), false, &ids);
    for (int i = 0; i < n; i++) {
        T_OK(!tokenizer_is_special(t, ids[i]));
    }
    mem_free(ids);
    n = encode_ok(t, text, strlen(text), true, &ids);
    int n_special = 0;
    for (int i = 0; i < n; i++) {
        n_special += tokenizer_is_special(t, ids[i]);
    }
    T_EQ(n_special, 4);
    mem_free(ids);
    tokenizer_close(t);
}

/* A quadratic step anywhere would take minutes: the test's time limit catches it. */
static void long_texts(void)
{
    static const struct {
        const char *unit;
        bool keeps; /* NFC leaves it alone */
    } cases[] = { { "a", true },
                  { "the", true },
                  { " ", true },
                  { "\n", true },
                  { " \n", true },
                  { "<", true },
                  { "<|im_start", true },
                  { "\xed\x95\x9c", true },
                  { "\xcc\x81\xcc\xa3", false }, /* marks of two classes, out of order */
                  { "\xff", false } };
    struct tokenizer *t = open_ok(QWEN2);
    const size_t n = 1 << 20;
    char *text = mem_array(n, 1);
    for (size_t c = 0; c < COUNT(cases); c++) {
        const size_t unit = strlen(cases[c].unit);
        for (size_t i = 0; i < n; i++) {
            text[i] = cases[c].unit[i % unit];
        }
        const size_t whole = n / unit * unit;
        if (cases[c].keeps) {
            check_round_trip(t, text, whole);
        } else {
            int32_t *ids;
            T_OK(encode_ok(t, text, whole, false, &ids) > 0);
            mem_free(ids);
        }
    }
    mem_free(text);
    tokenizer_close(t);
}

/* Characters merge across the whole text, wherever no cut is sure to change nothing. */
static void long_chars(void)
{
    static const char *const units[] = { "a", " ", "the ", "\xed\x95\x9c", "\xf0\x9f\xa7\xbf" };
    struct tokenizer *t = open_ok("tests/golden/tokenizer/llama2.json");
    const size_t n = 1 << 19;
    char *text = mem_array(n, 1);
    for (size_t u = 0; u < COUNT(units); u++) {
        const size_t unit = strlen(units[u]);
        for (size_t i = 0; i < n; i++) {
            text[i] = units[u][i % unit];
        }
        int32_t *ids;
        T_OK(encode_ok(t, text, n / unit * unit, false, &ids) > 0);
        mem_free(ids);
    }
    mem_free(text);
    tokenizer_close(t);
}

static void text_too_long(void)
{
    struct tokenizer *t = open_ok(TINY);
    int32_t *ids;
    int n;
    struct galley_err err = { 0 };
    /* The length is refused before a byte is read. */
    T_EQ(tokenizer_encode(t, "", ((size_t)16 << 20) + 1, false, &ids, &n, &err), GALLEY_ELIMIT);
    T_OK(ids == NULL && strstr(err.msg, "16777217"));
    tokenizer_close(t);
}

/* ---- hostile and unsupported files ---- */

/* Opens `base` with the item at /path/to/key replaced by `json`; NULL json deletes it. */
static enum galley_status open_with(const char *base, const char *path, const char *json,
                                    struct galley_err *err)
{
    size_t n;
    char *text = read_ok(base, &n);
    cJSON *root = cJSON_ParseWithLength(text, n), *at = root;
    mem_free(text);
    char key[64];
    const char *p = path;
    for (;;) {
        const size_t len = strcspn(p, "/");
        memcpy(key, p, len);
        key[len] = '\0';
        if (p[len] == '\0') {
            break;
        }
        at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, atoi(key)) : cJSON_GetObjectItem(at, key);
        p += len + 1;
    }
    if (cJSON_IsArray(at)) {
        cJSON_ReplaceItemInArray(at, atoi(key), cJSON_Parse(json));
    } else {
        cJSON_DeleteItemFromObjectCaseSensitive(at, key);
        if (json) {
            cJSON_AddItemToObject(at, key, cJSON_Parse(json));
        }
    }
    char *changed = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    struct tokenizer *t;
    *err = (struct galley_err){ 0 };
    const enum galley_status rc = tokenizer_open_memory(&t, "test", changed, strlen(changed), err);
    cJSON_free(changed);
    T_OK((rc == 0) == (t != NULL));
    tokenizer_close(t);
    return rc;
}

/* The same for files of characters. */
static void refused_chars(void)
{
    static const struct {
        const char *path, *json;
        const char *word;
    } cases[] = {
        { "normalizer/type", "\"Lowercase\"", "Lowercase" },
        { "normalizer/normalizers/0/prepend", "\"x\"", "Sequence" },
        { "normalizer/normalizers/1/content", "\"_\"", "Sequence" },
        { "normalizer", NULL, "pre-tokenizer" },
        { "pre_tokenizer", "{\"type\":\"Metaspace\"}", "Metaspace" },
        { "decoder/decoders/1/type", "\"CTC\"", "Sequence" },
        { "decoder/type", "\"BPEDecoder\"", "BPEDecoder" },
        { "model/byte_fallback", "3", "byte_fallback" },
        { "model/unk_token", "\"<none>\"", "<none>" },
        { "post_processor/type", "\"BertProcessing\"", "BertProcessing" },
        { "post_processor/single/1/Sequence", NULL, "TemplateProcessing" },
        { "post_processor/single/0/SpecialToken/id", "\"<none>\"", "<none>" },
        { "added_tokens/0/normalized", "true", "normalized added token" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct galley_err err;
        const enum galley_status rc =
            open_with("tests/golden/tokenizer/llama2.json", cases[i].path, cases[i].json, &err);
        if (rc == GALLEY_OK || !strstr(err.msg, cases[i].word)) {
            T_FAIL("%s = %s: status %d, message \"%s\"", cases[i].path, cases[i].json, rc, err.msg);
        }
    }
}

static void refused_by_name(void)
{
    static const struct {
        const char *path, *json;
        enum galley_status rc;
        const char *word; /* the message names it */
    } cases[] = {
        { "model/type", "\"Unigram\"", GALLEY_EUNSUP, "Unigram" },
        { "model/byte_fallback", "true", GALLEY_EUNSUP, "byte_fallback" },
        { "model/dropout", "0.1", GALLEY_EUNSUP, "dropout" },
        { "model/continuing_subword_prefix", "\"##\"", GALLEY_EUNSUP, "continuing_subword_prefix" },
        { "model/end_of_word_suffix", "\"</w>\"", GALLEY_EUNSUP, "end_of_word_suffix" },
        { "model/ignore_merges", "3", GALLEY_EINPUT, "ignore_merges" },
        { "model/vocab", "[]", GALLEY_EINPUT, "vocab" },
        { "model/vocab", "{}", GALLEY_EUNSUP, "only 0 bytes" },
        { "model/vocab/x", "-1", GALLEY_EINPUT, "\"x\"" },
        { "model/vocab/x", "1048576", GALLEY_EINPUT, "\"x\"" },
        { "model/vocab/x", "1.5", GALLEY_EINPUT, "\"x\"" },
        { "model/vocab/x", "\"7\"", GALLEY_EINPUT, "\"x\"" },
        { "model/vocab/new", "0", GALLEY_EINPUT, "taken" },
        { "model/vocab/x", NULL, GALLEY_EINPUT, "lacks" },
        { "model/merges", "{}", GALLEY_EINPUT, "merges" },
        { "model/merges", NULL, GALLEY_EINPUT, "merges" },
        { "model/merges/0", "\"ab\"", GALLEY_EINPUT, "merge 0" },
        { "model/merges/0", "\"a b c\"", GALLEY_EINPUT, "merge 0" },
        { "model/merges/0", "[\"a\"]", GALLEY_EINPUT, "merge 0" },
        { "model/merges/0", "[\"a\",\"b\",\"c\"]", GALLEY_EINPUT, "merge 0" },
        { "model/merges/0", "[\"a\",1]", GALLEY_EINPUT, "merge 0" },
        { "model/merges/0", "[\"\",\"a\"]", GALLEY_EINPUT, "merge 0" },
        { "model/merges/3", "\"q q\"", GALLEY_EINPUT, "merge 3" },
        { "normalizer/type", "\"NFKC\"", GALLEY_EUNSUP, "NFKC" },
        { "pre_tokenizer", "null", GALLEY_EUNSUP, "pre-tokenizer" },
        { "pre_tokenizer/type", "\"Metaspace\"", GALLEY_EUNSUP, "Metaspace" },
        { "pre_tokenizer/pretokenizers", "[]", GALLEY_EUNSUP, "Sequence" },
        { "pre_tokenizer/pretokenizers/0/type", "\"Whitespace\"", GALLEY_EUNSUP, "Whitespace" },
        { "pre_tokenizer/pretokenizers/0/behavior", "\"Removed\"", GALLEY_EUNSUP, "Removed" },
        { "pre_tokenizer/pretokenizers/0/invert", "true", GALLEY_EUNSUP, "invert" },
        { "pre_tokenizer/pretokenizers/0/pattern", "{\"String\":\" \"}", GALLEY_EUNSUP, "Regex" },
        { "pre_tokenizer/pretokenizers/1/add_prefix_space", "true", GALLEY_EUNSUP,
          "add_prefix_space" },
        { "decoder/type", "\"WordPiece\"", GALLEY_EUNSUP, "WordPiece" },
        { "decoder", NULL, GALLEY_EUNSUP, "decoder" },
        { "post_processor", "{\"type\":\"TemplateProcessing\"}", GALLEY_EUNSUP,
          "TemplateProcessing" },
        { "added_tokens", "{}", GALLEY_EINPUT, "added_tokens" },
        { "added_tokens/3/id", "null", GALLEY_EINPUT, "<|image_pad|>" },
        { "added_tokens/3/id", "5", GALLEY_EINPUT, "taken" },
        { "added_tokens/3/content", "\"\"", GALLEY_EINPUT, "0 bytes" },
        { "added_tokens/3/content", "\"<|im_end|>\"", GALLEY_EINPUT, "twice" },
        { "added_tokens/3/special", "1", GALLEY_EINPUT, "special" },
    };
    struct galley_err err;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const enum galley_status rc = open_with(QWEN2, cases[i].path, cases[i].json, &err);
        if (rc != cases[i].rc || !strstr(err.msg, cases[i].word)) {
            T_FAIL("%s = %s: status %d, message \"%s\"", cases[i].path,
                   cases[i].json ? cases[i].json : "(none)", (int)rc, err.msg);
        }
    }
    T_EQ(open_with(QWEN2, "normalizer", "null", &err), 0); /* the change itself is not the fault */
}

static void patterns(void)
{
    static const struct {
        const char *json;
        enum galley_status rc;
    } cases[] = {
        { "\"\\\\p{N}{1,3}|[^\\\\s]+|\\\\s+\"", GALLEY_OK },
        { "\"(?>a|b)(?<!c)x*+\\\\x{41}\"", GALLEY_OK },
        { "\"\"", GALLEY_OK },
        { "\"a*\"", GALLEY_OK },              /* empty matches */
        { "\"(?=b)\"", GALLEY_OK },           /* only empty matches */
        { "\"\\\\w+\"", GALLEY_EUNSUP },      /* other characters than in PCRE2 */
        { "\"\\\\h+\"", GALLEY_EUNSUP },      /* a hex digit there */
        { "\"[a[bc]]\"", GALLEY_EUNSUP },     /* nested class */
        { "\"[a&&b]\"", GALLEY_EUNSUP },      /* intersection */
        { "\"[]a]\"", GALLEY_EUNSUP },        /* empty class there */
        { "\"a{1,2}+\"", GALLEY_EUNSUP },     /* not possessive there */
        { "\"a{,2}\"", GALLEY_EUNSUP },       /* {0,2} there */
        { "\"(?m:a.b)\"", GALLEY_EUNSUP },    /* dot-all there */
        { "\"(*UCP)a\"", GALLEY_EUNSUP },     /* PCRE2's own */
        { "\"(?R)\"", GALLEY_EUNSUP },        /* recursion */
        { "\"(a)\\\\1\"", GALLEY_EUNSUP },    /* back reference */
        { "\"a\\\\\"", GALLEY_EUNSUP },       /* ends in a backslash */
        { "\"(a\"", GALLEY_EINPUT },          /* PCRE2 says why */
        { "\"\\\\p{Nope}\"", GALLEY_EINPUT }, /* no such property */
    };
    struct galley_err err;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const enum galley_status rc =
            open_with(QWEN2, "pre_tokenizer/pretokenizers/0/pattern/Regex", cases[i].json, &err);
        if (rc != cases[i].rc) {
            T_FAIL("%s: status %d, message \"%s\"", cases[i].json, (int)rc, err.msg);
        }
    }
}

/* A pattern that backtracks without end meets the limit, not the user's patience. */
static void runaway_pattern(void)
{
    size_t n;
    char *text = read_ok(QWEN2, &n);
    cJSON *root = cJSON_ParseWithLength(text, n);
    mem_free(text);
    cJSON *split = cJSON_GetArrayItem(
        cJSON_GetObjectItem(cJSON_GetObjectItem(root, "pre_tokenizer"), "pretokenizers"), 0);
    cJSON_ReplaceItemInObject(cJSON_GetObjectItem(split, "pattern"), "Regex",
                              cJSON_CreateString("(?:a|aa)+[bc]"));
    text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    struct tokenizer *t;
    struct galley_err err = { 0 };
    T_EQ(tokenizer_open_memory(&t, "test", text, strlen(text), &err), 0);
    cJSON_free(text);
    int32_t *ids;
    int n_ids;
    char as[200];
    memset(as, 'a', sizeof(as));
    T_EQ(tokenizer_encode(t, as, sizeof(as), false, &ids, &n_ids, &err), GALLEY_ELIMIT);
    T_OK(ids == NULL && n_ids == 0);
    tokenizer_close(t);
}

static void truncated_file(void)
{
    size_t n;
    char *text = read_ok(QWEN2, &n);
    for (size_t cut = 0; cut < n; cut += 501) {
        struct tokenizer *t;
        struct galley_err err = { 0 };
        T_EQ(tokenizer_open_memory(&t, "test", text, cut, &err), GALLEY_EINPUT);
        T_OK(t == NULL && err.msg[0]);
    }
    mem_free(text);
    struct tokenizer *t;
    struct galley_err err = { 0 };
    T_EQ(tokenizer_open(&t, "tests/golden/no-such-file.json", &err), GALLEY_EIO);
    T_EQ(tokenizer_open_memory(&t, "test", "", ((size_t)64 << 20) + 1, &err), GALLEY_ELIMIT);
    tokenizer_close(NULL);
}

/* ---- memory and threads ---- */

static void out_of_memory(void)
{
    static const char text[] = "<|im_start|> \xff e\xcc\x81 fox na\xc3\xafve hi 123 <tool_call>";
    struct tokenizer *t = NULL;
    struct galley_err err = { 0 };
    int n_failed = 0;
    for (long i = 1; !t; i++, n_failed++) {
        T_OK(i < 1000);
        mem_fail_at(i);
        const enum galley_status rc = tokenizer_open(&t, QWEN2, &err);
        mem_fail_at(0);
        T_OK(rc == GALLEY_OK || rc == GALLEY_ENOMEM);
    }
    T_OK(n_failed > 10);
    int32_t *ids = NULL;
    n_failed = 0;
    for (long i = 1; !ids; i++, n_failed++) {
        T_OK(i < 1000);
        int n;
        mem_fail_at(i);
        const enum galley_status rc = tokenizer_encode(t, text, strlen(text), true, &ids, &n, &err);
        mem_fail_at(0);
        T_OK(rc == GALLEY_OK || rc == GALLEY_ENOMEM);
        T_OK((rc == GALLEY_OK) == (ids != NULL));
    }
    T_OK(n_failed > 5);
    mem_free(ids);
    tokenizer_close(t);
}

struct thread_job {
    const struct tokenizer *t;
    int n_ids, n_bad;
};

static const char thread_text[] =
    "The quick brown fox can't \xea\xb0\x80\xe1\x86\xa8 1234 <|im_end|>\n";

static void *encode_often(void *data)
{
    struct thread_job *job = data;
    for (int i = 0; i < 300; i++) {
        int32_t *ids;
        int n = -1;
        if (tokenizer_encode(job->t, thread_text, strlen(thread_text), true, &ids, &n, NULL) ||
            n != job->n_ids) {
            job->n_bad++;
        }
        mem_free(ids);
    }
    return NULL;
}

static void many_threads(void)
{
    struct tokenizer *t = open_ok(QWEN2);
    int32_t *ids;
    const int n_ids = encode_ok(t, thread_text, strlen(thread_text), true, &ids);
    mem_free(ids);
    struct thread_job jobs[4];
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT(jobs); i++) {
        jobs[i] = (struct thread_job){ .t = t, .n_ids = n_ids };
        T_EQ(pthread_create(&threads[i], NULL, encode_often, &jobs[i]), 0);
    }
    for (size_t i = 0; i < COUNT(jobs); i++) {
        pthread_join(threads[i], NULL);
        T_EQ(jobs[i].n_bad, 0);
    }
    tokenizer_close(t);
}

static const struct t_case cases[] = {
    { "golden_tiny", golden_tiny },         { "golden_qwen2", golden_qwen2 },
    { "golden_gpt2", golden_gpt2 },         { "golden_whole", golden_whole },
    { "golden_gap", golden_gap },           { "golden_probe", golden_probe },
    { "golden_chars", golden_chars },       { "begin_of_text", begin_of_text },
    { "golden_prompt", golden_prompt },     { "round_trip", round_trip },
    { "decode_edges", decode_edges },       { "decode_added_spaces", decode_added_spaces },
    { "malformed_utf8", malformed_utf8 },   { "no_forged_tokens", no_forged_tokens },
    { "long_texts", long_texts },           { "long_chars", long_chars },
    { "text_too_long", text_too_long },     { "refused_by_name", refused_by_name },
    { "refused_chars", refused_chars },     { "patterns", patterns },
    { "runaway_pattern", runaway_pattern }, { "truncated_file", truncated_file },
    { "out_of_memory", out_of_memory },     { "many_threads", many_threads },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
