/* soak.c - thousands of requests with images, random sizes and random cancels.
 *
 *     soak [REQUESTS [MODEL]]     default 10000, models/galley-tiny
 *
 * What must hold: every accepted request ends exactly once; no KV block is held at the end; memory
 * grows by less than 1 MB per 1,000 requests after the first fifth (of rounds
 * long enough to fill the caches).  Exit status 1 and a sentence
 * when it does not. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/galley.h"

#define LIVE_MAX   48
#define SIDE_MAX   448
#define SAMPLES    64
#define MB         (1024.0 * 1024.0)
#define SLOPE_MAX  1.0  /* MB per 1,000 requests */
#define SLOPE_FROM 5000 /* requests; in shorter rounds caches and scratch are still filling */
#define N_FINISHES (GALLEY_FINISH_FAILED + 1)

struct soak {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int n_live;
    long n_ended, finishes[N_FINISHES];
    long n_tokens;
    char error[GALLEY_ERR_MAX];
};

/* One request: counts its final events. */
struct ticket {
    struct soak *soak;
    atomic_int n_ends;
};

static uint64_t rng_state = 88172645463325252ull;

static uint32_t next_random(uint32_t below)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (uint32_t)(rng_state >> 32) % below;
}

static void on_chunk(void *user, const struct galley_chunk *c)
{
    (void)user;
    (void)c;
}

static void on_end(void *user, const struct galley_generated *g)
{
    struct ticket *t = user;
    struct soak *s = t->soak;
    atomic_fetch_add(&t->n_ends, 1);
    pthread_mutex_lock(&s->lock);
    s->n_live--;
    s->n_ended++;
    s->n_tokens += g->n_output;
    s->finishes[g->finish]++;
    if (g->finish == GALLEY_FINISH_FAILED && !s->error[0]) {
        snprintf(s->error, sizeof(s->error), "%s", g->error);
    }
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->lock);
}

static double rss_mb(void)
{
    long pages = 0, unused = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &unused, &pages) != 2) {
        pages = 0;
    }
    if (f) {
        fclose(f);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / MB;
}

static void fill_picture(uint8_t *rgb, int width, int height, uint32_t picture)
{
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            const uint32_t ink = (uint32_t)(x / 7 * 31 + y / 9 * 57) * 2654435761u + picture;
            memset(rgb + 3 * ((size_t)y * (size_t)width + (size_t)x), ink >> 31 ? 255 : 40, 3);
        }
    }
}

static enum galley_status submit(struct galley_engine *e, struct ticket *t, uint8_t *rgb,
                                 uint64_t *id)
{
    static const char *const texts[] = { "Convert to Markdown.", "Read.", "What does it say?",
                                         "Once more, please, and with every word you can see." };
    const bool image = next_random(4) != 0;
    int width = 28 + (int)next_random(SIDE_MAX - 28), height = 28 + (int)next_random(112);
    uint32_t picture = next_random(1u << 30);
    if (next_random(4) == 0) { /* one of eight that come again: the vision cache */
        picture = next_random(8);
        width = 84 + 28 * (int)picture;
        height = 56;
    }
    const struct galley_part parts[] = {
        { .rgb = image ? rgb : NULL, .width = width, .height = height },
        { .text = texts[next_random(4)] },
    };
    const int first = image ? 0 : 1;
    const struct galley_message m = { GALLEY_USER, parts + first, 2 - first };
    static const char *const stop[] = { "the" };
    const bool longer = next_random(4) == 0; /* the cache runs short */
    const struct galley_generation g = {
        .messages = &m,
        .n_messages = 1,
        .draft = next_random(3) == 0 ? "A draft that may or may not be what is there." : NULL,
        .temperature = next_random(2) ? 0.8 : 0,
        .top_k = (int)next_random(50),
        .top_p = 0.95,
        .repetition_penalty = next_random(2) ? 1.1 : 0,
        .seed = next_random(1000),
        .stop = stop,
        .n_stop = (int)next_random(2),
        .ignore_eos = longer,
        .max_new_tokens = 1 + (int)next_random(longer ? 300 : 40),
        .priority = (int)next_random(9) - 4,
        .deadline_seconds = next_random(50) == 0 ? 0.05 : 0,
        .logprobs = next_random(4) == 0,
        .n_top_logprobs = (int)next_random(4),
        .user = t,
        .on_chunk = on_chunk,
        .on_end = on_end,
    };
    if (image) {
        fill_picture(rgb, width, height, picture);
    }
    struct galley_err err = { 0 };
    const enum galley_status rc = galley_submit(e, &g, id, &err);
    if (rc && rc != GALLEY_ELIMIT) {
        fprintf(stderr, "soak: %s\n", err.msg);
    }
    return rc;
}

/* Least squares: MB per 1,000 requests. */
static double slope(const double *mb, int n, double per_sample)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int i = 0; i < n; i++) {
        const double x = i * per_sample / 1000;
        sx += x;
        sy += mb[i];
        sxx += x * x;
        sxy += x * mb[i];
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

static int judge(const struct soak *s, const struct galley_totals *t, struct ticket *tickets,
                 long n, const double *mb, int n_mb)
{
    int bad = 0;
    for (long i = 0; i < n; i++) {
        const int ends = atomic_load(&tickets[i].n_ends);
        if (ends != 1) {
            fprintf(stderr, "soak: request %ld had %d final events\n", i, ends);
            bad = 1;
        }
    }
    if (t->n_kv_free != t->n_kv_blocks || t->n_running || t->n_waiting) {
        fprintf(stderr, "soak: %d of %d KV blocks free, %d running, %d waiting\n", t->n_kv_free,
                t->n_kv_blocks, t->n_running, t->n_waiting);
        bad = 1;
    }
    if (s->finishes[GALLEY_FINISH_FAILED]) {
        fprintf(stderr, "soak: %ld requests failed: %s\n", s->finishes[GALLEY_FINISH_FAILED],
                s->error);
        bad = 1;
    }
    if (t->n_vision_hits == 0 || t->n_vision_misses == 0 || t->vision_cache_bytes == 0 ||
        t->n_vision_damaged || t->n_vision_disk_errors) {
        fprintf(stderr, "soak: %llu hits and %llu misses in the cache of images\n",
                (unsigned long long)t->n_vision_hits, (unsigned long long)t->n_vision_misses);
        bad = 1;
    }
    const int skip = n_mb / 5;
    const double per_1000 = slope(mb + skip, n_mb - skip, (double)n / n_mb);
    printf("requests %ld, output tokens %ld, preemptions %llu, images cached %llu of %llu\n", n,
           s->n_tokens, (unsigned long long)t->n_preemptions,
           (unsigned long long)t->n_images_cached, (unsigned long long)t->n_images);
    for (int f = 0; f < N_FINISHES; f++) {
        printf("%s %ld%s", galley_finish_name((enum galley_finish)f), s->finishes[f],
               f + 1 < N_FINISHES ? ", " : "\n");
    }
    printf("memory %.1f MB at one fifth, %.1f at the end, %.3f MB per 1,000 requests\n", mb[skip],
           mb[n_mb - 1], per_1000);
    if (n >= SLOPE_FROM && per_1000 >= SLOPE_MAX) {
        fprintf(stderr, "soak: memory grows by %.3f MB per 1,000 requests\n", per_1000);
        bad = 1;
    }
    return bad;
}

int main(int argc, char **argv)
{
    const long n = argc > 1 ? atol(argv[1]) : 10000;
    struct galley_err err = { 0 };
    struct galley_engine *e;
    const struct galley_engine_config cfg = { .model_path =
                                                  argc > 2 ? argv[2] : "models/galley-tiny",
                                              .max_seqs = 16,
                                              .context = 512,
                                              .kv_bytes = 4u << 20, /* 21 blocks: preemption */
                                              .vision_cache_bytes = 8u << 20,
                                              .cpu = getenv("GALLEY_CPU") };
    if (n < SAMPLES || galley_engine_open(&e, &cfg, &err)) {
        fprintf(stderr, "soak: %s\n", n < SAMPLES ? "too few requests" : err.msg);
        return 2;
    }
    struct soak s = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };
    struct ticket *tickets = calloc((size_t)n, sizeof(*tickets));
    uint8_t *rgb = malloc(3ull * SIDE_MAX * SIDE_MAX);
    double mb[SAMPLES];
    uint64_t recent[LIVE_MAX] = { 0 };
    int bad = !tickets || !rgb;
    int n_mb = 0;
    for (long i = 0; i < n && !bad; i++) {
        pthread_mutex_lock(&s.lock);
        while (s.n_live >= LIVE_MAX) {
            pthread_cond_wait(&s.ended, &s.lock);
        }
        s.n_live++;
        pthread_mutex_unlock(&s.lock);
        tickets[i].soak = &s;
        bad = submit(e, &tickets[i], rgb, &recent[i % LIVE_MAX]) != GALLEY_OK;
        if (next_random(5) == 0) {
            galley_cancel(e, recent[next_random(LIVE_MAX)]);
        }
        if (i * SAMPLES / n == n_mb) {
            mb[n_mb++] = rss_mb();
        }
    }
    pthread_mutex_lock(&s.lock);
    while (s.n_live > 0 && !bad) {
        pthread_cond_wait(&s.ended, &s.lock);
    }
    pthread_mutex_unlock(&s.lock);
    struct galley_totals t = galley_engine_totals(e);
    for (int i = 0; i < 100 && t.n_kv_free != t.n_kv_blocks; i++) { /* after the last event */
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        t = galley_engine_totals(e);
    }
    bad = bad || judge(&s, &t, tickets, n, mb, n_mb);
    galley_engine_close(e);
    free(tickets);
    free(rgb);
    return bad;
}
