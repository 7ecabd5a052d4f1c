/* pages.h - page selections such as "1-3,7,12-".  Pure. */
#ifndef GALLEY_DOCUMENT_PAGES_H
#define GALLEY_DOCUMENT_PAGES_H

#include "src/base/compiler.h"
#include "src/base/err.h"

/* Sorted 0-based indexes of the selected pages, each once; the array is the caller's (mem_free).
 * text NULL selects all.  "3-" runs to the end, "-3" from the start.  Pages past the end: error
 * with both numbers; the order of the text does not matter. */
GALLEY_MUST_USE enum galley_status pages_select(int **out, int *n, const char *text, int n_pages,
                                                struct galley_err *err);

#endif
