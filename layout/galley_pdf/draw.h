/* draw.h - what was drawn on a page, sorted into rules, filled boxes, artwork, pictures and ink.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * Pure: knows neither cairo nor Poppler.  All coordinates are points of page.h's frame.  Counts are
 * capped; what comes after a full list is dropped, as is everything while memory is short. */
#ifndef GALLEY_PDF_DRAW_H
#define GALLEY_PDF_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/page.h"

enum draw_verb { DRAW_MOVE, DRAW_LINE, DRAW_CURVE, DRAW_CLOSE };

/* One step of a path; x, y is where it ends.  A curve also says which box it stays in. */
struct draw_step {
    enum draw_verb verb;
    float x, y;
    struct box hull; /* curves only */
};

struct draw_style {
    uint8_t rgb[3];
    bool flat;   /* one colour; false: gradient or pattern */
    float width; /* stroke width in pt; fills ignore it */
    struct box clip;
};

/* The origin of a drawn glyph. */
struct ink {
    float x, y;
    int16_t angle;
    int32_t n_pictures; /* how many opaque pictures had been drawn before it */
};

struct filled {
    struct box box;
    uint8_t rgb[3];
};

struct cover { /* an image */
    struct box box;
    bool opaque;
};

struct drawing {
    float width, height;
    struct page_rule *rules;
    struct filled *fills;
    struct box *art;
    struct cover *covers;
    struct ink *inks;
    size_t n_rules, n_fills, n_art, n_covers, n_inks;
    size_t cap_rules, cap_fills, cap_art, cap_covers, cap_inks;
    size_t n_steps; /* looked at so far: bounds the work on monstrous drawings */
};

void drawing_deinit(struct drawing *d);
void draw_fill(struct drawing *d, const struct draw_step *steps, size_t n,
               const struct draw_style *style);
void draw_stroke(struct drawing *d, const struct draw_step *steps, size_t n,
                 const struct draw_style *style);
void draw_cover(struct drawing *d, struct box box, bool opaque);
void draw_ink(struct drawing *d, float x, float y, int angle);

/* Writes the rules and pictures found into p (whose lists must be empty); false: no memory. */
bool drawing_finish(const struct drawing *d, struct page *p);

#endif
