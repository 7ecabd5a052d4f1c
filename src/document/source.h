/* source.h - where pages come from: a PDF or a single picture, behind one interface. */
#ifndef GALLEY_DOCUMENT_SOURCE_H
#define GALLEY_DOCUMENT_SOURCE_H

#include "layout/page.h"
#include "layout/pdf.h"
#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/galley_types.h"

struct source {
    struct pdf *pdf;       /* or NULL */
    struct image *picture; /* or NULL: handed out once */
    int n_pages;
    double dpi;
    bool damaged; /* a truncated picture: part of it is gray */
};

/* The bytes must outlive the source. */
GALLEY_MUST_USE enum galley_status source_open(struct source *out, const struct galley_source *src,
                                               const struct galley_convert_options *opt,
                                               struct galley_err *err);
/* Pixels of a PNG or JPEG that stands for itself: an image in a message. */
GALLEY_MUST_USE enum galley_status source_picture(struct image **out, const void *bytes, size_t n,
                                                  struct galley_err *err);
void source_close(struct source *s);
/* Page i (0-based); the caller's (page_free). */
GALLEY_MUST_USE enum galley_status source_page(struct source *s, int i, struct page **out,
                                               struct galley_err *err);
/* The page's text alone, without a bitmap; pictures have none (GALLEY_EUNSUP). */
GALLEY_MUST_USE enum galley_status source_page_text(struct source *s, int i, struct page **out,
                                                    struct galley_err *err);

#endif
