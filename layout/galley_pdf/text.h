/* text.h - a page's text layer as glyphs and runs.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler) */
#ifndef GALLEY_PDF_TEXT_H
#define GALLEY_PDF_TEXT_H

#include <cairo.h>
#include <poppler.h>
#include <stdbool.h>

#include "layout/galley_pdf/draw.h"
#include "layout/page.h"

/* Fills p's glyphs and runs from a page that has just been rendered onto `surface` (RGB24) with
 * p->scale under the eyes of `d`.  A page whose text cannot be paired with its boxes gets none.
 * False: no memory. */
bool text_collect(PopplerPage *page, const struct drawing *d, cairo_surface_t *surface, float scale,
                  struct page *p);

#endif
