/* chrome.h - running headers, footers, page numbers and footnotes: text apart from the flow.
 *
 * Private to layout/. */
#ifndef GALLEY_LAYOUT_CHROME_H
#define GALLEY_LAYOUT_CHROME_H

#include "layout/history.h"

/* Sets the role of lines in the top and bottom bands. */
void chrome_find(struct flow *f, const struct history *h);
/* Sets LINE_NOTE for footnotes and fills f->notes.  After chrome_find. */
void notes_find(struct flow *f, const struct history *h);
/* Adds blocks for both: headers first, then the page's blocks, notes, footers, numbers. */
void chrome_place(struct flow *f);

#endif
