/* test_serving.c - many requests at once: who goes first, who ends when, and that everybody ends
 * exactly once. */
#include <math.h>
#include <stdatomic.h>

#include "src/engine/request.h"
#include "tests/engine/engine_t.h"

static void decoding_goes_on_beside_a_long_prompt(void)
{
    struct engine *e = open_with((struct engine_config){ .max_rows = 32, .max_seqs = 4 });
    struct inbox b;
    inbox_init(&b);
    struct ask a;
    ask_text(&a, "x", 400, &b.slot[0]);
    submit_request(e, &a.r);
    wait_for_tokens(&b.slot[0], 5);
    const struct engine_totals before = engine_totals(e);
    char *text = long_text(24);
    ask_text(&a, text, 4, &b.slot[1]);
    submit_request(e, &a.r);
    wait_for(&b, 1);
    const struct engine_totals after = engine_totals(e);
    /* The long prompt got on: it ended first, although it began later. */
    T_EQ(b.slot[1].n_events, 1);
    T_EQ(b.slot[0].n_events, 0);
    T_OK(b.slot[1].r.n_prompt > 500);
    /* And there was no pass without a row of the decoding one: a token per pass. */
    const int n_passes = (int)(after.n_passes - before.n_passes);
    pthread_mutex_lock(&b.lock);
    const int n_tokens = b.slot[0].n_tokens - 5;
    pthread_mutex_unlock(&b.lock);
    T_OK(n_passes > b.slot[1].r.n_prompt / 32);
    T_OK(n_tokens >= n_passes - 2);
    engine_close(e);
    inbox_deinit(&b);
    mem_free(text);
}

/* Images are encoded in pieces between passes. */
static void decoding_goes_on_beside_an_image(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 4 });
    struct inbox b;
    inbox_init(&b);
    struct ask a;
    ask_text(&a, "x", 1500, &b.slot[0]);
    submit_request(e, &a.r);
    wait_for_tokens(&b.slot[0], 5);
    pthread_mutex_lock(&b.lock);
    const int before = b.slot[0].n_tokens;
    pthread_mutex_unlock(&b.lock);
    ask_init(&a, golden[0].image, "Convert to Markdown.", &b.slot[1]);
    a.parts[0].width = a.parts[0].height = 28 * 20;
    a.r.max_new_tokens = 1;
    submit_request(e, &a.r);
    wait_for(&b, 1);
    T_EQ(b.slot[1].n_events, 1);
    T_EQ(b.slot[1].r.n_visual, 400);
    pthread_mutex_lock(&b.lock);
    T_OK(b.slot[0].n_tokens - before > 10);
    pthread_mutex_unlock(&b.lock);
    engine_close(e);
    T_EQ(b.slot[0].r.finish, FINISH_CANCELLED);
    inbox_deinit(&b);
}

static void priorities_go_first(void)
{
    static const int priority[] = { PRIORITY_MAX, -10, 0, 50, 50 };
    static const int order[] = { 0, 4, 3, 1, 2 };
    struct engine *e = open_with((struct engine_config){ .max_seqs = 1 });
    struct inbox b;
    inbox_init(&b);
    for (int i = 0; i < 5; i++) {
        struct ask a;
        ask_text(&a, "x", i == 0 ? 150 : 4, &b.slot[i]);
        a.r.priority = priority[i];
        submit_request(e, &a.r);
        wait_for_tokens(&b.slot[0], 1); /* the first holds the only place */
    }
    wait_for(&b, 5);
    for (int i = 0; i < 5; i++) {
        T_EQ(b.slot[i].order, order[i]);
    }
    T_OK(b.slot[1].r.queue_seconds > b.slot[3].r.queue_seconds);
    T_OK(b.slot[1].r.total_seconds >= b.slot[1].r.first_token_seconds &&
         b.slot[1].r.first_token_seconds >= b.slot[1].r.queue_seconds);
    engine_close(e);
    inbox_deinit(&b);
}

/* Waits until the engine has at least `n` requests that hold a place. */
static void wait_running(struct engine *e, int n)
{
    while (engine_totals(e).n_running < n) {
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
}

/* Submits requests when another has written so many tokens, on the engine's thread: no matter how
 * busy the machine is, it then runs. */
struct then {
    struct engine *e;
    int at, n;
    struct ask *ask[3];
    int seen; /* tokens of the slot behind, at the last chunk */
};

static void submit_then(struct slot *s, const struct engine_chunk *c)
{
    (void)c;
    struct then *t = s->watch_arg;
    t->seen = s[1].n_tokens;
    for (int i = 0; i < t->n && s->n_tokens >= t->at; i++) {
        submit_request(t->e, &t->ask[i]->r);
    }
    t->n = s->n_tokens >= t->at ? 0 : t->n;
}

static void watch_slot(struct slot *s, struct then *t)
{
    s->watch = submit_then;
    s->watch_arg = t;
}

/* 30 Mpixel, a fifth of a second to resample; few tokens. */
static void ask_large(struct ask *a, struct image *im, int n_new, struct slot *slot)
{
    ask_init(a, im, "x", slot);
    a->parts[0].width = a->parts[0].height = 56;
    a->r.ignore_eos = true;
    a->r.max_new_tokens = n_new;
}

static struct image *large_image(void)
{
    struct image *im = image_new(6000, 5000);
    T_OK(im);
    memset(im->rgb, 200, im->stride * 5000);
    return im;
}

/* Resampling a large picture is many pieces: tokens come between them, and a cancel does. */
static void a_large_picture_holds_nobody_up(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 4 });
    struct inbox b;
    inbox_init(&b);
    struct image *im = large_image();
    struct ask text, picture;
    ask_text(&text, "x", 1500, &b.slot[1]);
    ask_large(&picture, im, 1, &b.slot[0]);
    struct then at_five = { e, 5, 1, { &picture }, 0 }, at_end = { e, 0, 0, { NULL }, 0 };
    watch_slot(&b.slot[1], &at_five);
    watch_slot(&b.slot[0], &at_end);
    submit_request(e, &text.r);
    wait_for(&b, 1);
    T_EQ(b.slot[0].r.n_output, 1);
    const double whole = b.slot[0].r.encode_seconds;
    T_OK(whole > 0 && at_end.seen - at_five.at >= 20);

    ask_large(&picture, im, 1, &b.slot[2]);
    picture.parts[0].width = 84; /* not in the cache */
    const request_id id = submit_request(e, &picture.r);
    wait_running(e, 2);
    engine_cancel(e, id);
    wait_for(&b, 2);
    T_EQ(b.slot[2].r.finish, FINISH_CANCELLED);
    T_OK(b.slot[2].r.encode_seconds < whole / 2);
    engine_close(e);
    inbox_deinit(&b);
    image_unref(im);
}

/* With all places taken, who comes with a better priority takes one, and who comes with the same
 * does not; who was stopped writes the same text in the end. */
static void a_better_request_takes_a_place(void)
{
    enum { N = 7 };
    static const int priority[N] = { 0, 0, 10, 20, 20, 15, 0 };
    static const int n_new[N] = { 60, 60, 40, 4, 4, 4, 4 };
    static const int order[N] = { 0, 5, 4, 1, 2, 3, 6 };
    static const int preempted[N] = { 0, 1, 1, 0, 0, 0, 0 };
    struct engine *e = open_with((struct engine_config){ .max_seqs = 1 });
    struct inbox b;
    inbox_init(&b);
    struct ask ask[N];
    for (int i = 0; i < N; i++) {
        ask_text(&ask[i], "x", n_new[i], &b.slot[i]);
        ask[i].r.priority = priority[i];
    }
    struct then one = { e, 5, 2, { &ask[6], &ask[2] }, 0 };
    struct then two = { e, 5, 3, { &ask[3], &ask[4], &ask[5] }, 0 };
    watch_slot(&b.slot[1], &one);
    watch_slot(&b.slot[2], &two);
    submit_request(e, &ask[0].r);
    wait_for(&b, 1);
    submit_request(e, &ask[1].r);
    wait_for(&b, N);
    for (int i = 0; i < N; i++) {
        T_EQ(b.slot[i].order, order[i]);
        T_EQ(b.slot[i].r.n_preempted, preempted[i]);
        T_EQ(b.slot[i].r.finish, FINISH_LENGTH);
    }
    T_STR(b.slot[1].text, b.slot[0].text);
    T_STR(b.slot[1].shown.data, b.slot[0].text);
    T_OK(strncmp(b.slot[2].text, b.slot[0].text, strlen(b.slot[2].text)) == 0);
    expect_idle(e);
    engine_close(e);
    inbox_deinit(&b);
}

enum { N_FOUR = 4 };
struct four {
    struct inbox b;
    struct ask ask[N_FOUR];
    int32_t ids[N_FOUR][480];
};

/* Three requests of 140 tokens in a pool of 20 blocks: five each, six when they have written
 * theirs. The fourth comes when the third writes. */
static struct engine *open_four(struct four *f, const int *priority, const int *n_new, int n_last)
{
    struct engine *e = open_with((struct engine_config){ .kv_bytes = 20u * 196608 });
    inbox_init(&f->b);
    for (int i = 0; i < N_FOUR; i++) {
        const int n = i < 3 ? 140 : n_last;
        fill_ids(f->ids[i], n, i);
        ask_ids(&f->ask[i], f->ids[i], n, n_new[i], &f->b.slot[i]);
        f->ask[i].r.priority = priority[i];
    }
    return e;
}

static void close_four(struct four *f, struct engine *e)
{
    expect_idle(e);
    engine_close(e);
    inbox_deinit(&f->b);
}

/* With places left but no blocks, the last that it displaces is stopped, and no more than that. */
static void a_better_request_takes_blocks(void)
{
    static struct four f;
    struct engine *e =
        open_four(&f, (const int[]){ 0, 0, 0, 10 }, (const int[]){ 50, 50, 50, 10 }, 140);
    struct then then = { e, 1, 1, { &f.ask[3] }, 0 };
    watch_slot(&f.b.slot[2], &then);
    for (int i = 0; i < 3; i++) {
        submit_request(e, &f.ask[i].r);
    }
    wait_for(&f.b, N_FOUR);
    T_EQ(f.b.slot[3].order, 0);
    T_EQ(f.b.slot[2].order, 3);
    for (int i = 0; i < N_FOUR; i++) {
        T_EQ(f.b.slot[i].r.n_preempted, i == 2);
    }
    close_four(&f, e);
}

/* The fourth needs 15 blocks: while the first, which it does not displace, holds five, stopping the
 * others would not help, so they go on; then both must go. */
static void nobody_is_stopped_in_vain(void)
{
    static struct four f;
    struct engine *e =
        open_four(&f, (const int[]){ 10, 0, 0, 5 }, (const int[]){ 40, 80, 80, 4 }, 480);
    struct then first = { e, 0, 0, { NULL }, 0 }, third = { e, 1, 1, { &f.ask[3] }, 0 };
    watch_slot(&f.b.slot[0], &first);
    watch_slot(&f.b.slot[2], &third);
    for (int i = 0; i < 3; i++) {
        submit_request(e, &f.ask[i].r);
    }
    wait_for(&f.b, N_FOUR);
    T_OK(first.seen >= 30); /* when the first ended the second had as good as kept up */
    static const int order[] = { 0, 2, 3, 1 };
    for (int i = 0; i < N_FOUR; i++) {
        T_EQ(f.b.slot[i].order, order[i]);
        T_EQ(f.b.slot[i].r.n_preempted, i == 1 || i == 2);
    }
    close_four(&f, e);
}

/* The first that waits needs more blocks than are left; the second would fit, but does not
 * overtake. */
static void nobody_overtakes_the_first_that_waits(void)
{
    enum { N = 380 };
    static const int n_prompt[] = { N, N, 10 }, n_new[] = { 150, 5, 5 };
    static int32_t ids[3][N];
    struct engine *e = open_with((struct engine_config){ .kv_bytes = 20u * 196608 });
    struct inbox b;
    inbox_init(&b);
    double before[3], after[3]; /* its submission */
    for (int i = 0; i < 3; i++) {
        fill_ids(ids[i], N, i);
        struct ask a;
        ask_ids(&a, ids[i], n_prompt[i], n_new[i], &b.slot[i]);
        before[i] = clock_seconds();
        submit_request(e, &a.r);
        after[i] = clock_seconds();
        wait_for_tokens(&b.slot[0], 1);
    }
    wait_for(&b, 3);
    T_EQ(b.slot[0].order, 0);
    T_OK(b.slot[1].r.queue_seconds > 0 && b.slot[0].r.n_preempted == 0);
    T_OK(after[2] + b.slot[2].r.queue_seconds >= before[1] + b.slot[1].r.queue_seconds);
    engine_close(e);
    inbox_deinit(&b);
}

static void waiting_raises_a_priority(void)
{
    struct request low = { .id = 2, .priority = -20, .submitted = 0 };
    struct request high = { .id = 3, .priority = 20, .submitted = 39 };
    T_OK(request_before(&high, &low, 39));
    T_OK(request_before(&high, &low, 50)); /* both grow alike */
    high.submitted = 41;
    T_OK(request_before(&low, &high, 41));
    /* At the top age alone counts. */
    high = (struct request){ .id = 3, .priority = 100, .submitted = 125 };
    T_OK(request_before(&low, &high, 125));
    T_OK(!request_before(&high, &low, 125));
    T_OK(!request_before(&low, &low, 125));
}

/* Of two requests only the one with the better priority ever displaces the other, whenever they
 * came and however long they wait; the better one not for ever. */
static void displacing_goes_one_way(void)
{
    for (int pa = -100; pa <= 100; pa += 25) {
        for (int pb = -100; pb <= 100; pb += 25) {
            for (int lag = -120; lag <= 120; lag += 30) {
                const struct request a = { .id = lag < 0 ? 2 : 1, .priority = pa };
                const struct request b = { .id = lag < 0 ? 1 : 2,
                                           .priority = pb,
                                           .submitted = lag };
                for (int t = 120; t < 600; t += 20) {
                    T_OK(!request_displaces(&a, &b, t) || (pa > pb && request_before(&a, &b, t)));
                    T_OK(!request_displaces(&a, &b, t) || !request_displaces(&b, &a, t + 60));
                    T_OK(!request_displaces(&a, &a, t));
                }
            }
        }
    }
    const struct request old = { .id = 1, .priority = 0, .submitted = 0 };
    struct request fresh = { .id = 2, .priority = 30, .submitted = 29 };
    T_OK(request_displaces(&fresh, &old, 29));
    fresh.submitted = 31;
    T_OK(!request_displaces(&fresh, &old, 31));
}

static void deadlines_end_waiting_and_running(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 1 });
    struct inbox b;
    inbox_init(&b);
    struct ask a;
    ask_text(&a, "x", 1500, &b.slot[0]);
    a.r.deadline_seconds = 0.4;
    submit_request(e, &a.r);
    wait_for_tokens(&b.slot[0], 1);
    ask_text(&a, "x", 5, &b.slot[1]);
    a.r.deadline_seconds = 0.01;
    submit_request(e, &a.r);
    wait_for(&b, 2);
    T_EQ(b.slot[1].order, 0);
    T_EQ(b.slot[1].r.finish, FINISH_DEADLINE);
    T_EQ(b.slot[1].r.status, GALLEY_ETIMEOUT);
    T_EQ(b.slot[1].r.n_output, 0);
    T_EQ(b.slot[0].r.finish, FINISH_DEADLINE);
    T_OK(b.slot[0].r.n_output > 0 && b.slot[0].r.n_output < 1500);
    T_EQ(b.slot[0].r.n_output, b.slot[0].n_tokens);
    T_STR(b.slot[0].text, b.slot[0].shown.data); /* the text is what there is */
    expect_idle(e);
    engine_close(e);
    inbox_deinit(&b);
}

static void cancels_take_effect_in_every_phase(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 1, .max_rows = 4 });
    struct inbox b;
    inbox_init(&b);
    struct ask a;
    char *text = long_text(24);
    /* Encoding: two thousand patches take the tower far longer than a piece of work. */
    ask_init(&a, golden[1].image, "x", &b.slot[0]);
    a.parts[0].width = a.parts[0].height = 28 * 36;
    request_id id = submit_request(e, &a.r);
    wait_running(e, 1);
    const uint64_t passes = engine_totals(e).n_passes;
    engine_cancel(e, id);
    wait_for(&b, 1);
    T_EQ(b.slot[0].r.finish, FINISH_CANCELLED);
    T_EQ(engine_totals(e).n_passes, passes); /* no row was computed */
    T_EQ(b.slot[0].r.n_output, 0);
    expect_idle(e);
    /* Prefill. */
    ask_text(&a, text, 5, &b.slot[1]);
    id = submit_request(e, &a.r);
    while (engine_totals(e).n_passes < passes + 3) {
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
    engine_cancel(e, id);
    wait_for(&b, 2);
    T_EQ(b.slot[1].r.finish, FINISH_CANCELLED);
    T_EQ(b.slot[1].r.n_output, 0);
    T_OK(engine_totals(e).n_passes < passes + (uint64_t)b.slot[1].r.n_prompt / 4);
    /* Decoding, with another one waiting. */
    ask_text(&a, "x", 1500, &b.slot[2]);
    id = submit_request(e, &a.r);
    wait_for_tokens(&b.slot[2], 3);
    ask_text(&a, "x", 5, &b.slot[3]);
    const request_id waiting = submit_request(e, &a.r);
    engine_cancel(e, waiting);
    wait_for(&b, 3);
    T_EQ(b.slot[3].r.finish, FINISH_CANCELLED);
    T_EQ(b.slot[2].n_events, 0);
    engine_cancel(e, id);
    wait_for(&b, 4);
    T_EQ(b.slot[2].r.finish, FINISH_CANCELLED);
    T_OK(b.slot[2].r.n_output < 1500);
    T_STR(b.slot[2].text, b.slot[2].shown.data);
    expect_idle(e);
    engine_close(e);
    inbox_deinit(&b);
    mem_free(text);
}

static uint32_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

/* Requests, cancels and deadlines at random, in a pool too small for them: one final event each,
 * and every block comes back (engine_close asserts it, too). */
static void everybody_ends_once(void)
{
    enum { N = 160 };
    struct engine *e = open_with((struct engine_config){
        .max_seqs = 6, .max_rows = 40, .kv_bytes = 16u * 196608, .vision_cache_bytes = 200000 });
    struct inbox b;
    inbox_init(&b);
    uint64_t state = 88172645463325252u;
    request_id id[N];
    for (int i = 0; i < N; i++) {
        const uint32_t r = next_random(&state);
        struct ask a;
        ask_init(&a, r % 3 == 0 ? golden[r / 3 % N_IMAGES].image : NULL, "Convert.", &b.slot[i]);
        if (a.parts[0].image) {
            a.parts[0].width = 28 * (1 + (int)(r / 16 % 6));
            a.parts[0].height = 28 * (1 + (int)(r / 128 % 3));
        }
        a.r.max_new_tokens = 1 + (int)(r / 1024 % 60);
        a.r.sampling.temperature = r / 8192 % 2;
        a.r.sampling.seed = r;
        a.r.draft = r / 16384 % 2 ? "# Some draft that is wrong" : NULL;
        a.r.tau = 1;
        a.r.deadline_seconds = r / 32768 % 9 == 0 ? 0.02 : 0;
        a.r.priority = (int)(r / 65536 % 5);
        id[i] = submit_request(e, &a.r);
        if (next_random(&state) % 4 == 0) {
            engine_cancel(e, id[next_random(&state) % (uint32_t)(i + 1)]);
        }
        if (next_random(&state) % 8 == 0) {
            nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
        }
    }
    wait_for(&b, N);
    expect_idle(e);
    int n_by_finish[FINISH_FAILED + 1] = { 0 };
    for (int i = 0; i < N; i++) {
        T_EQ(b.slot[i].n_events, 1);
        T_EQ(b.slot[i].r.id, id[i]);
        T_OK((b.slot[i].error[0] != '\0') == (b.slot[i].r.status != GALLEY_OK));
        T_OK(b.slot[i].r.finish != FINISH_FAILED);
        n_by_finish[b.slot[i].r.finish]++;
    }
    T_OK(n_by_finish[FINISH_CANCELLED] > 0);
    T_OK(n_by_finish[FINISH_LENGTH] + n_by_finish[FINISH_STOP] > 40);
    T_EQ(b.n_ended, N);
    engine_close(e);
    inbox_deinit(&b);
}

static void what_cannot_be_served_says_why(void)
{
    struct engine *e = open_with((struct engine_config){ .context = 200 });
    struct inbox b;
    inbox_init(&b);
    char *text = long_text(20);
    struct ask a;
    ask_text(&a, text, 5, &b.slot[0]);
    submit_request(e, &a.r);
    ask_init(&a, golden[0].image, "x", &b.slot[1]);
    a.parts[0].width = 28 * 500;
    a.parts[0].height = 28 * 400;
    submit_request(e, &a.r);
    static const int32_t ids[] = { 5, 6, 1 << 20 };
    ask_init(&a, NULL, NULL, &b.slot[2]);
    a.parts[0].tokens = ids;
    a.parts[0].n_tokens = COUNT(ids);
    a.r.raw = true;
    submit_request(e, &a.r);
    wait_for(&b, 3);
    for (int i = 0; i < 3; i++) {
        T_EQ(b.slot[i].r.finish, FINISH_FAILED);
    }
    T_EQ(b.slot[0].r.status, GALLEY_ELIMIT);
    T_OK(strstr(b.slot[0].error, "needs") && strstr(b.slot[0].error, "has 200"));
    T_EQ(b.slot[1].r.status, GALLEY_ELIMIT);
    T_OK(strstr(b.slot[1].error, "message 1, part 1: image needs 156.8 Mpixel, limit"));
    T_EQ(b.slot[2].r.status, GALLEY_EINPUT);
    T_OK(strstr(b.slot[2].error, "1048576"));
    engine_close(e);
    inbox_deinit(&b);
    mem_free(text);
}

/* The context ends a text that knows no other end. */
static void the_context_ends_a_text(void)
{
    struct engine *e = open_with((struct engine_config){ .context = 64 });
    struct inbox b;
    inbox_init(&b);
    struct ask a;
    ask_text(&a, "x", 0, &b.slot[0]);
    submit_request(e, &a.r);
    wait_for(&b, 1);
    T_EQ(b.slot[0].r.finish, FINISH_LENGTH);
    T_EQ(b.slot[0].r.n_prompt + b.slot[0].r.n_output, 64);
    engine_close(e);
    inbox_deinit(&b);
}

/* Whichever allocation fails: the request it was for fails, nobody else, and the engine lives. */
static void short_memory_fails_one_request(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 4, .n_threads = 1 });
    int n_hit = 0;
    for (long n = 1; n < 160; n += 1 + n / 12) {
        struct inbox b;
        inbox_init(&b);
        struct ask a;
        int n_sent = 0;
        mem_fail_at(n);
        for (int i = 0; i < 2; i++) {
            ask_init(&a, golden[1].image, "Convert to Markdown.", &b.slot[i]);
            a.r.on_chunk = NULL;
            a.parts[0].width = 28 * (4 + i + (int)n); /* not cached */
            a.parts[0].height = 28;
            a.r.max_new_tokens = 12;
            a.r.stop = (const char *const[]){ "zzzz" };
            a.r.n_stop = 1;
            request_id id;
            const enum galley_status rc = engine_submit(e, &a.r, &id, NULL);
            T_OK(rc == GALLEY_OK || rc == GALLEY_ENOMEM);
            n_sent += rc == GALLEY_OK;
        }
        wait_for(&b, n_sent);
        mem_fail_at(0);
        int n_failed = 2 - n_sent;
        for (int i = 0; i < 2; i++) {
            const bool failed = b.slot[i].n_events && b.slot[i].r.finish == FINISH_FAILED;
            T_OK(b.slot[i].n_events <= 1);
            T_OK(!failed || b.slot[i].r.status == GALLEY_ENOMEM);
            n_failed += failed;
        }
        T_OK(n_failed <= 1);
        n_hit += n_failed;
        submit(e, &b, 3, golden[1].image, NULL, 1);
        wait_for(&b, n_sent + 1);
        T_STR(b.slot[3].text, golden[1].text);
        inbox_deinit(&b);
    }
    T_OK(n_hit > 5); /* the failures met something */
    expect_idle(e);
    engine_close(e);
}

static const struct t_case cases[] = {
    { "decoding_goes_on_beside_a_long_prompt", decoding_goes_on_beside_a_long_prompt },
    { "decoding_goes_on_beside_an_image", decoding_goes_on_beside_an_image },
    { "a_large_picture_holds_nobody_up", a_large_picture_holds_nobody_up },
    { "priorities_go_first", priorities_go_first },
    { "a_better_request_takes_a_place", a_better_request_takes_a_place },
    { "a_better_request_takes_blocks", a_better_request_takes_blocks },
    { "nobody_is_stopped_in_vain", nobody_is_stopped_in_vain },
    { "nobody_overtakes_the_first_that_waits", nobody_overtakes_the_first_that_waits },
    { "waiting_raises_a_priority", waiting_raises_a_priority },
    { "displacing_goes_one_way", displacing_goes_one_way },
    { "deadlines_end_waiting_and_running", deadlines_end_waiting_and_running },
    { "cancels_take_effect_in_every_phase", cancels_take_effect_in_every_phase },
    { "everybody_ends_once", everybody_ends_once },
    { "what_cannot_be_served_says_why", what_cannot_be_served_says_why },
    { "the_context_ends_a_text", the_context_ends_a_text },
    { "short_memory_fails_one_request", short_memory_fails_one_request },
};

int main(int argc, char **argv)
{
    return engine_tests(argc, argv, cases, COUNT(cases));
}
