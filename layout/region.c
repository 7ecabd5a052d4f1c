/* region.c - names and release of regions. */
#include "layout/region.h"

#include <assert.h>

#include "src/base/mem.h"

const char *region_kind_name(enum region_kind k)
{
    static const char *const names[] = {
#define X(name, text) [REGION_##name] = text,
        REGION_KIND_MAP(X)
#undef X
    };
    assert((int)k >= 0 && k < REGION_KIND_COUNT);
    return names[k];
}

const char *draft_source_name(enum draft_source s)
{
    static const char *const names[] = { "none", "text", "ocr" };
    assert((int)s >= 0 && s <= DRAFT_OCR);
    return names[s];
}

static void region_deinit(struct region *r)
{
    mem_free(r->lines);
    mem_free(r->draft.markdown);
    mem_free(r->draft.plain);
    *r = (struct region){ 0 };
}

void page_layout_free(struct page_layout *l)
{
    if (!l) {
        return;
    }
    for (int i = 0; l->regions && i < l->n_regions; i++) {
        region_deinit(&l->regions[i]);
    }
    mem_free(l->regions);
    image_unref(l->bitmap);
    mem_free(l);
}
