/* word.c - glyphs to words.
 *
 * Word breaks of the source (its space glyphs) are trusted and checked against geometry; a word is
 * also cut where its style changes, and the pieces remember that no space stood between them. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "layout/flow.h"
#include "src/base/cp.h"

#define LINK_BANDS 64
#define BAND_LINKS 48

/* Links by height band, so that a glyph looks at few. */
struct link_bands {
    int32_t list[LINK_BANDS][BAND_LINKS];
    int32_t n[LINK_BANDS];
};

struct collector {
    struct flow *f;
    struct link_bands *links;
    struct word cur; /* open word; n_chars 0: none */
    struct box last; /* box of its last glyph */
    int32_t run;
    int32_t n_source;
    bool space_seen;
};

static bool cp_dropped(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || (cp >= 0x200b && cp <= 0x200f) ||
           (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x2069) || cp == 0xfeff ||
           (cp >= 0xd800 && cp <= 0xdfff) || cp > 0x10ffff;
}

/* Bullets that Symbol and Wingdings keep in the private use area. */
static uint32_t cp_mapped(uint32_t cp)
{
    switch (cp) {
    case 0xf0b7:
    case 0xf0a7:
    case 0xf0d8:
    case 0xf076:
    case 0xf06e:
    case 0xf09f:
        return 0x2022;
    case 0xf0fc:
        return 0x2713;
    case 0xf02d:
        return '-';
    default:
        return cp;
    }
}

static const char *ligature_of(uint32_t cp)
{
    static const char *const parts[] = { "ff", "fi", "fl", "ffi", "ffl", "st", "st" };
    return cp >= 0xfb00 && cp <= 0xfb06 ? parts[cp - 0xfb00] : NULL;
}

static bool font_is_math(const char *font)
{
    static const char *const heads[] = { "CMMI",    "CMSY",   "CMEX",     "MSAM",
                                         "MSBM",    "EUFM",   "EUSM",     "RSFS",
                                         "MathJax", "Euclid", "STIXMath", "STIXTwoMath" };
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        if (strncmp(font, heads[i], strlen(heads[i])) == 0) {
            return true;
        }
    }
    return strstr(font, "Math") != NULL || strstr(font, "MT-Extra") != NULL;
}

static int band_of(const struct page *p, float y)
{
    const float b = y / p->height * LINK_BANDS;
    return b > 0 ? (b < LINK_BANDS ? (int)b : LINK_BANDS - 1) : 0;
}

static void links_sort(struct collector *c)
{
    const struct page *p = c->f->page;
    for (int32_t k = 0; k < p->n_links && k < 4000; k++) {
        const struct box *b = &p->links[k].box;
        if (!box_valid(b) || !p->links[k].uri ||
            (b->x1 - b->x0) * (b->y1 - b->y0) > p->width * p->height / 4) {
            continue;
        }
        for (int i = band_of(p, b->y0 - 2); i <= band_of(p, b->y1 + 2); i++) {
            if (c->links->n[i] < BAND_LINKS) {
                c->links->list[i][c->links->n[i]++] = k;
            }
        }
    }
}

static int32_t link_of(const struct collector *c, const struct box *g)
{
    const struct page *p = c->f->page;
    const float x = (g->x0 + g->x1) / 2, y = (g->y0 + g->y1) / 2;
    const int band = band_of(p, y);
    for (int i = 0; i < c->links->n[band]; i++) {
        const struct box *b = &p->links[c->links->list[band][i]].box;
        if (x > b->x0 - 0.5f && x < b->x1 + 0.5f && y > b->y0 - 2 && y < b->y1 + 2) {
            return c->links->list[band][i];
        }
    }
    return -1;
}

static void word_close(struct collector *c)
{
    if (c->cur.n_chars > 0) {
        struct word *w = &c->cur;
        w->source = c->n_source++;
        w->baseline = w->box.y1 - (c->f->ocr ? 0 : 0.22f * fminf(w->size, w->box.y1 - w->box.y0));
        assert(c->f->n_words < c->f->cap_words);
        c->f->words[c->f->n_words++] = *w;
    }
    c->cur.n_chars = 0;
}

static bool glyph_usable(const struct flow *f, const struct glyph *g)
{
    const struct page *p = f->page;
    if (!box_valid(&g->box) || g->run < 0 || g->run >= p->n_runs) {
        return false;
    }
    const float cx = (g->box.x0 + g->box.x1) / 2, cy = (g->box.y0 + g->box.y1) / 2;
    if (cx < 0 || cy < 0 || cx > p->width || cy > p->height) {
        return false; /* off the page: no reader sees it */
    }
    /* A glyph as large as the page is no text (and would tie all lines together). */
    return g->box.y1 - g->box.y0 < p->height * 0.8f && g->box.x1 - g->box.x0 < p->width * 0.8f;
}

/* True when g goes on in the open word's direction, near enough to be the same word. */
static bool glyph_follows(const struct collector *c, const struct glyph *g, float size)
{
    const struct box *a = &c->last, *b = &g->box;
    const float ha = a->y1 - a->y0, hb = b->y1 - b->y0;
    if (box_overlap_y(a, b) < 0.3f * fminf(ha, hb)) {
        return false;
    }
    const float em = fmaxf(size, c->cur.size);
    if (cp_is_rtl(g->cp)) {
        return fabsf(a->x0 - b->x1) < 0.3f * em || fabsf(b->x0 - a->x1) < 0.3f * em;
    }
    const float gap = b->x0 - a->x1;
    return gap > -0.6f * em && gap < 0.3f * em;
}

static void word_open(struct collector *c, const struct glyph *g, const struct text_run *r,
                      float size, int32_t link)
{
    struct word *w = &c->cur;
    memset(w, 0, sizeof(*w));
    w->box = g->box;
    w->size = size;
    w->conf = isfinite(r->conf) ? fmaxf(0, fminf(1, r->conf)) : 0;
    w->char0 = c->f->n_chars;
    w->flags = r->flags;
    w->link = link;
    w->math = font_is_math(r->font);
    c->run = g->run;
}

static void char_add(struct collector *c, uint32_t cp, float x0, float x1)
{
    struct flow *f = c->f;
    if (cp_is_math(cp)) {
        c->cur.math = true;
    }
    f->chars[f->n_chars++] = (struct flow_char){ cp, x0, x1 };
    c->cur.n_chars++;
}

static void glyph_take(struct collector *c, const struct glyph *g)
{
    const struct text_run *r = &c->f->page->runs[g->run];
    const float h = g->box.y1 - g->box.y0;
    float size = isfinite(r->size) && r->size > 0 ? r->size : h;
    /* Fonts lie about their size (Type 3) and about their box; believe what agrees. */
    if (size > 4 * h || size < h / 4) {
        size = h;
    }
    if (size <= 0.5f) {
        return; /* too small to be read: hidden text */
    }
    const bool follows = c->cur.n_chars > 0 && !c->space_seen && glyph_follows(c, g, size);
    const struct text_run *old = &c->f->page->runs[c->run];
    const bool same = c->run == g->run ||
                      (old->flags == r->flags && fabsf(old->size - r->size) < 0.05f * r->size);
    const int32_t link = link_of(c, &g->box);
    if (!follows || !same || link != c->cur.link) {
        word_close(c);
        word_open(c, g, r, size, link);
        c->cur.tight = follows;
    }
    c->space_seen = false;
    c->last = g->box;
    box_grow(&c->cur.box, &g->box);
    const uint32_t cp = cp_mapped(g->cp);
    const char *lig = ligature_of(cp);
    if (!lig) {
        char_add(c, cp, g->box.x0, g->box.x1);
        return;
    }
    const float step = (g->box.x1 - g->box.x0) / (float)strlen(lig);
    for (int i = 0; lig[i]; i++) {
        const float x = g->box.x0 + step * (float)i;
        char_add(c, (uint8_t)lig[i], x, x + step);
    }
}

/* Share of glyphs that no reader sees: they count only where nothing else is there. */
static bool mostly_invisible(const struct page *p, int n)
{
    int hidden = 0, all = 0;
    for (int i = 0; i < n; i++) {
        const struct glyph *g = &p->glyphs[i];
        if (g->run >= 0 && g->run < p->n_runs && !cp_is_space(g->cp)) {
            all++;
            hidden += (p->runs[g->run].flags & RUN_INVISIBLE) != 0;
        }
    }
    return hidden * 2 > all;
}

static void em_find(struct flow *f)
{
    int64_t hist[400] = { 0 };
    for (int32_t i = 0; i < f->n_words; i++) {
        const int bin = (int)(f->words[i].size * 2 + 0.5f);
        hist[bin < 399 ? bin : 399] += f->words[i].n_chars;
    }
    int best = 20;
    for (int i = 1; i < 400; i++) {
        best = hist[i] > hist[best] ? i : best;
    }
    f->em = (float)best / 2;
}

void words_find(struct flow *f)
{
    const struct page *p = f->page;
    const int n = p->n_glyphs < FLOW_MAX_GLYPHS ? p->n_glyphs : FLOW_MAX_GLYPHS;
    /* A ligature becomes at most three characters. */
    f->chars = flow_many(f, struct flow_char, (size_t)n * 3);
    f->cap_words = 3 * n;
    f->words = flow_many(f, struct word, (size_t)f->cap_words);
    if (f->failed) {
        return;
    }
    const bool hidden = mostly_invisible(p, n);
    struct collector c = { .f = f, .links = flow_many(f, struct link_bands, 1) };
    if (f->failed) {
        return;
    }
    links_sort(&c);
    for (int i = 0; i < n; i++) {
        const struct glyph *g = &p->glyphs[i];
        if (cp_is_space(g->cp)) {
            c.space_seen = true;
            continue;
        }
        if (cp_dropped(g->cp) || !glyph_usable(f, g)) {
            continue;
        }
        const struct text_run *r = &p->runs[g->run];
        if (r->angle != 0 || ((r->flags & RUN_INVISIBLE) && !hidden)) {
            c.space_seen = true;
            continue;
        }
        glyph_take(&c, g);
    }
    word_close(&c);
    f->n_source = f->n_words;
    em_find(f);
}
