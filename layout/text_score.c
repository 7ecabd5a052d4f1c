/* text_score.c - how far a page's text layer deserves belief.
 *
 * The product of four looks: are the codes mapped, are the letters language, do the boxes lie
 * where letters can lie, and is there ink under them. */
#include <math.h>
#include <string.h>

#include "layout/flow.h"
#include "layout/layout.h"
#include "layout/raster.h"
#include "src/base/cp.h"

struct tally {
    int n;       /* visible code points */
    int bad;     /* unmapped, private, control */
    int hidden;  /* invisible runs */
    int outside; /* off the page or without an extent */
    int letters, vowels, switches, pairs;
    int jamo;
};

static bool cp_is_bad(uint32_t cp)
{
    if (cp == 0xfffd || (cp < 0x20 && !cp_is_space(cp)) || (cp >= 0x7f && cp <= 0x9f)) {
        return true;
    }
    if (cp >= 0xe000 && cp <= 0xf8ff) {
        return cp < 0xf020 || cp > 0xf0ff; /* Symbol and Wingdings live there by right */
    }
    return cp >= 0xf0000 || (cp >= 0xd800 && cp <= 0xdfff) || (cp >= 0xfdd0 && cp <= 0xfdef);
}

static bool cp_is_vowel(uint32_t cp)
{
    return cp < 128 && cp > 0 && strchr("aeiouyAEIOUY", (int)cp) != NULL;
}

static void tally_glyphs(const struct page *p, struct tally *t)
{
    const int n = p->n_glyphs < FLOW_MAX_GLYPHS ? p->n_glyphs : FLOW_MAX_GLYPHS;
    uint32_t prev = ' ';
    for (int i = 0; i < n; i++) {
        const struct glyph *g = &p->glyphs[i];
        if (cp_is_space(g->cp)) {
            prev = ' ';
            continue;
        }
        t->n++;
        t->bad += cp_is_bad(g->cp);
        if (!box_valid(&g->box) || g->run < 0 || g->run >= p->n_runs || g->box.x1 < 0 ||
            g->box.y1 < 0 || g->box.x0 > p->width || g->box.y0 > p->height) {
            t->outside++;
            continue;
        }
        t->hidden += (p->runs[g->run].flags & RUN_INVISIBLE) != 0;
        const bool letter = g->cp < 128 && cp_is_letter(g->cp);
        t->letters += letter;
        t->vowels += letter && cp_is_vowel(g->cp);
        t->jamo += g->cp >= 0x1100 && g->cp <= 0x11ff;
        if (letter && prev < 128 && cp_is_letter(prev)) {
            t->pairs++;
            t->switches += cp_is_lower(prev) && cp_is_upper(g->cp);
        }
        prev = g->cp;
    }
}

static float score_mapping(const struct tally *t)
{
    const float share = (float)t->bad / (float)t->n;
    return fmaxf(0, 1 - share / 0.1f);
}

/* A shifted or substituted alphabet has the wrong share of vowels and capitals inside words. */
static float score_language(const struct tally *t)
{
    if (t->letters < 60 || t->letters * 3 < t->n) {
        return 1;
    }
    const float vowels = (float)t->vowels / (float)t->letters;
    const float switches = t->pairs > 50 ? (float)t->switches / (float)t->pairs : 0;
    float s = vowels >= 0.25f ? 1 : vowels <= 0.12f ? 0.2f : 0.2f + (vowels - 0.12f) / 0.13f * 0.8f;
    if (switches > 0.1f) {
        s = fminf(s, 0.4f);
    }
    return s;
}

/* Share of sampled glyphs with believable ink under them. */
static float score_ink(const struct page *p)
{
    if (!p->bitmap || p->n_glyphs == 0) {
        return 1;
    }
    int looked = 0, inked = 0;
    const int step = p->n_glyphs / 120 + 1;
    for (int i = 0; i < p->n_glyphs; i += step) {
        const struct glyph *g = &p->glyphs[i];
        if (cp_is_space(g->cp) || !box_valid(&g->box) || g->run < 0 || g->run >= p->n_runs ||
            (p->runs[g->run].flags & RUN_INVISIBLE) || g->box.x1 - g->box.x0 > 200 ||
            g->box.y1 - g->box.y0 > 200) {
            continue;
        }
        looked++;
        inked += raster_ink(p->bitmap, p->scale, &g->box) > 0.01f;
    }
    if (looked < 8) {
        return 1;
    }
    const float share = (float)inked / (float)looked;
    return share > 0.8f ? 1 : share / 0.8f;
}

static bool page_is_picture(const struct page *p)
{
    for (int i = 0; i < p->n_pictures && i < 2000; i++) {
        const struct box *b = &p->pictures[i].box;
        if (box_valid(b) && !p->pictures[i].vector &&
            (b->x1 - b->x0) * (b->y1 - b->y0) > 0.75f * p->width * p->height) {
            return true;
        }
    }
    return false;
}

float layout_text_score(const struct page *p)
{
    struct tally t = { 0 };
    tally_glyphs(p, &t);
    if (t.n == 0) {
        return 0;
    }
    const bool scan = page_is_picture(p);
    if (scan && t.n < 200) {
        return 0.2f; /* a stamp or page number on a scan */
    }
    float s = score_mapping(&t) * score_language(&t);
    s *= 1 - (float)t.outside / (float)t.n;
    if (t.hidden * 2 > t.n) {
        return s * 0.4f; /* somebody else's OCR: unknown quality */
    }
    if (t.jamo * 4 > t.n) {
        s *= 0.5f;
    }
    return fmaxf(0, fminf(1, s * score_ink(p)));
}
