/* raster.c - ink and blankness. */
#include "layout/raster.h"

#include <leptonica/allheaders.h>
#include <math.h>
#include <stdlib.h>

#include "layout/raster_pix.h"

#define VISIBLE 40 /* levels of one channel: a difference that a reader sees */

struct span {
    int x0, y0, x1, y1; /* pixels, clipped */
};

static int clip(double v, int hi)
{
    return v > 0 ? (v < hi ? (int)v : hi) : 0; /* NaN becomes 0 */
}

static struct span span_of(const struct image *im, float scale, const struct box *box)
{
    return (struct span){ clip(floor((double)box->x0 * scale), im->width),
                          clip(floor((double)box->y0 * scale), im->height),
                          clip(ceil((double)box->x1 * scale), im->width),
                          clip(ceil((double)box->y1 * scale), im->height) };
}

/* The most frequent level, smoothed over 9 neighbours: the colour of the local paper. */
static int histogram_mode(const unsigned count[256])
{
    int best = 0;
    unsigned long long best_sum = 0;
    for (int v = 0; v < 256; v++) {
        unsigned long long sum = 0;
        for (int k = v - 4; k <= v + 4; k++) {
            sum += k >= 0 && k < 256 ? count[k] : 0;
        }
        if (sum > best_sum) {
            best_sum = sum;
            best = v;
        }
    }
    return best;
}

float raster_ink(const struct image *im, float scale, const struct box *box)
{
    const struct span s = span_of(im, raster_scale(scale), box);
    if (s.x0 >= s.x1 || s.y0 >= s.y1) {
        return 0;
    }
    unsigned count[3][256] = { { 0 } };
    for (int y = s.y0; y < s.y1; y++) {
        const uint8_t *p = im->rgb + (size_t)y * im->stride + (size_t)s.x0 * 3;
        for (int x = s.x0; x < s.x1; x++, p += 3) {
            count[0][p[0]]++, count[1][p[1]]++, count[2][p[2]]++;
        }
    }
    const int paper[3] = { histogram_mode(count[0]), histogram_mode(count[1]),
                           histogram_mode(count[2]) };
    int64_t n_ink = 0;
    for (int y = s.y0; y < s.y1; y++) {
        const uint8_t *p = im->rgb + (size_t)y * im->stride + (size_t)s.x0 * 3;
        for (int x = s.x0; x < s.x1; x++, p += 3) {
            n_ink += abs(p[0] - paper[0]) > VISIBLE || abs(p[1] - paper[1]) > VISIBLE ||
                     abs(p[2] - paper[2]) > VISIBLE;
        }
    }
    return (float)((double)n_ink / ((double)(s.x1 - s.x0) * (s.y1 - s.y0)));
}

/* What a scanner leaves on an empty sheet, in pt. */
#define SPECK_SIDE   4.0f  /* dust up to 1.4 mm */
#define GRAIN_SIDE   1.6f  /* below: grain, never counted */
#define MAX_SPECKS   12    /* more of them are dotted text */
#define HOLE_MIN     11.0f /* punch holes are 5..8 mm wide ... */
#define HOLE_MAX     25.0f
#define HOLE_MARGIN  72.0f /* ... and lie within an inch of an edge */
#define SHADOW_DEPTH 0.04f /* of the side: shadows and dark beds along an edge */

static bool is_shadow(int x, int y, int w, int h, int width, int height)
{
    const int mx = 1 + (int)((float)width * SHADOW_DEPTH);
    const int my = 1 + (int)((float)height * SHADOW_DEPTH);
    return (x <= 1 && x + w <= mx) || (x + w >= width - 1 && x >= width - mx) ||
           (y <= 1 && y + h <= my) || (y + h >= height - 1 && y >= height - my);
}

static bool is_hole(struct Pix *ink, int x, int y, int w, int h, float scale)
{
    const float pw = (float)w / scale, ph = (float)h / scale;
    if (pw < HOLE_MIN || pw > HOLE_MAX || ph < HOLE_MIN || ph > HOLE_MAX ||
        fabsf(pw - ph) > 0.25f * fmaxf(pw, ph)) {
        return false;
    }
    const float margin = HOLE_MARGIN * scale;
    const int cx = x + w / 2, cy = y + h / 2;
    if ((float)cx > margin && (float)(pixGetWidth(ink) - cx) > margin && (float)cy > margin &&
        (float)(pixGetHeight(ink) - cy) > margin) {
        return false;
    }
    BOX *at = boxCreate(x, y, w, h);
    l_float32 share = 0;
    pixAverageInRect(ink, NULL, at, 0, 255, 1, &share); /* of a disc: pi / 4 */
    boxDestroy(&at);
    return share > 0.65f && share < 0.92f;
}

static bool components_blank(struct Pix *ink, float scale)
{
    BOXA *boxes = pixConnCompBB(ink, 8);
    const int n = boxes ? boxaGetCount(boxes) : 0;
    int n_specks = 0;
    bool blank = true;
    for (int i = 0; i < n && blank; i++) {
        l_int32 x, y, w, h;
        boxaGetBoxGeometry(boxes, i, &x, &y, &w, &h);
        const float side = (float)(w > h ? w : h) / scale;
        if (side < GRAIN_SIDE || is_shadow(x, y, w, h, pixGetWidth(ink), pixGetHeight(ink))) {
            continue;
        }
        if (side < SPECK_SIDE) {
            blank = ++n_specks <= MAX_SPECKS;
        } else {
            blank = is_hole(ink, x, y, w, h, scale);
        }
    }
    boxaDestroy(&boxes);
    return blank;
}

bool raster_blank(const struct image *im, float scale)
{
    /* About 100 dpi: averaging removes grain, the smallest print still stands out. */
    struct Pix *gray = raster_gray(im, &scale, 100.0f / 72.0f);
    if (!gray) {
        return false;
    }
    const struct paper paper = raster_paper(gray);
    struct Pix *ink = raster_ink_pix(gray, &paper, 0.2f);
    const bool blank = ink && components_blank(ink, scale);
    pixDestroy(&ink);
    pixDestroy(&gray);
    return blank;
}
