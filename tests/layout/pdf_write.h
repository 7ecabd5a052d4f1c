/* pdf_write.h - writes small PDFs with a correct cross-reference table, for tests. */
#ifndef GALLEY_TESTS_PDF_WRITE_H
#define GALLEY_TESTS_PDF_WRITE_H

#include "src/base/buf.h"

#define PDF_WRITE_MAX 4096 /* objects */

struct pdf_writer {
    struct buf out;
    size_t offsets[PDF_WRITE_MAX];
    int n; /* objects so far; the next one gets number n + 1 */
};

void pdf_write_begin(struct pdf_writer *w);
/* One object; returns its number.  The text is used as it is. */
int pdf_write_object(struct pdf_writer *w, const char *fmt, ...) GALLEY_PRINTF(2, 3);
/* A stream with these entries in its dictionary beside /Length. */
int pdf_write_stream(struct pdf_writer *w, const char *entries, const void *bytes, size_t n);
/* Cross-reference table and trailer; `root` is the catalog's number. */
void pdf_write_end(struct pdf_writer *w, int root);
void pdf_write_free(struct pdf_writer *w);

/* A whole document of n equal pages: `page` are entries of the page dictionary (/MediaBox,
 * /Rotate ...; %d of the page object is not known yet, so no references), `content` the drawing.
 * Fonts /F1 Helvetica, /F2 Times-BoldItalic, /F3 Courier, /F4 a Japanese font that is not embedded;
 * image /Im 2 x 2 pixels, all red. */
void pdf_write_pages(struct pdf_writer *w, int n, const char *page, const char *content);

#endif
