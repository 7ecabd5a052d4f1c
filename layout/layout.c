/* layout.c - the light parser's flow: which text, then steps from glyphs to regions. */
#include "layout/layout.h"

#include <stdio.h>
#include <string.h>

#include "layout/chrome.h"
#include "layout/draft.h"
#include "layout/figure.h"
#include "layout/raster.h"
#include "layout/turn.h"
#include "src/base/clock.h"
#include "src/base/cp.h"
#include "src/base/mem.h"

#define SCORE_BELIEVED 0.5f

struct layout {
    struct ocr *ocr; /* borrowed; may be NULL */
    enum layout_source source;
    char *figure_prefix;
    struct history history;
};

enum galley_status layout_open(struct layout **out, struct ocr *ocr,
                               const struct layout_options *opt, struct galley_err *err)
{
    *out = NULL;
    struct layout *l = mem_new(struct layout);
    if (!l) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for the layout");
    }
    l->ocr = ocr;
    l->source = opt ? opt->source : LAYOUT_AUTO;
    const char *prefix = opt && opt->figure_prefix ? opt->figure_prefix : "figure";
    l->figure_prefix = mem_strdup(prefix);
    if (!l->figure_prefix || !history_init(&l->history)) {
        layout_close(l);
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for the layout");
    }
    *out = l;
    return GALLEY_OK;
}

void layout_close(struct layout *l)
{
    if (!l) {
        return;
    }
    history_deinit(&l->history);
    mem_free(l->figure_prefix);
    mem_free(l);
}

void layout_see(struct layout *l, const struct page *p, int n_pages)
{
    struct flow f;
    flow_init(&f, p, false);
    words_find(&f);
    strips_find(&f);
    lines_find(&f);
    if (f.n_words > 0) {
        history_see(&l->history, &f, n_pages);
    }
    flow_deinit(&f);
}

static bool page_has_rules_worth_showing(const struct page *p)
{
    return p->n_rules >= 12; /* an empty form or grid */
}

static bool page_blank(const struct page *p)
{
    for (int i = 0; i < p->n_glyphs; i++) {
        if (!cp_is_space(p->glyphs[i].cp)) {
            return false;
        }
    }
    if (p->bitmap && raster_blank(p->bitmap, p->scale)) {
        return true;
    }
    return !p->bitmap && p->n_pictures == 0 && !page_has_rules_worth_showing(p);
}

/* Nothing could be read: the page is one picture. */
static bool whole_page_figure(const struct layout *l, const struct page *p, struct page_layout *out)
{
    out->regions = mem_many(struct region, 1);
    if (!out->regions) {
        return false;
    }
    out->n_regions = 1;
    struct region *r = out->regions;
    r->kind = REGION_FIGURE;
    r->box = (struct box){ 0, 0, p->width, p->height };
    const size_t n = strlen(l->figure_prefix) + 48;
    r->draft.markdown = mem_alloc(n);
    r->draft.plain = mem_strdup("");
    if (!r->draft.markdown || !r->draft.plain) {
        return false;
    }
    snprintf(r->draft.markdown, n, "![](%s-p%d-1.png)", l->figure_prefix, p->index + 1);
    return true;
}

static bool page_analyse(struct layout *l, const struct page *p, bool ocr, float text_score,
                         struct page_layout *out)
{
    struct flow f;
    flow_init(&f, p, ocr);
    words_find(&f);
    tables_ruled(&f);
    figures_find(&f);
    strips_find(&f);
    lines_find(&f);
    history_see(&l->history, &f, l->history.n_pages);
    chrome_find(&f, &l->history);
    figures_absorb(&f);
    notes_find(&f, &l->history);
    order_find(&f);
    blocks_find(&f, &l->history);
    captions_place(&f);
    chrome_place(&f);
    const struct draft_options opt = { .figure_prefix = l->figure_prefix,
                                       .source = ocr ? DRAFT_OCR : DRAFT_TEXT,
                                       .text_score = text_score };
    const bool ok = !f.failed && draft_regions(&f, &l->history, &opt, out);
    flow_deinit(&f);
    return ok;
}

static void frame_take(struct page_layout *out, const struct page *p)
{
    out->bitmap = p->bitmap ? image_ref(p->bitmap) : NULL;
    out->width = p->width;
    out->height = p->height;
    out->scale = p->scale;
}

/* A page whose text mostly runs down or up is turned first, like a scan. */
static bool text_analyse(struct layout *l, const struct page *p, struct page_layout *out)
{
    const int angle = page_text_angle(p);
    if (angle == 0) {
        return page_analyse(l, p, false, out->text_layer_score, out);
    }
    struct page *q = page_turn_upright(p, angle);
    if (!q) {
        return false;
    }
    image_unref(out->bitmap);
    frame_take(out, q);
    const bool ok = page_analyse(l, q, false, out->text_layer_score, out);
    page_free(q);
    return ok;
}

static enum galley_status page_read(struct layout *l, const struct page *p, struct page_layout *out,
                                    struct galley_err *err)
{
    out->text_layer_score = layout_text_score(p);
    const bool believed = out->text_layer_score >= SCORE_BELIEVED;
    const bool by_text = l->source == LAYOUT_TEXT || (l->source == LAYOUT_AUTO && believed);
    if (by_text || !l->ocr || !p->bitmap) {
        frame_take(out, p);
        if (page_blank(p)) {
            out->blank = true;
            return GALLEY_OK;
        }
        const bool readable = by_text && out->text_layer_score > 0;
        const bool ok = readable ? text_analyse(l, p, out) : whole_page_figure(l, p, out);
        return ok ? GALLEY_OK
                  : galley_err_set(err, GALLEY_ENOMEM, "no memory for page %d", p->index + 1);
    }
    if (raster_blank(p->bitmap, p->scale)) {
        frame_take(out, p);
        out->blank = true;
        return GALLEY_OK;
    }
    struct page *q = NULL;
    const double start = clock_seconds();
    const enum galley_status rc = ocr_page(l->ocr, p, &q, err);
    out->ocr_seconds = clock_seconds() - start;
    if (rc) {
        return rc;
    }
    out->used_ocr = true;
    frame_take(out, q);
    bool ok = true;
    if (q->n_glyphs == 0 && q->n_pictures == 0) {
        out->blank = true;
    } else {
        ok = page_analyse(l, q, true, 1, out);
    }
    page_free(q);
    return ok ? GALLEY_OK
              : galley_err_set(err, GALLEY_ENOMEM, "no memory for page %d", p->index + 1);
}

enum galley_status layout_page(struct layout *l, const struct page *p, struct page_layout **out,
                               struct galley_err *err)
{
    *out = NULL;
    struct page_layout *made = mem_new(struct page_layout);
    if (!made) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for page %d", p->index + 1);
    }
    const enum galley_status rc = page_read(l, p, made, err);
    if (rc) {
        page_layout_free(made);
        return rc;
    }
    *out = made;
    return GALLEY_OK;
}
