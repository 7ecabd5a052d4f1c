/* trust.h - whose word counts for a part: the model's, or the draft's where the model failed? Pure.
 */
#ifndef GALLEY_DOCUMENT_TRUST_H
#define GALLEY_DOCUMENT_TRUST_H

#include "layout/region.h"
#include "src/document/plan.h"

struct verdict {
    const char *text; /* the part's text or its draft; lent by the piece */
    enum galley_page_status status;
    const char *reason; /* one sentence when status is not OK, else "" */
};

/* A part without text, in a loop, cut short or failed keeps its draft, under every rule.  Under a
 * relaxed rule a draft is also kept where the model, once off the draft, plainly lost its way:
 * broken characters, a table of another shape, or many changes it does not believe in itself. Under
 * the exact rule the model's finished text always stands, byte for byte. */
struct verdict trust_piece(const struct piece *p, enum region_kind kind,
                           const struct region_plan *plan);

#endif
