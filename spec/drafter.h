/* drafter.h - anything that can guess the next tokens.
 *
 * A drafter only proposes: it never samples for the user, never touches the target's KV, and may be
 * wrong or silent at no cost to correctness.  Engine thread only. */
#ifndef GALLEY_SPEC_DRAFTER_H
#define GALLEY_SPEC_DRAFTER_H

#include <stdint.h>

struct drafter_ops;

struct drafter {
    const struct drafter_ops *ops;
};

struct drafter_ops {
    const char *name; /* "given", "adversary" ... as in --draft */
    /* Writes up to max_tokens guesses for what follows history[0..n_history) (the output so far, no
     * prompt) and returns how many; 0 is silence. */
    int (*propose)(struct drafter *d, const int32_t *history, int n_history, int32_t *out,
                   int max_tokens);
    /* history[0..n_history) is the output after a step: n_accepted of the n_proposed guesses were
     * taken; unless these are all (and not none), the last token is the target's own. */
    void (*observe)(struct drafter *d, const int32_t *history, int n_history, int n_accepted,
                    int n_proposed);
    void (*free)(struct drafter *d);
};

static inline void drafter_free(struct drafter *d)
{
    if (d) {
        d->ops->free(d);
    }
}

#endif
