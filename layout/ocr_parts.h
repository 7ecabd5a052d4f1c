/* ocr_parts.h - internal to ocr*.c: the stages of reading a bitmap. */
#ifndef GALLEY_LAYOUT_OCR_PARTS_H
#define GALLEY_LAYOUT_OCR_PARTS_H

#include <stdbool.h>

#include "layout/page.h"
#include "layout/raster_pix.h"
#include "src/base/err.h"

struct TessBaseAPI;
struct TessResultIterator;

/* --- ocr_look.c: what the ink says before anything is read --- */

struct ocr_look {
    int x_height;    /* pixels of the bitmap; 0 when nothing looks like print */
    int n_parts;     /* connected components */
    bool texture;    /* noise or halftone: reading it is a waste of the time limit */
    float skew;      /* degrees clockwise that straighten the page */
    float skew_conf; /* Leptonica's: >= 3 is clear */
    bool sideways;   /* text lines run up and down */
    float up_conf;   /* > 0: upright; by ascenders and descenders, Latin only */
    float left_conf; /* > 0: the text's top points left */
};

/* False when memory is short. */
bool ocr_look(struct ocr_look *out, const struct image *im, float scale);
/* Clockwise turn that pixels ask for, -1 when they are not clear. */
int ocr_look_turn(const struct ocr_look *l);

/* --- ocr_turn.c: bitmaps turned and straightened, NULL when memory is short --- */

struct image *ocr_turn(struct image *im, int clockwise); /* 0: another reference */
struct image *ocr_straighten(struct image *im, float degrees_clockwise);
/* 8-bit picture to read, print brought to a good size, light evened out; *zoom is its pixels per
 * pixel of the bitmap. */
struct Pix *ocr_input(const struct image *im, float scale, int x_height, float *zoom);

/* --- ocr_words.c: Tesseract's result becomes glyphs --- */

/* gray is the picture that was read, to_pt its points per pixel.  False when memory is short. */
bool ocr_words(struct page *p, struct TessBaseAPI *reader, struct Pix *gray, float to_pt);

#endif
