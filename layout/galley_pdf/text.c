/* text.c - pairs Poppler's text with its boxes, colours and fonts.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * Poppler gives a string, one rectangle per code point of it, and style ranges by code point. Right
 * to left words carry extra direction controls in the string and come reversed in it, so controls
 * are dropped and the rectangles turned round inside each such word; then the counts must agree.
 * Reading direction and visibility are taken from the glyphs that cairo was really asked to draw.
 */
#include "layout/galley_pdf/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout/pdf_proto.h"
#include "src/base/compiler.h"
#include "src/base/mem.h"

/* --- fonts --- */

static bool has_token(const char *name, const char *const *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcasestr(name, tokens[i])) {
            return true;
        }
    }
    return false;
}

/* RUN_BOLD, RUN_ITALIC, RUN_MONO by the tokens of a font name. */
static uint8_t text_font_flags(const char *name)
{
    static const char *const bold[] = { "bold", "black",  "heavy", "demi",   "cmbx",
                                        "cmb1", "cmssbx", "-bd",   "medi10", "nimbusromno9l-medi",
                                        "sfbx" };
    static const char *const italic[] = {
        "ital", "obli", "slanted", "cmti", "cmsl", "-it", "sfti"
    };
    static const char *const mono[] = { "mono",   "courier",      "consol", "typewriter", "cmtt",
                                        "code",   "nimbusmon",    "menlo",  "terminal",   "fixed",
                                        "cmsltt", "lettergothic", "sftt",   "inconsolata" };
    uint8_t flags = 0;
    flags |= has_token(name, bold, COUNT(bold)) ? RUN_BOLD : 0;
    flags |= has_token(name, italic, COUNT(italic)) ? RUN_ITALIC : 0;
    flags |= has_token(name, mono, COUNT(mono)) ? RUN_MONO : 0;
    return flags;
}

/* "ABCDEF+Name" is a subset of Name. */
static const char *font_base(const char *name)
{
    const char *plus = strchr(name, '+');
    return plus && plus - name == 6 ? plus + 1 : name;
}

static bool font_hidden(const char *name)
{
    return strcasestr(name, "glyphless") || strcasestr(name, "invisible") ||
           strcasestr(name, "hidden");
}

/* --- where ink is --- */

#define CELL        16.0f
#define COVERS_LOOK 200 /* pictures after a glyph that may bury it */
#define INKS_LOOK   256 /* candidates before the best so far is good enough */

/* Drawn glyph origins by cell of CELL points: first[c] .. first[c + 1] index order[]. */
struct ink_map {
    const struct drawing *d;
    int n_x, n_y;
    uint32_t *first, *order;
};

static int cell_of(const struct ink_map *m, float x, float y)
{
    const int cx = (int)fmaxf(0, fminf((float)m->n_x - 1, floorf(x / CELL)));
    const int cy = (int)fmaxf(0, fminf((float)m->n_y - 1, floorf(y / CELL)));
    return cy * m->n_x + cx;
}

static bool ink_map_init(struct ink_map *m, const struct drawing *d)
{
    m->d = d;
    m->n_x = (int)(d->width / CELL) + 1;
    m->n_y = (int)(d->height / CELL) + 1;
    const size_t n_cells = (size_t)m->n_x * (size_t)m->n_y;
    m->first = mem_many(uint32_t, n_cells + 2);
    m->order = mem_many(uint32_t, d->n_inks);
    if (!m->first || !m->order) {
        return false;
    }
    /* A counting sort: after the fill, first[c + 1] has moved to the end of c. */
    for (size_t i = 0; i < d->n_inks; i++) {
        m->first[cell_of(m, d->inks[i].x, d->inks[i].y) + 2]++;
    }
    for (size_t c = 2; c < n_cells + 2; c++) {
        m->first[c] += m->first[c - 1];
    }
    for (size_t i = 0; i < d->n_inks; i++) {
        m->order[m->first[cell_of(m, d->inks[i].x, d->inks[i].y) + 1]++] = (uint32_t)i;
    }
    return true;
}

static void ink_map_deinit(struct ink_map *m)
{
    mem_free(m->first);
    mem_free(m->order);
}

/* True when an opaque picture drawn after the glyph covers it. */
static bool ink_buried(const struct drawing *d, const struct ink *ink)
{
    const size_t from = (size_t)ink->n_pictures;
    for (size_t i = from; i < d->n_covers && i < from + COVERS_LOOK; i++) {
        const struct box b = d->covers[i].box;
        if (d->covers[i].opaque && ink->x >= b.x0 && ink->x <= b.x1 && ink->y >= b.y0 &&
            ink->y <= b.y1) {
            return true;
        }
    }
    return false;
}

/* The visible drawn glyph nearest to the box's centre that lies in the box grown by `by`. */
static const struct ink *ink_in(const struct ink_map *m, const struct box *b, float by)
{
    const struct ink *best = NULL;
    float best_distance = INFINITY;
    int n_looked = 0;
    const float cx = (b->x0 + b->x1) / 2, cy = (b->y0 + b->y1) / 2;
    const int from = cell_of(m, b->x0 - by, b->y0 - by), to = cell_of(m, b->x1 + by, b->y1 + by);
    for (int y = from / m->n_x; y <= to / m->n_x; y++) {
        for (int x = from % m->n_x; x <= to % m->n_x; x++) {
            const int c = y * m->n_x + x;
            for (uint32_t k = m->first[c]; k < m->first[c + 1]; k++) {
                const struct ink *ink = &m->d->inks[m->order[k]];
                if (best && ++n_looked > INKS_LOOK) {
                    return best;
                }
                const float distance = hypotf(ink->x - cx, ink->y - cy);
                if (ink->x >= b->x0 - by && ink->x <= b->x1 + by && ink->y >= b->y0 - by &&
                    ink->y <= b->y1 + by && distance < best_distance && !ink_buried(m->d, ink)) {
                    best = ink;
                    best_distance = distance;
                }
            }
        }
    }
    return best;
}

/* True when the pixels of the box are all of one colour: white on white. */
static bool box_plain(cairo_surface_t *surface, float scale, const struct box *b)
{
    const int w = cairo_image_surface_get_width(surface);
    const int h = cairo_image_surface_get_height(surface);
    const int x0 = (int)fmaxf(0, floorf(b->x0 * scale)), y0 = (int)fmaxf(0, floorf(b->y0 * scale));
    const int x1 = (int)fminf((float)w, ceilf(b->x1 * scale));
    const int y1 = (int)fminf((float)h, ceilf(b->y1 * scale));
    const unsigned char *data = cairo_image_surface_get_data(surface);
    const int stride = cairo_image_surface_get_stride(surface);
    if (x1 - x0 < 3 || y1 - y0 < 3) {
        return false; /* too small to judge */
    }
    int low[3] = { 255, 255, 255 }, high[3] = { 0, 0, 0 };
    for (int y = y0; y < y1; y++) {
        const unsigned char *px = data + (size_t)y * (size_t)stride + 4 * (size_t)x0;
        for (int x = x0; x < x1; x++, px += 4) {
            for (int k = 0; k < 3; k++) {
                low[k] = px[k] < low[k] ? px[k] : low[k];
                high[k] = px[k] > high[k] ? px[k] : high[k];
            }
        }
        if (high[0] - low[0] > 16 || high[1] - low[1] > 16 || high[2] - low[2] > 16) {
            return false;
        }
    }
    return true;
}

/* --- pairing --- */

struct letter {
    uint32_t cp;
    uint32_t i_rect;
};

static bool bidi_control(uint32_t cp)
{
    return cp == 0x202a || cp == 0x202b || cp == 0x202c;
}

static void letters_turn(struct letter *l, size_t from, size_t to)
{
    while (to - from > 1) {
        const uint32_t keep = l[from].i_rect;
        l[from++].i_rect = l[--to].i_rect;
        l[to].i_rect = keep;
    }
}

/* The string's code points without direction controls, each with its rectangle's index. */
static size_t letters_pair(const char *text, struct letter *out)
{
    size_t n = 0, i_turn = 0;
    bool turning = false;
    for (const char *at = text; *at; at = g_utf8_next_char(at)) {
        const uint32_t cp = g_utf8_get_char(at);
        if (!bidi_control(cp)) {
            out[n] = (struct letter){ cp, (uint32_t)n };
            n++;
        } else if (cp == 0x202b) {
            turning = true;
            i_turn = n;
        } else if (cp == 0x202c && turning) {
            letters_turn(out, i_turn, n);
            turning = false;
        }
    }
    return n;
}

/* --- runs --- */

struct styles {
    GList *list;                      /* of PopplerTextAttributes, ours */
    const PopplerTextAttributes **of; /* [n_rects] */
};

static bool styles_init(struct styles *s, PopplerPage *page, size_t n_rects)
{
    s->of = mem_many(const PopplerTextAttributes *, n_rects);
    if (!s->of) {
        return false;
    }
    s->list = poppler_page_get_text_attributes(page);
    for (const GList *at = s->list; at; at = at->next) {
        const PopplerTextAttributes *a = at->data;
        for (gint i = a->start_index < 0 ? 0 : a->start_index;
             i <= a->end_index && (size_t)i < n_rects; i++) {
            s->of[i] = a;
        }
    }
    return true;
}

static void styles_deinit(struct styles *s)
{
    poppler_page_free_text_attributes(s->list);
    mem_free(s->of);
}

static void run_fill(struct text_run *r, const PopplerTextAttributes *a, bool invisible, int angle)
{
    const char *name = a && a->font_name ? font_base(a->font_name) : "";
    const size_t n = strnlen(name, sizeof r->font - 1);
    memset(r, 0, sizeof *r);
    memcpy(r->font, name, n);
    r->size = a && a->font_size >= 0 && a->font_size <= 1e5 ? (float)a->font_size : 0;
    if (a) {
        r->rgb[0] = (uint8_t)(a->color.red >> 8);
        r->rgb[1] = (uint8_t)(a->color.green >> 8);
        r->rgb[2] = (uint8_t)(a->color.blue >> 8);
    }
    r->flags = text_font_flags(name);
    r->flags |= invisible || font_hidden(name) ? RUN_INVISIBLE : 0;
    r->conf = 1.0f;
    r->angle = (int16_t)angle;
}

static struct box box_from(const PopplerRectangle *r)
{
    struct box b = { (float)fmin(r->x1, r->x2), (float)fmin(r->y1, r->y2),
                     (float)fmax(r->x1, r->x2), (float)fmax(r->y1, r->y2) };
    float *v[4] = { &b.x0, &b.y0, &b.x1, &b.y1 };
    for (int i = 0; i < 4; i++) {
        *v[i] = *v[i] >= -1e5f && *v[i] <= 1e5f ? *v[i] : 0; /* NaN as well */
    }
    b.x1 = fmaxf(b.x0, b.x1);
    b.y1 = fmaxf(b.y0, b.y1);
    return b;
}

static bool white_space(uint32_t cp)
{
    return cp == ' ' || cp == '\n';
}

/* What one word looks like on paper: angle, and whether anybody can see it. */
struct look {
    int angle;
    bool invisible;
};

/* Without drawn glyphs (an OCR layer) the boxes' own progress tells the direction. */
static int angle_from_boxes(const struct glyph *g, int n)
{
    if (n < 2) {
        return 0;
    }
    const struct box a = g[0].box, b = g[n - 1].box;
    const float dx = b.x0 + b.x1 - a.x0 - a.x1, dy = b.y0 + b.y1 - a.y0 - a.y1;
    if (fabsf(dx) >= fabsf(dy)) {
        return dx >= 0 ? 0 : 180;
    }
    return dy > 0 ? 90 : 270;
}

/* A letter's own glyph starts in its box: at the left on the base line, which lies inside. */
static struct look word_look(const struct ink_map *m, cairo_surface_t *surface, float scale,
                             const struct glyph *g, int n)
{
    int votes[4] = { 0 };
    struct box all = g[0].box;
    for (int i = 0; i < n; i++) {
        const struct box b = g[i].box;
        const float by = 0.3f + 0.15f * fminf(b.x1 - b.x0, b.y1 - b.y0);
        const struct ink *ink = ink_in(m, &b, by);
        all = (struct box){ fminf(all.x0, b.x0), fminf(all.y0, b.y0), fmaxf(all.x1, b.x1),
                            fmaxf(all.y1, b.y1) };
        if (ink) {
            votes[ink->angle / 90 % 4]++;
        }
    }
    int best = 0;
    for (int k = 1; k < 4; k++) {
        best = votes[k] > votes[best] ? k : best;
    }
    if (!votes[best]) {
        return (struct look){ angle_from_boxes(g, n), true };
    }
    return (struct look){ 90 * best, box_plain(surface, scale, &all) };
}

/* --- all together --- */

struct collector {
    struct page *p;
    const struct letter *letters;
    const PopplerRectangle *rects;
    const struct styles *styles;
    const PopplerTextAttributes *last; /* of the newest run */
    bool last_invisible;
    int last_angle;
    size_t cap_runs;
};

/* The run of glyph i with this look; -1: no memory, or too many. */
static int run_for(struct collector *c, int i, struct look look)
{
    struct page *p = c->p;
    const PopplerTextAttributes *a = c->styles->of[c->letters[i].i_rect];
    if (white_space(c->letters[i].cp) && p->n_runs) {
        return p->n_runs - 1; /* belongs to the word before it */
    }
    if (p->n_runs && a == c->last && look.invisible == c->last_invisible &&
        look.angle == c->last_angle) {
        return p->n_runs - 1;
    }
    if ((size_t)p->n_runs == c->cap_runs) {
        const size_t cap = c->cap_runs ? 2 * c->cap_runs : 64;
        struct text_run *more = mem_resize_array(p->runs, cap, sizeof *more);
        if (!more) {
            return -1;
        }
        p->runs = more;
        c->cap_runs = cap;
    }
    if (p->n_runs == PDF_MAX_RUNS) {
        return p->n_runs - 1; /* wrong style is better than no text */
    }
    run_fill(&p->runs[p->n_runs], a, look.invisible, look.angle);
    c->last = a;
    c->last_invisible = look.invisible;
    c->last_angle = look.angle;
    return p->n_runs++;
}

static bool glyphs_fill(struct collector *c, int n, const struct ink_map *m,
                        cairo_surface_t *surface, float scale)
{
    struct page *p = c->p;
    p->glyphs = mem_many(struct glyph, (size_t)n);
    if (!p->glyphs) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        const uint32_t cp = c->letters[i].cp;
        p->glyphs[i].cp = cp ? cp : 0xfffd;
        p->glyphs[i].box = box_from(&c->rects[c->letters[i].i_rect]);
    }
    struct look look = { 0, false };
    int end = 0; /* of the word `look` is about */
    for (int i = 0; i < n; i++) {
        if (i >= end && !white_space(c->letters[i].cp)) {
            for (end = i; end < n && !white_space(c->letters[end].cp);) {
                end++;
            }
            look = word_look(m, surface, scale, p->glyphs + i, end - i);
        }
        p->glyphs[i].run = run_for(c, i, look);
        if (p->glyphs[i].run < 0) {
            return false;
        }
    }
    p->n_glyphs = n;
    return true;
}

bool text_collect(PopplerPage *page, const struct drawing *d, cairo_surface_t *surface, float scale,
                  struct page *p)
{
    PopplerRectangle *rects = NULL;
    guint n_rects = 0;
    struct ink_map map = { 0 };
    struct styles styles = { 0 };
    bool ok = true;
    char *text = poppler_page_get_text(page);
    if (!text || !*text || !poppler_page_get_text_layout(page, &rects, &n_rects)) {
        goto done;
    }
    struct letter *letters = mem_many(struct letter, strlen(text) + 1);
    ok = letters && ink_map_init(&map, d) && styles_init(&styles, page, n_rects);
    if (ok) {
        size_t n = letters_pair(text, letters);
        /* Text without sure boxes would put words in wrong places: none at all is honest. */
        if (n == n_rects) {
            n = n < PDF_MAX_GLYPHS ? n : PDF_MAX_GLYPHS;
            struct collector c = { .p = p, .letters = letters, .rects = rects, .styles = &styles };
            ok = glyphs_fill(&c, (int)n, &map, surface, scale);
        }
    }
    mem_free(letters);
done:
    styles_deinit(&styles);
    ink_map_deinit(&map);
    g_free(rects);
    g_free(text);
    return ok;
}
