/* fuzz_tokenizer.c - four doors to the tokenizer, by the first byte:
 *   'R' the rest is a split pattern for a small built-in vocabulary,
 *   'T' the rest is text for it,
 *   'G' the whole input is a GGUF file with a tokenizer,
 *   else the whole input is a tokenizer.json. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/gguf.h"
#include "src/format/tokenizer.h"

#define CHECK(cond)  \
    do {             \
        if (!(cond)) \
            abort(); \
    } while (0)

static const char sample[] =
    "It's <|a|>12\xea\xb0\x80 e\xcc\xa3\xcc\x81  \r\n\t<b> \xff\xe2\x82 aaaab naaan\xc2\xa0";

static void add_json_string(struct buf *b, const char *s, size_t n)
{
    buf_add_char(b, '"');
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == '"' || s[i] == '\\') {
            buf_addf(b, "\\u%04x", (unsigned)(unsigned char)s[i]);
        } else {
            buf_add_char(b, s[i]);
        }
    }
    buf_add_char(b, '"');
}

/* All 256 bytes (69 of them spelled with U+0100 and up), "aa", "an", and four added tokens. */
static void add_vocabulary(struct buf *b)
{
    unsigned next = 256;
    buf_add_str(b, "\"vocab\":{");
    for (unsigned i = 0; i < 256; i++) {
        const int prints = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        char c[4];
        const int n = utf8_encode(prints ? i : next++, c);
        add_json_string(b, c, (size_t)n);
        buf_addf(b, ":%u,", i);
    }
    buf_add_str(
        b, "\"aa\":256,\"an\":257,\"aan\":258,\"\xc4\xa0\x61\":259},\"merges\":[\"a a\",[\"a\","
           "\"n\"],\"aa n\",\"a an\",\"\xc4\xa0 a\"]}");
}

static struct tokenizer *build(const char *pattern, size_t n)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_add_str(&b, "{\"normalizer\":{\"type\":\"NFC\"},\"decoder\":{\"type\":\"ByteLevel\"},"
                    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                    "\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":");
    add_json_string(&b, pattern, n);
    buf_add_str(&b, "}},{\"type\":\"ByteLevel\",\"use_regex\":false}]},\"added_tokens\":["
                    "{\"id\":260,\"content\":\"<|a|>\",\"special\":true},"
                    "{\"id\":261,\"content\":\"<b>\",\"lstrip\":true,\"rstrip\":true},"
                    "{\"id\":262,\"content\":\"na\",\"single_word\":true,\"normalized\":false},"
                    "{\"id\":263,\"content\":\"\xea\xb0\x80\"}],"
                    "\"model\":{\"type\":\"BPE\",");
    add_vocabulary(&b);
    buf_add_str(&b, "}");
    CHECK(buf_ok(&b));
    struct tokenizer *t;
    struct galley_err err = { 0 };
    const enum galley_status rc = tokenizer_open_memory(&t, "fuzz", b.data, b.n, &err);
    CHECK((rc == GALLEY_OK) == (t != NULL) && (rc == GALLEY_OK || err.msg[0]));
    buf_deinit(&b);
    return t;
}

/* Some tokenizers write a special token for what they do not know. */
static int32_t unknown_of(const struct tokenizer *t, const char *s, size_t n)
{
    int32_t *ids, unknown = -1;
    int n_ids;
    if (tokenizer_encode(t, s, n, false, &ids, &n_ids, NULL)) {
        return -1;
    }
    for (int i = 0; i < n_ids; i++) {
        unknown = tokenizer_is_special(t, ids[i]) ? ids[i] : unknown;
    }
    mem_free(ids);
    return unknown;
}

/* A character that no vocabulary has, then bytes that one may lack, then the text's characters,
 * each by itself. */
static int32_t find_unknown(const struct tokenizer *t, const char *s, size_t n)
{
    int32_t unknown = unknown_of(t, "\xf4\x8f\xbf\xbd", 4);
    for (uint32_t cp = 0; cp < 0x110000 && unknown < 0; cp = cp < 0x100 ? cp + 1 : cp * 2 + 1) {
        char c[4];
        unknown = unknown_of(t, c, (size_t)utf8_encode(cp, c));
    }
    for (size_t i = 0, len = 0; i < n && unknown < 0; i += len) {
        uint32_t cp;
        len = (size_t)utf8_decode(s + i, n - i, &cp);
        unknown = unknown_of(t, s + i, len);
    }
    return unknown;
}

/* Ids are in range; without special tokens none comes out. */
static void encode(const struct tokenizer *t, const char *s, size_t n)
{
    for (int special = 0; special < 2; special++) {
        int32_t *ids;
        int n_ids;
        struct galley_err err = { 0 };
        if (tokenizer_encode(t, s, n, special, &ids, &n_ids, &err)) {
            CHECK(!ids && err.msg[0]);
            continue;
        }
        struct buf back;
        buf_init(&back, 1 << 24);
        for (int i = 0; i < n_ids; i++) {
            CHECK(ids[i] >= 0 && ids[i] < tokenizer_n_vocab(t));
            CHECK(special || !tokenizer_is_special(t, ids[i]) || ids[i] == find_unknown(t, s, n));
            tokenizer_decode(t, ids[i], true, &back);
        }
        buf_deinit(&back);
        mem_free(ids);
    }
}

/* The form that GGUF would have, or a sentence why it has none. */
static void check_pieces(const struct tokenizer *t)
{
    const size_t n = (size_t)tokenizer_n_vocab(t);
    int32_t *types = mem_many(int32_t, n);
    float *scores = mem_many(float, n);
    struct galley_err err = { 0 };
    CHECK(types && scores);
    const enum galley_status rc = tokenizer_pieces(t, "fuzz", types, scores, &err);
    CHECK(rc == GALLEY_OK || err.msg[0]);
    for (size_t i = 0; !rc && i < n; i++) {
        CHECK(types[i] >= GGUF_TOKEN_NORMAL && types[i] <= GGUF_TOKEN_BYTE && scores[i] <= 0);
    }
    mem_free(types);
    mem_free(scores);
}

/* Only frames hold control tokens, whatever the vocabulary and its merges say. */
static void check_control(const struct tokenizer *t, const struct gguf *g)
{
    const struct tokenizer_part parts[] = { { sample, strlen(sample), false },
                                            { "<|im_start|>", 12, true },
                                            { "<s>|im_start|>", 14, false } };
    const struct gguf_value *types = gguf_lookup(g, "tokenizer.ggml.token_type");
    struct galley_err err = { 0 };
    int32_t *ids;
    int n_ids, n_control = 0;
    if (tokenizer_encode_parts(t, parts, 3, &ids, &n_ids, &err)) {
        CHECK(!ids && err.msg[0]);
        return;
    }
    for (int i = 0; i < n_ids; i++) {
        CHECK(ids[i] >= 0 && ids[i] < tokenizer_n_vocab(t));
        n_control += types && gguf_int(types, (uint64_t)ids[i]) == 3;
    }
    CHECK(n_control <= 12); /* at most one a byte of the frame */
    mem_free(ids);
}

static void open_gguf(const char *s, size_t n)
{
    struct gguf *g;
    struct tokenizer *t;
    struct galley_err err = { 0 };
    if (gguf_open_memory(&g, s, n, &err)) {
        return; /* fuzz_gguf's business */
    }
    const enum galley_status rc = tokenizer_open_gguf(&t, g, &err);
    CHECK((rc == GALLEY_OK) == (t != NULL) && (rc == GALLEY_OK || err.msg[0]));
    if (t) {
        int n_eos;
        const int32_t *eos = tokenizer_eos(t, &n_eos);
        for (int i = 0; i < n_eos; i++) {
            CHECK(eos[i] >= 0 && eos[i] < tokenizer_n_vocab(t));
        }
        CHECK(tokenizer_bos(t) >= -1 && tokenizer_bos(t) < tokenizer_n_vocab(t));
        struct buf all;
        buf_init(&all, 1 << 24);
        for (int id = -1; id <= tokenizer_n_vocab(t); id++) {
            tokenizer_decode(t, id, true, &all);
        }
        buf_deinit(&all);
        check_control(t, g);
    }
    tokenizer_close(t);
    gguf_close(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct tokenizer *fixed;
    if (!fixed) {
        static const char pattern[] =
            "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
            "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
        fixed = build(pattern, strlen(pattern));
        CHECK(fixed);
    }
    const char *s = (const char *)data;
    struct tokenizer *t = NULL;
    if (n > 0 && s[0] == 'T') {
        encode(fixed, s + 1, n - 1);
        return 0;
    }
    if (n > 0 && s[0] == 'G') {
        open_gguf(s, n);
        return 0;
    }
    if (n > 0 && s[0] == 'R') {
        t = build(s + 1, n - 1 < 200 ? n - 1 : 200);
    } else {
        struct galley_err err = { 0 };
        const enum galley_status rc = tokenizer_open_memory(&t, "fuzz", s, n, &err);
        CHECK((rc == GALLEY_OK) == (t != NULL) && (rc == GALLEY_OK || err.msg[0]));
    }
    if (t) {
        encode(t, sample, strlen(sample));
        check_pieces(t);
    }
    tokenizer_close(t);
    return 0;
}
