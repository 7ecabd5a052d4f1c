/* raster_rules.c - straight horizontal and vertical rules by morphology.
 *
 * Thin ink opened with a long bar: what survives is a rule or the stem of a large letter, and stems
 * lie inside text boxes. */
#include <leptonica/allheaders.h>
#include <math.h>

#include "layout/raster.h"
#include "layout/raster_pix.h"
#include "src/base/mem.h"

#define DROP       0.16f /* antialiased hairlines of 0.25 pt are pale at 100..150 dpi */
#define MAX_SCALE  (300.0f / 72.0f)
#define BAR        12.0f /* pt: shortest straight piece */
#define MIN_LENGTH 14.0f /* pt: shortest rule after joining */
#define MAX_THICK  5.0f  /* pt: thicker ink is a box or a picture */
#define BREAK      1.5f  /* pt: broken pixels closed before opening */
#define JOIN       4.0f  /* pt: gap between collinear pieces of one rule */
#define BELOW      0.84f /* of a text box's height: underlines lie lower */
#define MAX_PIECES 4000  /* per direction: more is texture, not a table */

struct pieces {
    struct box *at; /* pixels, along = x: vertical ones are stored transposed */
    int n;
};

static int px(float pt, float scale, int at_least)
{
    const int v = (int)lroundf(pt * scale);
    return v > at_least ? v : at_least;
}

/* Ink thinner than MAX_THICK by its contrast to what is around it: photographs, shaded cells and
 * shadows vanish with their edges, the paper's brightness does not matter. */
static struct Pix *thin_ink(struct Pix *gray, const struct paper *paper, float scale)
{
    const int t = px(MAX_THICK, scale, 4) | 1;
    struct Pix *thin = pixTophat(gray, t, t, L_TOPHAT_BLACK);
    if (!thin) {
        return NULL;
    }
    const float level = raster_paper_at(paper, 0.5f, 0.5f);
    const int limit = (int)fmaxf(DROP * level, 16);
    struct Pix *ink = pixThresholdToBinary(thin, limit); /* 1 where the contrast is below */
    pixDestroy(&thin);
    return ink ? pixInvert(ink, ink) : NULL;
}

/* Straight pieces of ink.  Broken pixels are closed first, but only away from text: the serifs of a
 * word would join to a line as long as the word.  An underline close to its word must be unbroken
 * to be seen. */
static struct Pix *bars(struct Pix *thin, struct Pix *free_of_text, float scale, bool vertical)
{
    const int gap = px(BREAK, scale, 2) + 1, len = px(BAR, scale, 8);
    const int w = vertical ? 1 : len, h = vertical ? len : 1;
    struct Pix *solid = pixOpenCompBrick(NULL, thin, w, h);
    struct Pix *closed =
        pixCloseSafeBrick(NULL, free_of_text, vertical ? 1 : gap, vertical ? gap : 1);
    struct Pix *joined = closed ? pixOpenCompBrick(NULL, closed, w, h) : NULL;
    pixDestroy(&closed);
    if (solid && joined) {
        pixOr(solid, solid, joined);
    } else {
        pixDestroy(&solid);
    }
    pixDestroy(&joined);
    return solid;
}

static float overlap(float a0, float a1, float b0, float b1)
{
    return fmaxf(0, fminf(a1, b1) - fmaxf(a0, b0));
}

/* A stem or bar of large print, or serifs run together: it lies inside one text box (an em high).
 * Longer than the print is high and below its baseline it is an underline and stays. */
static bool is_stroke(const struct box *r, bool vertical, const struct box *text, int n_text)
{
    for (int i = 0; i < n_text; i++) {
        const struct box *t = &text[i];
        const float w = overlap(r->x0, r->x1, t->x0, t->x1);
        const float h = overlap(r->y0, r->y1, t->y0, t->y1);
        const float length = vertical ? r->y1 - r->y0 : r->x1 - r->x0;
        if (w > 0.5f * (r->x1 - r->x0) && h > 0.5f * (r->y1 - r->y0) &&
            (vertical ? h : w) >= 0.8f * length &&
            (vertical || length < 1.5f * (t->y1 - t->y0) ||
             (r->y0 + r->y1) / 2 < t->y0 + BELOW * (t->y1 - t->y0))) {
            return true;
        }
    }
    return false;
}

static struct box piece_pt(const struct box *b, float scale, bool vertical)
{
    const struct box p = { b->x0 / scale, b->y0 / scale, b->x1 / scale, b->y1 / scale };
    return vertical ? (struct box){ p.y0, p.x0, p.y1, p.x1 } : p;
}

static bool pieces_find(struct pieces *out, struct Pix *bar, float scale, bool vertical,
                        const struct box *text, int n_text)
{
    BOXA *boxes = pixConnCompBB(bar, 8);
    const int n = boxes ? boxaGetCount(boxes) : 0;
    *out = (struct pieces){ .at = mem_array((size_t)n + 1, sizeof(struct box)) };
    if (!boxes || !out->at) {
        boxaDestroy(&boxes);
        return false;
    }
    const int thick = px(MAX_THICK, scale, 4);
    const int side = vertical ? pixGetWidth(bar) : pixGetHeight(bar);
    for (int i = 0; i < n && n <= MAX_PIECES; i++) {
        l_int32 x, y, w, h;
        boxaGetBoxGeometry(boxes, i, &x, &y, &w, &h);
        const int a = vertical ? y : x, b = vertical ? x : y;
        const int along = vertical ? h : w, across = vertical ? w : h;
        /* A long rule may climb a little (the rest of a skew); a short thick one is a blot.  At
         * the very edge of the picture it is the edge of the sheet. */
        if (across > thick + along / 100 || along < 3 * across || b <= 1 ||
            b + across >= side - 1) {
            continue;
        }
        const struct box piece = { (float)a, (float)b, (float)(a + along), (float)(b + across) };
        const struct box pt = piece_pt(&piece, scale, vertical);
        if (!is_stroke(&pt, vertical, text, n_text)) {
            out->at[out->n++] = piece;
        }
    }
    boxaDestroy(&boxes);
    return true;
}

static bool same_rule(const struct box *p, const struct box *q, float scale)
{
    const float gap = fmaxf(p->x0, q->x0) - fminf(p->x1, q->x1);
    const float apart = fmaxf(p->y0, q->y0) - fminf(p->y1, q->y1);
    const float thick = fmaxf(p->y1, q->y1) - fminf(p->y0, q->y0);
    return gap <= JOIN * scale && apart <= 1.0f && thick <= fmaxf(MAX_THICK * scale, 4.0f);
}

/* Joins collinear pieces until nothing changes.  Quadratic in at most MAX_PIECES. */
static void pieces_join(struct pieces *p, float scale)
{
    for (int i = 0; i < p->n; i++) {
        for (int j = i + 1; j < p->n; j++) {
            struct box *a = &p->at[i];
            const struct box *b = &p->at[j];
            if (!same_rule(a, b, scale)) {
                continue;
            }
            *a = (struct box){ fminf(a->x0, b->x0), fminf(a->y0, b->y0), fmaxf(a->x1, b->x1),
                               fmaxf(a->y1, b->y1) };
            p->at[j] = p->at[--p->n];
            j = i; /* the grown piece may now reach earlier ones */
        }
    }
}

/* The colour of the ink: the darkest fifth of the pixels along the middle, averaged. */
static void rule_color(struct page_rule *r, const struct image *im, float scale)
{
    const float mx = (r->box.x0 + r->box.x1) / 2, my = (r->box.y0 + r->box.y1) / 2;
    int best = 1000;
    const int reach = r->vertical ? (int)((r->box.x1 - r->box.x0) * scale) + 1
                                  : (int)((r->box.y1 - r->box.y0) * scale) + 1;
    for (int s = 1; s <= 8; s++) { /* eight places along the rule; at each, the darkest pixel */
        const float f = (float)s / 9;
        for (int d = -reach; d <= reach; d++) {
            const float fx = r->vertical ? mx * scale + (float)d
                                         : (r->box.x0 + f * (r->box.x1 - r->box.x0)) * scale;
            const float fy = r->vertical ? (r->box.y0 + f * (r->box.y1 - r->box.y0)) * scale
                                         : my * scale + (float)d;
            const int x = (int)fx, y = (int)fy;
            if (x < 0 || y < 0 || x >= im->width || y >= im->height) {
                continue;
            }
            const uint8_t *p = im->rgb + (size_t)y * im->stride + (size_t)x * 3;
            if (p[0] + p[1] + p[2] < best) {
                best = p[0] + p[1] + p[2];
                r->rgb[0] = p[0], r->rgb[1] = p[1], r->rgb[2] = p[2];
            }
        }
    }
}

/* scale: of the pieces; im_scale: of the bitmap. */
static bool pieces_append(struct page *p, const struct pieces *found, float scale, bool vertical,
                          const struct image *im, float im_scale)
{
    struct page_rule *rules =
        mem_resize_array(p->rules, (size_t)p->n_rules + (size_t)found->n + 1, sizeof *rules);
    if (!rules) {
        return false;
    }
    p->rules = rules;
    for (int i = 0; i < found->n; i++) {
        if (found->at[i].x1 - found->at[i].x0 >= MIN_LENGTH * scale) {
            struct page_rule *r = &rules[p->n_rules++];
            *r = (struct page_rule){ .box = piece_pt(&found->at[i], scale, vertical),
                                     .vertical = vertical };
            rule_color(r, im, im_scale);
        }
    }
    return true;
}

bool raster_rules(struct page *p, const struct image *im, float scale, const struct box *text,
                  int n_text)
{
    const float im_scale = raster_scale(scale);
    struct Pix *gray = raster_gray(im, &scale, MAX_SCALE);
    if (!gray) {
        return false;
    }
    const struct paper paper = raster_paper(gray);
    struct Pix *thin = thin_ink(gray, &paper, scale);
    pixDestroy(&gray);
    struct Pix *free_of_text = thin ? pixCopy(NULL, thin) : NULL;
    for (int i = 0; free_of_text && i < n_text; i++) {
        raster_clear(free_of_text, &text[i], scale, 0);
    }
    bool ok = free_of_text != NULL;
    for (int vertical = 0; ok && vertical < 2; vertical++) {
        struct pieces found = { 0 };
        struct Pix *bar = bars(thin, free_of_text, scale, vertical);
        ok = bar && pieces_find(&found, bar, scale, vertical, text, n_text);
        if (ok) {
            pieces_join(&found, scale);
            ok = pieces_append(p, &found, scale, vertical, im, im_scale);
        }
        mem_free(found.at);
        pixDestroy(&bar);
    }
    pixDestroy(&free_of_text);
    pixDestroy(&thin);
    return ok;
}
