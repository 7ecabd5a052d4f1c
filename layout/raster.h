/* raster.h - what pixels say without reading: ink, blankness, rules, pictures, gaps. */
#ifndef GALLEY_LAYOUT_RASTER_H
#define GALLEY_LAYOUT_RASTER_H

#include <stdbool.h>

#include "layout/page.h"

/* Share of pixels of the box (pt) that differ visibly from the local paper, 0..1. */
float raster_ink(const struct image *im, float scale, const struct box *box);
/* True when the whole bitmap (scanner noise, punch holes, edge shadows aside) carries nothing. */
bool raster_blank(const struct image *im, float scale);
/* Appends the straight horizontal and vertical rules of a bitmap to p->rules (pt).  `text` boxes
 * are masked first.  False when memory is short. */
bool raster_rules(struct page *p, const struct image *im, float scale, const struct box *text,
                  int n_text);
/* Appends photographs and drawings (large non-text ink) to p->pictures. */
bool raster_pictures(struct page *p, const struct image *im, float scale, const struct box *text,
                     int n_text);

#endif
