/* page_builder.h - sets text into a struct page: the layout tests' compositor.
 *
 * Every character is half an em wide (wide ones a full em), so that tests can compute edges.
 * Aborts when memory is short: tests only. */
#ifndef GALLEY_TESTS_PAGE_BUILDER_H
#define GALLEY_TESTS_PAGE_BUILDER_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "layout/layout.h"
#include "src/base/buf.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

struct builder {
    struct page *page;
    int cap_glyphs, cap_runs, cap_rules, cap_pictures, cap_links;
    uint8_t flags; /* of the text to come */
    int16_t angle;
    float conf;
};

static inline void *builder_room(void *list, int n, int *cap, size_t size)
{
    if (n < *cap) {
        return list;
    }
    *cap = *cap ? 2 * *cap : 64;
    void *grown = mem_resize_array(list, (size_t)*cap, size);
    if (!grown) {
        abort();
    }
    return grown;
}

static inline struct builder builder_new(float width, float height)
{
    struct builder b = { .conf = 1 };
    b.page = mem_new(struct page);
    if (!b.page) {
        abort();
    }
    b.page->width = width;
    b.page->height = height;
    b.page->scale = 1;
    return b;
}

static inline void builder_glyph(struct builder *b, uint32_t cp, struct box box, int run)
{
    struct page *p = b->page;
    p->glyphs = builder_room(p->glyphs, p->n_glyphs, &b->cap_glyphs, sizeof(*p->glyphs));
    p->glyphs[p->n_glyphs++] = (struct glyph){ cp, box, run };
}

static inline int builder_run(struct builder *b, float size)
{
    struct page *p = b->page;
    p->runs = builder_room(p->runs, p->n_runs, &b->cap_runs, sizeof(*p->runs));
    p->runs[p->n_runs] =
        (struct text_run){ .size = size, .flags = b->flags, .conf = b->conf, .angle = b->angle };
    return p->n_runs++;
}

static inline float builder_advance(uint32_t cp, float size)
{
    return size * (cp >= 0x1100 ? 1.0f : 0.5f);
}

static inline float builder_width(const char *s, float size)
{
    float w = 0;
    for (size_t i = 0, n = strlen(s); i < n;) {
        uint32_t cp;
        i += (size_t)utf8_decode(s + i, n - i, &cp);
        w += builder_advance(cp, size);
    }
    return w;
}

/* One stretch of text from x on the baseline y; returns the x after it.  No line end. */
static inline float builder_put(struct builder *b, float x, float y, float size, const char *s)
{
    const int run = builder_run(b, size);
    for (size_t i = 0, n = strlen(s); i < n;) {
        uint32_t cp;
        i += (size_t)utf8_decode(s + i, n - i, &cp);
        const float w = builder_advance(cp, size);
        builder_glyph(b, cp, (struct box){ x, y - 0.75f * size, x + w, y + 0.22f * size }, run);
        x += w;
    }
    return x;
}

static inline void builder_line(struct builder *b, float x, float y, float size, const char *s)
{
    x = builder_put(b, x, y, size, s);
    builder_glyph(b, '\n', (struct box){ x, y, x, y }, b->page->n_runs - 1);
}

/* Breaks the text greedily at spaces into lines of `width`; returns the baseline after the last
 * line.  `justify` spreads the words of all lines but the last. */
static inline float builder_para(struct builder *b, float x, float y, float width, float size,
                                 bool justify, const char *s)
{
    const float lead = 1.25f * size;
    const char *words[400];
    int n = 0;
    char *copy = mem_strdup(s);
    for (char *w = strtok(copy, " "); w && n < 400; w = strtok(NULL, " ")) {
        words[n++] = w;
    }
    for (int i = 0; i < n;) {
        int k = i;
        float used = 0;
        while (k < n && (k == i || used + 0.3f * size + builder_width(words[k], size) <= width)) {
            used += (k > i ? 0.3f * size : 0) + builder_width(words[k], size);
            k++;
        }
        const float extra = justify && k < n && k > i + 1 ? (width - used) / (float)(k - i - 1) : 0;
        float at = x;
        for (int j = i; j < k; j++) {
            at = builder_put(b, at, y, size, words[j]);
            builder_glyph(b, j + 1 < k ? ' ' : '\n', (struct box){ at, y, at, y },
                          b->page->n_runs - 1);
            at += 0.3f * size + extra;
        }
        i = k;
        y += lead;
    }
    mem_free(copy);
    return y;
}

static inline void builder_rule(struct builder *b, float x0, float y0, float x1, float y1)
{
    struct page *p = b->page;
    p->rules = builder_room(p->rules, p->n_rules, &b->cap_rules, sizeof(*p->rules));
    p->rules[p->n_rules++] =
        (struct page_rule){ .box = { x0, y0, x1, y1 }, .vertical = y1 - y0 > x1 - x0 };
}

static inline void builder_grid(struct builder *b, float x, float y, float w, float h, int cols,
                                int rows)
{
    for (int r = 0; r <= rows; r++) {
        builder_rule(b, x, y + h * (float)r, x + w * (float)cols, y + h * (float)r + 0.5f);
    }
    for (int c = 0; c <= cols; c++) {
        builder_rule(b, x + w * (float)c, y, x + w * (float)c + 0.5f, y + h * (float)rows);
    }
}

static inline void builder_picture(struct builder *b, float x0, float y0, float x1, float y1)
{
    struct page *p = b->page;
    p->pictures = builder_room(p->pictures, p->n_pictures, &b->cap_pictures, sizeof(*p->pictures));
    p->pictures[p->n_pictures++] = (struct page_picture){ .box = { x0, y0, x1, y1 } };
}

static inline void builder_link(struct builder *b, float x0, float y0, float x1, float y1,
                                const char *uri)
{
    struct page *p = b->page;
    p->links = builder_room(p->links, p->n_links, &b->cap_links, sizeof(*p->links));
    p->links[p->n_links++] = (struct page_link){ { x0, y0, x1, y1 }, mem_strdup(uri) };
}

static inline struct page_layout *builder_layout(const struct builder *b)
{
    struct layout *l = NULL;
    struct page_layout *out = NULL;
    struct galley_err err = { 0 };
    const struct layout_options opt = { .source = LAYOUT_TEXT };
    if (layout_open(&l, NULL, &opt, &err) || layout_page(l, b->page, &out, &err)) {
        abort();
    }
    layout_close(l);
    return out;
}

/* The regions' Markdown with blank lines between, chrome left out; frees everything. */
static inline char *builder_markdown(struct builder *b)
{
    struct page_layout *out = builder_layout(b);
    struct buf md;
    buf_init(&md, 1u << 24);
    for (int i = 0; i < out->n_regions; i++) {
        if (out->regions[i].kind < REGION_PAGE_HEADER) {
            buf_add_str(&md, md.n ? "\n\n" : "");
            buf_add_str(&md, out->regions[i].draft.markdown);
        }
    }
    page_layout_free(out);
    page_free(b->page);
    b->page = NULL;
    return buf_take(&md);
}

/* Body text so that sizes have something to be compared with. */
static const char builder_prose[] =
    "the quick brown fox jumps over the lazy dog while the old printer sets another page of plain "
    "text and nobody in the house looks up from the stone where the forms are waiting for the "
    "evening and its slow machines to come around again.";

#endif
