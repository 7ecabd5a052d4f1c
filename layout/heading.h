/* heading.h - is this group of lines a heading, and of which level.  Private to layout/. */
#ifndef GALLEY_LAYOUT_HEADING_H
#define GALLEY_LAYOUT_HEADING_H

#include "layout/history.h"

struct heading {
    int32_t n_items; /* 0: no heading starts here */
    int level;
    float score;
};

/* Looks at the lines from item i on. */
struct heading heading_at(const struct flow *f, struct history *h, int32_t i);

#endif
