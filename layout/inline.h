/* inline.h - writing words with bold, italic, code and links, twice: Markdown and plain.
 *
 * Private to layout/. */
#ifndef GALLEY_LAYOUT_INLINE_H
#define GALLEY_LAYOUT_INLINE_H

#include "layout/history.h"
#include "layout/join.h"
#include "src/base/buf.h"

struct pen {
    const struct flow *f;
    const struct history *h;
    struct buf md, plain;
    const int32_t *notes; /* marks that have a footnote on this page */
    int32_t n_notes;
    uint8_t ignored; /* styles that are the paragraph's own, and so no emphasis */
    bool cell;       /* inside a table: | is escaped */
    bool html;       /* inside an HTML table: tags, no Markdown */
    bool bare;       /* no inline markup at all (headings keep links only) */
    /* state */
    uint8_t style;
    int32_t link;
    bool open_link;
    bool fresh; /* at the start of a line */
    bool pending_space;
    bool after_leader;
};

void pen_init(struct pen *p, const struct flow *f, const struct history *h);
void pen_deinit(struct pen *p);
/* Block-level markup and text that goes into both. */
void pen_mark(struct pen *p, const char *s);
/* Words [from, n_words) of a line, then the join that the next line asks for. */
void pen_line(struct pen *p, const struct line *l, int32_t from, enum join after, bool last);
/* Closes open emphasis and links; the next text starts a line. */
void pen_end(struct pen *p);

#endif
