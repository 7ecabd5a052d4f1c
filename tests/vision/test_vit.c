/* test_vit.c - the tower against Hugging Face, on every instruction set. */
#include "tests/toy_checkpoint.h"

static const char *const tiny_images[] = { "list", "par", "table" };

static void embeds_hf(const char *name, const char *isa)
{
    struct device *dev = device_for(isa, 2);
    if (!dev) {
        return;
    }
    char dir[256];
    snprintf(dir, sizeof(dir), GOLDEN_HF "%s", name);
    struct toy_checkpoint c = checkpoint_open(dir, dev);
    struct patches p = patches_of_case(dir, case_n_images(name), &c.cfg);
    struct npy want = npy_open(dir, "embeds");
    float *got = patches_encode(&c, &p);
    T_EQ(want.n, p.n_tokens * c.cfg.vision.out_hidden);
    const double d = npy_distance(got, want.f, want.n);
    if (!(d < 2e-5)) {
        T_FAIL("%s on %s: embeddings differ by %.3g", name, isa, d);
    }
    npy_close(&want);
    mem_free(got);
    mem_free(p.values);
    checkpoint_close(&c);
}

static void test_embeds_hf(void)
{
    for (size_t i = 0; i < COUNT(hf_cases); i++) {
        for (size_t k = 0; case_n_images(hf_cases[i]) && k < COUNT(isa_names); k++) {
            embeds_hf(hf_cases[i], isa_names[k]);
        }
    }
}

static void test_embeds_tiny(void)
{
    for (size_t k = 0; k < COUNT(isa_names); k++) {
        struct device *dev = device_for(isa_names[k], 2);
        if (!dev) {
            continue;
        }
        struct toy_checkpoint c = checkpoint_open(MODEL_TINY, dev);
        for (size_t i = 0; i < (k ? COUNT(tiny_images) : 1); i++) { /* ref is slow */
            char name[64], path[256];
            struct patches p = { 0 };
            snprintf(path, sizeof(path), GOLDEN_TINY "/%s.png", tiny_images[i]);
            snprintf(name, sizeof(name), "%s.vit_output", tiny_images[i]);
            patches_add(&p, path, &c.cfg);
            struct npy want = npy_open(GOLDEN_TINY, name);
            float *got = patches_encode(&c, &p);
            T_EQ(want.n, p.n_tokens * c.cfg.vision.out_hidden);
            const double d = npy_distance(got, want.f, want.n);
            if (!(d < 1e-3)) {
                T_FAIL("%s on %s: embeddings differ by %.3g", tiny_images[i], isa_names[k], d);
            }
            npy_close(&want);
            mem_free(got);
            mem_free(p.values);
        }
        checkpoint_close(&c);
    }
}

/* An image's embeddings are the same bytes alone and beside others, on one thread and two. */
static void test_batch_invariance(void)
{
    static const char dir[] = GOLDEN_HF "q25_mha";
    struct toy_checkpoint all = checkpoint_open(dir, device_for(NULL, 2));
    struct toy_checkpoint one = checkpoint_open(dir, device_for(NULL, 1));
    const int n = case_n_images("q25_mha");
    const size_t width = (size_t)all.cfg.vision.out_hidden;
    struct patches p = patches_of_case(dir, n, &all.cfg);
    float *together = patches_encode(&all, &p);
    const float *at = together;
    for (int i = 0; i < n; i++) {
        char path[256];
        struct patches alone = { 0 };
        snprintf(path, sizeof(path), "%s/image%d.png", dir, i);
        patches_add(&alone, path, &one.cfg);
        float *got = patches_encode(&one, &alone);
        T_OK(memcmp(got, at, (size_t)alone.n_tokens * width * sizeof(float)) == 0);
        at += (size_t)alone.n_tokens * width;
        mem_free(got);
        mem_free(alone.values);
    }
    mem_free(together);
    mem_free(p.values);
    checkpoint_close(&all);
    checkpoint_close(&one);
}

/* More rows than one slice of the feed-forward: the slices do not show either. */
static void test_many_rows(void)
{
    struct toy_checkpoint c = checkpoint_open(GOLDEN_HF "q25_text", device_for(NULL, 2));
    const struct hf_vision_config *v = &c.cfg.vision;
    const struct vision_grid grids[2] = { { 1, 32, 20 }, { 1, 42, 46 } };
    const size_t width = (size_t)v->out_hidden;
    const size_t n_in = 3u * (size_t)(v->temporal_patch * v->patch * v->patch);
    const size_t rows = 32 * 20 + 42 * 46;
    float *in = mem_many(float, rows *n_in), *all = mem_many(float, rows / 4 * width);
    float *one = mem_many(float, rows / 4 * width);
    T_OK(in && all && one);
    unsigned r = 1;
    for (size_t i = 0; i < rows * n_in; i++) {
        r = r * 1664525u + 1013904223u;
        in[i] = (float)(r >> 16) / 32768.0f - 1.0f;
    }
    struct galley_err err = { 0 };
    T_EQ(vit_encode(c.vit, all, in, grids, 2, &err), GALLEY_OK);
    const size_t n_first = 32 * 20 / 4;
    T_EQ(vit_encode(c.vit, one, in, grids, 1, &err), GALLEY_OK);
    T_OK(memcmp(all, one, n_first * width * sizeof(float)) == 0);
    T_EQ(vit_encode(c.vit, one, in + 32 * 20 * n_in, grids + 1, 1, &err), GALLEY_OK);
    T_OK(memcmp(all + n_first * width, one, 42 * 46 / 4 * width * sizeof(float)) == 0);
    mem_free(in);
    mem_free(all);
    mem_free(one);
    checkpoint_close(&c);
}

/* Instruction sets give the same bytes: kernels/device.h promises it of every operator. */
static void test_isa_bits(void)
{
    static const char dir[] = GOLDEN_HF "q25_gqa";
    float *first = NULL;
    for (size_t k = 0; k < COUNT(isa_names); k++) {
        struct device *dev = device_for(isa_names[k], 1);
        if (!dev) {
            continue;
        }
        struct toy_checkpoint c = checkpoint_open(dir, dev);
        struct patches p = patches_of_case(dir, case_n_images("q25_gqa"), &c.cfg);
        float *got = patches_encode(&c, &p);
        first = first ? first : got;
        T_OK(memcmp(got, first,
                    (size_t)p.n_tokens * (size_t)c.cfg.vision.out_hidden * sizeof(float)) == 0);
        if (got != first) {
            mem_free(got);
        }
        mem_free(p.values);
        checkpoint_close(&c);
    }
    mem_free(first);
}

static void test_steady_state(void)
{
    static const char dir[] = GOLDEN_HF "q2_full";
    struct galley_err err = { 0 };
    struct toy_checkpoint c = checkpoint_open(dir, device_for(NULL, 1));
    struct patches p = patches_of_case(dir, case_n_images("q2_full"), &c.cfg);
    float *out = patches_encode(&c, &p);
    mem_fail_at(0);
    T_EQ(vit_encode(c.vit, out, p.values, p.grid, p.n, &err), GALLEY_OK);
    T_EQ(vit_encode(c.vit, out, p.values, p.grid, 1, &err), GALLEY_OK);
    T_EQ(mem_count(), 0);
    T_OK(vit_weight_bytes(c.vit) > 1000);
    mem_free(out);
    mem_free(p.values);
    checkpoint_close(&c);
}

/* A tower that does not fit its file says which tensor. */
static void test_wrong_shape(void)
{
    struct hf_config cfg;
    struct weights *w = NULL;
    struct vit *v = NULL;
    struct galley_err err = { 0 };
    struct device *dev = device_for("ref", 1);
    T_EQ(hf_config_read(&cfg, GOLDEN_HF "q2_full", &err), GALLEY_OK);
    T_EQ(weights_open(&w, GOLDEN_HF "q2_full", &err), GALLEY_OK);
    cfg.vision.intermediate++;
    T_OK(vit_open(&v, dev, &cfg, w, &err) != GALLEY_OK && !v);
    T_OK(strstr(err.msg, "visual.blocks.0.mlp.fc1.weight"));
    cfg.vision.intermediate--;
    cfg.vision.depth++;
    T_OK(vit_open(&v, dev, &cfg, w, &err) != GALLEY_OK && !v);
    T_OK(strstr(err.msg, "visual.blocks.3.norm1.weight"));
    cfg.vision.depth -= 2;
    weights_close(w); /* the failed attempts have marked tensors as used */
    T_EQ(weights_open(&w, GOLDEN_HF "q2_full", &err), GALLEY_OK);
    T_EQ(vit_open(&v, dev, &cfg, w, &err), GALLEY_OK);
    T_OK(weights_check_all_used(w, (const char *const[]){ "model.", "lm_head.", NULL }, &err) !=
         GALLEY_OK);
    T_OK(strstr(err.msg, "visual.blocks.2."));
    vit_close(v);
    weights_close(w);
    device_close(dev);
}

/* Whichever allocation fails, opening and encoding fail cleanly. */
static void test_no_memory(void)
{
    static const char dir[] = GOLDEN_HF "q25_text";
    struct hf_config cfg;
    struct weights *w = NULL;
    struct galley_err err = { 0 };
    T_EQ(hf_config_read(&cfg, dir, &err), GALLEY_OK);
    T_EQ(weights_open(&w, dir, &err), GALLEY_OK);
    struct device *dev = device_for("ref", 1);
    const struct vision_grid g = { 1, 4, 4 };
    float *in = mem_many(float, 16 * 3 * 2 * 16), *out = mem_many(float, 4 * 32);
    T_OK(in && out);
    T_EQ(cfg.vision.out_hidden, 32);
    enum galley_status rc = GALLEY_ENOMEM;
    int n = 1;
    for (; rc == GALLEY_ENOMEM; n++) {
        struct vit *v = NULL;
        T_OK(n < 1000);
        mem_fail_at(n);
        rc = vit_open(&v, dev, &cfg, w, &err);
        if (!rc) {
            rc = vit_encode(v, out, in, &g, 1, &err);
        }
        mem_fail_at(0);
        vit_close(v);
    }
    T_EQ(rc, GALLEY_OK);
    T_OK(n > 20);
    mem_free(in);
    mem_free(out);
    weights_close(w);
    device_close(dev);
}

static const struct t_case cases[] = {
    { "embeds_hf", test_embeds_hf },
    { "embeds_tiny", test_embeds_tiny },
    { "batch_invariance", test_batch_invariance },
    { "many_rows", test_many_rows },
    { "isa_bits", test_isa_bits },
    { "steady_state", test_steady_state },
    { "wrong_shape", test_wrong_shape },
    { "no_memory", test_no_memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
