/* test_invariance.c - what a request answers depends on the request alone: the same tokens and
 * bytes alone and in company, however the rows are cut, whoever drafts, whatever is cached, and
 * when the pool is so small that sequences are computed again.
 *
 * The expected answers are the engine's own, alone, without caches and drafts; test_engine.c ties
 * these to an independent implementation. */
#include <semaphore.h>

#include "tests/engine/engine_t.h"

/* Requests of every kind. */
enum { N_KINDS = 6, N_NEW = 56 };

static const struct sample_params sampling[N_KINDS] = {
    [1] = { .temperature = 0.9, .top_p = 0.95, .seed = 7 },
    [3] = { .temperature = 1.3, .top_k = 40, .repetition = 1.2, .seed = 8 },
    [4] = { .repetition = 1.3 },
    [5] = { .temperature = 0.7, .min_p = 0.02, .seed = 9 },
};
static const int image_of[N_KINDS] = { 0, 1, -1, -1, 2, -1 };
static const char *const text_of[N_KINDS] = {
    "Convert to Markdown.",
    "Convert to Markdown.",
    ("A proof is read against the original before anything is published, and then once more by "
     "somebody else, because nobody sees his own mistakes."),
    "A proof is read against the original before anything is published, and then it is printed.",
    "Convert to Markdown, please.",
    "x",
};

static void ask_kind(struct ask *a, int kind, struct slot *slot)
{
    struct image *im = image_of[kind] < 0 ? NULL : golden[image_of[kind]].image;
    ask_init(a, im, text_of[kind], slot);
    a->r.sampling = sampling[kind];
    a->r.max_new_tokens = N_NEW;
    a->r.ignore_eos = kind != 0 && kind != 1;
}

static struct inbox expected;

static void answer_alone(void)
{
    inbox_init(&expected);
    struct engine *e = open_with(
        (struct engine_config){ .max_seqs = 1, .no_prefix_cache = true, .vision_cache_bytes = 1 });
    for (int k = 0; k < N_KINDS; k++) {
        struct ask a;
        ask_kind(&a, k, &expected.slot[k]);
        submit_request(e, &a.r);
        wait_for(&expected, k + 1);
        T_EQ(expected.slot[k].r.status, GALLEY_OK);
        T_EQ(expected.slot[k].r.n_cached, 0);
        T_OK(expected.slot[k].n_tokens > 20);
        T_STR(expected.slot[k].shown.data, expected.slot[k].text);
    }
    engine_close(e);
}

static void expect_same(const struct slot *s, int kind, const char *what)
{
    const struct slot *want = &expected.slot[kind];
    if (s->n_events != 1 || s->r.finish != want->r.finish) {
        T_FAIL("%s, kind %d: %d events, finish %d (%s) instead of %d", what, kind, s->n_events,
               s->r.finish, s->error, want->r.finish);
    }
    if (s->n_tokens != want->n_tokens ||
        memcmp(s->tokens, want->tokens, (size_t)s->n_tokens * sizeof(*s->tokens)) != 0) {
        T_FAIL("%s, kind %d: %d tokens, not the %d alone: \"%s\", \"%s\"", what, kind, s->n_tokens,
               want->n_tokens, s->text, want->text);
    }
    T_STR(s->text, want->text);
    T_STR(s->shown.data, want->text);
    T_NEAR(s->r.mean_logprob, want->r.mean_logprob, 0);
}

/* A draft of every quality: 0 none, 1 the answer, 2 half of it wrong, 3 another text. */
static char *make_draft(int quality, int kind)
{
    char *s =
        quality == 0 ? NULL : mem_strdup(quality == 3 ? text_of[2] : expected.slot[kind].text);
    for (size_t i = 3; quality == 2 && s[0] && i < strlen(s); i += 7) {
        s[i] = 'e';
    }
    return s;
}

/* A request that stops the engine's thread in its callback until it is let go: what is submitted
 * meanwhile is all there when the engine looks again, however slow this thread is. */
struct hold {
    struct inbox b;
    sem_t go;
};

static void wait_to_go(struct slot *s, const struct engine_chunk *c)
{
    (void)c;
    struct hold *h = s->watch_arg;
    sem_wait(&h->go);
}

static void hold_engine(struct hold *h, struct engine *e)
{
    static const int32_t id = 300;
    inbox_init(&h->b);
    sem_init(&h->go, 0, 0);
    h->b.slot[0].watch = wait_to_go;
    h->b.slot[0].watch_arg = h;
    struct ask a;
    ask_ids(&a, &id, 1, 1, &h->b.slot[0]);
    submit_request(e, &a.r);
}

static void let_go(struct hold *h)
{
    sem_post(&h->go);
    wait_for(&h->b, 1);
    T_EQ(h->b.slot[0].r.status, GALLEY_OK);
    sem_destroy(&h->go);
    inbox_deinit(&h->b);
}

struct setting {
    struct engine_config cfg;
    int n; /* requests in all */
    const char *what;
};

static void run(const struct setting *t)
{
    struct engine *e = open_with(t->cfg);
    struct inbox b;
    inbox_init(&b);
    static struct hold hold;
    hold_engine(&hold, e);
    for (int i = 0; i < t->n; i++) {
        const int kind = i % N_KINDS;
        struct ask a;
        ask_kind(&a, kind, &b.slot[i]);
        char *draft = make_draft((i + i / N_KINDS) % 4, kind);
        a.r.draft = draft;
        a.r.priority = i % 3;
        submit_request(e, &a.r);
        mem_free(draft);
    }
    let_go(&hold);
    wait_for(&b, t->n);
    for (int i = 0; i < t->n; i++) {
        char what[128];
        snprintf(what, sizeof(what), "%s, request %d", t->what, i);
        expect_same(&b.slot[i], i % N_KINDS, what);
    }
    expect_idle(e);
    const struct engine_totals total = engine_totals(e);
    if (strstr(t->what, "tiny pool")) {
        T_OK(total.n_preemptions > 0);
    }
    if (!t->cfg.no_prefix_cache && t->n > 2 * N_KINDS) {
        T_OK(total.n_cached_tokens > 0);
    }
    if (t->cfg.vision_cache_bytes == 0 && t->n >= 2 * N_KINDS) {
        T_OK(total.n_images_cached > 0);
    }
    if (t->cfg.no_prefix_cache) {
        T_EQ(total.n_cached_tokens, 0);
    }
    T_OK(t->n < 12 || total.n_accepted > 0);
    engine_close(e);
    inbox_deinit(&b);
}

/* A block is 192 KiB: 11 of them hold three sequences, which do not know yet how much they will
 * write. */
#define TINY_POOL (11u * 196608)

static void rows_are_cut_anyhow(void)
{
    static const struct setting settings[] = {
        { { .max_seqs = 1, .max_rows = 1, .no_prefix_cache = true }, N_KINDS, "1 row" },
        { { .max_seqs = 2, .max_rows = 2 }, 2 * N_KINDS, "2 rows" },
        { { .max_seqs = 4, .max_rows = 7 }, 2 * N_KINDS, "7 rows" },
        { { .max_seqs = 32, .max_rows = 32 }, 32, "32 rows" },
        { { .max_seqs = 32, .max_rows = 64, .no_prefix_cache = true, .vision_cache_bytes = 1 },
          32,
          "64 rows, no caches" },
        { { .max_seqs = 32, .max_rows = 512, .n_threads = 1 }, 32, "512 rows, 1 thread" },
    };
    for (size_t i = 0; i < COUNT(settings); i++) {
        run(&settings[i]);
    }
}

static void a_small_pool_changes_nothing(void)
{
    static const struct setting settings[] = {
        { { .max_seqs = 16, .max_rows = 64, .kv_bytes = TINY_POOL }, 32, "tiny pool" },
        { { .max_seqs = 16, .max_rows = 512, .kv_bytes = TINY_POOL, .no_prefix_cache = true },
          32,
          "tiny pool, no prefix cache" },
        { { .max_seqs = 32, .max_rows = 33, .kv_bytes = TINY_POOL, .vision_cache_bytes = 1 },
          32,
          "tiny pool, no vision cache" },
    };
    for (size_t i = 0; i < COUNT(settings); i++) {
        run(&settings[i]);
    }
}

/* The reference kernels are slow: two requests. */
static void every_instruction_set_agrees(void)
{
    static const struct setting settings[] = {
        { { .isa = "ref", .max_seqs = 4, .max_rows = 64 }, 2, "ref" },
        { { .isa = "avx2", .max_seqs = 16, .max_rows = 64, .kv_bytes = TINY_POOL },
          32,
          "avx2, tiny pool" },
        { { .isa = "avx512", .max_seqs = 16, .max_rows = 128 }, 32, "avx512" },
    };
    for (size_t i = 0; i < COUNT(settings); i++) {
        if (has_isa(settings[i].cfg.isa)) {
            run(&settings[i]);
        }
    }
}

static void seeds_differ(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    for (int i = 0; i < 3; i++) { /* the first two with one seed */
        struct ask a;
        ask_kind(&a, 5, &b.slot[i]);
        a.r.sampling.temperature = 1.5;
        a.r.sampling.seed = (uint64_t)(100 + i / 2);
        submit_request(e, &a.r);
    }
    wait_for(&b, 3);
    T_STR(b.slot[0].text, b.slot[1].text);
    T_OK(strcmp(b.slot[0].text, b.slot[2].text) != 0);
    engine_close(e);
    inbox_deinit(&b);
}

static const struct t_case cases[] = {
    { "rows_are_cut_anyhow", rows_are_cut_anyhow },
    { "a_small_pool_changes_nothing", a_small_pool_changes_nothing },
    { "every_instruction_set_agrees", every_instruction_set_agrees },
    { "seeds_differ", seeds_differ },
};

int main(int argc, char **argv)
{
    if (setjmp(t_jump)) {
        return 1;
    }
    load_golden();
    answer_alone();
    const int rc = t_main(argc, argv, cases, COUNT(cases));
    inbox_deinit(&expected);
    free_golden();
    return rc;
}
