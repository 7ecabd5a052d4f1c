/* guard.h - noticing that a model has fallen into a loop.  Pure. */
#ifndef GALLEY_ENGINE_GUARD_H
#define GALLEY_ENGINE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* True when the end of out[0..n) is one pattern of 1..GUARD_PERIOD tokens again and again: over
 * GUARD_REPEATS copies, spanning GUARD_SPAN tokens at least.  What the draft itself repeats as
 * often (rows of a real table, dot leaders) is no loop: draft may be NULL. */
bool guard_repeats(const int32_t *out, int n, const int32_t *draft, int n_draft);

/* How much of out[0..n) to keep when guard_repeats: up to the end of the first copy. */
int guard_cut(const int32_t *out, int n);

#define GUARD_PERIOD  40
#define GUARD_REPEATS 6
#define GUARD_SPAN    36

#endif
