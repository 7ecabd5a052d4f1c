/* engine_t.h - the built-in model, its golden texts, and final events by index, for the engine's
 * tests. */
#ifndef GALLEY_TESTS_ENGINE_H
#define GALLEY_TESTS_ENGINE_H

#include <pthread.h>
#include <time.h>

#include "kernels/device.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/engine/engine.h"
#include "src/format/picture.h"
#include "tests/t.h"

#define MODEL  "models/galley-tiny"
#define GOLDEN "tests/golden/galley-tiny/"
enum { N_IMAGES = 3, N_MAX = 256, TOKENS_MAX = 2048 };
static const char *const names[N_IMAGES] = { "par", "list", "table" };

struct golden {
    struct image *image;
    char *text;
};

static struct golden golden[N_IMAGES];

static inline void load_golden(void)
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

static inline void free_golden(void)
{
    for (int i = 0; i < N_IMAGES; i++) {
        image_unref(golden[i].image);
        mem_free(golden[i].text);
    }
}

/* Events of many requests, by the index each carries. */
struct inbox;
struct slot {
    struct inbox *box;
    int n_events, order;    /* order: how many had ended before */
    struct engine_result r; /* without what was lent */
    char *text;
    char error[256];
    int32_t *tokens; /* of the chunks */
    int n_tokens;
    struct buf shown; /* text of the chunks */
    void (*watch)(struct slot *s, const struct engine_chunk *c);
    void *watch_arg;
};
struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slot[N_MAX];
    int n_ended;
};

static inline void inbox_init(struct inbox *b)
{
    memset(b, 0, sizeof(*b));
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    for (int i = 0; i < N_MAX; i++) {
        b->slot[i].box = b;
        buf_init(&b->slot[i].shown, 1 << 20);
    }
}

static inline void inbox_deinit(struct inbox *b)
{
    for (int i = 0; i < N_MAX; i++) {
        mem_free(b->slot[i].text);
        mem_free(b->slot[i].tokens);
        buf_deinit(&b->slot[i].shown);
    }
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
}

/* Engine thread. */
static inline void on_chunk(void *user, const struct engine_chunk *c)
{
    struct slot *s = user;
    pthread_mutex_lock(&s->box->lock);
    if (!s->tokens) {
        s->tokens = mem_many(int32_t, TOKENS_MAX);
    }
    for (int i = 0; s->tokens && i < c->n_tokens && s->n_tokens < TOKENS_MAX; i++) {
        s->tokens[s->n_tokens++] = c->tokens[i];
    }
    buf_add(&s->shown, c->text, c->n_text);
    if (s->watch) {
        s->watch(s, c);
    }
    pthread_cond_broadcast(&s->box->changed);
    pthread_mutex_unlock(&s->box->lock);
}

static inline void on_end(void *user, const struct engine_result *r)
{
    struct slot *s = user;
    struct inbox *b = s->box;
    pthread_mutex_lock(&b->lock);
    s->n_events++;
    s->order = b->n_ended;
    s->r = *r;
    s->text = mem_strndup(r->text, r->n_text);
    snprintf(s->error, sizeof(s->error), "%s", r->error);
    b->n_ended++;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static inline void wait_for(struct inbox *b, int n)
{
    pthread_mutex_lock(&b->lock);
    while (b->n_ended < n) {
        pthread_cond_wait(&b->changed, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

static inline void wait_for_tokens(struct slot *s, int n)
{
    pthread_mutex_lock(&s->box->lock);
    while (s->n_tokens < n && s->n_events == 0) {
        pthread_cond_wait(&s->box->changed, &s->box->lock);
    }
    pthread_mutex_unlock(&s->box->lock);
}

/* The request every test asks: an image (or none), and what to do with it. */
struct ask {
    struct engine_part parts[2];
    struct engine_message message;
    struct engine_request r;
};

static inline void ask_init(struct ask *a, struct image *image, const char *text, struct slot *slot)
{
    *a = (struct ask){ .parts = { { .image = image }, { .text = text } },
                       .message = { CHAT_USER, a->parts, 2 },
                       .r = { .messages = &a->message,
                              .n_messages = 1,
                              .max_new_tokens = 400,
                              .on_chunk = on_chunk,
                              .on_end = on_end,
                              .user = slot } };
}

#define WORDS "galley proof print region page line word letter margin column table figure "

static inline void ask_text(struct ask *a, const char *text, int n_new, struct slot *slot)
{
    ask_init(a, NULL, text, slot);
    a->r.max_new_tokens = n_new;
    a->r.ignore_eos = true;
}

/* About 6 tokens a repetition with the built-in vocabulary's letters. */
static inline char *long_text(int n)
{
    char *s = mem_alloc((size_t)n * sizeof(WORDS));
    T_OK(s);
    s[0] = '\0';
    for (int i = 0; i < n; i++) {
        memcpy(s + (size_t)i * (sizeof(WORDS) - 1), WORDS, sizeof(WORDS));
    }
    return s;
}

/* Prompts of ids, without a frame: n rows exactly. */
static inline void ask_ids(struct ask *a, const int32_t *ids, int n, int n_new, struct slot *slot)
{
    ask_text(a, NULL, n_new, slot);
    a->parts[0].tokens = ids;
    a->parts[0].n_tokens = n;
    a->message.n_parts = 1;
    a->r.raw = true;
}

static inline void fill_ids(int32_t *ids, int n, int salt)
{
    for (int k = 0; k < n; k++) {
        ids[k] = 300 + (k * 31 + salt * 97) % 1500;
    }
}

static inline request_id submit_request(struct engine *e, const struct engine_request *r)
{
    request_id id;
    struct galley_err err = { 0 };
    if (engine_submit(e, r, &id, &err)) {
        T_FAIL("submit: %s", err.msg);
    }
    return id;
}

static inline request_id submit(struct engine *e, struct inbox *b, int i, struct image *image,
                                const char *draft, double tau)
{
    struct ask a;
    ask_init(&a, image, "Convert to Markdown.", &b->slot[i]);
    a.r.draft = draft;
    a.r.tau = tau;
    return submit_request(e, &a.r);
}

static inline struct engine *open_with(struct engine_config cfg)
{
    struct engine *e;
    struct galley_err err = { 0 };
    cfg.model_path = MODEL;
    if (engine_open(&e, &cfg, &err)) {
        T_FAIL("open: %s", err.msg);
    }
    return e;
}

static inline bool has_isa(const char *isa)
{
    struct device *d;
    if (device_open_cpu(&d, isa, 1, NULL)) {
        return false; /* this CPU lacks it; ref is always there */
    }
    device_close(d);
    return true;
}

/* Waits for the engine to sleep, and expects nothing to be held. */
static inline void expect_idle(struct engine *e)
{
    const double until = clock_seconds() + 20;
    struct engine_totals t = engine_totals(e);
    while ((t.n_running || t.n_waiting || t.n_kv_free != t.n_kv_blocks) &&
           clock_seconds() < until) {
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        t = engine_totals(e);
    }
    T_EQ(t.n_running, 0);
    T_EQ(t.n_waiting, 0);
    T_EQ(t.n_kv_free, t.n_kv_blocks);
}

static inline int engine_tests(int argc, char **argv, const struct t_case *cases, size_t n)
{
    if (setjmp(t_jump)) {
        return 1;
    }
    load_golden();
    const int rc = t_main(argc, argv, cases, n);
    free_golden();
    return rc;
}

#endif
