/* turn.h - a page whose text runs down, up or upside down, set upright.  Private to layout/. */
#ifndef GALLEY_LAYOUT_TURN_H
#define GALLEY_LAYOUT_TURN_H

#include "layout/page.h"

/* The direction most glyphs read in: 0, 90, 180 or 270 degrees clockwise. */
int page_text_angle(const struct page *p);
/* A copy in the frame where text of that direction runs to the right, bitmap included; NULL when
 * memory is short.  Links' addresses are copied. */
struct page *page_turn_upright(const struct page *p, int angle);

#endif
