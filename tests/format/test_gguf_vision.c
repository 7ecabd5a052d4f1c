/* test_gguf_vision.c - a tower and a language model bound from GGUF files give the bits that the
 * directories they were made from give (those are compared with Hugging Face elsewhere). */
#include "src/base/mem.h"
#include "src/format/gguf_config.h"
#include "src/format/weights.h"
#include "src/model/model.h"
#include "tests/t.h"
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

/* Every tensor of the language model is bound, none is left. */
static void test_language(void)
{
    struct gguf *g;
    struct hf_config cfg;
    struct weights *w;
    struct device *dev;
    struct model *m;
    struct galley_err err = { 0 };
    T_EQ(gguf_open(&g, FIXTURES "q25_text.gguf", &err), GALLEY_OK);
    T_EQ(gguf_config_text(&cfg, g, &err), GALLEY_OK);
    T_EQ(weights_open_gguf(&w, g, cfg.family, &err), GALLEY_OK);
    T_EQ(device_open_cpu(&dev, NULL, 1, &err), GALLEY_OK);
    if (model_open(&m, dev, &cfg, w, &err) || weights_check_all_used(w, NULL, &err)) {
        T_FAIL("%s", err.msg);
    }
    model_close(m);
    weights_close(w);
    device_close(dev);
}

static const struct t_case cases[] = {
    { "towers", test_towers },
    { "language", test_language },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
