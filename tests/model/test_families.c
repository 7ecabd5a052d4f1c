/* test_families.c - the text families against Hugging Face (tools/reference/text_families.py): the
 * same logits and tokens on every instruction set, the same bytes however a prompt is cut. */
#include <math.h>
#include <unistd.h>

#include "src/model/backbone.h"
#include "tests/model/families.h"

static const char *const names[] = { "qwen2",  "qwen2_window", "qwen3",  "qwen3_flat",
                                     "llama2", "llama_pairs",  "llama3", "llama3_bias",
                                     "gemma3", "gemma3_vl" };

/* A family's prompt and what the reference made of it. */
struct golden {
    struct npy ids, logits, greedy, margin;
};

static struct golden golden_open(const char *name)
{
    char dir[256];
    family_dir(dir, name);
    return (struct golden){ npy_open(dir, "ids"), npy_open(dir, "logits"), npy_open(dir, "greedy"),
                            npy_open(dir, "margin") };
}

static void golden_close(struct golden *g)
{
    npy_close(&g->ids);
    npy_close(&g->logits);
    npy_close(&g->greedy);
    npy_close(&g->margin);
}

/* Prefill, then the reference's tokens one by one; each must be the largest logit before it. */
static void greedy_check(const struct toy_checkpoint *c, const struct golden *g, struct prompt *q,
                         float *logits, const char *name)
{
    const size_t n_vocab = (size_t)model_n_vocab(c->model);
    struct kv_pool *kv = pool_for(c, 4);
    struct kv_seq seq = { 0 };
    pieces_run(c, kv, &(struct piece){ q, &seq, 0, q->n, logits }, 1, false);
    const double d = npy_distance(logits, g->logits.f, g->logits.n);
    if (!(d < 2e-5)) {
        T_FAIL("%s on %s: logits differ by %.3g", name, c->dev->ops->name, d);
    }
    for (int64_t i = 0; i < g->greedy.n; i++) {
        struct logit_top top;
        const float *last = logits + (size_t)(q->n - 1) * n_vocab;
        c->dev->ops->top1(c->dev, &top, last, n_vocab, 1, (int)n_vocab);
        if (g->margin.f[i] > 1e-3f && top.id != g->greedy.i[i]) {
            T_FAIL("%s on %s: token %d is %d, the reference has %d", name, c->dev->ops->name,
                   (int)i, top.id, g->greedy.i[i]);
        }
        prompt_push(q, g->greedy.i[i]);
        pieces_run(c, kv, &(struct piece){ q, &seq, q->n - 1, 1, logits }, 1, false);
    }
    kv_seq_clear(kv, &seq);
    kv_pool_close(kv);
}

static void test_golden(void)
{
    for (size_t i = 0; i < COUNT(names) * COUNT(isa_names); i++) {
        const char *name = names[i / COUNT(isa_names)];
        struct device *dev = device_for(isa_names[i % COUNT(isa_names)], 2);
        if (!dev) {
            continue;
        }
        struct toy_checkpoint c = family_open(name, dev);
        struct golden g = golden_open(name);
        struct prompt q;
        prompt_init(&q, &c, g.ids.i, (int)g.ids.n, &(struct patches){ 0 });
        float *logits = family_logits(&c);
        greedy_check(&c, &g, &q, logits, name);
        mem_free(logits);
        prompt_deinit(&q);
        golden_close(&g);
        checkpoint_close(&c);
    }
}

/* The whole prompt's logits, `chunk` rows at a time. */
static void chunks_run(const struct toy_checkpoint *c, const struct prompt *q, int chunk,
                       float *logits)
{
    struct kv_pool *kv = pool_for(c, 4);
    struct kv_seq seq = { 0 };
    for (int at = 0; at < q->n; at += chunk) {
        const int n = q->n - at < chunk ? q->n - at : chunk;
        pieces_run(c, kv, &(struct piece){ q, &seq, at, n, logits }, 1, false);
    }
    kv_seq_clear(kv, &seq);
    kv_pool_close(kv);
}

/* want: the first device's bytes, filled by it. */
static void chunks_check(const char *name, struct device *dev, bool first, float *want)
{
    static const int chunks[] = { PROMPT_MAX, 1, 7, 33 };
    struct toy_checkpoint c = family_open(name, dev);
    struct golden g = golden_open(name);
    struct prompt q;
    prompt_init(&q, &c, g.ids.i, (int)g.ids.n, &(struct patches){ 0 });
    float *got = family_logits(&c);
    const size_t bytes = (size_t)g.logits.n * sizeof(float);
    for (size_t i = 0; i < COUNT(chunks); i++) {
        chunks_run(&c, &q, chunks[i], first && i == 0 ? want : got);
        if (!(first && i == 0) && memcmp(got, want, bytes) != 0) {
            T_FAIL("%s on %s: chunks of %d give other bytes", name, c.dev->ops->name, chunks[i]);
        }
    }
    mem_free(got);
    prompt_deinit(&q);
    golden_close(&g);
    checkpoint_close(&c);
}

static void test_chunks(void)
{
    float *want = mem_many(float, (size_t)PROMPT_MAX * 96);
    T_OK(want);
    for (size_t i = 0; i < COUNT(names); i++) {
        for (size_t k = 0; k < COUNT(isa_names); k++) {
            struct device *dev = device_for(isa_names[k], 1 + (int)k % 2);
            if (dev) {
                chunks_check(names[i], dev, k == 0, want);
            }
        }
    }
    mem_free(want);
}

/* ---- descriptions ---- */

static void describe(struct model_desc *d, const char *name)
{
    const struct hf_config cfg = family_config(name);
    struct galley_err err = { 0 };
    if (model_desc_init(d, &cfg, &err)) {
        T_FAIL("%s", err.msg);
    }
}

static void test_windows(void)
{
    struct model_desc d;
    describe(&d, "gemma3"); /* every third layer of four sees everything */
    for (int i = 0; i < d.n_layers; i++) {
        T_EQ(d.layers[i].window, i == 2 ? 0 : 9);
        T_EQ(d.layers[i].i_rope, i != 2);
    }
    T_NEAR(d.rope[0].freq[0], 1.0 / 8, 1e-15);
    T_NEAR(d.rope[1].freq[1], pow(1e2, -2.0 / 24), 1e-15);
    T_NEAR((double)d.embed_scale, sqrt(54), 1e-6);
    model_desc_deinit(&d);
    describe(&d, "qwen2_window");
    for (int i = 0; i < d.n_layers; i++) {
        T_EQ(d.layers[i].window, 7);
    }
    model_desc_deinit(&d);
    describe(&d, "qwen3");
    T_OK(d.layers[1].window == 0 && d.layers[1].i_rope == 0 && d.n_rope == 1);
    model_desc_deinit(&d);
}

/* What can be said and not run. */
static void test_refusals(void)
{
    static const struct {
        struct layer_desc is;
        const char *says;
    } rows[] = {
        { { .ffn.n_experts = 8 }, "layer 1 has experts" },
        { { .ffn.n_shared = 1 }, "layer 1 has shared experts" },
        { { .chunk = 8192 }, "layer 1 has chunked attention" },
        { { .temp_scale = 0.1f }, "layer 1 has attention temperature" },
        { { .attn_gated = true }, "layer 1 has gated attention" },
        { { .qk_norm = QK_NORM_AFTER_ROPE }, "after rotation" },
        { { .qk_norm_plain = true }, "without weights" },
        { { .n_kv_head = 3 }, "3 key/value heads" },
        { { .n_kv_head = 6 }, "one shape for all layers" },
        { { .head_dim = 22 }, "one shape for all layers" },
        { { .head_dim = 1024 }, "limit 512" },
        { { .i_rope = 1 }, "9 rotated elements" },
        { { .i_rope = 2 }, "over 4 axes" },
    };
    struct model_desc d;
    struct galley_err err = { 0 };
    describe(&d, "qwen3");
    d.n_rope = 3;
    d.rope[1].rot_dim = 9;
    d.rope[2] = d.rope[0];
    d.rope[2].axis[5] = 3;
    const struct layer_desc was = d.layers[1];
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct layer_desc *is = &rows[i].is;
        struct layer_desc *l = &d.layers[1];
        *l = *is;
        l->n_head = was.n_head;
        l->n_kv_head = is->n_kv_head == 3 ? 4 : is->n_kv_head ? is->n_kv_head : was.n_kv_head;
        l->head_dim = is->head_dim ? is->head_dim : was.head_dim;
        if (is->n_kv_head == 3) {
            l->n_head = 7;
            l->n_kv_head = 3;
        }
        T_EQ(model_desc_check(&d, &err), GALLEY_EMODEL);
        if (!strstr(err.msg, rows[i].says)) {
            T_FAIL("row %zu says: %s", i, err.msg);
        }
    }
    d.layers[1] = was;
    d.layers[1].i_rope = -1; /* no rotation is fine */
    T_EQ(model_desc_check(&d, &err), GALLEY_OK);
    model_desc_deinit(&d);
}

/* What no family of today asks for, against the same thing said otherwise: halving is exact. */
static void test_scales(void)
{
    struct toy_checkpoint c = family_open("gemma3", device_for(NULL, 1));
    struct golden g = golden_open("gemma3");
    struct model *m = c.model;
    const size_t hidden = (size_t)m->desc.hidden;
    struct prompt q;
    prompt_init(&q, &c, g.ids.i, (int)g.ids.n, &(struct patches){ 0 });
    float *want = family_logits(&c), *got = family_logits(&c);
    m->desc.residual_scale = 0.5f;
    m->desc.logit_scale = 0.25f;
    m->desc.layers[1].i_rope = -1;
    chunks_run(&c, &q, 7, got);
    m->desc.residual_scale = m->desc.logit_scale = 1;
    m->desc.layers[1].i_rope = 2;
    m->desc.n_rope = 3;
    m->desc.rope[2] = (struct rope_desc){ .rot_dim = 24, .gain = 1 }; /* turns by nothing */
    for (int i = 0; i < m->desc.n_layers; i++) {
        for (size_t k = 0; k < hidden; k++) {
            m->layers[i].attn_post_norm[k] *= 0.5f;
            m->layers[i].ffn_post_norm[k] *= 0.5f;
        }
    }
    chunks_run(&c, &q, 7, want);
    for (int64_t i = 0; i < g.logits.n; i++) {
        T_OK(got[i] == 0.25f * want[i]);
    }
    T_OK(npy_distance(want, g.logits.f, g.logits.n) > 0.01); /* it did change something */
    mem_free(want);
    mem_free(got);
    prompt_deinit(&q);
    golden_close(&g);
    checkpoint_close(&c);
}

/* ---- identity ---- */

static void hash_of(uint8_t out[HASH_BYTES], const char *dir, const struct hf_config *cfg)
{
    struct weights *w = NULL;
    struct model *m = NULL;
    struct galley_err err = { 0 };
    struct device *dev = device_for("ref", 1);
    if (weights_open(&w, dir, &err) || model_open(&m, dev, cfg, w, &err)) {
        T_FAIL("%s", err.msg);
    }
    model_hash(m, out);
    model_close(m);
    weights_close(w);
    device_close(dev);
}

/* The same model again, a config that differs, a weight that differs. */
static void test_hash(void)
{
    char dir[256], path[512], temp[] = "/tmp/galley-familiesXXXXXX";
    uint8_t first[HASH_BYTES], other[HASH_BYTES];
    struct hf_config cfg = family_config("llama2");
    family_dir(dir, "llama2");
    hash_of(first, dir, &cfg);
    hash_of(other, dir, &cfg);
    T_OK(memcmp(first, other, HASH_BYTES) == 0);
    cfg.text.rope.theta += 1;
    hash_of(other, dir, &cfg);
    T_OK(memcmp(first, other, HASH_BYTES) != 0);
    cfg.text.rope.theta -= 1;
    T_OK(mkdtemp(temp));
    char *bytes = NULL;
    size_t n = 0;
    struct galley_err err = { 0 };
    snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    T_EQ(file_read(path, 1 << 24, &bytes, &n, &err), GALLEY_OK);
    bytes[n - 1] ^= 1; /* the last tensor's last element */
    snprintf(path, sizeof(path), "%s/model.safetensors", temp);
    T_EQ(file_write(path, bytes, n, &err), GALLEY_OK);
    hash_of(other, temp, &cfg);
    T_OK(memcmp(first, other, HASH_BYTES) != 0);
    mem_free(bytes);
    unlink(path);
    rmdir(temp);
}

/* A tower's tensors are let be only where the family says so. */
static void test_ignored(void)
{
    struct galley_err err = { 0 };
    struct toy_checkpoint c = family_open("gemma3_vl", device_for("ref", 1));
    T_EQ(weights_check_all_used(c.w, NULL, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "multi_modal_projector"));
    checkpoint_close(&c);
    c = family_open("qwen2", device_for("ref", 1));
    T_OK(!model_ignored_tensors(c.model));
    checkpoint_close(&c);
}

/* Memory may end at any allocation: nothing leaks, nothing half open comes back. */
static void test_no_memory(void)
{
    const struct hf_config cfg = family_config("gemma3");
    struct device *dev = device_for("ref", 1);
    struct weights *w = NULL;
    struct model *m = NULL;
    struct galley_err err = { 0 };
    enum galley_status rc = GALLEY_ENOMEM;
    int n = 1;
    T_EQ(weights_open(&w, GOLDEN_HF "gemma3", &err), GALLEY_OK);
    for (; rc == GALLEY_ENOMEM; n++) {
        mem_fail_at(n);
        rc = model_open(&m, dev, &cfg, w, &err);
        mem_fail_at(0);
        T_OK(n < 1000 && (rc == GALLEY_OK) == (m != NULL));
    }
    T_EQ(rc, GALLEY_OK);
    T_OK(n > 4 * 6); /* six norms in each of four layers */
    model_close(m);
    weights_close(w);
    device_close(dev);
}

static const struct t_case cases[] = {
    { "golden", test_golden },   { "chunks", test_chunks },       { "windows", test_windows },
    { "scales", test_scales },   { "refusals", test_refusals },   { "hash", test_hash },
    { "ignored", test_ignored }, { "no_memory", test_no_memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
