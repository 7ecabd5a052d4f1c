/* raster_pix.h - internal to raster*.c and ocr*.c: bitmaps as Leptonica Pix, and the paper below
 * the ink.
 *
 * Leptonica allocates by itself (not through base/mem.h).  All functions survive any picture:
 * 1 x 1, strips, all black, noise; NULL means memory is short. */
#ifndef GALLEY_LAYOUT_RASTER_PIX_H
#define GALLEY_LAYOUT_RASTER_PIX_H

#include <stdbool.h>

#include "layout/page.h"

struct Pix;

/* Brightness of the paper over the page as a quadratic surface in u = x/width, v = y/height: light
 * falls off smoothly under a lamp, while photographs and filled boxes do not follow such a curve.
 */
struct paper {
    double c[6];  /* c0 + c1 u + c2 v + c3 uu + c4 uv + c5 vv */
    float spread; /* brightest minus dimmest point of the surface */
    bool dark;    /* light ink on dark paper: the gray picture has been inverted */
};

/* Leptonica writes complaints about odd pictures to stderr; stderr belongs to the program.  Turns
 * them off, once per process. */
void raster_quiet(void);

/* Luminance, 8 bit, brought down so that neither side nor the area exceeds the limits (0: none) and
 * scale does not exceed max_scale (pixels per pt; 0: none).  *scale is in and out. */
struct Pix *raster_gray(const struct image *im, float *scale, float max_scale);

/* Fits the paper; inverts gray in place when the page is dark. */
struct paper raster_paper(struct Pix *gray);

/* Its brightness at a place, 0..255. */
float raster_paper_at(const struct paper *paper, float u, float v);

/* 1-bit picture of everything darker than the paper by more than `drop` (share of the paper's
 * brightness, 0..1). */
struct Pix *raster_ink_pix(struct Pix *gray, const struct paper *paper, float drop);

/* Clears the box (pt, grown by margin) in a 1-bit picture. */
void raster_clear(struct Pix *ink, const struct box *b, float scale, float margin);

/* A scale that can be believed: pixels per pt, else 150 dpi. */
float raster_scale(float scale);

#endif
