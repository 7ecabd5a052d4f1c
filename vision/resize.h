/* resize.h - the resampling of vision_resize, in pieces of bounded work. */
#ifndef GALLEY_VISION_RESIZE_H
#define GALLEY_VISION_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/image.h"

struct resizer;

/* NULL without memory.  im is lent until resizer_free. */
struct resizer *resizer_new(const struct image *im, int width, int height);
void resizer_free(struct resizer *r); /* NULL is fine */
/* Goes on by about so many pixels times taps, by one row at least.  True when all is done. */
bool resizer_step(struct resizer *r, int64_t work);
/* Lent until resizer_free; its rows are right when resizer_step has said true.  im itself when the
 * size is im's. */
const struct image *resizer_picture(const struct resizer *r);

#endif
