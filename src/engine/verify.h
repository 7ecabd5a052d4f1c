/* verify.h - which guesses of a chain the target accepts.  Pure. */
#ifndef GALLEY_ENGINE_VERIFY_H
#define GALLEY_ENGINE_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"

/* Rows of one sequence in a step: row 0 is the root (what came before the draft), row i + 1 is
 * draft token i.  Row i judges draft token i, so n guesses need rows 0..n-1.
 * tau 1 is exact: a guess is accepted when it is the target's argmax.  tau in (0, 1) is HSD's rule
 * (arXiv 2602.12957 eq. 11): accepted when log p(guess) - log p(argmax) >= log tau.
 * Returns how many guesses are accepted; when some are not, row [that] gives the target's own
 * token. */
int verify_chain(const struct logit_top *top, const float *logits, int n_vocab,
                 const int32_t *draft, int n, double tau);

/* log p(token) under a row. */
float verify_logprob(const struct logit_top *top, const float *logits, int32_t token);

#endif
