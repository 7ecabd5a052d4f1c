/* ocr.h - text from pixels by Tesseract, in the same page model as a text layer.
 *
 * A struct ocr holds one Tesseract engine (loaded on first use, kept); one thread at a time. */
#ifndef GALLEY_LAYOUT_OCR_H
#define GALLEY_LAYOUT_OCR_H

#include "layout/page.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

struct ocr;

struct ocr_options {
    const char *languages; /* "eng+kor"; NULL: "eng" */
    const char *datapath;  /* NULL: Tesseract's default */
    double page_seconds;   /* 0: 60 */
};

/* Checks that every language (and osd) is installed: GALLEY_EUNSUP names the missing one and its
 * Debian package. */
GALLEY_MUST_USE enum galley_status ocr_open(struct ocr **out, const struct ocr_options *opt,
                                            struct galley_err *err);
void ocr_close(struct ocr *o); /* NULL is fine */

/* Seconds that the last ocr_page spent: Tesseract's own time is load + orient_tess + recognise. */
struct ocr_times {
    double blank;       /* is there anything to read */
    double look;        /* size of print, skew, orientation from pixels */
    double orient_tess; /* Tesseract's orientation detection, when pixels were not clear */
    double upright;     /* turning and straightening the bitmap */
    double input;       /* gray, even light, scaled */
    double load;        /* the models, once */
    double recognise;
    double pixels; /* rules and pictures */
};

/* Reads the bitmap of `in` (its text layer is ignored): sets it upright (orientation detection,
 * 90/180/270), straightens skew, recognises words, finds rules and pictures from pixels.  *out is a
 * new page whose bitmap is the upright, straightened one (the original pixels otherwise, never
 * binarised); .turned says what was done.  A page without ink comes back with no glyphs.
 * GALLEY_ETIMEOUT after page_seconds, GALLEY_ECANCELLED after ocr_cancel. */
GALLEY_MUST_USE enum galley_status ocr_page(struct ocr *o, const struct page *in, struct page **out,
                                            struct galley_err *err);

/* Makes the ocr_page call in progress (or the next one) return GALLEY_ECANCELLED soon.  Any thread.
 */
void ocr_cancel(struct ocr *o);

void ocr_last_times(const struct ocr *o, struct ocr_times *out);

#endif
