/* assemble.h - parts become regions, regions become a page.  Pure, apart from allocation. */
#ifndef GALLEY_DOCUMENT_ASSEMBLE_H
#define GALLEY_DOCUMENT_ASSEMBLE_H

#include "layout/region.h"
#include "src/document/plan.h"
#include "src/galley_types.h"

/* Everything behind one struct galley_page. */
struct page_result {
    struct galley_page page;       /* points into the rest */
    struct galley_region *regions; /* [layout->n_regions] */
    char **texts;                  /* [n_regions] owned Markdown */
    char *markdown;                /* owned */
    char reason[256];
};

/* layout and plans (one per region) must outlive the result.  engine_used false: nothing was
 * verified, drafts are the result. */
GALLEY_MUST_USE enum galley_status assemble_page(struct page_result *out, int number,
                                                 const struct page_layout *layout,
                                                 const struct region_plan *plans,
                                                 const struct galley_convert_options *opt,
                                                 bool engine_used, struct galley_err *err);
void page_result_deinit(struct page_result *r);

#endif
