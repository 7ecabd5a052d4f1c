/* layout.h - from a page to regions in reading order with drafts: the light parser.
 *
 * Runs with no neural model at all.  A struct layout belongs to one document and remembers what
 * running headers, page numbers, body size and list state need across pages; pages are announced in
 * order with layout_see (cheap; may run ahead) and analysed in order with layout_page.  One thread
 * at a time. */
#ifndef GALLEY_LAYOUT_LAYOUT_H
#define GALLEY_LAYOUT_LAYOUT_H

#include "layout/ocr.h"
#include "layout/region.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

struct layout;

enum layout_source { LAYOUT_AUTO, LAYOUT_TEXT, LAYOUT_OCR };

struct layout_options {
    enum layout_source source; /* auto: the text layer when its score holds, else OCR */
    const char *figure_prefix; /* figures become ![](PREFIX-pN-K.png); NULL: "figure" */
};

/* ocr may be NULL: then a page without a believable text layer yields figure-only regions.  It is
 * borrowed and must outlive the layout. */
GALLEY_MUST_USE enum galley_status layout_open(struct layout **out, struct ocr *ocr,
                                               const struct layout_options *opt,
                                               struct galley_err *err);
void layout_close(struct layout *l);

/* Tells the document-wide statistics about a page that will come (running headers and footers are
 * recognised by repetition).  n_pages is the document's page count. */
void layout_see(struct layout *l, const struct page *p, int n_pages);

GALLEY_MUST_USE enum galley_status layout_page(struct layout *l, const struct page *p,
                                               struct page_layout **out, struct galley_err *err);

/* 0..1: share of a text layer that can be believed (unmapped glyphs, control characters, invisible
 * or misplaced text, ink without text).  Pure. */
float layout_text_score(const struct page *p);

#endif
