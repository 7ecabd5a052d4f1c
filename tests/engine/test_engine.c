/* test_engine.c - the engine over the built-in model: the reference's text, whoever drafts, however
 * the batch is made up.
 *
 * Expected texts come from tests/golden/galley-tiny (an independent float32 implementation). */
#include <pthread.h>

#include "kernels/device.h"
#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/engine/engine.h"
#include "src/format/picture.h"
#include "tests/t.h"

#define MODEL  "models/galley-tiny"
#define GOLDEN "tests/golden/galley-tiny/"
enum { N_IMAGES = 3, N_MAX = 256 };
static const char *const names[N_IMAGES] = { "par", "list", "table" };

struct golden {
    struct image *image;
    char *text;
};

static struct golden golden[N_IMAGES];

static void load_golden(void)
{
    for (int i = 0; i < N_IMAGES; i++) {
        char path[256], *bytes;
        size_t n;
        bool damaged;
        snprintf(path, sizeof(path), GOLDEN "%s.png", names[i]);
        T_EQ(file_read(path, 1 << 24, &bytes, &n, NULL), GALLEY_OK);
        T_EQ(picture_decode(&golden[i].image, &damaged, bytes, n, PICTURE_MAX_PIXELS, NULL),
             GALLEY_OK);
        mem_free(bytes);
        snprintf(path, sizeof(path), GOLDEN "%s.json", names[i]);
        cJSON *o;
        const char *text;
        T_EQ(json_read(&o, path, 1 << 24, NULL), GALLEY_OK);
        T_EQ(json_get_string(o, path, "output_text", true, &text, NULL), GALLEY_OK);
        golden[i].text = mem_strdup(text);
        cJSON_Delete(o);
    }
}

static void free_golden(void)
{
    for (int i = 0; i < N_IMAGES; i++) {
        image_unref(golden[i].image);
        mem_free(golden[i].text);
    }
}

/* Final events of many requests, by the index each carries. */
struct inbox;
struct slot {
    struct inbox *box;
    int n_events;
    enum finish finish;
    enum galley_status status;
    char *text;
    char error[256];
    int n_output, n_steps, n_drafted, n_accepted;
};
struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slot[N_MAX];
    int n_ended;
};

static void inbox_init(struct inbox *b)
{
    memset(b, 0, sizeof(*b));
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
}

static void inbox_deinit(struct inbox *b)
{
    for (int i = 0; i < N_MAX; i++) {
        mem_free(b->slot[i].text);
    }
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
}

static void on_end(void *user, const struct engine_result *r)
{
    struct slot *s = user;
    struct inbox *b = s->box;
    pthread_mutex_lock(&b->lock);
    s->n_events++;
    s->finish = r->finish;
    s->status = r->status;
    s->text = mem_strndup(r->text, r->n_text);
    snprintf(s->error, sizeof(s->error), "%s", r->error);
    s->n_output = r->n_output;
    s->n_steps = r->n_steps;
    s->n_drafted = r->n_drafted;
    s->n_accepted = r->n_accepted;
    b->n_ended++;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void wait_for(struct inbox *b, int n)
{
    pthread_mutex_lock(&b->lock);
    while (b->n_ended < n) {
        pthread_cond_wait(&b->changed, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

static request_id submit(struct engine *e, struct inbox *b, int i, struct image *const *image,
                         const char *draft, double tau)
{
    b->slot[i].box = b;
    const struct engine_request r = { .images = image,
                                      .n_images = 1,
                                      .text = "Convert to Markdown.",
                                      .draft = draft,
                                      .tau = tau,
                                      .max_new_tokens = 400,
                                      .on_end = on_end,
                                      .user = &b->slot[i] };
    request_id id;
    struct galley_err err = { 0 };
    if (engine_submit(e, &r, &id, &err)) {
        T_FAIL("submit: %s", err.msg);
    }
    return id;
}

static struct engine *open_with(struct engine_config cfg)
{
    struct engine *e;
    struct galley_err err = { 0 };
    cfg.model_path = MODEL;
    if (engine_open(&e, &cfg, &err)) {
        T_FAIL("open: %s", err.msg);
    }
    return e;
}

static void expect_text(const struct slot *s, const char *want, const char *what)
{
    if (s->n_events != 1 || s->finish != FINISH_STOP || strcmp(s->text, want) != 0) {
        T_FAIL("%s: events %d, finish %d (%s), \"%s\" instead of \"%s\"", what, s->n_events,
               s->finish, s->error, s->text ? s->text : "", want);
    }
}

static void plain_text_is_the_references(void)
{
    static const char *const isas[] = { "ref", "avx2", "avx512" };
    for (size_t k = 0; k < COUNT(isas); k++) {
        struct device *d;
        if (device_open_cpu(&d, isas[k], 1, NULL)) {
            continue; /* this CPU lacks it; ref is always there */
        }
        device_close(d);
        struct engine *e = open_with((struct engine_config){ .isa = isas[k], .n_threads = 2 });
        struct inbox b;
        inbox_init(&b);
        /* The reference kernels are slow: the shortest of the three texts. */
        const int from = k == 0 ? 1 : 0, to = k == 0 ? 2 : N_IMAGES;
        for (int i = from; i < to; i++) {
            submit(e, &b, i, &golden[i].image, NULL, 1);
        }
        wait_for(&b, to - from);
        for (int i = from; i < to; i++) {
            expect_text(&b.slot[i], golden[i].text, isas[k]);
            T_EQ(b.slot[i].n_drafted, 0);
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
                submit(e, &b, n++, &golden[i].image, draft, 1);
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
            T_OK(s->n_accepted * 5 >= s->n_output * 4);
            T_OK(s->n_steps * 4 <= s->n_output);
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
    submit(e, &b, 0, &golden[0].image, draft, 1e-30);
    wait_for(&b, 1);
    T_EQ(b.slot[0].finish, FINISH_STOP);
    T_STR(b.slot[0].text, draft); /* tau 0 in all but name: the draft stands */
    T_EQ(b.slot[0].n_accepted, b.slot[0].n_drafted);
    mem_free(draft);
    engine_close(e);
    inbox_deinit(&b);
}

static void limits_end_a_text(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    b.slot[0].box = &b;
    struct engine_request r = { .images = &golden[0].image,
                                .n_images = 1,
                                .text = "Convert to Markdown.",
                                .draft = golden[0].text,
                                .max_new_tokens = 7,
                                .on_end = on_end,
                                .user = &b.slot[0] };
    request_id id;
    T_EQ(engine_submit(e, &r, &id, NULL), GALLEY_OK);
    wait_for(&b, 1);
    T_EQ(b.slot[0].finish, FINISH_LENGTH);
    T_EQ(b.slot[0].n_output, 7);
    T_OK(strncmp(golden[0].text, b.slot[0].text, strlen(b.slot[0].text)) == 0);
    engine_close(e);
    inbox_deinit(&b);
}

static void a_pool_that_is_too_small_says_so(void)
{
    struct engine *e = open_with((struct engine_config){ .kv_bytes = 700000 });
    struct inbox b;
    inbox_init(&b);
    submit(e, &b, 0, &golden[0].image, NULL, 1);
    wait_for(&b, 1);
    T_EQ(b.slot[0].finish, FINISH_FAILED);
    T_EQ(b.slot[0].status, GALLEY_ELIMIT);
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
        submit(e, &b, i, &golden[i % N_IMAGES].image, golden[i % N_IMAGES].text, 1);
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
        b.slot[n].box = &b;
        const struct engine_request r = { .images = &golden[0].image,
                                          .n_images = 1,
                                          .text = "x",
                                          .max_new_tokens = 300,
                                          .on_end = on_end,
                                          .user = &b.slot[n] };
        request_id id;
        rc = engine_submit(e, &r, &id, &err);
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
        id[i] = submit(e, &b, i, &golden[i % N_IMAGES].image, NULL, 1);
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
            T_OK(b.slot[i].finish == FINISH_CANCELLED || b.slot[i].finish == FINISH_STOP);
        }
    }
    engine_close(e);
    inbox_deinit(&b);
}

static void wrong_requests_are_refused(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    struct galley_err err = { 0 };
    request_id id;
    struct engine_request r = { .text = "x" };
    T_EQ(engine_submit(e, &r, &id, &err), GALLEY_EUSAGE); /* no callback */
    r.on_end = on_end;
    r.tau = 1.5;
    T_EQ(engine_submit(e, &r, &id, &err), GALLEY_EUSAGE);
    r.tau = 1;
    r.width = 30;
    r.height = 28;
    T_EQ(engine_submit(e, &r, &id, &err), GALLEY_EUSAGE);
    T_OK(strstr(err.msg, "multiples of 28"));
    T_EQ(id, 0);
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
    if (setjmp(t_jump)) {
        return 1;
    }
    load_golden();
    const int rc = t_main(argc, argv, cases, COUNT(cases));
    free_golden();
    return rc;
}
