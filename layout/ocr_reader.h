/* ocr_reader.h - internal to ocr*.c: Tesseract engines, kept between pages, quiet, on one thread.
 *
 * Three habits of Tesseract are contained here.  It prints to stderr: debug_file points to
 * /dev/null.  It runs each line on four OpenMP threads that mostly wait for each other (a page took
 * 1.3 s so and 0.4 s on one thread; 2 cores, busy): regions are made serial for the calling thread
 * while Tesseract works, through the OpenMP run time that it brought along, without touching the
 * environment.  And its layout analysis does not look at the clock: hostile textures never get
 * there (ocr_look). */
#ifndef GALLEY_LAYOUT_OCR_READER_H
#define GALLEY_LAYOUT_OCR_READER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "src/base/compiler.h"
#include "src/base/err.h"

struct Pix;
struct TessBaseAPI;

struct ocr_reader {
    char *languages;                /* owned; in the order Tesseract reads best */
    char *datapath;                 /* owned or NULL */
    struct TessBaseAPI *text, *osd; /* loaded on first use */
    double load_seconds;            /* of the models, since the page began */
    double deadline;                /* clock_seconds() at which a page must end */
    double page_seconds;
    _Atomic bool cancelled; /* any thread */
};

GALLEY_MUST_USE enum galley_status ocr_reader_open(struct ocr_reader *r, const char *languages,
                                                   const char *datapath, struct galley_err *err);
void ocr_reader_close(struct ocr_reader *r);

/* Reads an 8-bit picture whose print was brought to 300 dpi size.  band: rows [y, y + h) only, or
 * h = 0.  The result stays in r->text until the next call. */
GALLEY_MUST_USE enum galley_status ocr_reader_read(struct ocr_reader *r, struct Pix *gray, int y,
                                                   int h, struct galley_err *err);
/* Mean confidence 0..100 of what was read last. */
float ocr_reader_conf(struct ocr_reader *r);

/* Clockwise turn that sets the picture upright by Tesseract's orientation detection, with its
 * confidence; *turn is -1 when it cannot tell. */
GALLEY_MUST_USE enum galley_status ocr_reader_turn(struct ocr_reader *r, struct Pix *gray, int dpi,
                                                   int *turn, float *conf, struct galley_err *err);

#endif
