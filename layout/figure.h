/* figure.h - pictures and their captions.  Private to layout/. */
#ifndef GALLEY_LAYOUT_FIGURE_H
#define GALLEY_LAYOUT_FIGURE_H

#include "layout/flow.h"

/* Pictures worth showing; words inside drawings get OWNER_FIGURE.  Before lines_find. */
void figures_find(struct flow *f);
/* Axis labels and gridlines around drawings become part of them.  After lines_find. */
void figures_absorb(struct flow *f);
/* Number of lines from item i on that form a caption; 0 when none starts there. */
int32_t caption_extent(const struct flow *f, int32_t i);
/* Blocks: captions go after their figure and before their table. */
void captions_place(struct flow *f);

#endif
