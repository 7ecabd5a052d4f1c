/* bench.c - galley bench: how fast this model is on this machine, by concurrency. */
#include "src/cli/bench_report.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/cli/cli.h"
#include "src/cli/plot.h"

#define REQUESTS_MAX 100000

struct bench_options {
    struct galley_engine_config engine;
    const char *csv, *plot;
    int levels[BENCH_LEVELS_MAX], n_levels;
    int n_prompt, n_output, n_requests; /* n_requests 0: two per sequence, 4 at least */
    int width, height;                  /* 0: no image */
    unsigned long long seed;
    bool json, quiet;
};

/* One request's place: filled by on_end on the engine's thread, read after the level. */
struct slot {
    struct level *level;
    bool failed;
    int n_prompt, n_visual, n_output;
    double queue, first, total, encode;
};

struct level {
    struct galley_engine *engine;
    const struct bench_options *opt;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int n_live, n_done; /* under lock */
    struct slot *slots;
    char error[GALLEY_ERR_MAX]; /* of the first failed request; under lock */
};

static void on_end(void *user, const struct galley_generated *g)
{
    struct slot *s = user;
    struct level *l = s->level;
    s->failed = g->finish == GALLEY_FINISH_FAILED;
    s->n_prompt = g->n_prompt;
    s->n_visual = g->n_visual;
    s->n_output = g->n_output;
    s->queue = g->queue_seconds;
    s->first = g->first_token_seconds;
    s->total = g->total_seconds;
    s->encode = g->encode_seconds;
    pthread_mutex_lock(&l->lock);
    if (s->failed && !l->error[0]) {
        snprintf(l->error, sizeof(l->error), "%s", g->error);
    }
    l->n_live--;
    l->n_done++;
    pthread_cond_signal(&l->ended);
    pthread_mutex_unlock(&l->lock);
}

/* SplitMix64: prompts and pixels that no cache has seen. */
static unsigned long long next_random(unsigned long long *state)
{
    unsigned long long z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static enum galley_status submit_one(struct level *l, int i, int32_t *tokens, uint8_t *rgb,
                                     struct galley_err *err)
{
    const struct bench_options *o = l->opt;
    unsigned long long state = o->seed + (unsigned long long)i * 1000003;
    const unsigned n_vocab = (unsigned)galley_engine_info(l->engine).n_vocab;
    for (int k = 0; k < o->n_prompt; k++) { /* ordinary words: neither bytes nor control tokens */
        tokens[k] = (int32_t)(n_vocab / 8 + next_random(&state) % (n_vocab / 4));
    }
    for (size_t k = 0; rgb && k < 3 * (size_t)o->width * (size_t)o->height; k++) {
        rgb[k] = (uint8_t)next_random(&state);
    }
    const struct galley_part parts[] = {
        { .rgb = rgb, .width = o->width, .height = o->height },
        { .tokens = tokens, .n_tokens = o->n_prompt },
    };
    const int first = rgb ? 0 : 1;
    const struct galley_message message = { GALLEY_USER, parts + first, 2 - first };
    const struct galley_generation g = {
        .messages = &message,
        .n_messages = 1,
        .raw = true,
        .ignore_eos = true,
        .max_new_tokens = o->n_output,
        .user = &l->slots[i],
        .on_end = on_end,
    };
    uint64_t id;
    l->slots[i].level = l;
    return galley_submit(l->engine, &g, &id, err);
}

/* Keeps `concurrency` requests in flight until n have ended. */
static enum galley_status run_level(struct level *l, int concurrency, int n, double *seconds,
                                    struct galley_err *err)
{
    const struct bench_options *o = l->opt;
    int32_t *tokens = mem_array((size_t)o->n_prompt + 1, sizeof(*tokens));
    uint8_t *rgb = o->width ? mem_array(3 * (size_t)o->width, (size_t)o->height) : NULL;
    enum galley_status rc = GALLEY_OK;
    if (!tokens || (o->width && !rgb)) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "no memory for a prompt of %d tokens", o->n_prompt);
    }
    const double start = clock_seconds();
    for (int i = 0; !rc && i < n && !interrupted(); i++) {
        pthread_mutex_lock(&l->lock);
        while (l->n_live >= concurrency) {
            pthread_cond_wait(&l->ended, &l->lock);
        }
        l->n_live++;
        pthread_mutex_unlock(&l->lock);
        rc = submit_one(l, i, tokens, rgb, err);
        if (rc) {
            pthread_mutex_lock(&l->lock);
            l->n_live--;
            pthread_mutex_unlock(&l->lock);
        }
    }
    pthread_mutex_lock(&l->lock);
    while (l->n_live > 0) {
        pthread_cond_wait(&l->ended, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    *seconds = clock_seconds() - start;
    mem_free(tokens);
    mem_free(rgb);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The p-th percentile of v[0..n), which is sorted on the way; 0 of nothing. */
static double percentile(double *v, int n, double p)
{
    if (n == 0) {
        return 0;
    }
    qsort(v, (size_t)n, sizeof(*v), by_value);
    const int i = (int)(p / 100 * n);
    return v[i < n ? i : n - 1];
}

static bool summarise(struct bench_row *r, const struct level *l, int n, double seconds)
{
    double *v = mem_array((size_t)n + 1, 3 * sizeof(*v));
    if (!v) {
        return false;
    }
    double *queue = v, *first = v + n, *each = v + 2 * n;
    double decode_seconds = 0;
    long long n_decoded = 0;
    int n_each = 0, n_good = 0;
    for (int i = 0; i < n; i++) {
        const struct slot *s = &l->slots[i];
        if (s->failed) {
            r->n_failed++;
            continue;
        }
        queue[n_good] = s->queue;
        first[n_good++] = s->first;
        r->n_prompt += s->n_prompt;
        r->n_output += s->n_output;
        r->encode_seconds += s->encode;
        if (s->n_output > 1) {
            each[n_each++] = (s->total - s->first) / (s->n_output - 1);
            decode_seconds += s->total - s->first;
            n_decoded += s->n_output - 1;
        }
    }
    r->encode_seconds /= n_good ? n_good : 1;
    r->n_requests = n;
    r->seconds = seconds;
    r->queue = percentile(queue, n_good, 50);
    r->ttft = percentile(first, n_good, 50);
    r->ttft_95 = percentile(first, n_good, 95);
    r->tpot = percentile(each, n_each, 50);
    r->tpot_95 = percentile(each, n_each, 95);
    r->output_rate = seconds > 0 ? (double)r->n_output / seconds : 0;
    r->total_rate = seconds > 0 ? (double)(r->n_output + r->n_prompt) / seconds : 0;
    r->decode_rate = decode_seconds > 0 ? (double)n_decoded / decode_seconds * r->concurrency : 0;
    mem_free(v);
    return true;
}

static int bench_level(struct bench_row *r, struct galley_engine *e, const struct bench_options *o,
                       int concurrency, int n)
{
    struct galley_err err = { 0 };
    struct level l = { .engine = e, .opt = o };
    pthread_mutex_init(&l.lock, NULL);
    pthread_cond_init(&l.ended, NULL);
    l.slots = mem_many(struct slot, (size_t)n);
    double seconds = 0;
    *r = (struct bench_row){ .concurrency = concurrency };
    enum galley_status rc = GALLEY_OK;
    if (!l.slots) {
        rc = galley_err_set(&err, GALLEY_ENOMEM, "no memory for %d requests", n);
    }
    rc = rc ? rc : run_level(&l, concurrency, n, &seconds, &err);
    if (!rc && !summarise(r, &l, l.n_done, seconds)) {
        rc = galley_err_set(&err, GALLEY_ENOMEM, "no memory for %d requests", n);
    }
    if (rc) {
        complain("%s", err.msg);
    } else if (r->n_failed) {
        complain("%d of %d requests failed: %s", r->n_failed, n, l.error);
    } else if (r->n_output < (long long)l.n_done * o->n_output) {
        complain("answers are shorter than %d tokens: the context of %d is full", o->n_output,
                 galley_engine_info(e).context);
    }
    mem_free(l.slots);
    pthread_cond_destroy(&l.ended);
    pthread_mutex_destroy(&l.lock);
    return rc ? exit_code_of(rc) : r->n_failed ? EXIT_PARTIAL : EXIT_OK;
}

/* ---- the command line ---- */

enum {
    OPT_MODEL = 256,
    OPT_MMPROJ,
    OPT_CONCURRENCY,
    OPT_REQUESTS,
    OPT_PROMPT,
    OPT_OUTPUT,
    OPT_IMAGE,
    OPT_KV,
    OPT_LINEAR,
    OPT_CTX,
    OPT_MAX_SEQS,
    OPT_MAX_ROWS,
    OPT_THREADS,
    OPT_SEED,
    OPT_CSV,
    OPT_PLOT,
    OPT_JSON
};

static const struct option bench_long[] = {
    { "model", required_argument, NULL, OPT_MODEL },
    { "mmproj", required_argument, NULL, OPT_MMPROJ },
    { "concurrency", required_argument, NULL, OPT_CONCURRENCY },
    { "requests", required_argument, NULL, OPT_REQUESTS },
    { "prompt", required_argument, NULL, OPT_PROMPT },
    { "output", required_argument, NULL, OPT_OUTPUT },
    { "image", required_argument, NULL, OPT_IMAGE },
    { "kv", required_argument, NULL, OPT_KV },
    { "linear", required_argument, NULL, OPT_LINEAR },
    { "ctx", required_argument, NULL, OPT_CTX },
    { "seqs", required_argument, NULL, OPT_MAX_SEQS },
    { "rows", required_argument, NULL, OPT_MAX_ROWS },
    { "threads", required_argument, NULL, OPT_THREADS },
    { "seed", required_argument, NULL, OPT_SEED },
    { "csv", required_argument, NULL, OPT_CSV },
    { "plot", required_argument, NULL, OPT_PLOT },
    { "json", no_argument, NULL, OPT_JSON },
    { "quiet", no_argument, NULL, 'q' },
    { NULL, 0, NULL, 0 },
};

/* "1,2,4": ascending or not, each 1..1024. */
static bool take_levels(struct bench_options *o, const char *v)
{
    o->n_levels = 0;
    while (*v) {
        char *end;
        const long n = strtol(v, &end, 10);
        if (end == v || n < 1 || n > 1024 || o->n_levels == BENCH_LEVELS_MAX ||
            (*end && (*end != ',' || !end[1]))) {
            return false;
        }
        o->levels[o->n_levels++] = (int)n;
        v = *end ? end + 1 : end;
    }
    return o->n_levels > 0;
}

static bool take_image(struct bench_options *o, const char *v)
{
    char *end;
    const long w = strtol(v, &end, 10);
    if (*end != 'x') {
        return false;
    }
    const long h = strtol(end + 1, &end, 10);
    o->width = (int)w;
    o->height = (int)h;
    return !*end && w >= 1 && h >= 1 && w <= 16384 && h <= 16384;
}

static bool take_count(int *out, const char *v, long long lo, long long hi)
{
    long long n = 0;
    const bool ok = parse_int(v, lo, hi, &n);
    *out = (int)n;
    return ok;
}

static bool bench_option(struct bench_options *o, int id, const char *v)
{
    long long n = 0;
    switch (id) {
    case OPT_MODEL:
        o->engine.model_path = v;
        return true;
    case OPT_MMPROJ:
        o->engine.mmproj_path = v;
        return true;
    case OPT_CSV:
        o->csv = v;
        return true;
    case OPT_PLOT:
        o->plot = v;
        return true;
    case OPT_KV:
        o->engine.kv_type = v;
        return true;
    case OPT_LINEAR:
        o->engine.exact_linear = strcmp(v, "exact") == 0;
        return o->engine.exact_linear || strcmp(v, "auto") == 0;
    case OPT_CONCURRENCY:
        return take_levels(o, v);
    case OPT_IMAGE:
        return take_image(o, v);
    case OPT_REQUESTS:
        return take_count(&o->n_requests, v, 1, REQUESTS_MAX);
    case OPT_PROMPT:
        return take_count(&o->n_prompt, v, 1, 1 << 20);
    case OPT_OUTPUT:
        return take_count(&o->n_output, v, 1, 1 << 20);
    case OPT_CTX:
        return take_count(&o->engine.context, v, 1, 1 << 24);
    case OPT_MAX_SEQS:
        return take_count(&o->engine.max_seqs, v, 1, 1024);
    case OPT_MAX_ROWS:
        return take_count(&o->engine.max_rows, v, 1, 65536);
    case OPT_THREADS:
        return take_count(&o->engine.threads, v, 1, 256);
    case OPT_SEED:
        if (!parse_int(v, 0, 1ll << 62, &n)) {
            return false;
        }
        o->seed = (unsigned long long)n;
        return true;
    case OPT_JSON:
        o->json = true;
        return true;
    default:
        o->quiet = true;
        return true;
    }
}

static int bench_parse(struct bench_options *o, int argc, char **argv)
{
    optind = 0;
    opterr = 0;
    for (;;) {
        const int id = getopt_long(argc, argv, ":q", bench_long, NULL);
        if (id == -1) {
            break;
        }
        if (id == '?') {
            return usage_error("bench", "bench has no option %s",
                               argv[optind > 1 ? optind - 1 : 1]);
        }
        if (id == ':') {
            return usage_error("bench", "%s needs a value", argv[optind - 1]);
        }
        if (!bench_option(o, id, optarg)) {
            return usage_error("bench", "\"%s\" is no value for %s", optarg, argv[optind - 2]);
        }
    }
    if (optind < argc) {
        return usage_error("bench", "bench takes no input: %s", argv[optind]);
    }
    return 0;
}

/* The last part of a path: what a table and a CSV should call the model. */
static const char *name_of(const char *path)
{
    const char *name = path;
    for (const char *c = path; *c; c++) {
        name = *c == '/' && c[1] && c[1] != '/' ? c + 1 : name;
    }
    return name;
}

/* Sequences and inbox wide enough for the widest level. */
static void widen_engine(struct bench_options *o)
{
    int widest = 1;
    for (int i = 0; i < o->n_levels; i++) {
        widest = o->levels[i] > widest ? o->levels[i] : widest;
    }
    if (!o->engine.max_seqs) {
        o->engine.max_seqs = widest;
    }
    if (o->engine.max_inbox < 2 * widest) {
        o->engine.max_inbox = 2 * widest < 256 ? 256 : 2 * widest;
    }
    if (!o->engine.context) { /* room for what will be asked, not for all the model could do */
        o->engine.context =
            o->n_prompt + o->n_output + (o->width ? o->width * o->height / 700 + 64 : 0);
    }
}

static int run_levels(struct galley_engine *e, const struct bench_options *o,
                      struct bench_row *rows, int *n_rows)
{
    struct bench_options warm = *o;
    struct bench_row unused;
    warm.n_output = 2;
    warm.n_prompt = o->n_prompt < 32 ? o->n_prompt : 32;
    warm.width = warm.height = 0;
    warm.seed = ~o->seed;
    int code = o->n_requests == 1 ? EXIT_OK : bench_level(&unused, e, &warm, 1, 1);
    for (int i = 0; i < o->n_levels && !code && !interrupted(); i++) {
        const int c = o->levels[i];
        const int n = o->n_requests ? o->n_requests : c < 2 ? 4 : 2 * c;
        if (!o->quiet) {
            fprintf(stderr, "bench: %d at once, %d requests ...\n", c, n);
        }
        code = bench_level(&rows[i], e, o, c, n);
        *n_rows = i + 1;
    }
    return interrupted() ? EXIT_INTERRUPTED : code;
}

int cli_bench(int argc, char **argv)
{
    const double started = clock_seconds();
    char model[4096];
    struct bench_options o = { .levels = { 1, 2, 4, 8, 16, 32, 64 },
                               .n_levels = 7,
                               .n_prompt = 128,
                               .n_output = 64,
                               .seed = 1 };
    int code = bench_parse(&o, argc, argv);
    if (code) {
        return code;
    }
    if (!o.engine.model_path) {
        if (!find_model(model, sizeof(model))) {
            complain("no model: name one with --model");
            return EXIT_MODEL;
        }
        o.engine.model_path = model;
    }
    widen_engine(&o);
    o.engine.cpu = getenv("GALLEY_CPU");
    catch_signals();
    struct galley_err err = { 0 };
    struct galley_engine *e;
    const enum galley_status rc = galley_engine_open(&e, &o.engine, &err);
    if (rc) {
        complain("%s", err.msg);
        return exit_code_of(rc);
    }
    struct bench_row rows[BENCH_LEVELS_MAX];
    int n_rows = 0;
    struct bench_report report = {
        .model = name_of(o.engine.model_path),
        .device = galley_engine_device(e),
        .kv = galley_engine_info(e).kv_type,
        .threads = o.engine.threads ? o.engine.threads : pool_n_cpus(),
        .n_prompt = o.n_prompt,
        .n_output = o.n_output,
        .width = o.width,
        .height = o.height,
        .load_seconds = clock_seconds() - started,
        .rows = rows,
    };
    code = run_levels(e, &o, rows, &n_rows);
    report.n_rows = n_rows;
    if (n_rows > 0 && !bench_print(&report, o.json, o.csv, o.plot) && !code) {
        code = EXIT_INTERNAL;
    }
    galley_engine_close(e);
    return code;
}
