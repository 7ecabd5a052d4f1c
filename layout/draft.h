/* draft.h - blocks to regions with drafts.  Private to layout/. */
#ifndef GALLEY_LAYOUT_DRAFT_H
#define GALLEY_LAYOUT_DRAFT_H

#include "layout/history.h"
#include "layout/region.h"

struct draft_options {
    const char *figure_prefix;
    enum draft_source source;
    float text_score; /* belief in the page's characters, 0..1 */
};

/* Fills out->regions from f->blocks in order.  False when memory is short (what was made stays in
 * *out for page_layout_free). */
bool draft_regions(const struct flow *f, const struct history *h, const struct draft_options *opt,
                   struct page_layout *out);

#endif
