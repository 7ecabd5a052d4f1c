/* test_golden.c - logits and greedy tokens against Hugging Face and the built-in model's
 * literal reference, on every instruction set. */
#include "src/base/json.h"
#include "tests/model/run.h"

static const char *const tiny_images[] = { "list", "par", "table" };

/* Prefill, then n greedy tokens one by one; those whose reference margin is over `clear` must
 * be the reference's.  logits: [PROMPT_MAX][n_vocab]. */
static void greedy_compare(const struct toy_checkpoint *c, struct prompt *q, float *logits,
                           const int32_t *want, const float *margin, int n, double clear,
                           const char *name)
{
    struct kv_pool *kv = pool_for(c, PROMPT_MAX / KV_BLOCK);
    struct kv_seq seq = { 0 };
    const int n_prompt = q->n, n_vocab = model_n_vocab(c->model);
    pieces_run(c, kv, &(struct piece){ q, &seq, 0, q->n, logits }, 1, false);
    for (int i = 0; i < n; i++) {
        struct logit_top top;
        c->dev->ops->top1(c->dev, &top, logits + (size_t)(q->n - 1) * (size_t)n_vocab,
                          (size_t)n_vocab, 1, n_vocab);
        if (margin[i] > clear && top.id != want[i]) {
            T_FAIL("%s on %s: token %d is %d, the reference has %d", name, c->dev->ops->name, i,
                   top.id, want[i]);
        }
        prompt_push(q, want[i]);
        pieces_run(c, kv, &(struct piece){ q, &seq, q->n - 1, 1, logits }, 1, false);
    }
    T_EQ(seq.n_tokens, n_prompt + n);
    kv_seq_clear(kv, &seq);
    T_EQ(kv_pool_n_free(kv), PROMPT_MAX / KV_BLOCK);
    kv_pool_close(kv);
}

static void case_compare(const char *name, const char *isa)
{
    struct device *dev = device_for(isa, 2);
    if (!dev) {
        return;
    }
    char dir[256];
    snprintf(dir, sizeof(dir), GOLDEN_HF "%s", name);
    struct toy_checkpoint c = checkpoint_open(dir, dev);
    struct npy ids = npy_open(dir, "ids"), positions = npy_open(dir, "positions");
    struct npy want = npy_open(dir, "logits"), greedy = npy_open(dir, "greedy");
    struct npy margin = npy_open(dir, "margin");
    struct patches p = patches_of_case(dir, case_n_images(name), &c.cfg);
    struct prompt q;
    prompt_init(&q, &c, ids.i, (int)ids.n, &p);
    for (int a = 0; a < 3; a++) {
        T_OK(memcmp(q.pos[a], positions.i + a * ids.n, (size_t)ids.n * sizeof(int32_t)) == 0);
    }
    float *logits = mem_many(float, (size_t)PROMPT_MAX *(size_t)model_n_vocab(c.model));
    T_OK(logits);
    T_EQ(want.n, ids.n * model_n_vocab(c.model));
    greedy_compare(&c, &q, logits, greedy.i, margin.f, (int)greedy.n, 1e-3, name);
    const double d = npy_distance(logits, want.f, want.n);
    if (!(d < 5e-5)) {
        T_FAIL("%s on %s: logits differ by %.3g", name, isa, d);
    }
    struct npy *const arrays[] = { &ids, &positions, &want, &greedy, &margin };
    for (size_t i = 0; i < COUNT(arrays); i++) {
        npy_close(arrays[i]);
    }
    mem_free(logits);
    mem_free(p.values);
    prompt_deinit(&q);
    checkpoint_close(&c);
}

static void test_hf(void)
{
    for (size_t i = 0; i < COUNT(hf_cases); i++) {
        for (size_t k = 0; k < COUNT(isa_names); k++) {
            case_compare(hf_cases[i], isa_names[k]);
        }
    }
}

static int ints_of(const cJSON *o, const char *key, int32_t *out)
{
    const cJSON *list = cJSON_GetObjectItem(o, key), *v;
    int n = 0;
    T_OK(cJSON_IsArray(list) && cJSON_GetArraySize(list) <= PROMPT_MAX);
    cJSON_ArrayForEach(v, list)
    {
        out[n++] = (int32_t)v->valuedouble;
    }
    return n;
}

static void tiny_compare(const struct toy_checkpoint *c, const char *image)
{
    char path[256], name[64];
    cJSON *o = NULL;
    struct galley_err err = { 0 };
    snprintf(path, sizeof(path), GOLDEN_TINY "/%s.json", image);
    if (json_read(&o, path, 1 << 20, &err)) {
        T_FAIL("%s", err.msg);
    }
    static int32_t ids[PROMPT_MAX], want[PROMPT_MAX];
    static float margin[PROMPT_MAX];
    const int n = ints_of(o, "prompt_ids", ids), n_out = ints_of(o, "output_ids", want);
    struct patches p = { 0 };
    struct prompt q;
    snprintf(path, sizeof(path), GOLDEN_TINY "/%s.png", image);
    patches_add(&p, path, &c->cfg);
    prompt_init(&q, c, ids, n, &p);
    const cJSON *axes = cJSON_GetObjectItem(o, "position_ids");
    for (int a = 0; a < 3; a++) {
        for (int i = 0; i < n; i++) {
            T_EQ(q.pos[a][i], cJSON_GetArrayItem(cJSON_GetArrayItem(axes, a), i)->valueint);
        }
    }
    const size_t n_vocab = (size_t)model_n_vocab(c->model);
    float *logits = mem_many(float, PROMPT_MAX *n_vocab);
    T_OK(logits);
    for (int i = 0; i < n_out; i++) {
        margin[i] = 1; /* every token must be the reference's */
    }
    greedy_compare(c, &q, logits, want, margin, n_out, 0, image);
    snprintf(name, sizeof(name), "%s.first_logits", image);
    struct npy first = npy_open(GOLDEN_TINY, name);
    T_EQ(first.n, n_vocab);
    const double d = npy_distance(logits + (size_t)(n - 1) * n_vocab, first.f, first.n);
    if (!(d < 1e-3)) {
        T_FAIL("%s on %s: first logits differ by %.3g", image, c->dev->ops->name, d);
    }
    npy_close(&first);
    mem_free(logits);
    mem_free(p.values);
    prompt_deinit(&q);
    cJSON_Delete(o);
}

static void test_tiny(void)
{
    for (size_t k = 0; k < COUNT(isa_names); k++) {
        struct device *dev = device_for(isa_names[k], 2);
        if (!dev) {
            continue;
        }
        struct toy_checkpoint c = checkpoint_open(MODEL_TINY, dev);
        for (size_t i = 0; i < (k ? COUNT(tiny_images) : 1); i++) { /* ref is slow */
            tiny_compare(&c, tiny_images[i]);
        }
        checkpoint_close(&c);
    }
}

static const struct t_case cases[] = {
    { "hf", test_hf },
    { "tiny", test_tiny },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
