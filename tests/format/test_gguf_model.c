/* test_gguf_model.c - towers bound from GGUF files give the bits that the directories they were
 * made from give (those are compared with Hugging Face elsewhere); language models give llama.cpp's
 * logits (tools/reference/gguf_files.py). */
#include "src/base/mem.h"
#include "src/format/bind.h"
#include "src/format/gguf_config.h"
#include "src/format/weights.h"
#include "src/model/model.h"
#include "tests/format/gguf_bytes.h"
#include "tests/npy.h"
#include "vision/vision.h"

#define FIXTURES "tests/format/fixtures/gguf/"

static struct weights *open_gguf(const char *path, struct hf_config *vision)
{
    struct gguf *g;
    struct weights *w;
    struct galley_err err = { 0 };
    if (gguf_open(&g, path, &err) || (vision && gguf_config_vision(vision, g, &err)) ||
        weights_open_gguf(&w, g, vision ? vision->family : HF_QWEN2_5_VL, &err)) {
        T_FAIL("%s", err.msg);
    }
    return w;
}

/* Embeddings of one image of 8 x 12 patches. */
static float *encode(struct device *dev, const struct hf_config *cfg, struct weights *w,
                     size_t *n_out)
{
    const struct vision_grid grid = { 1, 8, 12 };
    const struct hf_vision_config *v = &cfg->vision;
    const size_t n_in = 96u * 3 * 2 * (size_t)(v->patch * v->patch);
    struct vit *vit;
    struct galley_err err = { 0 };
    if (vit_open(&vit, dev, cfg, w, &err)) {
        T_FAIL("%s", err.msg);
    }
    *n_out = 24u * (size_t)v->out_hidden;
    float *in = mem_many(float, n_in), *out = mem_many(float, *n_out);
    T_OK(in && out);
    unsigned r = 1;
    for (size_t i = 0; i < n_in; i++) {
        r = r * 1664525u + 1013904223u;
        in[i] = (float)(r >> 16) / 32768.0f - 1.0f;
    }
    T_EQ(vit_encode(vit, out, in, &grid, 1, &err), GALLEY_OK);
    mem_free(in);
    vit_close(vit);
    return out;
}

static void check_tower(const char *dir, const char *mmproj)
{
    struct hf_config a, b;
    struct weights *w;
    struct device *dev;
    struct galley_err err = { 0 };
    size_t n, n_other;
    T_EQ(hf_config_read(&a, dir, &err), GALLEY_OK);
    T_EQ(weights_open(&w, dir, &err), GALLEY_OK);
    T_EQ(device_open_cpu(&dev, NULL, 1, &err), GALLEY_OK);
    float *want = encode(dev, &a, w, &n);
    weights_close(w);
    b = a;
    b.vision = (struct hf_vision_config){ 0 };
    w = open_gguf(mmproj, &b);
    float *got = encode(dev, &b, w, &n_other);
    T_EQ(n, n_other);
    T_EQ(memcmp(got, want, n * sizeof(*got)), 0);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)want[i] * (double)want[i];
    }
    T_OK(sum > 1e-6); /* there is something to compare */
    if (weights_check_all_used(w, NULL, &err)) {
        T_FAIL("%s", err.msg);
    }
    weights_close(w);
    device_close(dev);
    mem_free(want);
    mem_free(got);
}

static void test_towers(void)
{
    check_tower("tests/golden/hf/q25_text", FIXTURES "q25_text.mmproj.gguf");
    check_tower("tests/golden/hf/q2_full", FIXTURES "q2_full.mmproj.gguf");
}

struct language {
    struct hf_config cfg;
    struct weights *w;
    struct device *dev;
    struct model *m;
};

static struct language open_language(const char *path)
{
    struct gguf *g;
    struct language l = { 0 };
    struct galley_err err = { 0 };
    if (gguf_open(&g, path, &err) || gguf_config_text(&l.cfg, g, &err) ||
        weights_open_gguf(&l.w, g, l.cfg.family, &err) || device_open_cpu(&l.dev, NULL, 1, &err) ||
        model_open(&l.m, l.dev, &l.cfg, l.w, &err) ||
        weights_check_all_used(l.w, model_ignored_tensors(l.m), &err)) {
        T_FAIL("%s", err.msg);
    }
    return l;
}

/* Logits of the last `last` of n tokens. */
static float *run_tokens(const struct language *l, const int32_t *ids, int n, int last)
{
    enum { MOST = 64 };
    int32_t pos[MOST], seq[MOST] = { 0 }, n_keys[MOST], slot[MOST], want[MOST];
    const struct kv_shape shape = model_kv_shape(l->m, KV_F32);
    struct kv_pool *kv;
    struct kv_seq s = { 0 };
    struct galley_err err = { 0 };
    T_OK(n <= MOST && last <= n);
    T_EQ(kv_pool_open(&kv, l->dev, &shape, 4, &err), GALLEY_OK);
    T_OK(kv_seq_resize(kv, &s, n));
    for (int i = 0; i < n; i++) {
        pos[i] = i;
        n_keys[i] = i + 1;
        slot[i] = kv_seq_slot(&s, i);
        want[i] = n - last + i; /* the first `last` of them count */
    }
    float *logits = mem_many(float, (size_t)last *(size_t)model_n_vocab(l->m));
    T_OK(logits);
    const int32_t *table = s.blocks;
    const struct model_batch b = { .n_rows = n,
                                   .token = ids,
                                   .pos = { pos, pos, pos },
                                   .seq = seq,
                                   .n_keys = n_keys,
                                   .slot = slot,
                                   .block_table = &table,
                                   .want = want,
                                   .n_want = last,
                                   .logits = logits };
    if (model_forward(l->m, kv, &b, &err)) {
        T_FAIL("%s", err.msg);
    }
    kv_seq_clear(kv, &s);
    kv_pool_close(kv);
    return logits;
}

static void close_language(struct language *l)
{
    model_close(l->m);
    weights_close(l->w);
    device_close(l->dev);
}

/* Every tensor of the language model is bound, none is left. */
static void test_language(void)
{
    struct language l = open_language(FIXTURES "q25_text.gguf");
    T_EQ(model_n_vocab(l.m), 96);
    close_language(&l);
}

/* Rotation in pairs with Llama 3's divisors; windows, two thetas, scaling, sandwich norms.  Limits
 * are relative to the largest logit: llama.cpp takes GELU from a table of f16, one part in 2048. */
static void test_logits(void)
{
    static const struct {
        const char *name;
        double limit;
    } rows[] = { { "run_llama", 2e-6 }, { "run_gemma3", 4e-4 } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char path[256], name[64];
        snprintf(path, sizeof(path), FIXTURES "%s.gguf", rows[i].name);
        struct language l = open_language(path);
        snprintf(name, sizeof(name), "%s.ids", rows[i].name);
        struct npy ids = npy_open(FIXTURES, name);
        snprintf(name, sizeof(name), "%s.logits", rows[i].name);
        struct npy want = npy_open(FIXTURES, name);
        float *got = run_tokens(&l, ids.i, (int)ids.n, (int)want.dim[0]);
        const double d = npy_distance(got, want.f, want.n);
        if (!(d < rows[i].limit)) {
            T_FAIL("%s: logits differ by %.3g", rows[i].name, d);
        }
        mem_free(got);
        npy_close(&want);
        npy_close(&ids);
        close_language(&l);
    }
}

/* A bias in blocks is refused by the device, which knows no names: the sentence has them. */
static void a_quantised_bias_is_named(void)
{
    struct buf b;
    char *copy;
    struct gguf *g;
    struct weights *w;
    struct device *dev;
    struct galley_err err = { 0 };
    put_head(&b, 3, 2, 0);
    put_tensor(&b, "blk.0.attn_q.weight", 2, (const uint64_t[]){ 32, 32 }, 0, 0);
    put_tensor(&b, "blk.0.attn_q.bias", 1, (const uint64_t[]){ 32 }, 8, 4096); /* Q8_0 */
    put_data(&b, 4096 + 34);
    T_EQ(open_copy(&g, &copy, b.data, b.n, &err), GALLEY_OK);
    T_EQ(weights_open_gguf(&w, g, HF_QWEN2, &err), GALLEY_OK);
    T_EQ(device_open_cpu(&dev, NULL, 1, &err), GALLEY_OK);
    struct binder at = { .dev = dev, .w = w, .err = &err };
    binder_scope(&at, "model.layers.0.self_attn.");
    T_OK(!bind_linear(&at, "q_proj.weight", "q_proj.bias", 32, 32));
    T_EQ(at.rc, GALLEY_EMODEL);
    T_STR(err.msg, "memory: tensor model.layers.0.self_attn.q_proj.weight: a bias of 32 (Q8_0) for "
                   "32 outputs");
    weights_close(w);
    device_close(dev);
    mem_free(copy);
    buf_deinit(&b);
}

static const struct t_case cases[] = {
    { "towers", test_towers },
    { "language", test_language },
    { "logits", test_logits },
    { "a_quantised_bias_is_named", a_quantised_bias_is_named },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
