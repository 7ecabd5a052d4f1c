/* sample.h - one token from one row of logits.  Pure.
 *
 * The order is llama.cpp's and Hugging Face's: repetition penalty, top-k, temperature, top-p,
 * min-p, then one draw.  Each filter keeps a beginning of the order "larger logit first, of equals
 * the lower id": top-k exactly k tokens, top-p up to and with the one that reaches the mass, min-p
 * those of at least min_p times the largest probability; the largest always stays.  The draw
 * walks the kept tokens by ascending id.  For output position p it uses rng_uniform(seed, p), so
 * a seeded request gives the same text whatever runs beside it and whether or not it speculates: a
 * guess is accepted exactly when it is the token that would have been drawn there.  Temperature 0
 * (below 1e-5) is greedy: the lowest id of the largest (penalised) logit.
 *
 * The same bits on every machine.  NaN counts as minus infinity, and that is never drawn, nor is
 * -FLT_MAX; a row of nothing else gives token 0. */
#ifndef GALLEY_MODEL_SAMPLE_H
#define GALLEY_MODEL_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"

struct sample_params {
    double temperature; /* 0: greedy; to 100 */
    int top_k;          /* 0: all */
    double top_p;       /* 0 or 1: all */
    double min_p;       /* 0: off */
    double repetition;  /* Hugging Face's repetition_penalty over prompt and output, 0.01 to 100; 0
                           or 1: off */
    uint64_t seed;
};

/* GALLEY_EUSAGE naming the field, its value and the allowed range. */
GALLEY_MUST_USE enum galley_status sample_check(const struct sample_params *p,
                                                struct galley_err *err);
/* Whether the choice is plainly the largest logit (no penalty either): the device's top1 has it. */
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

/* The distribution that sample_token draws from, [n_vocab]: zero where a filter cut. */
void sample_probs(struct sampler *s, const struct sample_params *p, const float *logits,
                  const struct sample_seen *seen, const int32_t *extra, int n_extra, double *probs);

/* The n largest log-probabilities of a row (of the plain softmax, as OpenAI's logprobs),
 * descending, ties by id; id -1 and minus infinity where fewer are above that.  n <= n_vocab. */
struct sample_logprob {
    int32_t id;
    float logprob;
};
void sample_top_logprobs(struct sample_logprob *out, int n, const float *logits, int n_vocab,
                         float log_sum);

#endif
