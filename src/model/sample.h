/* sample.h - one token from one row of logits.  Pure.
 *
 * The order is llama.cpp's and Hugging Face's: repetition penalty, top-k, temperature, top-p,
 * min-p, then one draw.  The draw for output position p uses rng_uniform(seed, p), so a seeded
 * request gives the same text whatever runs beside it and whether or not it speculates: a guess is
 * accepted exactly when it is the token that would have been drawn there.  Temperature 0 is greedy:
 * the lowest id of the largest (penalised) logit. */
#ifndef GALLEY_MODEL_SAMPLE_H
#define GALLEY_MODEL_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"

struct sample_params {
    double temperature; /* 0: greedy */
    int top_k;          /* 0: all */
    double top_p;       /* 0 or 1: all */
    double min_p;       /* 0: off */
    double repetition;  /* Hugging Face's repetition_penalty over prompt and output; 0 or 1: off */
    uint64_t seed;
};

/* GALLEY_EUSAGE naming the field, its value and the allowed range. */
GALLEY_MUST_USE enum galley_status sample_check(const struct sample_params *p,
                                                struct galley_err *err);
/* Whether the choice is plainly the largest logit. */
bool sample_is_greedy(const struct sample_params *p);

/* Memory a sampler works in; one per thread that samples. */
struct sampler;
struct sampler *sampler_new(int n_vocab); /* NULL without memory */
void sampler_free(struct sampler *s);

/* The tokens seen so far, for the penalty: a bitmap, one per sequence that asks for it. */
struct sample_seen; /* opaque */
struct sample_seen *sample_seen_new(int n_vocab);
void sample_seen_free(struct sample_seen *s);
void sample_seen_add(struct sample_seen *s, int32_t token);

/* The token for output position `position`.  seen: NULL without a penalty; extra[0..n_extra):
 * tokens of the draft before this row that count as seen too.  logits: [n_vocab], not changed.
 * Never allocates. */
int32_t sample_token(struct sampler *s, const struct sample_params *p, const float *logits,
                     const struct sample_seen *seen, const int32_t *extra, int n_extra,
                     uint64_t position);

/* The n largest log-probabilities of a row (of the plain softmax, as OpenAI's logprobs),
 * descending, ties by id. */
struct sample_logprob {
    int32_t id;
    float logprob;
};
void sample_top_logprobs(struct sample_logprob *out, int n, const float *logits, int n_vocab,
                         float log_sum);

#endif
