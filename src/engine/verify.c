/* verify.c - acceptance of a draft chain. */
#include "src/engine/verify.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

int verify_chain(const struct logit_top *top, const float *logits, int n_vocab,
                 const int32_t *draft, int n, double tau)
{
    assert(tau > 0 && tau <= 1);
    const double floor_log = log(tau);
    for (int i = 0; i < n; i++) {
        const int32_t guess = draft[i];
        assert(guess >= 0 && guess < n_vocab);
        if (guess == top[i].id) {
            continue;
        }
        const float *row = logits + (size_t)i * (size_t)n_vocab;
        if (tau == 1 || (double)row[guess] - (double)top[i].logit < floor_log) {
            return i;
        }
    }
    return n;
}

float verify_logprob(const struct logit_top *top, const float *logits, int32_t token)
{
    return logits[token] - top->log_sum;
}
