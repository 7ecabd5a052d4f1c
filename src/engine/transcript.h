/* transcript.h - the text of an output as it grows: bytes of tokens to valid UTF-8, stop strings,
 * and how much of it may be shown already.  Pure. */
#ifndef GALLEY_ENGINE_TRANSCRIPT_H
#define GALLEY_ENGINE_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/buf.h"
#include "src/format/tokenizer.h"

struct transcript {
    struct buf raw;  /* bytes of a character that is not whole yet */
    struct buf utf8; /* all before it; malformed parts replaced */
    size_t n_shown;  /* of utf8 */
    bool skip_space; /* a space at the very beginning is the tokenizer's, not the text's */
};

void transcript_init(struct transcript *t, bool skip_space);
void transcript_deinit(struct transcript *t);
/* Appends a token's bytes. */
void transcript_add(struct transcript *t, const struct tokenizer *tok, int32_t id);
/* The output has ended: an unfinished character counts as malformed. */
void transcript_finish(struct transcript *t);
bool transcript_ok(
    const struct transcript *t); /* false: memory was short, or the text over its limit */

/* Where the earliest stop string begins that ends behind byte `from`; t->utf8.n when there is
 * none. */
size_t transcript_find_stop(const struct transcript *t, size_t from, char *const *stop, int n_stop,
                            size_t stop_max);
/* How much may be shown: all but what could be the beginning of a stop string. */
size_t transcript_showable(const struct transcript *t, char *const *stop, int n_stop,
                           size_t stop_max);

#endif
