/* complete.c - continues a text: the prompt goes to the model as it is, without a chat frame.
 *
 *     complete MODEL PROMPT [--stop TEXT]... [--logprobs N] [--max-tokens N]
 *              [--temperature T] [--seed N]
 *
 * With --logprobs there is a line per token: its id and log-probability, the N likeliest tokens
 * with theirs, and the text that it decided. */
#include <galley/galley.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOPS_MAX 16

struct completion {
    struct galley_generation ask;
    const char *model, *prompt;
    const char *stop[STOPS_MAX];
    /* written by the engine's thread */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done, failed;
};

static void print_token(const struct galley_token *t, int n_top, const struct galley_chunk *c)
{
    printf("%6d %8.4f ", t->id, t->logprob);
    for (int i = 0; i < n_top; i++) {
        printf(" %d:%.4f", t->top[i].id, t->top[i].logprob);
    }
    if (t == c->logprobs + c->n_tokens - 1) { /* the token that made the text whole */
        printf("  |%.*s|", (int)c->n_text, c->text);
    }
    putchar('\n');
}

/* On the engine's thread.  A chunk without tokens is text that a stop string had held back. */
static void on_chunk(void *user, const struct galley_chunk *c)
{
    const struct completion *done = user;
    if (!done->ask.logprobs) {
        fwrite(c->text, 1, c->n_text, stdout);
    }
    for (int i = 0; c->logprobs && i < c->n_tokens; i++) {
        print_token(&c->logprobs[i], done->ask.n_top_logprobs, c);
    }
    fflush(stdout);
}

static void on_end(void *user, const struct galley_generated *g)
{
    struct completion *c = user;
    if (g->finish == GALLEY_FINISH_FAILED) {
        fprintf(stderr, "%s\n", g->error);
    } else {
        fprintf(stderr, "\n%d tokens after %d, ended by %s; mean log-probability %.4f; %.3f s\n",
                g->n_output, g->n_prompt, galley_finish_name(g->finish), g->mean_logprob,
                g->total_seconds);
    }
    pthread_mutex_lock(&c->lock);
    c->failed = g->finish == GALLEY_FINISH_FAILED;
    c->done = true;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

/* False: not a number from 0 to max. */
static bool parse_number(double *out, const char *text, double max)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= 0 && *out <= max;
}

static bool take_option(struct completion *c, const char *name, const char *value)
{
    double number = 0;
    if (strcmp(name, "--stop") == 0 && c->ask.n_stop < STOPS_MAX) {
        c->stop[c->ask.n_stop++] = value;
        return true;
    }
    if (strcmp(name, "--temperature") == 0 && parse_number(&number, value, 10)) {
        c->ask.temperature = number;
        return true;
    }
    if (strcmp(name, "--seed") == 0 && parse_number(&number, value, 1e15)) {
        c->ask.seed = (uint64_t)number;
        return true;
    }
    if (strcmp(name, "--max-tokens") == 0 && parse_number(&number, value, 1e6)) {
        c->ask.max_new_tokens = (int)number;
        return true;
    }
    if (strcmp(name, "--logprobs") == 0 && parse_number(&number, value, 20)) {
        c->ask.logprobs = true;
        c->ask.n_top_logprobs = (int)number;
        return true;
    }
    fprintf(stderr, "%s %s: no such option or value\n", name, value);
    return false;
}

static bool parse_options(struct completion *c, int argc, char **argv)
{
    if (argc < 3) {
        return false;
    }
    c->model = argv[1];
    c->prompt = argv[2];
    for (int i = 3; i < argc; i += 2) {
        if (i + 1 == argc || !take_option(c, argv[i], argv[i + 1])) {
            return false;
        }
    }
    return true;
}

/* Submits and waits for the end; true when it did not fail. */
static bool complete(struct completion *c, struct galley_engine *engine)
{
    const struct galley_part part = { .text = c->prompt };
    const struct galley_message message = { .role = GALLEY_USER, .parts = &part, .n_parts = 1 };
    uint64_t id;
    struct galley_err err = { 0 };
    c->ask.messages = &message;
    c->ask.n_messages = 1;
    c->ask.raw = true;
    if (galley_submit(engine, &c->ask, &id, &err) != GALLEY_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return false;
    }
    pthread_mutex_lock(&c->lock);
    while (!c->done) {
        pthread_cond_wait(&c->ended, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return !c->failed;
}

int main(int argc, char **argv)
{
    struct completion c = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };
    c.ask.stop = c.stop;
    c.ask.user = &c;
    c.ask.on_chunk = on_chunk;
    c.ask.on_end = on_end;
    if (!parse_options(&c, argc, argv)) {
        fprintf(stderr,
                "usage: %s MODEL PROMPT [--stop TEXT]... [--logprobs N] [--max-tokens N]\n"
                "       [--temperature T] [--seed N]\n",
                argv[0]);
        return 2;
    }
    const struct galley_engine_config config = { .model_path = c.model };
    struct galley_engine *engine = NULL;
    struct galley_err err = { 0 };
    if (galley_engine_open(&engine, &config, &err) != GALLEY_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    const bool ok = complete(&c, engine);
    galley_engine_close(engine);
    return ok ? 0 : 1;
}
