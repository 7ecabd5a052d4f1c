/* test_quantize_vocab.c - tokenizers of characters written as GGUF: the ids stay what Hugging Face
 * gives for tokenizer.json.
 *
 * tokenizer.json and golden ids come from tools/reference/tokenizer_gguf.py. */
#include "src/base/mem.h"
#include "src/format/gguf.h"
#include "src/format/quantize_impl.h"
#include "tests/format/folder.h"
#include "tests/format/tok_golden.h"

#define GOLDEN  "tests/golden/tokenizer/"
#define N_VOCAB 720 /* the files have 700 tokens: the rest are ids that nothing stands for */

static char out_path[160];

/* f: a model's folder with a tokenizer.json. */
static enum galley_status write_vocab(const struct folder *f, struct galley_err *err)
{
    const struct hf_config cfg = { .text.n_vocab = N_VOCAB, .eos = { 2 }, .n_eos = 1 };
    struct gguf_writer *w;
    snprintf(out_path, sizeof(out_path), "%s.gguf", f->path);
    T_EQ(gguf_write_open(&w, out_path, err), GALLEY_OK);
    enum galley_status rc = quantize_vocab(w, f->path, &cfg, err);
    if (rc) {
        gguf_write_abandon(w);
        return rc;
    }
    rc = gguf_write_begin(w, err);
    return rc ? rc : gguf_write_close(w, err);
}

static struct gguf *written(const char *json)
{
    struct folder f;
    struct gguf *g;
    struct galley_err err = { 0 };
    char path[96];
    size_t n;
    folder_open(&f);
    snprintf(path, sizeof(path), GOLDEN "%s.json", json);
    char *text = read_ok(path, &n);
    folder_write(&f, "tokenizer.json", text, n);
    folder_text(&f, "tokenizer_config.json", "{\"eos_token\": \"<|im_end|>\"}");
    if (write_vocab(&f, &err) || gguf_open(&g, out_path, &err)) {
        T_FAIL("%s", err.msg);
    }
    mem_free(text);
    unlink(out_path);
    folder_close(&f);
    return g;
}

static void check_same(const char *json)
{
    struct gguf *g = written(json);
    struct tokenizer *t, *from;
    struct galley_err err = { 0 };
    char path[96];
    snprintf(path, sizeof(path), GOLDEN "%s.json", json);
    if (tokenizer_open_gguf(&t, g, &err) || tokenizer_open(&from, path, &err)) {
        T_FAIL("%s", err.msg);
    }
    snprintf(path, sizeof(path), GOLDEN "%s.txt", json);
    check_golden_lines(t, path, 180);
    T_EQ(tokenizer_n_vocab(t), N_VOCAB);
    T_EQ(tokenizer_bos(t), tokenizer_bos(from));
    T_EQ(tokenizer_adds_space(t), tokenizer_adds_space(from));
    for (int32_t id = 0; id < tokenizer_n_vocab(from); id++) {
        T_EQ(tokenizer_is_special(t, id), tokenizer_is_special(from, id));
    }
    tokenizer_close(from);
    tokenizer_close(t);
    gguf_close(g);
}

static void test_same(void)
{
    check_same("llama2");
    check_same("gemma");
}

static void test_keys(void)
{
    struct gguf *g = written("llama2");
    struct galley_err err = { 0 };
    struct gguf_string model;
    int64_t id = -1;
    T_EQ(gguf_read_string(g, "tokenizer.ggml.model", true, &model, &err), GALLEY_OK);
    T_OK(gguf_string_is(&model, "llama"));
    T_EQ(gguf_read_int(g, "tokenizer.ggml.eos_token_id", true, 0, N_VOCAB, &id, &err), GALLEY_OK);
    T_EQ(id, 4); /* <|im_end|> */
    T_EQ(gguf_read_int(g, "tokenizer.ggml.unknown_token_id", true, 0, N_VOCAB, &id, &err),
         GALLEY_OK);
    T_EQ(id, 0);
    const struct gguf_value *types = gguf_lookup(g, "tokenizer.ggml.token_type");
    T_OK(types && types->n == N_VOCAB);
    T_EQ(gguf_int(types, 0), GGUF_TOKEN_UNKNOWN);
    T_EQ(gguf_int(types, 3), GGUF_TOKEN_CONTROL);
    T_EQ(gguf_int(types, 6), GGUF_TOKEN_USER);
    T_EQ(gguf_int(types, N_VOCAB - 1), GGUF_TOKEN_UNUSED);
    T_OK(!gguf_lookup(g, "tokenizer.ggml.merges"));
    gguf_close(g);
}

static void refused(const char *text, size_t n, const char *says)
{
    struct folder f;
    struct galley_err err = { 0 };
    folder_open(&f);
    folder_write(&f, "tokenizer.json", text, n);
    if (write_vocab(&f, &err) == GALLEY_OK || !strstr(err.msg, says)) {
        T_FAIL("\"%s\" does not say %s", err.msg, says);
    }
    T_OK(access(out_path, F_OK) != 0);
    folder_close(&f);
}

/* The file with `from` once made `to`. */
static void refused_changed(const char *json, const char *from, const char *to, const char *says)
{
    char path[96];
    size_t n;
    struct buf b;
    snprintf(path, sizeof(path), GOLDEN "%s.json", json);
    char *text, *at;
    struct galley_err err = { 0 };
    T_EQ(file_read(path, 1 << 20, &text, &n, &err), GALLEY_OK);
    at = strstr(text, from);
    T_OK(at);
    buf_init(&b, 1 << 20);
    buf_add(&b, text, (size_t)(at - text));
    buf_add_str(&b, to);
    buf_add_str(&b, at + strlen(from));
    T_OK(buf_ok(&b));
    refused(b.data, b.n, says);
    buf_deinit(&b);
    mem_free(text);
}

/* Each with what GGUF cannot say about it. */
static void test_refusals(void)
{
    static const char learned[] = "merges that are not SentencePiece's";
    refused_changed("metaspace", "\"version\"", "\"version\"", "a space before the first piece");
    refused_changed("unknown", "\"version\"", "\"version\"", "no name for this pre_tokenizer");
    refused_changed("llama2", ",[\"ret\",\"urn\"]", "", learned);
    /* two pairs of one token with another token's between them */
    refused_changed("llama2", "[\"in\",\"g\"],[\"H\",\"e\"]", "[\"H\",\"e\"],[\"in\",\"g\"]",
                    learned);
    refused_changed("llama2", "<0xC3>", "<0xCx>", "a byte that has no token");
    refused_changed("llama2", "\"ignore_merges\":false", "\"ignore_merges\":true", "ignore_merges");
    char letters[301] = { 0 }, longest[400];
    memset(letters, 'a', 300);
    snprintf(longest, sizeof(longest), "\"vocab\":{\"%s\":701,", letters);
    refused_changed("llama2", "\"vocab\":{", longest, "so long a token");
    refused_changed("llama2", "\"lstrip\":false", "\"lstrip\":true", "lstrip");
    refused_changed("llama2", "\"type\":\"BPE\"", "\"type\":\"Unigram\"", "not BPE");
}

static void test_model_alone(void)
{
    struct folder f;
    struct galley_err err = { 0 };
    folder_open(&f);
    folder_text(&f, "tokenizer.model", "x");
    T_EQ(write_vocab(&f, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "tokenizer.model but no tokenizer.json"));
    folder_close(&f);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "same", test_same },
        { "keys", test_keys },
        { "refusals", test_refusals },
        { "model_alone", test_model_alone },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
