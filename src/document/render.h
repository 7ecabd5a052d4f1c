/* render.h - pages as Markdown, JSON, HTML or plain text, streamed page by page.
 *
 * The output of a document is render_begin + render_page for each page + render_end; every piece is
 * the caller's (mem_free), NULL when memory is short. */
#ifndef GALLEY_DOCUMENT_RENDER_H
#define GALLEY_DOCUMENT_RENDER_H

#include <stdbool.h>

#include "src/galley_types.h"

/* n_pages: of the whole document. */
char *render_begin(enum galley_format format, const struct galley_source *src, int n_pages);
/* index counts the pages of this output from 0.  page_break: "<!-- page N -->" before each page. */
char *render_page(enum galley_format format, const struct galley_page *page, int index,
                  bool page_break);
char *render_end(enum galley_format format, const struct galley_stats *stats);
/* The statistics alone, as JSON (--stats). */
char *render_stats(const struct galley_stats *stats);

#endif
