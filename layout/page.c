/* page.c - struct page's release and the names of page statuses. */
#include "layout/page.h"

#include <assert.h>

#include "src/base/mem.h"

const char *page_status_name(enum page_status s)
{
    static const char *const names[PAGE_STATUS_COUNT] = {
        [PAGE_OK] = "ok",
        [PAGE_BLANK] = "blank",
        [PAGE_TRUNCATED] = "truncated",
        [PAGE_REPETITION] = "repetition",
        [PAGE_LOW_CONFIDENCE] = "low_confidence",
        [PAGE_UNVERIFIED] = "unverified",
        [PAGE_ENCRYPTED] = "encrypted",
        [PAGE_CORRUPT] = "corrupt",
        [PAGE_TIMEOUT] = "timeout",
        [PAGE_CANCELLED] = "cancelled",
    };
    assert((int)s >= 0 && s < PAGE_STATUS_COUNT);
    return names[s];
}

void page_free(struct page *p)
{
    if (!p) {
        return;
    }
    for (int i = 0; p->links && i < p->n_links; i++) {
        mem_free(p->links[i].uri);
    }
    image_unref(p->bitmap);
    mem_free(p->glyphs);
    mem_free(p->runs);
    mem_free(p->rules);
    mem_free(p->pictures);
    mem_free(p->links);
    mem_free(p);
}
