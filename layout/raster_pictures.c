/* raster_pictures.c - photographs and drawings: large ink that is neither text nor rule.
 *
 * Works at about one pixel per point: text boxes and rules are cleared, the rest is clustered. */
#include <leptonica/allheaders.h>
#include <math.h>

#include "layout/raster.h"
#include "layout/raster_pix.h"
#include "src/base/mem.h"

#define DROP       0.17f
#define FULL_SCALE (150.0f / 72.0f) /* threshold here: thin strokes are still visible ... */
#define CLUSTER    8.0f             /* pt: strokes that near belong to one drawing */
#define MIN_SIDE   20.0f            /* pt */
#define MAX_SIDE   25.0f            /* pt: the longer side is at least this */
#define CORE_SIDE  12.0f /* pt: at least one stroke this big both ways: not a text line */
#define MIN_INK    0.015f
#define EDGE_DEPTH 0.04f /* of the side: scanner shadows */
#define FULL_PAGE  0.9f
#define MAX_BOXES  2000

/* Brings the scale to about 1 pixel per pt, any black pixel keeps its cell black. */
static struct Pix *reduce_ink(struct Pix *ink, float *scale)
{
    struct Pix *p = pixClone(ink);
    while (p && *scale >= 1.8f && pixGetWidth(p) >= 4 && pixGetHeight(p) >= 4) {
        struct Pix *half = pixReduceRankBinary2(p, 1, NULL);
        pixDestroy(&p);
        p = half;
        *scale /= 2;
    }
    return p;
}

static struct Pix *loose_ink(const struct page *page, const struct image *im, float *scale,
                             const struct box *text, int n_text)
{
    struct Pix *gray = raster_gray(im, scale, FULL_SCALE);
    if (!gray) {
        return NULL;
    }
    const struct paper paper = raster_paper(gray);
    struct Pix *ink = raster_ink_pix(gray, &paper, DROP);
    pixDestroy(&gray);
    if (!ink) {
        return NULL;
    }
    for (int i = 0; i < n_text; i++) {
        raster_clear(ink, &text[i], *scale, 1.0f);
    }
    for (int i = 0; i < page->n_rules; i++) {
        raster_clear(ink, &page->rules[i].box, *scale, 0.75f);
    }
    struct Pix *out = reduce_ink(ink, scale);
    pixDestroy(&ink);
    return out;
}

static struct box pt_box(int x, int y, int w, int h, float scale)
{
    return (struct box){ (float)x / scale, (float)y / scale, (float)(x + w) / scale,
                         (float)(y + h) / scale };
}

static bool inside(const struct box *in, const struct box *out)
{
    return in->x0 >= out->x0 - 1 && in->y0 >= out->y0 - 1 && in->x1 <= out->x1 + 1 &&
           in->y1 <= out->y1 + 1;
}

/* The connected strokes that are large both ways. */
static BOXA *core_strokes(struct Pix *ink, float scale)
{
    const int tight = (int)lroundf(2 * scale) | 1, side = (int)ceilf(CORE_SIDE * scale);
    struct Pix *joined = pixCloseSafeBrick(NULL, ink, tight, tight);
    BOXA *all = joined ? pixConnCompBB(joined, 8) : NULL;
    BOXA *cores =
        all ? boxaSelectBySize(all, side, side, L_SELECT_IF_BOTH, L_SELECT_IF_GTE, NULL) : NULL;
    boxaDestroy(&all);
    pixDestroy(&joined);
    return cores;
}

static bool has_core(const struct box *cluster, BOXA *cores, float scale)
{
    const int n = boxaGetCount(cores);
    for (int i = 0; i < n; i++) {
        l_int32 x, y, w, h;
        boxaGetBoxGeometry(cores, i, &x, &y, &w, &h);
        const struct box s = pt_box(x, y, w, h, scale);
        if ((float)(w > h ? w : h) >= MAX_SIDE * scale && inside(&s, cluster)) {
            return true;
        }
    }
    return false;
}

static bool is_edge_shadow(int x, int y, int w, int h, int width, int height)
{
    return ((x <= 1 || x + w >= width - 1) && (float)w <= EDGE_DEPTH * (float)width + 2) ||
           ((y <= 1 || y + h >= height - 1) && (float)h <= EDGE_DEPTH * (float)height + 2);
}

static bool is_picture(struct Pix *ink, BOX *at, BOXA *cores, float scale)
{
    l_int32 x, y, w, h;
    boxGetGeometry(at, &x, &y, &w, &h);
    const float lo = (float)(w < h ? w : h) / scale, hi = (float)(w > h ? w : h) / scale;
    if (lo < MIN_SIDE || hi < MAX_SIDE ||
        is_edge_shadow(x, y, w, h, pixGetWidth(ink), pixGetHeight(ink))) {
        return false;
    }
    l_float32 share = 0;
    pixAverageInRect(ink, NULL, at, 0, 255, 1, &share);
    const struct box cluster = pt_box(x, y, w, h, scale);
    return share >= MIN_INK && has_core(&cluster, cores, scale);
}

static bool touch(const struct box *a, const struct box *b)
{
    return a->x0 <= b->x1 + 2 && b->x0 <= a->x1 + 2 && a->y0 <= b->y1 + 2 && b->y0 <= a->y1 + 2;
}

static void merge_touching(struct page_picture *p, int *n)
{
    for (int i = 0; i < *n; i++) {
        for (int j = i + 1; j < *n; j++) {
            if (touch(&p[i].box, &p[j].box)) {
                p[i].box =
                    (struct box){ fminf(p[i].box.x0, p[j].box.x0), fminf(p[i].box.y0, p[j].box.y0),
                                  fmaxf(p[i].box.x1, p[j].box.x1),
                                  fmaxf(p[i].box.y1, p[j].box.y1) };
                p[j] = p[--*n];
                i = -1; /* start over: few boxes, and a grown one may reach any other */
                break;
            }
        }
    }
}

static bool append_clusters(struct page *p, struct Pix *ink, float scale, bool with_text)
{
    const int near = (int)lroundf(CLUSTER * scale) | 1;
    struct Pix *grown = pixCloseSafeBrick(NULL, ink, near, near);
    BOXA *clusters = grown ? pixConnCompBB(grown, 8) : NULL;
    BOXA *cores = core_strokes(ink, scale);
    const int n = clusters ? boxaGetCount(clusters) : 0;
    struct page_picture *found = mem_array((size_t)n + 1, sizeof *found);
    int n_found = 0;
    for (int i = 0; found && cores && i < n && n_found < MAX_BOXES; i++) {
        BOX *at = boxaGetBox(clusters, i, L_CLONE);
        l_int32 x, y, w, h;
        boxGetGeometry(at, &x, &y, &w, &h);
        const bool full = (float)w >= FULL_PAGE * (float)pixGetWidth(ink) &&
                          (float)h >= FULL_PAGE * (float)pixGetHeight(ink);
        if (!(full && with_text) && is_picture(ink, at, cores, scale)) {
            found[n_found++].box = pt_box(x, y, w, h, scale);
            found[n_found - 1].vector = false;
        }
        boxDestroy(&at);
    }
    merge_touching(found, &n_found);
    struct page_picture *all =
        found && cores
            ? mem_resize_array(p->pictures, (size_t)(p->n_pictures + n_found) + 1, sizeof *all)
            : NULL;
    if (all) {
        p->pictures = all;
        for (int i = 0; i < n_found; i++) {
            p->pictures[p->n_pictures++] = found[i];
        }
    }
    mem_free(found);
    boxaDestroy(&cores);
    boxaDestroy(&clusters);
    pixDestroy(&grown);
    return all != NULL;
}

bool raster_pictures(struct page *p, const struct image *im, float scale, const struct box *text,
                     int n_text)
{
    struct Pix *ink = loose_ink(p, im, &scale, text, n_text);
    if (!ink) {
        return false;
    }
    const bool ok = append_clusters(p, ink, scale, n_text > 0);
    pixDestroy(&ink);
    return ok;
}
