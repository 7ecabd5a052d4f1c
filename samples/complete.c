/* complete.c - continues a text: the prompt goes to the model as it is, without a chat frame.
 *
 *     complete MODEL PROMPT [--stop TEXT]... [--logprobs N] [--max-tokens N]
 *              [--temperature T] [--seed N]
 *
 * With --logprobs there is a line per token: its id and log-probability, the N likeliest tokens
 * with theirs, and the text that it decided. */
#include <galley/galley.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "ask.h"

#define STOPS_MAX 16

struct completion {
    struct galley_generation ask;
    const char *model, *prompt;
    const char *stop[STOPS_MAX];
    bool failed; /* written by the engine's thread before it posts `ended` */
    sem_t ended;
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
    c->failed = g->finish == GALLEY_FINISH_FAILED;
    sem_post(&c->ended);
}

static bool take_option(struct completion *c, const char *name, const char *value)
{
    double number = 0;
    if (strcmp(name, "--stop") == 0 && c->ask.n_stop < STOPS_MAX) {
        c->stop[c->ask.n_stop++] = value;
        return true;
    }
    if (strcmp(name, "--logprobs") == 0 && parse_number(&number, value, 20)) {
        c->ask.logprobs = true;
        c->ask.n_top_logprobs = (int)number;
        return true;
    }
    if (take_ask_option(&c->ask, name, value)) {
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

/* True when the prompt was continued. */
static bool complete(struct completion *c, struct galley_engine *engine)
{
    const struct galley_part part = { .text = c->prompt };
    const struct galley_message message = { .role = GALLEY_USER, .parts = &part, .n_parts = 1 };
    c->ask.messages = &message;
    c->ask.n_messages = 1;
    return ask_and_wait(engine, &c->ask, &c->ended) && !c->failed;
}

int main(int argc, char **argv)
{
    struct completion c = { .ask = { .raw = true, .on_chunk = on_chunk, .on_end = on_end } };
    c.ask.stop = c.stop;
    c.ask.user = &c;
    sem_init(&c.ended, 0, 0);
    if (!parse_options(&c, argc, argv)) {
        fprintf(stderr,
                "usage: %s MODEL PROMPT [--stop TEXT]... [--logprobs N] [--max-tokens N]\n"
                "       [--temperature T] [--seed N]\n",
                argv[0]);
        return 2;
    }
    struct galley_engine *engine = open_model(c.model);
    const bool ok = engine && complete(&c, engine);
    galley_engine_close(engine);
    return ok ? 0 : 1;
}
