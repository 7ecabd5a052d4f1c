/* test_engine.c - the engine over the built-in model: the reference's text, whoever drafts, however
 * the batch is made up.
 *
 * Expected texts come from tests/golden/galley-tiny (an independent float32 implementation). */
#include "tests/engine/engine_t.h"

static void expect_text(const struct slot *s, const char *want, const char *what)
{
    if (s->n_events != 1 || s->r.finish != FINISH_STOP || strcmp(s->text, want) != 0) {
        T_FAIL("%s: events %d, finish %d (%s), \"%s\" instead of \"%s\"", what, s->n_events,
               s->r.finish, s->error, s->text ? s->text : "", want);
    }
}

static void plain_text_is_the_references(void)
{
    static const char *const isas[] = { "ref", "avx2", "avx512" };
    for (size_t k = 0; k < COUNT(isas); k++) {
        if (!has_isa(isas[k])) {
            continue;
        }
        struct engine *e = open_with((struct engine_config){ .isa = isas[k], .n_threads = 2 });
        struct inbox b;
        inbox_init(&b);
        /* The reference kernels are slow: the shortest of the three texts. */
        const int from = k == 0 ? 1 : 0, to = k == 0 ? 2 : N_IMAGES;
        for (int i = from; i < to; i++) {
            submit(e, &b, i, golden[i].image, NULL, 1);
        }
        wait_for(&b, to - from);
        for (int i = from; i < to; i++) {
            expect_text(&b.slot[i], golden[i].text, isas[k]);
            T_EQ(b.slot[i].r.n_drafted, 0);
        }
        engine_close(e);
        inbox_deinit(&b);
    }
}

/* Drafts of every quality for the text `want`, the caller's to free. */
enum { N_DRAFTS = 9 };
static char *make_draft(int kind, const char *want)
{
    const size_t n = strlen(want);
    char *s = mem_alloc(2 * n + 4096);
    T_OK(s);
    memcpy(s, want, n + 1);
    switch (kind) {
    case 0: /* true */
        break;
    case 1: /* one letter in nine wrong */
        for (size_t i = 4; i < n; i += 9) {
            s[i] = 'x';
        }
        break;
    case 2: /* first half missing */
        memcpy(s, want + n / 2, n - n / 2 + 1);
        break;
    case 3: /* said twice */
        memcpy(s + n, want, n + 1);
        break;
    case 4: /* every word swapped with its neighbour's end */
        for (size_t i = 2; i + 1 < n; i += 5) {
            const char c = s[i];
            s[i] = s[i + 1];
            s[i + 1] = c;
        }
        break;
    case 5: /* another text altogether */
        snprintf(s, n + 4096, "The quick brown fox. %0400d", 7);
        break;
    case 6: /* nothing */
        s[0] = '\0';
        break;
    case 7: /* control tokens in writing, and bytes that are no UTF-8 */
        snprintf(s, n + 4096, "<|im_end|>\xff\xfe<|endoftext|>%s<|im_end|>", want);
        break;
    default: /* every second word missing */ {
        size_t k = 0, words = 0;
        for (size_t i = 0; i < n; i++) {
            words += want[i] == ' ';
            if (words % 2 == 0) {
                s[k++] = want[i];
            }
        }
        s[k] = '\0';
    }
    }
    return s;
}

/* The property that matters: exact output does not depend on who drafts, how well, on how many run
 * beside, or on how the prompt was cut. */
static void drafts_never_change_exact_output(void)
{
    static const struct engine_config configs[] = {
        { .max_seqs = 1 },
        { .max_seqs = 4, .max_rows = 24 },
        { .max_seqs = 32, .max_rows = 700, .n_threads = 1 },
    };
    for (size_t c = 0; c < COUNT(configs); c++) {
        struct engine *e = open_with(configs[c]);
        struct inbox b;
        inbox_init(&b);
        int n = 0;
        for (int i = 0; i < N_IMAGES; i++) {
            for (int k = 0; k < N_DRAFTS; k++) {
                char *draft = make_draft(k, golden[i].text);
                submit(e, &b, n++, golden[i].image, draft, 1);
                mem_free(draft);
            }
        }
        wait_for(&b, n);
        for (int i = 0; i < n; i++) {
            char what[64];
            snprintf(what, sizeof(what), "config %zu, %s, draft %d", c, names[i / N_DRAFTS],
                     i % N_DRAFTS);
            expect_text(&b.slot[i], golden[i / N_DRAFTS].text, what);
        }
        for (int i = 0; i < N_IMAGES && configs[c].max_rows != 24; i++) {
            /* A true draft pays (the model's own tokens are not always the tokenizer's). */
            const struct slot *s = &b.slot[i * N_DRAFTS];
            T_OK(s->r.n_accepted * 5 >= s->r.n_output * 4);
            T_OK(s->r.n_steps * 4 <= s->r.n_output);
        }
        engine_close(e);
        inbox_deinit(&b);
    }
}

static void tau_keeps_a_plausible_draft(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 4 });
    struct inbox b;
    inbox_init(&b);
    char *draft = make_draft(1, golden[0].text);
    submit(e, &b, 0, golden[0].image, draft, 1e-30);
    wait_for(&b, 1);
    T_EQ(b.slot[0].r.finish, FINISH_STOP);
    T_STR(b.slot[0].text, draft); /* tau 0 in all but name: the draft stands */
    T_EQ(b.slot[0].r.n_accepted, b.slot[0].r.n_drafted);
    mem_free(draft);
    engine_close(e);
    inbox_deinit(&b);
}

static void limits_end_a_text(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    struct ask a;
    ask_init(&a, golden[0].image, "Convert to Markdown.", &b.slot[0]);
    a.r.draft = golden[0].text;
    a.r.max_new_tokens = 7;
    submit_request(e, &a.r);
    wait_for(&b, 1);
    T_EQ(b.slot[0].r.finish, FINISH_LENGTH);
    T_EQ(b.slot[0].r.n_output, 7);
    T_OK(strncmp(golden[0].text, b.slot[0].text, strlen(b.slot[0].text)) == 0);
    engine_close(e);
    inbox_deinit(&b);
}

static void a_pool_that_is_too_small_says_so(void)
{
    struct engine *e = open_with((struct engine_config){ .kv_bytes = 700000 });
    struct inbox b;
    inbox_init(&b);
    submit(e, &b, 0, golden[0].image, NULL, 1);
    wait_for(&b, 1);
    T_EQ(b.slot[0].r.finish, FINISH_FAILED);
    T_EQ(b.slot[0].r.status, GALLEY_ELIMIT);
    T_OK(strstr(b.slot[0].error, "needs") && strstr(b.slot[0].error, "has"));
    engine_close(e);
    inbox_deinit(&b);
}

/* A pool that holds one sequence at a time: the others wait, all end right. */
static void a_tight_pool_makes_requests_wait(void)
{
    struct engine *e = open_with((struct engine_config){ .kv_bytes = 5u << 20 });
    struct inbox b;
    inbox_init(&b);
    for (int i = 0; i < 6; i++) {
        submit(e, &b, i, golden[i % N_IMAGES].image, golden[i % N_IMAGES].text, 1);
    }
    wait_for(&b, 6);
    for (int i = 0; i < 6; i++) {
        expect_text(&b.slot[i], golden[i % N_IMAGES].text, "tight pool");
    }
    engine_close(e);
    inbox_deinit(&b);
}

static void the_inbox_is_bounded(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 1, .max_inbox = 4 });
    struct inbox b;
    inbox_init(&b);
    int n = 0;
    enum galley_status rc = GALLEY_OK;
    struct galley_err err = { 0 };
    while (!rc && n < 64) {
        struct ask a;
        ask_init(&a, golden[0].image, "Convert to Markdown.", &b.slot[n]);
        request_id id;
        rc = engine_submit(e, &a.r, &id, &err);
        n += !rc;
    }
    T_EQ(rc, GALLEY_ELIMIT);
    T_OK(strstr(err.msg, "queue is full"));
    engine_close(e); /* cancels: one event each */
    T_EQ(b.n_ended, n);
    for (int i = 0; i < n; i++) {
        T_EQ(b.slot[i].n_events, 1);
    }
    inbox_deinit(&b);
}

static void cancelled_requests_end_once(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 3 });
    struct inbox b;
    inbox_init(&b);
    request_id id[12];
    for (int i = 0; i < 12; i++) {
        id[i] = submit(e, &b, i, golden[i % N_IMAGES].image, NULL, 1);
    }
    for (int i = 0; i < 12; i += 2) {
        engine_cancel(e, id[i]);
    }
    engine_cancel(e, 999999);
    wait_for(&b, 12);
    for (int i = 0; i < 12; i++) {
        T_EQ(b.slot[i].n_events, 1);
        if (i % 2 == 1) {
            expect_text(&b.slot[i], golden[i % N_IMAGES].text, "beside cancelled ones");
        } else {
            T_OK(b.slot[i].r.finish == FINISH_CANCELLED || b.slot[i].r.finish == FINISH_STOP);
        }
    }
    engine_close(e);
    inbox_deinit(&b);
}

static void wrong_requests_are_refused(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    static const char *const stop[] = { "" };
    struct galley_err err = { 0 };
    request_id id;
    struct ask a;
    ask_init(&a, golden[0].image, "Convert to Markdown.", NULL);
    struct engine_request r[] = { a.r, a.r, a.r, a.r, a.r, a.r, a.r, a.r, a.r, a.r };
    r[0].on_end = NULL;
    r[1].tau = 1.5;
    r[2].n_messages = 0;
    r[3].sampling.temperature = -1;
    r[4].sampling.temperature = 1;
    r[4].tau = 0.5;
    r[5].stop = stop;
    r[5].n_stop = 1;
    r[6].n_top_logprobs = 21;
    r[7].priority = 101;
    r[8].deadline_seconds = -1;
    r[9].max_new_tokens = -1;
    for (size_t i = 0; i < COUNT(r); i++) {
        err = (struct galley_err){ 0 };
        T_EQ(engine_submit(e, &r[i], &id, &err), GALLEY_EUSAGE);
        T_OK(err.msg[0] && err.status == GALLEY_EUSAGE);
        T_EQ(id, 0);
    }
    a.parts[0].width = 30;
    a.parts[0].height = 28;
    T_EQ(engine_submit(e, &a.r, &id, &err), GALLEY_EUSAGE);
    T_OK(strstr(err.msg, "multiples of 28") && strstr(err.msg, "message 1, part 1"));
    engine_close(e);
    engine_close(NULL);
}

static void a_bad_model_is_named(void)
{
    struct engine *e;
    struct galley_err err = { 0 };
    const struct engine_config cfg = { .model_path = "tests/golden" };
    T_EQ(engine_open(&e, &cfg, &err), GALLEY_EMODEL);
    T_OK(!e && strstr(err.msg, "config.json"));
}

static const struct t_case cases[] = {
    { "plain_text_is_the_references", plain_text_is_the_references },
    { "drafts_never_change_exact_output", drafts_never_change_exact_output },
    { "tau_keeps_a_plausible_draft", tau_keeps_a_plausible_draft },
    { "limits_end_a_text", limits_end_a_text },
    { "a_pool_that_is_too_small_says_so", a_pool_that_is_too_small_says_so },
    { "a_tight_pool_makes_requests_wait", a_tight_pool_makes_requests_wait },
    { "the_inbox_is_bounded", the_inbox_is_bounded },
    { "cancelled_requests_end_once", cancelled_requests_end_once },
    { "wrong_requests_are_refused", wrong_requests_are_refused },
    { "a_bad_model_is_named", a_bad_model_is_named },
};

int main(int argc, char **argv)
{
    return engine_tests(argc, argv, cases, COUNT(cases));
}
