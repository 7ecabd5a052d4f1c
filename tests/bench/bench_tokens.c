/* bench_tokens.c - token ids in, token ids out: what tools compare with other engines.
 *
 *     bench_tokens MODEL [THREADS]   < {"tokens": [1, 2], "max_new_tokens": 64} per line
 *
 * Writes {"tokens": [...]} per line, in the order of the input, greedily decoded, 16 at once. */
#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/galley.h"

#define LINE_MAX_BYTES (1 << 22)
#define JOBS_MAX       4096

struct job {
    int32_t *in, *out;
    int n_in, n_out, max_out;
    char error[GALLEY_ERR_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int n_live;

static void on_chunk(void *user, const struct galley_chunk *c)
{
    struct job *j = user;
    for (int i = 0; i < c->n_tokens && j->n_out < j->max_out; i++) {
        j->out[j->n_out++] = c->tokens[i];
    }
}

static void on_end(void *user, const struct galley_generated *g)
{
    struct job *j = user;
    snprintf(j->error, sizeof(j->error), "%s", g->error);
    pthread_mutex_lock(&lock);
    n_live--;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
}

static int read_job(struct job *j, const char *line)
{
    cJSON *o = cJSON_Parse(line);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "tokens"), *item;
    const cJSON *most = cJSON_GetObjectItemCaseSensitive(o, "max_new_tokens");
    const int n = cJSON_GetArraySize(list);
    *j = (struct job){ .max_out = cJSON_IsNumber(most) ? most->valueint : 64 };
    j->in = calloc((size_t)n + 1, sizeof(*j->in));
    j->out = calloc((size_t)j->max_out + 1, sizeof(*j->out));
    if (!j->in || !j->out || n < 1 || j->max_out < 1) {
        return 1;
    }
    cJSON_ArrayForEach(item, list)
    {
        j->in[j->n_in++] = item->valueint;
    }
    cJSON_Delete(o);
    return 0;
}

static int submit(struct galley_engine *e, struct job *j)
{
    const struct galley_part part = { .tokens = j->in, .n_tokens = j->n_in };
    const struct galley_message message = { GALLEY_USER, &part, 1 };
    const struct galley_generation g = { .messages = &message,
                                         .n_messages = 1,
                                         .raw = true,
                                         .ignore_eos = true,
                                         .max_new_tokens = j->max_out,
                                         .user = j,
                                         .on_chunk = on_chunk,
                                         .on_end = on_end };
    struct galley_err err = { 0 };
    uint64_t id;
    pthread_mutex_lock(&lock);
    while (n_live >= 16) {
        pthread_cond_wait(&ended, &lock);
    }
    n_live++;
    pthread_mutex_unlock(&lock);
    if (galley_submit(e, &g, &id, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    return 0;
}

static void print_job(const struct job *j)
{
    printf("{\"tokens\":[");
    for (int i = 0; i < j->n_out; i++) {
        printf("%s%d", i ? "," : "", j->out[i]);
    }
    puts("]}");
}

int main(int argc, char **argv)
{
    static struct job jobs[JOBS_MAX];
    struct galley_err err = { 0 };
    struct galley_engine *e;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_tokens MODEL [THREADS] < lines\n");
        return 2;
    }
    const struct galley_engine_config cfg = { .model_path = argv[1],
                                              .threads = argc > 2 ? atoi(argv[2]) : 0,
                                              .cpu = getenv("GALLEY_CPU"),
                                              .context = 2048,
                                              .kv_type = "f32" };
    if (galley_engine_open(&e, &cfg, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    char *line = malloc(LINE_MAX_BYTES);
    int n = 0, bad = line == NULL;
    while (!bad && n < JOBS_MAX && fgets(line, LINE_MAX_BYTES, stdin)) {
        bad = read_job(&jobs[n], line) || submit(e, &jobs[n]);
        n += !bad;
    }
    pthread_mutex_lock(&lock);
    while (n_live > 0 && !bad) {
        pthread_cond_wait(&ended, &lock);
    }
    pthread_mutex_unlock(&lock);
    galley_engine_close(e);
    for (int i = 0; i < n && !bad; i++) {
        if (jobs[i].error[0]) {
            fprintf(stderr, "request %d: %s\n", i, jobs[i].error);
            bad = 1;
        }
        print_job(&jobs[i]);
        free(jobs[i].in);
        free(jobs[i].out);
    }
    free(line);
    return bad;
}
