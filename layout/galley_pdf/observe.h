/* observe.h - watches what Poppler draws with cairo while one page is rendered.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler) */
#ifndef GALLEY_PDF_OBSERVE_H
#define GALLEY_PDF_OBSERVE_H

#include <cairo.h>

#include "layout/galley_pdf/draw.h"

/* Between the two calls, everything drawn with cr is added to d; `scale` is pixels per point. */
void observe_begin(struct drawing *d, cairo_t *cr, double scale);
void observe_end(void);

#endif
