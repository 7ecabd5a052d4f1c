/* fuzz_layout.c - bytes as a page: whatever glyphs, rules and pictures, the layout's promises hold.
 *
 * Twelve bytes make one thing: kind, style, a code point, and a box in quarter points. */
#include <stdlib.h>
#include <string.h>

#include "layout/layout.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_RUNS 16

static void runs_fill(struct page *p)
{
    for (int i = 0; i < N_RUNS; i++) {
        p->runs[i] = (struct text_run){ .size = (float)(4 + 2 * (i % 6)), .conf = 1 };
        p->runs[i].flags = (uint8_t)(i % 5 == 0 ? RUN_BOLD : i % 7 == 0 ? RUN_MONO : 0);
        p->runs[i].angle = i == 15 ? 90 : 0;
    }
    p->n_runs = N_RUNS;
}

static void thing_add(struct page *p, const uint8_t *d)
{
    const float x = (float)(d[4] | d[5] << 8) / 4 - 50, y = (float)(d[6] | d[7] << 8) / 4 - 50;
    const struct box box = { x, y, x + (float)(d[8] | (d[9] & 7) << 8) / 4, y + (float)d[10] / 4 };
    switch (d[0] % 16) {
    case 0:
        p->rules[p->n_rules++] = (struct page_rule){ .box = box, .vertical = d[11] & 1 };
        break;
    case 1:
        p->pictures[p->n_pictures++] = (struct page_picture){ .box = box, .vector = d[11] & 1 };
        break;
    default:
        p->glyphs[p->n_glyphs++] =
            (struct glyph){ d[0] % 16 < 14 ? d[2] : (uint32_t)(d[2] | d[3] << 8), box,
                            d[1] % (N_RUNS + 1) };
        break;
    }
}

static void check(const struct page_layout *out)
{
    for (int i = 0; i < out->n_regions; i++) {
        const struct region *r = &out->regions[i];
        const int n = (int)strlen(r->draft.plain);
        if (!(r->draft.score >= 0 && r->draft.score <= 1) ||
            !utf8_valid(r->draft.markdown, strlen(r->draft.markdown))) {
            abort();
        }
        for (int k = 0; k < r->n_lines; k++) {
            const struct region_line *l = &r->lines[k];
            if (l->plain_from < 0 || l->plain_from > l->plain_to || l->plain_to > n ||
                (k > 0 && l->plain_from < r->lines[k - 1].plain_to)) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t n = size / 12 < 20000 ? size / 12 : 20000;
    struct page *p = mem_new(struct page);
    struct layout *l = NULL;
    struct page_layout *out = NULL;
    struct galley_err err = { 0 };
    const struct layout_options opt = { .source = LAYOUT_TEXT };
    p->width = 595;
    p->height = 842;
    p->scale = 1;
    p->glyphs = mem_many(struct glyph, n);
    p->rules = mem_many(struct page_rule, n);
    p->pictures = mem_many(struct page_picture, n);
    p->runs = mem_many(struct text_run, N_RUNS);
    runs_fill(p);
    for (size_t i = 0; i < n; i++) {
        thing_add(p, data + 12 * i);
    }
    if (layout_open(&l, NULL, &opt, &err) == GALLEY_OK) {
        layout_see(l, p, 1);
        if (layout_page(l, p, &out, &err) == GALLEY_OK) {
            check(out);
        } else if (!err.msg[0]) {
            abort();
        }
    }
    page_layout_free(out);
    layout_close(l);
    page_free(p);
    return 0;
}
