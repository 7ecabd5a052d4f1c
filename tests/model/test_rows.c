/* test_rows.c - the property everything rests on: a row's logits are the same bytes however
 * its prompt was cut, whoever it ran with, and after any rewind. */
#include "tests/model/run.h"

struct scene {
    struct toy_checkpoint c;
    struct prompt a, b; /* two prompts over the same pictures */
    size_t n_vocab;
    float *want_a, *want_b, *got_a, *got_b; /* [PROMPT_MAX][n_vocab] */
    struct patches p;
};

static float *rows_new(const struct scene *s)
{
    float *rows = mem_many(float, PROMPT_MAX * s->n_vocab);
    T_OK(rows);
    return rows;
}

/* A prompt of a golden case; b is the same with its text changed and cut short. */
static void scene_init(struct scene *s, const char *isa, int n_threads)
{
    static const char dir[] = GOLDEN_HF "q25_mha";
    *s = (struct scene){ .c = checkpoint_open(dir, device_for(isa, n_threads)) };
    struct npy ids = npy_open(dir, "ids");
    s->p = patches_of_case(dir, case_n_images("q25_mha"), &s->c.cfg);
    prompt_init(&s->a, &s->c, ids.i, (int)ids.n, &s->p);
    int32_t other[PROMPT_MAX];
    for (int i = 0; i < ids.n; i++) {
        other[i] = ids.i[i] < 80 ? (ids.i[i] * 7 + 5) % 80 : ids.i[i];
    }
    prompt_init(&s->b, &s->c, other, (int)ids.n, &s->p);
    s->b.n -= 3;
    s->n_vocab = (size_t)model_n_vocab(s->c.model);
    s->want_a = rows_new(s);
    s->want_b = rows_new(s);
    s->got_a = rows_new(s);
    s->got_b = rows_new(s);
    npy_close(&ids);
    struct kv_pool *kv = pool_for(&s->c, 8);
    struct kv_seq sa = { 0 }, sb = { 0 };
    pieces_run(&s->c, kv, &(struct piece){ &s->a, &sa, 0, s->a.n, s->want_a }, 1, false);
    pieces_run(&s->c, kv, &(struct piece){ &s->b, &sb, 0, s->b.n, s->want_b }, 1, false);
    T_OK(memcmp(s->want_a, s->want_b, s->n_vocab * sizeof(float)) != 0);
    kv_seq_clear(kv, &sa);
    kv_seq_clear(kv, &sb);
    kv_pool_close(kv);
}

static void scene_deinit(struct scene *s)
{
    float *const rows[] = { s->want_a, s->want_b, s->got_a, s->got_b };
    for (size_t i = 0; i < COUNT(rows); i++) {
        mem_free(rows[i]);
    }
    prompt_deinit(&s->a);
    prompt_deinit(&s->b);
    mem_free(s->p.values);
    checkpoint_close(&s->c);
}

static void same_rows(const struct scene *s, const float *got, const float *want, int from, int to,
                      const char *what)
{
    for (int r = from; r < to; r++) {
        const size_t at = (size_t)r * s->n_vocab;
        if (memcmp(got + at, want + at, s->n_vocab * sizeof(float)) != 0) {
            T_FAIL("%s: the logits of row %d differ", what, r);
        }
    }
}

/* The whole of a, cut into chunks, alone or each chunk behind a chunk of b. */
static void cut_run(struct scene *s, int chunk, bool company, bool last)
{
    struct kv_pool *kv = pool_for(&s->c, 8);
    struct kv_seq sa = { 0 }, sb = { 0 };
    for (int from = 0; from < s->a.n; from += chunk) {
        const int na = s->a.n - from < chunk ? s->a.n - from : chunk;
        const int more_b = s->b.n - sb.n_tokens, nb = more_b < 5 ? more_b : 5;
        const struct piece both[] = { { &s->b, &sb, sb.n_tokens, nb, s->got_b },
                                      { &s->a, &sa, from, na, s->got_a } };
        const bool with_b = company && nb > 0;
        pieces_run(&s->c, kv, with_b ? both : both + 1, with_b ? 2 : 1, last);
    }
    if (!last) {
        same_rows(s, s->got_a, s->want_a, 0, s->a.n, company ? "chunks in company" : "chunks");
    }
    same_rows(s, s->got_a, s->want_a, s->a.n - 1, s->a.n, "the last row");
    if (company && !last) {
        same_rows(s, s->got_b, s->want_b, 0, sb.n_tokens, "the company");
    }
    memset(s->got_a, 0, PROMPT_MAX * s->n_vocab * sizeof(float));
    kv_check_lists(kv, (const struct kv_seq *const[]){ &sa, &sb }, 2);
    kv_seq_clear(kv, &sa);
    kv_seq_clear(kv, &sb);
    kv_pool_close(kv);
}

static void test_chunks(void)
{
    static const int chunks[] = { 1, 7, 33, 64, PROMPT_MAX };
    for (size_t k = 0; k < COUNT(isa_names); k++) {
        struct device *dev = device_for(isa_names[k], 1);
        if (!dev) {
            continue;
        }
        device_close(dev);
        struct scene s;
        scene_init(&s, isa_names[k], 2);
        for (size_t i = 0; i < COUNT(chunks); i++) {
            cut_run(&s, chunks[i], false, false);
            cut_run(&s, chunks[i], true, false);
            cut_run(&s, chunks[i], true, true); /* the last layer then runs few rows only */
        }
        scene_deinit(&s);
    }
}

/* Wrong drafts are appended, taken back, and the right rows follow: no trace remains. */
static void test_rewind(void)
{
    struct scene s;
    scene_init(&s, NULL, 2);
    struct kv_pool *kv = pool_for(&s.c, 8);
    struct kv_seq seq = { 0 };
    struct prompt wrong = s.a;
    for (int i = 0; i < wrong.n; i++) {
        wrong.ids[i] = wrong.embd[i] ? wrong.ids[i] : (wrong.ids[i] + 1) % 80;
    }
    for (int at = 0; at < s.a.n;) {
        const int n_wrong = s.a.n - at < 40 ? s.a.n - at : 40;
        pieces_run(&s.c, kv, &(struct piece){ &wrong, &seq, at, n_wrong, s.got_b }, 1, false);
        T_OK(kv_seq_resize(kv, &seq, at));
        const int n = s.a.n - at < 11 ? s.a.n - at : 11;
        pieces_run(&s.c, kv, &(struct piece){ &s.a, &seq, at, n, s.got_a }, 1, false);
        at += n;
    }
    same_rows(&s, s.got_a, s.want_a, 0, s.a.n, "after rewinds");
    kv_check_lists(kv, (const struct kv_seq *const[]){ &seq }, 1);
    kv_seq_clear(kv, &seq);
    kv_pool_close(kv);
    scene_deinit(&s);
}

/* What a block held before is never read, not even multiplied by zero. */
static void test_poisoned_cache(void)
{
    for (size_t k = 0; k < COUNT(isa_names); k++) {
        struct device *dev = device_for(isa_names[k], 1);
        if (!dev) {
            continue;
        }
        device_close(dev);
        struct scene s;
        scene_init(&s, isa_names[k], 1);
        struct kv_pool *kv = pool_for(&s.c, 8);
        const struct kv_shape *shape = kv_pool_shape(kv);
        const size_t bytes = (size_t)(8 * kv_block_bytes(shape)) / 2 / (size_t)shape->n_layers;
        for (int i = 0; i < shape->n_layers; i++) {
            memset(kv_pool_k(kv, i), 0xff, bytes); /* NaN */
            memset(kv_pool_v(kv, i), 0xff, bytes);
        }
        struct kv_seq seq = { 0 };
        for (int at = 0; at < s.a.n; at += 9) {
            const int n = s.a.n - at < 9 ? s.a.n - at : 9;
            pieces_run(&s.c, kv, &(struct piece){ &s.a, &seq, at, n, s.got_a }, 1, false);
        }
        same_rows(&s, s.got_a, s.want_a, 0, s.a.n, "over NaN");
        kv_seq_clear(kv, &seq);
        kv_pool_close(kv);
        scene_deinit(&s);
    }
}

/* Threads and instruction sets do not show. */
static void test_devices(void)
{
    struct scene first;
    scene_init(&first, "ref", 1);
    for (size_t k = 0; k < COUNT(isa_names); k++) {
        struct device *dev = device_for(isa_names[k], 1);
        if (!dev) {
            continue;
        }
        device_close(dev);
        struct scene s;
        scene_init(&s, isa_names[k], 2);
        same_rows(&first, s.want_a, first.want_a, 0, first.a.n, isa_names[k]);
        scene_deinit(&s);
    }
    scene_deinit(&first);
}

static void test_steady_state(void)
{
    struct scene s;
    scene_init(&s, NULL, 1);
    struct kv_pool *kv = pool_for(&s.c, 8);
    struct kv_seq seq = { 0 };
    T_OK(kv_seq_resize(kv, &seq, 40));
    struct galley_err err = { 0 };
    const int32_t zero = 0, one = 1, token = 3, slot = kv_seq_slot(&seq, 0);
    const int32_t *tables[] = { seq.blocks };
    struct model_batch b = { .n_rows = 1,
                             .token = &token,
                             .pos = { &zero, &zero, &zero },
                             .seq = &zero,
                             .n_keys = &one,
                             .slot = &slot,
                             .block_table = tables,
                             .want = &zero,
                             .n_want = 1,
                             .logits = s.got_a };
    mem_fail_at(0);
    T_EQ(model_forward(s.c.model, kv, &b, &err), GALLEY_OK);
    b.n_want = 0; /* only the cache is wanted */
    T_EQ(model_forward(s.c.model, kv, &b, &err), GALLEY_OK);
    T_EQ(mem_count(), 0);
    const int32_t beyond = model_n_vocab(s.c.model);
    b.token = &beyond;
    T_EQ(model_forward(s.c.model, kv, &b, &err), GALLEY_EINPUT);
    T_OK(strstr(err.msg, "token 96"));
    kv_seq_clear(kv, &seq);
    kv_pool_close(kv);
    scene_deinit(&s);
}

static void test_bad_checkpoint(void)
{
    static const char dir[] = GOLDEN_HF "q25_gqa";
    struct hf_config cfg;
    struct weights *w = NULL;
    struct model *m = NULL;
    struct galley_err err = { 0 };
    struct device *dev = device_for("ref", 1);
    T_EQ(hf_config_read(&cfg, dir, &err), GALLEY_OK);
    T_EQ(weights_open(&w, dir, &err), GALLEY_OK);
    struct hf_config bad = cfg;
    bad.text.n_layers++;
    T_OK(model_open(&m, dev, &bad, w, &err) != GALLEY_OK && !m);
    T_OK(strstr(err.msg, "model.layers.3.input_layernorm.weight"));
    bad = cfg;
    bad.text.n_vocab++;
    T_OK(model_open(&m, dev, &bad, w, &err) != GALLEY_OK && !m);
    T_OK(strstr(err.msg, "model.embed_tokens.weight"));
    bad = cfg;
    bad.text.tied = false;
    T_OK(model_open(&m, dev, &bad, w, &err) != GALLEY_OK && !m);
    T_OK(strstr(err.msg, "lm_head.weight"));
    bad = cfg;
    bad.text.n_kv_head = 4;
    T_EQ(model_open(&m, dev, &bad, w, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "6 attention heads"));
    bad = cfg;
    bad.text.mrope_section[1]++;
    T_EQ(model_open(&m, dev, &bad, w, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "rotary sections 1, 2, 2"));
    enum galley_status rc = GALLEY_ENOMEM;
    int n = 1;
    for (; rc == GALLEY_ENOMEM; n++) {
        mem_fail_at(n);
        rc = model_open(&m, dev, &cfg, w, &err);
        mem_fail_at(0);
        T_OK(n < 1000 && (rc == GALLEY_OK) == (m != NULL));
    }
    T_EQ(rc, GALLEY_OK);
    T_OK(n > 20);
    model_close(m);
    weights_close(w);
    device_close(dev);
}

static const struct t_case cases[] = {
    { "chunks", test_chunks },
    { "rewind", test_rewind },
    { "poisoned_cache", test_poisoned_cache },
    { "devices", test_devices },
    { "steady_state", test_steady_state },
    { "bad_checkpoint", test_bad_checkpoint },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
