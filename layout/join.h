/* join.h - how two lines of one paragraph become one.  Private to layout/. */
#ifndef GALLEY_LAYOUT_JOIN_H
#define GALLEY_LAYOUT_JOIN_H

#include "layout/history.h"

enum join {
    JOIN_SPACE,
    JOIN_NONE, /* nothing between: scripts without spaces, real hyphens, broken addresses */
    JOIN_LINE, /* a line break that stays (addresses, verse) */
    JOIN_DROP  /* the first line's last character is a hyphen of the break only */
};

/* `room` is the free space after a up to the column's edge, pt.  h may be NULL (no lexicon). */
enum join lines_join(const struct flow *f, const struct history *h, const struct line *a,
                     const struct line *b, float room);

#endif
