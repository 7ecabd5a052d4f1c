/* ask.h - what talk.c and complete.c share: opening a model, asking it, options of a request. */
#ifndef GALLEY_SAMPLES_ASK_H
#define GALLEY_SAMPLES_ASK_H

#include <galley/galley.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A directory or a GGUF file; NULL after an explanation. */
static inline struct galley_engine *open_model(const char *path)
{
    const struct galley_engine_config config = { .model_path = path };
    struct galley_engine *engine = NULL;
    struct galley_err err = { 0 };
    if (galley_engine_open(&engine, &config, &err) != GALLEY_OK) {
        fprintf(stderr, "%s\n", err.msg);
    }
    return engine;
}

/* Submits and waits until on_end has posted `ended`.  False, after an explanation, when the
 * request was refused: on_end is not called then. */
static inline bool ask_and_wait(struct galley_engine *engine, const struct galley_generation *ask,
                                sem_t *ended)
{
    uint64_t id;
    struct galley_err err = { 0 };
    if (galley_submit(engine, ask, &id, &err) != GALLEY_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return false;
    }
    sem_wait(ended);
    return true;
}

/* False: not a number from 0 to max. */
static inline bool parse_number(double *out, const char *text, double max)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= 0 && *out <= max;
}

/* --temperature T, --seed N, --max-tokens N; false: none of these, or no such value. */
static inline bool take_ask_option(struct galley_generation *ask, const char *name,
                                   const char *value)
{
    double number;
    if (strcmp(name, "--temperature") == 0) {
        return parse_number(&ask->temperature, value, 10);
    }
    if (strcmp(name, "--seed") == 0 && parse_number(&number, value, 1e15)) {
        ask->seed = (uint64_t)number;
        return true;
    }
    if (strcmp(name, "--max-tokens") == 0 && parse_number(&number, value, 1e6)) {
        ask->max_new_tokens = (int)number;
        return true;
    }
    return false;
}

#endif
