/* given.h - a text handed over as the draft: PDF text layer, OCR, an earlier version.
 *
 * Follows the text while the target agrees.  After a mismatch it re-synchronises on what the target
 * wrote (research: HSD, arXiv 2602.12957, section 3.2): the longest suffix of the output, 10 down
 * to 2 tokens, that occurs in the text; of several places the nearest to where the text was left;
 * then one-token anchors close by; then, for a few tokens, the guess that one token replaced one
 * token. */
#ifndef GALLEY_SPEC_GIVEN_H
#define GALLEY_SPEC_GIVEN_H

#include "spec/drafter.h"

/* Copies tokens[0..n), in the target's vocabulary, the end token included when the text is
 * complete.  NULL when memory is short. */
struct drafter *given_new(const int32_t *tokens, int n);

#endif
