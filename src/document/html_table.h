/* html_table.h - HTML tables inside Markdown: recognised only when harmless.  Pure. */
#ifndef GALLEY_DOCUMENT_HTML_TABLE_H
#define GALLEY_DOCUMENT_HTML_TABLE_H

#include <stddef.h>

#include "src/base/buf.h"

/* The next table at the start of a line that consists of table, thead, tbody, tr, th, td and br
 * tags only, with numeric rowspan and colspan and no other attribute; NULL when there is none. */
const char *html_table_find(const char *text);
/* Just behind the </table> of a table that html_table_find gave. */
const char *html_table_end(const char *table);
/* The cells of such a table, tab-separated, a row a line, entities decoded. */
void html_table_to_text(struct buf *out, const char *table, size_t n);

#endif
