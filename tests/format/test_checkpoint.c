/* test_checkpoint.c - which files make a model, and which do not belong together. */
#include "src/base/mem.h"
#include "src/format/checkpoint.h"
#include "tests/format/folder.h"

#define FIXTURES "tests/format/fixtures/gguf/"
#define TINY     "models/galley-tiny"

static void copy_to(struct folder *f, const char *from, const char *to)
{
    char path[256], *bytes;
    size_t n;
    struct galley_err err = { 0 };
    snprintf(path, sizeof(path), "%s", from);
    T_EQ(file_read(path, 1 << 24, &bytes, &n, &err), GALLEY_OK);
    folder_write(f, to, bytes, n);
    mem_free(bytes);
}

static const char *in_folder(const struct folder *f, const char *name)
{
    static char path[160];
    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    return path;
}

static struct checkpoint opened(const char *path, const char *mmproj, enum checkpoint_parts parts)
{
    struct checkpoint c;
    struct galley_err err = { 0 };
    if (checkpoint_open(&c, path, mmproj, parts, &err)) {
        T_FAIL("%s", err.msg);
    }
    return c;
}

static void refused(const char *path, const char *mmproj, enum galley_status want, const char *says)
{
    struct checkpoint c;
    struct galley_err err = { 0 };
    const enum galley_status rc = checkpoint_open(&c, path, mmproj, CHECKPOINT_ALL, &err);
    if (rc != want || err.status != want || !strstr(err.msg, says)) {
        T_FAIL("status %d, \"%s\", not %d: %s", rc, err.msg, want, says);
    }
    T_OK(!c.tok && !c.weights && !c.vision);
    checkpoint_close(&c);
}

/* ---- */

static void test_directory(void)
{
    struct checkpoint c = opened(TINY, NULL, CHECKPOINT_ALL);
    T_EQ(c.cfg.family, HF_QWEN2_5_VL);
    T_EQ(tokenizer_n_vocab(c.tok), c.cfg.text.n_vocab);
    T_EQ(c.chat.kind, CHAT_CHATML);
    T_OK(c.vision == c.weights && c.weights && c.has_card);
    checkpoint_close(&c);
    c = opened(TINY, NULL, CHECKPOINT_CONFIG);
    T_OK(!c.tok && c.weights && c.cfg.has_vision);
    checkpoint_close(&c);
    c = opened("tests/golden/hf/q25_text", NULL, CHECKPOINT_CONFIG); /* has no tokenizer */
    T_OK(c.weights && !c.has_card);
    checkpoint_close(&c);
    refused("tests/golden/hf/q25_text", NULL, GALLEY_EMODEL, "tokenizer.json");
    refused(TINY, FIXTURES "q25_text.mmproj.gguf", GALLEY_EUSAGE, "Hugging Face directory");
}

static void test_gguf_pair(void)
{
    struct checkpoint c =
        opened(FIXTURES "vl.gguf", FIXTURES "q25_text.mmproj.gguf", CHECKPOINT_ALL);
    T_OK(c.cfg.has_vision && c.vision && c.vision != c.weights && !c.has_card);
    T_EQ(c.chat.kind, CHAT_CHATML);
    T_OK(c.has_template);
    T_EQ(tokenizer_n_vocab(c.tok), 264);
    T_EQ(c.cfg.image_pad, tokenizer_lookup(c.tok, "<|image_pad|>"));
    T_OK(weights_has(c.weights, "model.embed_tokens.weight"));
    T_OK(weights_has(c.vision, "visual.patch_embed.proj.weight"));
    checkpoint_close(&c);
    /* two projectors lie beside it in the fixtures: none is taken */
    c = opened(FIXTURES "vl.gguf", NULL, CHECKPOINT_ALL);
    T_OK(!c.cfg.has_vision && !c.vision);
    checkpoint_close(&c);
    refused(FIXTURES "vl.gguf", FIXTURES "q2_full.mmproj.gguf", GALLEY_EMODEL,
            "embeddings of 48 values");
    refused(FIXTURES "vl.gguf", FIXTURES "none.gguf", GALLEY_EMODEL, "none.gguf: cannot open");
    refused(FIXTURES "q25_text.mmproj.gguf", NULL, GALLEY_EMODEL, "a projector");
}

/* The same bytes with every words[i][0] made words[i][1], which is as long. */
static void copy_changed(struct folder *f, const char *from, const char *to,
                         const char *const (*words)[2], size_t n_words)
{
    char *bytes, *at;
    size_t n;
    struct galley_err err = { 0 };
    T_EQ(file_read(from, 1 << 24, &bytes, &n, &err), GALLEY_OK);
    for (size_t i = 0; i < n_words; i++) {
        const size_t len = strlen(words[i][0]);
        T_EQ(strlen(words[i][1]), len);
        T_OK(memmem(bytes, n, words[i][0], len));
        while ((at = memmem(bytes, n, words[i][0], len)) != NULL) {
            memcpy(at, words[i][1], len);
        }
    }
    folder_write(f, to, bytes, n);
    mem_free(bytes);
}

/* A text must have an end, by a key or by a token's name. */
static void test_ends(void)
{
    static const char *const words[][2] = { { "ggml.eos_token_id", "ggml.eoz_token_id" },
                                            { "<|im_end|>", "<|im_emd|>" } };
    struct folder f;
    folder_open(&f);
    copy_changed(&f, FIXTURES "vl.gguf", "named.gguf", words, 1);
    struct checkpoint c = opened(in_folder(&f, "named.gguf"), NULL, CHECKPOINT_ALL);
    int n;
    const int32_t *eos = tokenizer_eos(c.tok, &n);
    T_OK(c.cfg.n_eos == 0 && n == 1 && eos[0] == tokenizer_lookup(c.tok, "<|im_end|>"));
    checkpoint_close(&c);
    copy_changed(&f, FIXTURES "vl.gguf", "endless.gguf", words, COUNT(words));
    refused(in_folder(&f, "endless.gguf"), NULL, GALLEY_EMODEL, "no token ends a text");
    folder_close(&f);
}

static void test_folder_of_gguf(void)
{
    struct folder f;
    folder_open(&f);
    refused(f.path, NULL, GALLEY_EMODEL, "neither config.json nor a .gguf model");
    copy_to(&f, FIXTURES "vl.gguf", "model.gguf");
    struct checkpoint c = opened(f.path, NULL, CHECKPOINT_ALL);
    T_OK(!c.vision);
    checkpoint_close(&c);
    copy_to(&f, FIXTURES "q25_text.mmproj.gguf", "mmproj-model-f16.gguf");
    c = opened(f.path, NULL, CHECKPOINT_ALL);
    T_OK(c.vision && c.cfg.has_vision);
    checkpoint_close(&c);
    c = opened(in_folder(&f, "model.gguf"), NULL, CHECKPOINT_CONFIG);
    T_OK(c.vision && !c.tok);
    checkpoint_close(&c);
    c = opened(f.path, "none", CHECKPOINT_ALL);
    T_OK(!c.vision);
    checkpoint_close(&c);
    copy_to(&f, FIXTURES "q25_text.mmproj.gguf", "other.mmproj.gguf");
    refused(f.path, NULL, GALLEY_EMODEL, "holds 2 mmproj files (mmproj-model-f16.gguf ...)");
    c = opened(in_folder(&f, "model.gguf"), NULL, CHECKPOINT_CONFIG);
    T_OK(!c.vision); /* of two, neither */
    checkpoint_close(&c);
    copy_to(&f, FIXTURES "q25_text.mmproj.gguf", "mmproj-model.gguf");
    c = opened(f.path, NULL, CHECKPOINT_CONFIG);
    T_OK(c.vision); /* of three, the one named after the model */
    checkpoint_close(&c);
    c = opened(in_folder(&f, "model.gguf"), NULL, CHECKPOINT_CONFIG);
    T_OK(c.vision);
    checkpoint_close(&c);
    copy_to(&f, FIXTURES "qwen2.gguf", "a.gguf");
    refused(f.path, NULL, GALLEY_EMODEL, "holds 2 GGUF models (a.gguf ...)");
    folder_close(&f);
}

static void test_beside(void)
{
    struct folder f;
    folder_open(&f);
    copy_to(&f, FIXTURES "q2_full.mmproj.gguf", "mmproj.gguf");
    copy_to(&f, FIXTURES "vl.gguf", "vl.gguf");
    copy_to(&f, FIXTURES "qwen2.gguf", "text.gguf");
    refused(in_folder(&f, "vl.gguf"), NULL, GALLEY_EMODEL, "are not of one model");
    struct checkpoint c = opened(in_folder(&f, "text.gguf"), NULL, CHECKPOINT_CONFIG);
    T_OK(!c.vision); /* takes no images: the projector is another model's */
    checkpoint_close(&c);
    folder_text(&f, "galley.json", "{\"text_height\": 17}");
    c = opened(in_folder(&f, "vl.gguf"), "none", CHECKPOINT_CONFIG);
    T_OK(c.has_card);
    T_NEAR(c.card.text_height, 17, 0);
    checkpoint_close(&c);
    folder_close(&f);
}

/* The parts of a split model are one model. */
static void test_split_folder(void)
{
    struct folder f;
    folder_open(&f);
    copy_to(&f, FIXTURES "split-00001-of-00003.gguf", "m-00001-of-00003.gguf");
    copy_to(&f, FIXTURES "split-00002-of-00003.gguf", "m-00002-of-00003.gguf");
    copy_to(&f, FIXTURES "split-00003-of-00003.gguf", "m-00003-of-00003.gguf");
    refused(f.path, NULL, GALLEY_EMODEL, "key qwen2.embedding_length is missing");
    folder_close(&f);
    refused("no/such/path", NULL, GALLEY_EMODEL, "no/such/path: cannot open");
}

static void test_same_vocab(void)
{
    struct folder f;
    struct galley_err err = { 0 };
    char *bytes;
    size_t n;
    struct checkpoint a = opened(FIXTURES "vl.gguf", "none", CHECKPOINT_ALL);
    T_EQ(checkpoint_same_vocab(&a, &a, &err), GALLEY_OK);
    struct checkpoint b = opened(TINY, NULL, CHECKPOINT_ALL);
    T_EQ(checkpoint_same_vocab(&a, &b, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "the vocabularies differ first at id "));
    checkpoint_close(&b);
    /* one token written otherwise */
    folder_open(&f);
    T_EQ(file_read(FIXTURES "vl.gguf", 1 << 20, &bytes, &n, &err), GALLEY_OK);
    char *at = memmem(bytes, n, "<|video_pad|>", 13);
    T_OK(at);
    memcpy(at, "<|video_bad|>", 13);
    folder_write(&f, "b.gguf", bytes, n);
    b = opened(f.path, NULL, CHECKPOINT_ALL);
    T_EQ(checkpoint_same_vocab(&a, &b, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "id 263: \"<|video_pad|>\" (special) in the model, \"<|video_bad|>\" "
                         "(special) in the draft model"));
    checkpoint_close(&b);
    checkpoint_close(&a);
    mem_free(bytes);
    folder_close(&f);
}

static void test_no_memory(void)
{
    static const char *const rows[][2] = {
        { TINY, NULL }, { FIXTURES "vl.gguf", FIXTURES "q25_text.mmproj.gguf" }
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct checkpoint c;
        struct galley_err err = { 0 };
        mem_fail_at(0);
        T_EQ(checkpoint_open(&c, rows[i][0], rows[i][1], CHECKPOINT_ALL, &err), GALLEY_OK);
        const long n = mem_count();
        checkpoint_close(&c);
        T_OK(n > 50);
        /* every one of the first hundred, then in steps: names are many and alike */
        for (long k = 1; k <= n; k += k < 100 ? 1 : 1 + n / 400) {
            mem_fail_at(k);
            const enum galley_status rc =
                checkpoint_open(&c, rows[i][0], rows[i][1], CHECKPOINT_ALL, &err);
            mem_fail_at(0);
            /* what only makes things faster may do without */
            if (rc != GALLEY_ENOMEM && (rc || !c.tok || !c.weights)) {
                T_FAIL("allocation %ld of %ld: status %d, %s", k, n, rc, err.msg);
            }
            T_OK(rc == GALLEY_OK || (!c.tok && !c.weights));
            checkpoint_close(&c);
        }
    }
}

static const struct t_case cases[] = {
    { "directory", test_directory },
    { "gguf_pair", test_gguf_pair },
    { "ends", test_ends },
    { "folder_of_gguf", test_folder_of_gguf },
    { "beside", test_beside },
    { "split_folder", test_split_folder },
    { "same_vocab", test_same_vocab },
    { "no_memory", test_no_memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
