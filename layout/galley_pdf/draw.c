/* draw.c - paths to rules, boxes and artwork; artwork to pictures.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * Thresholds in points, from the practice of table finders: a filled rectangle is a rule when its
 * short side is at most THIN and it is longer than wide; a segment is straight when it leaves its
 * axis by at most SKEW; segments under SHORT are dropped; what is within 5 % of white is not
 * visible. */
#include "layout/galley_pdf/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout/pdf_proto.h"
#include "src/base/mem.h"

#define THIN      2.0f
#define SKEW      0.5f
#define SHORT     3.0f
#define SAME      0.6f
#define WHITE     242
#define ART_MAX   20000
#define FILLS_MAX 20000
#define INKS_MAX  1000000
#define INKS_LOOK 20000
#define STEPS_MAX 2000000
#define ART_GAP   9.0f  /* artwork closer than this is one picture */
#define ART_SIDE  18.0f /* smaller pictures are bullets, arrows, ornaments */

void drawing_deinit(struct drawing *d)
{
    mem_free(d->rules);
    mem_free(d->fills);
    mem_free(d->art);
    mem_free(d->covers);
    mem_free(d->inks);
    memset(d, 0, sizeof *d);
}

/* Room for one more element; false when the list is full or memory is short. */
static bool grow(void **list, size_t n, size_t *cap, size_t max, size_t size)
{
    if (n < *cap) {
        return true;
    }
    size_t want = *cap ? 2 * *cap : 64;
    want = want > max ? max : want;
    if (n >= want) {
        return false;
    }
    void *more = mem_resize_array(*list, want, size);
    if (!more) {
        return false;
    }
    *list = more;
    *cap = want;
    return true;
}

#define ROOM(d, name, max) \
    grow((void **)&(d)->name, (d)->n_##name, &(d)->cap_##name, (max), sizeof *(d)->name)

static struct box box_cut(struct box a, struct box b)
{
    return (struct box){ fmaxf(a.x0, b.x0), fmaxf(a.y0, b.y0), fminf(a.x1, b.x1),
                         fminf(a.y1, b.y1) };
}

static struct box box_join(struct box a, struct box b)
{
    return (struct box){ fminf(a.x0, b.x0), fminf(a.y0, b.y0), fmaxf(a.x1, b.x1),
                         fmaxf(a.y1, b.y1) };
}

static bool box_some(struct box b)
{
    return b.x1 > b.x0 && b.y1 > b.y0; /* false for NaN */
}

static struct box page_box(const struct drawing *d)
{
    return (struct box){ 0, 0, d->width, d->height };
}

static bool near_white(const uint8_t rgb[3])
{
    return rgb[0] >= WHITE && rgb[1] >= WHITE && rgb[2] >= WHITE;
}

static void add_rule(struct drawing *d, struct box b, const struct draw_style *style)
{
    b = box_cut(box_cut(b, style->clip), page_box(d));
    if (!box_some(b) || (style->flat && near_white(style->rgb))) {
        return;
    }
    if (!ROOM(d, rules, PDF_MAX_RULES)) {
        return;
    }
    const bool vertical = b.y1 - b.y0 > b.x1 - b.x0;
    struct page_rule *r = &d->rules[d->n_rules++];
    *r = (struct page_rule){ .box = b, .vertical = vertical };
    memcpy(r->rgb, style->rgb, 3);
}

/* A filled rectangle: rule, box or nothing. */
static void add_filled(struct drawing *d, struct box b, const struct draw_style *style)
{
    const float w = b.x1 - b.x0, h = b.y1 - b.y0;
    if (fminf(w, h) <= THIN && fmaxf(w, h) > 2 * fminf(w, h)) {
        /* A fill of no width still shows as a hairline. */
        const float least = 0.1f;
        b.x1 = fmaxf(b.x1, b.x0 + least);
        b.y1 = fmaxf(b.y1, b.y0 + least);
        add_rule(d, b, style);
        return;
    }
    b = box_cut(box_cut(b, style->clip), page_box(d));
    if (!box_some(b) || (style->flat && near_white(style->rgb)) || !ROOM(d, fills, FILLS_MAX)) {
        return;
    }
    struct filled *f = &d->fills[d->n_fills++];
    f->box = b;
    memcpy(f->rgb, style->rgb, 3);
}

static void add_art(struct drawing *d, struct box b, const struct draw_style *style)
{
    b = box_cut(box_cut(b, style->clip), page_box(d));
    /* A slanted hairline's box may be flat, not empty: NaN must still fail. */
    if (!(b.x1 >= b.x0 && b.y1 >= b.y0) || (style->flat && near_white(style->rgb)) ||
        !ROOM(d, art, ART_MAX)) {
        return;
    }
    d->art[d->n_art++] = b;
}

/* --- subpaths --- */

/* What a subpath is made of. */
struct shape {
    struct box box;
    float straight; /* length of axis-parallel segments */
    float slanted;  /* length of the others, curves by their hull's diagonal */
    int n_lines;
    bool curved;
};

static void shape_segment(struct shape *s, float x0, float y0, float x1, float y1)
{
    const float dx = fabsf(x1 - x0), dy = fabsf(y1 - y0);
    s->n_lines += dx > 0.01f || dy > 0.01f;
    if (dx <= SKEW || dy <= SKEW) {
        s->straight += dx + dy;
    } else {
        s->slanted += hypotf(dx, dy);
    }
}

/* Measures the subpath at steps[0] (a move) and returns its number of steps. */
static size_t shape_measure(const struct draw_step *steps, size_t n, struct shape *s)
{
    const float x = steps[0].x, y = steps[0].y;
    float px = x, py = y;
    *s = (struct shape){ .box = { x, y, x, y } };
    size_t i = 1;
    for (; i < n && steps[i].verb != DRAW_MOVE; i++) {
        const struct draw_step *t = &steps[i];
        if (t->verb == DRAW_CLOSE) {
            shape_segment(s, px, py, x, y);
            px = x;
            py = y;
            continue;
        }
        if (t->verb == DRAW_LINE) {
            shape_segment(s, px, py, t->x, t->y);
            s->box = box_join(s->box, (struct box){ t->x, t->y, t->x, t->y });
        } else {
            s->curved = true;
            s->slanted += hypotf(t->hull.x1 - t->hull.x0, t->hull.y1 - t->hull.y0);
            s->box = box_join(s->box, t->hull);
        }
        px = t->x;
        py = t->y;
    }
    return i;
}

/* Rectangles, also with rounded corners: nearly the whole outline runs along the axes, and along
 * the box's sides. */
static bool shape_rectangular(const struct shape *s)
{
    const float around = 2 * (s->box.x1 - s->box.x0 + s->box.y1 - s->box.y0);
    return s->straight >= 0.7f * around && s->straight <= 1.05f * around + 0.1f &&
           s->slanted <= 0.3f * around;
}

static bool budget(struct drawing *d, size_t n)
{
    d->n_steps += n;
    return d->n_steps <= STEPS_MAX;
}

void draw_fill(struct drawing *d, const struct draw_step *steps, size_t n,
               const struct draw_style *style)
{
    if (!budget(d, n)) {
        return;
    }
    for (size_t i = 0; i < n;) {
        if (steps[i].verb != DRAW_MOVE) {
            i++;
            continue;
        }
        struct shape s;
        const size_t used = shape_measure(steps + i, n - i, &s);
        if (used > 1) {
            /* An open outline is closed by filling it. */
            const struct draw_step *last = &steps[i + used - 1];
            if (last->verb != DRAW_CLOSE) {
                shape_segment(&s, last->x, last->y, steps[i].x, steps[i].y);
            }
            if (shape_rectangular(&s)) {
                add_filled(d, s.box, style);
            } else {
                add_art(d, s.box, style);
            }
        }
        i += used;
    }
}

static void stroke_segment(struct drawing *d, float x0, float y0, float x1, float y1,
                           const struct draw_style *style)
{
    const float half = fmaxf(style->width, 0.1f) / 2;
    const bool flat = fabsf(y1 - y0) <= SKEW, upright = fabsf(x1 - x0) <= SKEW;
    struct box b = { fminf(x0, x1), fminf(y0, y1), fmaxf(x0, x1), fmaxf(y0, y1) };
    if (!flat && !upright) {
        add_art(d, b, style);
        return;
    }
    if (fabsf(x1 - x0) >= fabsf(y1 - y0)) {
        b.y0 -= half;
        b.y1 += half;
    } else {
        b.x0 -= half;
        b.x1 += half;
    }
    if (2 * half > 3 * THIN) {
        add_filled(d, b, style); /* so wide a stroke is a bar */
    } else {
        add_rule(d, b, style);
    }
}

void draw_stroke(struct drawing *d, const struct draw_step *steps, size_t n,
                 const struct draw_style *style)
{
    float x0 = 0, y0 = 0, px = 0, py = 0;
    bool small_corner = false;
    if (!budget(d, n)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct draw_step *t = &steps[i];
        if (t->verb == DRAW_MOVE) {
            /* Curves of a rounded rectangle are corners, not artwork. */
            struct shape s;
            shape_measure(t, n - i, &s);
            small_corner = s.curved && shape_rectangular(&s);
            x0 = t->x;
            y0 = t->y;
        } else if (t->verb == DRAW_LINE) {
            stroke_segment(d, px, py, t->x, t->y, style);
        } else if (t->verb == DRAW_CURVE && !small_corner) {
            add_art(d, t->hull, style);
        } else if (t->verb == DRAW_CLOSE) {
            stroke_segment(d, px, py, x0, y0, style);
        }
        px = t->verb == DRAW_CLOSE ? x0 : t->x;
        py = t->verb == DRAW_CLOSE ? y0 : t->y;
    }
}

void draw_cover(struct drawing *d, struct box b, bool opaque)
{
    b = box_cut(b, page_box(d));
    if (box_some(b) && ROOM(d, covers, PDF_MAX_PICTURES)) {
        d->covers[d->n_covers++] = (struct cover){ b, opaque };
    }
}

void draw_ink(struct drawing *d, float x, float y, int angle)
{
    if (isfinite(x) && isfinite(y) && ROOM(d, inks, INKS_MAX)) {
        d->inks[d->n_inks++] = (struct ink){ x, y, (int16_t)angle, (int32_t)d->n_covers };
    }
}

/* --- joining rules --- */

static float rule_across(const struct page_rule *r)
{
    return r->vertical ? (r->box.x0 + r->box.x1) / 2 : (r->box.y0 + r->box.y1) / 2;
}

static float rule_from(const struct page_rule *r)
{
    return r->vertical ? r->box.y0 : r->box.x0;
}

static float rule_to(const struct page_rule *r)
{
    return r->vertical ? r->box.y1 : r->box.x1;
}

static int compare_floats(float a, float b)
{
    return (a > b) - (a < b);
}

static int compare_across(const void *a, const void *b)
{
    const struct page_rule *p = a, *q = b;
    if (p->vertical != q->vertical) {
        return p->vertical ? 1 : -1;
    }
    const int c = compare_floats(rule_across(p), rule_across(q));
    return c ? c : compare_floats(rule_from(p), rule_from(q));
}

static int compare_along(const void *a, const void *b)
{
    return compare_floats(rule_from(a), rule_from(b));
}

/* Joins the rules r[0..n) of one line; returns how many are left. */
static size_t line_join(struct page_rule *r, size_t n)
{
    size_t kept = 0;
    qsort(r, n, sizeof *r, compare_along);
    for (size_t i = 0; i < n; i++) {
        if (kept && rule_from(&r[i]) - rule_to(&r[kept - 1]) <= SHORT) {
            r[kept - 1].box = box_join(r[kept - 1].box, r[i].box);
        } else {
            r[kept++] = r[i];
        }
    }
    return kept;
}

/* Cells draw the border they share twice, and dashes come one by one: what lies on one line (within
 * SAME) with gaps of at most SHORT becomes one rule.  Then short ones go. */
static size_t rules_join(struct page_rule *r, size_t n)
{
    size_t kept = 0;
    if (n) {
        qsort(r, n, sizeof *r, compare_across);
    }
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && r[end].vertical == r[i].vertical &&
                          rule_across(&r[end]) - rule_across(&r[i]) <= SAME;) {
            end++;
        }
        const size_t left = line_join(r + i, end - i);
        for (size_t k = i; k < i + left; k++) {
            if (rule_to(&r[k]) - rule_from(&r[k]) >= SHORT) {
                r[kept++] = r[k];
            }
        }
    }
    return kept;
}

/* --- the page's lists --- */

static bool box_near(struct box a, struct box b, float gap)
{
    return a.x0 <= b.x1 + gap && b.x0 <= a.x1 + gap && a.y0 <= b.y1 + gap && b.y0 <= a.y1 + gap;
}

/* Joins boxes that lie within ART_GAP until nothing changes.  Returns the new count.  A cheap sweep
 * first: artwork is drawn in order, so neighbours in the list are mostly neighbours on paper. */
static size_t boxes_cluster(struct box *b, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept && box_near(b[kept - 1], b[i], ART_GAP)) {
            b[kept - 1] = box_join(b[kept - 1], b[i]);
        } else {
            b[kept++] = b[i];
        }
    }
    /* Quadratic from here: keep the largest clusters of a monstrous drawing bounded. */
    n = kept > 3000 ? 3000 : kept;
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < n; i++) {
            for (size_t k = i + 1; k < n; k++) {
                if (box_near(b[i], b[k], ART_GAP)) {
                    b[i] = box_join(b[i], b[k]);
                    b[k--] = b[--n];
                    changed = true;
                }
            }
        }
    }
    return n;
}

/* A row of bars: filled boxes of one width on one base line with different heights (or the same
 * lying down).  Zebra rows and cells of tables are equal in both sizes or span the same width. */
static bool bars(const struct filled *a, const struct filled *b)
{
    const struct box p = a->box, q = b->box;
    const float pw = p.x1 - p.x0, qw = q.x1 - q.x0, ph = p.y1 - p.y0, qh = q.y1 - q.y0;
    const bool upright = fabsf(p.y1 - q.y1) < 0.7f && fabsf(pw - qw) < 0.7f &&
                         fabsf(ph - qh) > 1.5f && fabsf(p.x0 - q.x0) > 0.8f * pw;
    const bool lying = fabsf(p.x0 - q.x0) < 0.7f && fabsf(ph - qh) < 0.7f &&
                       fabsf(pw - qw) > 1.5f && fabsf(p.y0 - q.y0) > 0.8f * ph;
    return upright || lying;
}

/* How many glyphs start in the box, looking at the first INKS_LOOK of the page. */
static size_t inks_in(const struct drawing *d, struct box b)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_inks && i < INKS_LOOK; i++) {
        const struct ink *k = &d->inks[i];
        n += k->x >= b.x0 && k->x <= b.x1 && k->y >= b.y0 && k->y <= b.y1;
    }
    return n;
}

static float box_area(struct box b)
{
    return (b.x1 - b.x0) * (b.y1 - b.y0);
}

static size_t bars_find(const struct drawing *d, struct box *art, size_t n_art)
{
    const size_t n = d->n_fills < 1000 ? d->n_fills : 1000;
    for (size_t i = 0; i < n; i++) {
        size_t partners = 0;
        struct box all = d->fills[i].box;
        for (size_t k = 0; k < n; k++) {
            if (k != i && bars(&d->fills[i], &d->fills[k])) {
                all = box_join(all, d->fills[k].box);
                partners++;
            }
        }
        /* Backgrounds of highlighted lines look like bars, but are full of text. */
        if (partners >= 2 && inks_in(d, d->fills[i].box) < 8) {
            art[n_art++] = all;
        }
    }
    return n_art;
}

static struct box box_grow(struct box b, float by)
{
    return (struct box){ b.x0 - by, b.y0 - by, b.x1 + by, b.y1 + by };
}

static bool box_inside(struct box a, struct box b)
{
    return a.x0 >= b.x0 && a.x1 <= b.x1 && a.y0 >= b.y0 && a.y1 <= b.y1;
}

/* Vector pictures: clusters of artwork, grown by the filled boxes and rules that stand in them. */
static size_t vector_pictures(const struct drawing *d, struct box *art)
{
    for (size_t i = 0; i < d->n_art; i++) {
        art[i] = d->art[i];
    }
    size_t n = bars_find(d, art, d->n_art);
    n = boxes_cluster(art, n);
    for (size_t i = 0; i < n; i++) {
        const struct box reach = box_grow(art[i], ART_GAP);
        for (size_t k = 0; k < d->n_fills && k < 3000; k++) {
            const struct box f = d->fills[k].box;
            /* A background that is much larger holds other things than this artwork. */
            const bool fits = box_area(f) <= 3 * box_area(art[i]);
            if (fits && box_near(art[i], f, 0)) {
                art[i] = box_join(art[i], f);
            }
        }
        for (size_t k = 0; k < d->n_rules && k < 3000; k++) {
            /* Axes of a chart start in it and are hardly longer. */
            if (box_inside(d->rules[k].box, reach)) {
                art[i] = box_join(art[i], d->rules[k].box);
            }
        }
    }
    return boxes_cluster(art, n);
}

/* One picture may come in strips, tiles or with its mask: touching images of one width or height
 * are joined. */
static size_t covers_join(const struct drawing *d, struct box *out)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_covers; i++) {
        const struct box c = d->covers[i].box;
        struct box *last = n ? &out[n - 1] : NULL;
        const bool same_x = last && fabsf(last->x0 - c.x0) < 1 && fabsf(last->x1 - c.x1) < 1;
        const bool same_y = last && fabsf(last->y0 - c.y0) < 1 && fabsf(last->y1 - c.y1) < 1;
        if (last && box_near(*last, c, 0.5f) && (same_x || same_y)) {
            *last = box_join(*last, c);
        } else {
            out[n++] = c;
        }
    }
    return n;
}

bool drawing_finish(const struct drawing *d, struct page *p)
{
    struct box *art = mem_many(struct box, d->n_art + 1001);
    struct box *covers = mem_many(struct box, d->n_covers + 1);
    p->rules = mem_many(struct page_rule, d->n_rules);
    p->pictures = mem_many(struct page_picture, PDF_MAX_PICTURES);
    const bool ok = art && covers && p->rules && p->pictures;
    if (ok) {
        for (size_t i = 0; i < d->n_rules; i++) {
            p->rules[i] = d->rules[i];
        }
        p->n_rules = (int)rules_join(p->rules, d->n_rules);
        const size_t n_covers = covers_join(d, covers);
        for (size_t i = 0; i < n_covers && p->n_pictures < PDF_MAX_PICTURES; i++) {
            p->pictures[p->n_pictures++] = (struct page_picture){ covers[i], false };
        }
        const size_t n_art = vector_pictures(d, art);
        for (size_t i = 0; i < n_art && p->n_pictures < PDF_MAX_PICTURES; i++) {
            const struct box b = art[i];
            if (b.x1 - b.x0 >= ART_SIDE && b.y1 - b.y0 >= ART_SIDE) {
                p->pictures[p->n_pictures++] = (struct page_picture){ b, true };
            }
        }
    }
    mem_free(art);
    mem_free(covers);
    return ok;
}
