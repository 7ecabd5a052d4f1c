/* test_gguf_config.c - GGUF metadata as hf_config, and tensors under Hugging Face's names, against
 * what gguf-py wrote from the same checkpoints (tools/reference/gguf_files.py). */
#include <math.h>

#include "kernels/widen.h"
#include "src/format/bind.h"
#include "src/format/gguf_config.h"
#include "src/format/weights.h"
#include "tests/format/folder.h"
#include "tests/format/gguf_bytes.h"

#define FIXTURES "tests/format/fixtures/gguf/"
#define GOLDEN   "tests/golden/hf/"

static struct gguf *open_fixture(const char *name)
{
    char path[256];
    struct gguf *g = NULL;
    struct galley_err err = { 0 };
    snprintf(path, sizeof(path), FIXTURES "%s", name);
    if (gguf_open(&g, path, &err)) {
        T_FAIL("%s", err.msg);
    }
    return g;
}

static struct hf_config text_config(const char *name)
{
    struct gguf *g = open_fixture(name);
    struct hf_config c;
    struct galley_err err = { 0 };
    if (gguf_config_text(&c, g, &err)) {
        T_FAIL("%s", err.msg);
    }
    gguf_close(g);
    return c;
}

/* ---- families */

static void check_ends(const struct hf_config *c, int n, const int32_t *ids)
{
    T_EQ(c->n_eos, n);
    for (int i = 0; i < n; i++) {
        T_EQ(c->eos[i], ids[i]);
    }
}

static void test_qwen2(void)
{
    const struct hf_config c = text_config("qwen2.gguf");
    const struct hf_text_config *t = &c.text;
    T_EQ(c.family, HF_QWEN2);
    T_STR(c.model_type, "qwen2");
    T_EQ(t->hidden, 64);
    T_EQ(t->n_layers, 3);
    T_EQ(t->n_head, 4);
    T_EQ(t->n_kv_head, 2);
    T_EQ(t->head_dim, 16);
    T_EQ(t->intermediate, 96);
    T_EQ(t->n_vocab, 4);
    T_EQ(t->max_positions, 256);
    T_NEAR(t->rms_eps, 1e-6, 1e-12);
    T_NEAR(t->rope.theta, 1e6, 0);
    T_EQ(t->rope.kind, HF_ROPE_PLAIN);
    T_OK(t->qkv_bias && !t->qk_norm && !t->rope_pairs && !t->tied && !c.has_vision);
    check_ends(&c, 1, (const int32_t[]){ 2 });
    T_EQ(c.image_pad, -1);
}

static void test_qwen3(void)
{
    const struct hf_config c = text_config("qwen3.gguf");
    T_EQ(c.family, HF_QWEN3);
    T_EQ(c.text.head_dim, 32);
    T_OK(c.text.qk_norm && !c.text.qkv_bias && c.text.tied);
    T_EQ(c.text.rope.kind, HF_ROPE_LINEAR);
    T_NEAR(c.text.rope.factor, 2.5, 0);
    T_NEAR(c.text.rope.theta, 10000, 0); /* no key */
    check_ends(&c, 1, (const int32_t[]){ 1 });
    T_EQ(c.vision_start, 2);
    T_EQ(c.vision_end, 3);
    T_EQ(c.image_pad, 4);
    T_EQ(c.video_pad, 5);
}

static void test_llama(void)
{
    const struct hf_config c = text_config("llama.gguf");
    const struct hf_rope *r = &c.text.rope;
    T_EQ(c.family, HF_LLAMA);
    T_OK(c.text.rope_pairs && !c.text.qkv_bias && !c.text.o_bias && !c.text.mlp_bias);
    T_EQ(r->kind, HF_ROPE_LLAMA3);
    T_NEAR(r->factor, 32, 0);
    T_NEAR(r->low, 1, 0);
    T_NEAR(r->high, 4, 0);
    T_EQ(r->original_context, 8192);
    check_ends(&c, 2, (const int32_t[]){ 7, 9 });
}

/* Other numbers of Llama 3's rule are found up to their common factor. */
static void test_llama_other(void)
{
    const struct hf_config c = text_config("llama_other.gguf");
    const struct hf_rope *r = &c.text.rope;
    T_EQ(r->kind, HF_ROPE_LLAMA3);
    T_NEAR(r->factor, 8, 0);
    T_NEAR(r->low / r->original_context * 512, 1.5, 1e-4);
    T_NEAR(r->high / r->original_context * 512, 5, 1e-4);
    struct gguf *g = open_fixture("llama_odd.gguf");
    struct hf_config odd;
    struct galley_err err = { 0 };
    T_EQ(gguf_config_text(&odd, g, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "rope_freqs.weight are not those"));
    gguf_close(g);
}

static void test_gemma3(void)
{
    const struct hf_config c = text_config("gemma3.gguf");
    const struct hf_text_config *t = &c.text;
    T_EQ(c.family, HF_GEMMA3);
    T_EQ(t->window, 512);
    T_EQ(t->window_pattern, 6);
    T_NEAR(t->rope.theta, 1e6, 0);
    T_NEAR(t->rope_local.theta, 1e4, 0);
    T_NEAR(t->embed_scale, 8, 0);
    T_NEAR(t->query_scale, 1 / sqrt(32), 1e-12);
    T_OK(t->gelu && t->qk_norm && t->tied && !t->norm_plus_one && !t->rope_pairs);
    check_ends(&c, 1, (const int32_t[]){ 0 });
}

/* ---- names */

static enum hf_family family_of(const char *arch)
{
    static const struct {
        const char *name;
        enum hf_family family;
    } rows[] = { { "qwen2", HF_QWEN2 },
                 { "qwen2vl", HF_QWEN2_5_VL },
                 { "qwen3", HF_QWEN3 },
                 { "llama", HF_LLAMA },
                 { "gemma3", HF_GEMMA3 },
                 { "qwen2.5vl_merger", HF_QWEN2_5_VL },
                 { "qwen2vl_merger", HF_QWEN2_VL } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (strcmp(rows[i].name, arch) == 0) {
            return rows[i].family;
        }
    }
    T_FAIL("no family %s", arch);
}

static void test_names(void)
{
    char *text, arch[32], from[64], to[64], in[80], want[80], got[128];
    size_t n;
    struct galley_err err = { 0 };
    int n_rows = 0;
    T_EQ(file_read(FIXTURES "names.txt", 1 << 20, &text, &n, &err), GALLEY_OK);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n_rows++) {
        T_EQ(sscanf(line, "%31s %63s %63s", arch, from, to), 3);
        snprintf(in, sizeof(in), "%s.weight", from);
        snprintf(want, sizeof(want), "%s.weight", to);
        if (!gguf_tensor_name(got, sizeof(got), in, family_of(arch))) {
            T_FAIL("%s %s has no name", arch, in);
        }
        T_STR(got, want);
    }
    T_OK(n_rows > 100);
    mem_free(text);
    static const char *const none[] = { "",
                                        "blk.",
                                        "blk..attn_q.weight",
                                        "blk.1.x.weight",
                                        "token_embd",
                                        "blk.1.attn_q",
                                        "blk.123456789.attn_q.weight",
                                        "v.blk.1.attn_output.weight",
                                        "output.scale" };
    for (size_t i = 0; i < COUNT(none); i++) {
        T_OK(!gguf_tensor_name(got, sizeof(got), none[i], HF_QWEN2_5_VL));
    }
    T_OK(gguf_tensor_name(got, sizeof(got), "blk.3.attn_k.bias", HF_QWEN2));
    T_STR(got, "model.layers.3.self_attn.k_proj.bias");
    T_OK(!gguf_tensor_name(got, 20, "blk.3.attn_k.bias", HF_QWEN2)); /* does not fit */
}

/* ---- the same checkpoints from a directory */

static void check_same_text(const struct hf_text_config *a, const struct hf_text_config *b)
{
    T_EQ(a->hidden, b->hidden);
    T_EQ(a->n_layers, b->n_layers);
    T_EQ(a->n_head, b->n_head);
    T_EQ(a->n_kv_head, b->n_kv_head);
    T_EQ(a->head_dim, b->head_dim);
    T_EQ(a->intermediate, b->intermediate);
    T_EQ(a->n_vocab, b->n_vocab);
    T_EQ(a->max_positions, b->max_positions);
    T_NEAR(a->rms_eps, b->rms_eps, 1e-12);
    T_NEAR(a->rope.theta, b->rope.theta, 0);
    T_EQ(memcmp(a->mrope_section, b->mrope_section, sizeof(a->mrope_section)), 0);
    T_EQ(a->qkv_bias, b->qkv_bias);
    T_EQ(a->tied, b->tied);
    T_EQ(a->window, b->window);
    T_NEAR(a->embed_scale, b->embed_scale, 0);
}

static void check_same_vision(const struct hf_vision_config *a, const struct hf_vision_config *b)
{
    T_EQ(a->hidden, b->hidden);
    T_EQ(a->depth, b->depth);
    T_EQ(a->n_head, b->n_head);
    T_EQ(a->intermediate, b->intermediate);
    T_EQ(a->out_hidden, b->out_hidden);
    T_EQ(a->patch, b->patch);
    T_EQ(a->temporal_patch, b->temporal_patch);
    T_EQ(a->merge, b->merge);
    T_EQ(a->in_channels, b->in_channels);
    T_EQ(a->window, b->window);
    T_EQ(a->n_fullatt, b->n_fullatt);
    T_EQ(memcmp(a->fullatt, b->fullatt, (size_t)a->n_fullatt * sizeof(*a->fullatt)), 0);
    T_EQ(a->gated_rms, b->gated_rms);
    T_NEAR(a->norm_eps, b->norm_eps, 1e-12);
}

static void test_same_config(void)
{
    struct hf_config dir, c = text_config("q25_text.gguf");
    struct galley_err err = { 0 };
    struct gguf *mm = open_fixture("q25_text.mmproj.gguf");
    T_EQ(hf_config_read(&dir, GOLDEN "q25_text", &err), GALLEY_OK);
    check_same_text(&c.text, &dir.text);
    T_EQ(gguf_config_vision(&c, mm, &err), GALLEY_OK);
    T_OK(c.has_vision);
    T_EQ(c.family, dir.family);
    check_same_vision(&c.vision, &dir.vision);
    for (int i = 0; i < 3; i++) {
        T_NEAR(c.pre.mean[i], dir.pre.mean[i], 1e-7);
        T_NEAR(c.pre.std[i], dir.pre.std[i], 1e-7);
    }
    T_EQ(c.pre.min_pixels, 3136);
    T_EQ(c.pre.max_pixels, 12845056);
    T_EQ(c.image_pad, dir.image_pad);
    T_EQ(c.vision_start, dir.vision_start);
    check_ends(&c, dir.n_eos, dir.eos);
    gguf_close(mm);
    /* Qwen2-VL's tower on its own language model */
    mm = open_fixture("q2_full.mmproj.gguf");
    T_EQ(hf_config_read(&dir, GOLDEN "q2_full", &err), GALLEY_OK);
    c = dir;
    c.vision = (struct hf_vision_config){ 0 };
    c.family = HF_QWEN2_5_VL; /* as the metadata of the language model has it */
    T_EQ(gguf_config_vision(&c, mm, &err), GALLEY_OK);
    T_EQ(c.family, HF_QWEN2_VL);
    check_same_vision(&c.vision, &dir.vision);
    gguf_close(mm);
}

/* Bytes of the same tensor; vectors are F32 in GGUF. */
static void check_same_tensor(const struct tensor *got, const struct tensor *want, const char *name)
{
    uint64_t n = 1;
    T_EQ(got->n_dim, want->n_dim);
    for (int i = 0; i < want->n_dim; i++) {
        T_EQ(got->shape[i], want->shape[i]);
        n *= (uint64_t)want->shape[i];
    }
    if (got->dtype == want->dtype) {
        T_EQ(memcmp(got->data, want->data, (size_t)dtype_row_bytes(want->dtype, n)), 0);
        return;
    }
    float *f = mem_many(float, n);
    T_OK(f && got->dtype == DTYPE_F32 && want->n_dim == 1);
    widen_ref(f, want->data, want->dtype, (size_t)n);
    if (memcmp(f, got->data, (size_t)n * sizeof(*f)) != 0) {
        T_FAIL("%s differs", name);
    }
    mem_free(f);
}

/* q, k and v lie apart in the one and together in the other. */
static void check_parts(struct weights *got, const struct tensor *want, const char *name)
{
    const struct tensor *t;
    struct galley_err err = { 0 };
    const int64_t n = want->shape[0] / 3, shape[2] = { n, want->n_dim == 2 ? want->shape[1] : 0 };
    struct tensor part = *want;
    part.shape[0] = n;
    const size_t bytes =
        (size_t)(n * (want->n_dim == 2 ? want->shape[1] : 1)) * dtype_bytes(want->dtype);
    for (int i = 0; i < 3; i++) {
        char other[128];
        const char *at = strstr(name, "qkv");
        snprintf(other, sizeof(other), "%.*s%c%s", (int)(at - name), name, "qkv"[i], at + 3);
        if (weights_lookup(got, other, want->n_dim, shape, &t, &err)) {
            T_FAIL("%s", err.msg);
        }
        part.data = (const char *)want->data + (size_t)i * bytes;
        check_same_tensor(t, &part, other);
    }
}

static void check_same_weights(struct weights *got, const char *dir, const char *prefix)
{
    struct weights *want;
    const struct tensor *t;
    struct galley_err err = { 0 };
    int n = 0;
    T_EQ(weights_open(&want, dir, &err), GALLEY_OK);
    for (int i = 0; i < weights_count(want); i++) {
        const char *name = weights_name_at(want, i);
        const struct tensor *w = weights_tensor_at(want, i);
        if (strncmp(name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        n++;
        if (strstr(name, "attn.qkv.")) {
            check_parts(got, w, name);
        } else if (weights_lookup(got, name, w->n_dim, w->shape, &t, &err)) {
            T_FAIL("%s", err.msg);
        } else {
            check_same_tensor(t, w, name);
        }
    }
    T_OK(n > 10);
    if (weights_check_all_used(got, NULL, &err)) {
        T_FAIL("%s", err.msg);
    }
    weights_close(want);
}

static struct weights *open_weights(const char *name, enum hf_family family)
{
    struct weights *w;
    struct galley_err err = { 0 };
    if (weights_open_gguf(&w, open_fixture(name), family, &err)) {
        T_FAIL("%s", err.msg);
    }
    return w;
}

static void test_same_weights(void)
{
    struct weights *w = open_weights("q25_text.gguf", HF_QWEN2_5_VL);
    check_same_weights(w, GOLDEN "q25_text", "model.");
    weights_close(w);
    w = open_weights("q25_text.mmproj.gguf", HF_QWEN2_5_VL);
    check_same_weights(w, GOLDEN "q25_text", "visual.");
    weights_close(w);
    w = open_weights("q2_full.mmproj.gguf", HF_QWEN2_VL);
    check_same_weights(w, GOLDEN "q2_full", "visual.");
    weights_close(w);
}

static void test_lookup_sentences(void)
{
    struct weights *w = open_weights("types.gguf", HF_QWEN2);
    const struct tensor *t;
    struct galley_err err = { 0 };
    T_EQ(weights_lookup(w, "IQ2_XXS", 2, (const int64_t[]){ 2, 512 }, &t, &err), GALLEY_EMODEL);
    T_OK(!t && strstr(err.msg, "types.gguf: tensor IQ2_XXS is IQ2_XXS; F32, F16"));
    T_EQ(weights_lookup(w, "Q4_K", 2, (const int64_t[]){ 2, 513 }, &t, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "types.gguf: tensor Q4_K is [2, 512], the config wants [2, 513]"));
    T_EQ(weights_lookup(w, "Q4_K", 2, (const int64_t[]){ 2, 512 }, &t, &err), GALLEY_OK);
    T_EQ(t->dtype, DTYPE_Q4_K);
    T_EQ(weights_check_all_used(w, NULL, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "is not part of this model"));
    weights_close(w);
}

/* What is read is what is mapped: of files, of a tensor joined on the heap, of lent memory. */
static void test_read(void)
{
    struct weights *w = open_weights("q2_full.mmproj.gguf", HF_QWEN2_VL);
    const struct tensor *t;
    struct galley_err err = { 0 };
    int n_files = 0;
    static uint8_t got[1 << 20];
    for (int i = 0; i < weights_count(w); i++) {
        t = weights_tensor_at(w, i);
        const size_t n = (size_t)tensor_bytes(t), from = n / 3;
        T_OK(n <= sizeof(got) && tensor_read(t, got, from, n - from));
        T_OK(memcmp(got, (const uint8_t *)t->data + from, n - from) == 0);
        n_files += t->file != NULL;
    }
    T_EQ(n_files, weights_count(w) - 1);
    weights_close(w);
    struct buf b;
    struct gguf *g;
    put_head(&b, 3, 1, 0);
    put_tensor(&b, "t", 1, (const uint64_t[]){ 8192 }, 0, 0);
    put_data(&b, 32768);
    T_EQ(gguf_open_memory(&g, b.data, b.n, &err), GALLEY_OK);
    T_EQ(weights_open_gguf(&w, g, HF_QWEN2, &err), GALLEY_OK);
    t = weights_tensor_at(w, 0);
    T_OK(!t->file && tensor_read(t, got, 20001, 1));
    T_EQ(got[0], 20001 % 128);
    weights_close(w);
    buf_deinit(&b);
}

/* A norm's weight in blocks would be read as numbers of 16 bits. */
static void test_vector_of_blocks(void)
{
    struct buf b;
    struct gguf *g;
    struct weights *w;
    struct device *dev;
    struct galley_err err = { 0 };
    put_head(&b, 3, 1, 0);
    put_tensor(&b, "output_norm.weight", 1, (const uint64_t[]){ 64 }, 8 /* Q8_0 */, 0);
    put_data(&b, 2 * 34);
    T_EQ(gguf_open_memory(&g, b.data, b.n, &err), GALLEY_OK);
    T_EQ(weights_open_gguf(&w, g, HF_QWEN2, &err), GALLEY_OK);
    T_EQ(device_open_cpu(&dev, "ref", 1, &err), GALLEY_OK);
    struct binder bind = { .dev = dev, .w = w, .err = &err };
    T_OK(!bind_vector(&bind, "model.norm.weight", 64));
    T_EQ(bind.rc, GALLEY_EMODEL);
    T_OK(strstr(err.msg, "tensor model.norm.weight is Q8_0; vectors are F32, F16 or BF16"));
    device_close(dev);
    weights_close(w);
    buf_deinit(&b);
}

/* ---- files that do not belong together */

static void test_misfits(void)
{
    struct hf_config c = text_config("q25_text.gguf");
    struct galley_err err = { 0 };
    struct gguf *mm = open_fixture("q2_full.mmproj.gguf");
    T_EQ(gguf_config_vision(&c, mm, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "embeddings of 48 values (mm.2.weight), the language model's "
                         "embedding_length is 32"));
    T_OK(!c.has_vision);
    c = text_config("qwen3.gguf");
    T_EQ(gguf_config_vision(&c, mm, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "qwen2vl_merger does not fit a language model with general.architecture "
                         "qwen3"));
    T_EQ(gguf_config_text(&c, mm, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "general.architecture is clip, a projector"));
    gguf_close(mm);
    struct gguf *g = open_fixture("qwen2.gguf");
    T_EQ(gguf_config_vision(&c, g, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "general.architecture is qwen2, an mmproj file has clip"));
    gguf_close(g);
    c = text_config("q25_text.gguf");
    c.image_pad = -1;
    mm = open_fixture("q25_text.mmproj.gguf");
    T_EQ(gguf_config_vision(&c, mm, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "no token <|image_pad|>"));
    gguf_close(mm);
}

/* A model of two layers whose one key or tensor is something else. */
struct oddity {
    const char *key; /* left out of the usual ones */
    void (*put)(struct buf *b);
    const char *says;
};

static void put_common(struct buf *b, const struct oddity *o)
{
    static const struct {
        const char *key;
        uint32_t v;
    } rows[] = { { "llama.context_length", 64 },      { "llama.embedding_length", 32 },
                 { "llama.block_count", 2 },          { "llama.feed_forward_length", 48 },
                 { "llama.attention.head_count", 4 }, { "tokenizer.ggml.eos_token_id", 3 } };
    put_head(b, 3, 1, 2 + COUNT(rows) - (o->key != NULL) + (o->put != NULL));
    put_key_str(b, "general.architecture", "llama");
    put_key_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!o->key || strcmp(o->key, rows[i].key) != 0) {
            put_key_u32(b, rows[i].key, rows[i].v);
        }
    }
    if (o->put) {
        o->put(b);
    }
    put_tensor(b, "token_embd.weight", 2, (const uint64_t[]){ 32, 8 }, 0, 0);
    put_data(b, 1024);
}

static enum galley_status read_oddity(struct hf_config *c, const struct oddity *o,
                                      struct galley_err *err)
{
    struct buf b;
    struct gguf *g;
    put_common(&b, o);
    if (gguf_open_memory(&g, b.data, b.n, err)) {
        T_FAIL("%s", err->msg);
    }
    const enum galley_status rc = gguf_config_text(c, g, err);
    gguf_close(g);
    buf_deinit(&b);
    return rc;
}

static void put_ragged(struct buf *b)
{
    put_key_u32s(b, "llama.attention.head_count", (const uint32_t[]){ 4, 2 }, 2);
}

static void put_short(struct buf *b)
{
    put_key_u32s(b, "llama.feed_forward_length", (const uint32_t[]){ 48 }, 1);
}

static void put_even(struct buf *b)
{
    put_key_u32s(b, "llama.feed_forward_length", (const uint32_t[]){ 48, 48 }, 2);
}

static void put_yarn(struct buf *b)
{
    put_key_str(b, "llama.rope.scaling.type", "yarn");
}

static void put_partial(struct buf *b)
{
    put_key_u32(b, "llama.rope.dimension_count", 4);
}

static void put_value(struct buf *b)
{
    put_key_u32(b, "llama.attention.value_length", 16);
}

static void put_kv(struct buf *b)
{
    put_key_u32(b, "llama.attention.head_count_kv", 3);
}

static void put_experts(struct buf *b)
{
    put_key_u32(b, "llama.expert_count", 8);
}

static void put_far_eos(struct buf *b)
{
    put_key_u32(b, "tokenizer.ggml.eos_token_id", 8);
}

static void put_many_tokens(struct buf *b)
{
    put_key(b, "tokenizer.ggml.tokens", GGUF_ARRAY);
    put_u32(b, GGUF_STRING);
    put_u64(b, 9);
    for (int i = 0; i < 9; i++) {
        put_str(b, "x");
    }
}

static void test_oddities(void)
{
    static const struct oddity rows[] = {
        { "llama.context_length", NULL, "key llama.context_length is missing" },
        { "llama.attention.head_count", put_ragged, "is 4 for layer 0 and 2 for layer 1" },
        { "llama.feed_forward_length", put_short, "a number for each of 2 layers" },
        { NULL, put_yarn, "llama.rope.scaling.type" },
        { NULL, put_partial, "rope.dimension_count is 4 of heads of 8" },
        { NULL, put_value, "attention.value_length is 16 and key_length 8" },
        { NULL, put_kv, "head_count 4 is no multiple of head_count_kv 3" },
        { NULL, put_experts, "llama.expert_count" },
        { "tokenizer.ggml.eos_token_id", put_far_eos, "is 8, the vocabulary has 8" },
        { NULL, put_many_tokens, "has 9 entries, token_embd.weight 8 rows" },
    };
    struct hf_config c;
    struct galley_err err = { 0 };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const enum galley_status rc = read_oddity(&c, &rows[i], &err);
        if (rc != GALLEY_EMODEL || strncmp(err.msg, "memory: ", 8) != 0 ||
            !strstr(err.msg, rows[i].says)) {
            T_FAIL("%d %s, not: %s", rc, err.msg, rows[i].says);
        }
    }
    static const struct oddity fine[] = { { 0 }, { "llama.feed_forward_length", put_even, NULL } };
    for (size_t i = 0; i < COUNT(fine); i++) {
        T_EQ(read_oddity(&c, &fine[i], &err), GALLEY_OK);
        T_EQ(c.text.intermediate, 48);
        T_EQ(c.text.n_kv_head, 4);
        T_NEAR(c.text.rope.theta, 10000, 0);
    }
}

/* Old converters' ffn_down is the first matrix. */
static void test_swapped_ffn(void)
{
    struct buf b;
    struct gguf *g;
    struct weights *w;
    const struct tensor *t;
    struct galley_err err = { 0 };
    put_head(&b, 3, 4, 0);
    put_tensor(&b, "v.blk.0.ln1.weight", 1, (const uint64_t[]){ 8 }, 0, 0);
    put_tensor(&b, "v.blk.0.ffn_down.weight", 2, (const uint64_t[]){ 8, 24 }, 0, 32);
    put_tensor(&b, "v.blk.0.ffn_up.weight", 2, (const uint64_t[]){ 24, 8 }, 0, 800);
    put_tensor(&b, "v.blk.0.ffn_down.bias", 1, (const uint64_t[]){ 24 }, 0, 1568);
    put_data(&b, 1664);
    T_EQ(gguf_open_memory(&g, b.data, b.n, &err), GALLEY_OK);
    T_EQ(weights_open_gguf(&w, g, HF_QWEN2_VL, &err), GALLEY_OK);
    const int64_t fc1[] = { 24, 8 }, fc2[] = { 8, 24 };
    T_EQ(weights_lookup(w, "visual.blocks.0.mlp.fc1.weight", 2, fc1, &t, &err), GALLEY_OK);
    T_EQ(weights_lookup(w, "visual.blocks.0.mlp.fc2.weight", 2, fc2, &t, &err), GALLEY_OK);
    T_EQ(weights_lookup(w, "visual.blocks.0.mlp.fc1.bias", 1, fc1, &t, &err), GALLEY_OK);
    weights_close(w);
    buf_deinit(&b);
}

static void test_no_memory(void)
{
    enum galley_status rc = GALLEY_ENOMEM;
    int n = 1;
    for (; rc == GALLEY_ENOMEM; n++) {
        struct gguf *g = open_fixture("q25_text.mmproj.gguf");
        struct weights *w;
        struct galley_err err = { 0 };
        mem_fail_at(n);
        rc = weights_open_gguf(&w, g, HF_QWEN2_5_VL, &err);
        mem_fail_at(0);
        T_OK((rc == GALLEY_OK) == (w != NULL) && n < 1000);
        weights_close(w);
    }
    T_EQ(rc, GALLEY_OK);
    T_OK(n > 20);
}

static const struct t_case cases[] = {
    { "qwen2", test_qwen2 },
    { "qwen3", test_qwen3 },
    { "llama", test_llama },
    { "llama_other", test_llama_other },
    { "gemma3", test_gemma3 },
    { "names", test_names },
    { "same_config", test_same_config },
    { "same_weights", test_same_weights },
    { "lookup_sentences", test_lookup_sentences },
    { "read", test_read },
    { "vector_of_blocks", test_vector_of_blocks },
    { "misfits", test_misfits },
    { "oddities", test_oddities },
    { "swapped_ffn", test_swapped_ffn },
    { "no_memory", test_no_memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
