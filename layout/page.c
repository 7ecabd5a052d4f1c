/* page.c - struct page's release. */
#include "layout/page.h"

#include "src/base/mem.h"

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
