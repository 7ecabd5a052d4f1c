/* ocr_look.c - size of print, skew and orientation from connected components, in a few
 * milliseconds and without reading. */
#include <leptonica/allheaders.h>
#include <math.h>

#include "layout/ocr_parts.h"

#define LOOK_SCALE   (200.0f / 72.0f)
#define DROP         0.25f
#define PART_MIN     4   /* pixels: smaller parts are dots and grain */
#define PART_MAX     200 /* pixels: larger ones are pictures */
#define MAX_PARTS    40000
#define MANY_PARTS   800  /* print with that many parts has lines ... */
#define LINES_CONF   1.7f /* ... and lines score 2.4 to 30; noise of any grain 1.1 to 1.65 */
#define ROUGH        0.15f
#define ROUGH_CONF   2.2f
#define SWEEP        8.0f /* degrees either way */
#define UP_MIN       8.0f /* Leptonica's own threshold of a clear answer */
#define UP_RATIO     2.5f
#define UP_MIN_COUNT 30

/* The most frequent height of letter-like parts is the x-height (Latin) or nearly the character
 * height (Hangul, Han). */
static int mode_height(BOXA *boxes, int *n_letters, int *n_grain)
{
    int count[PART_MAX + 3] = { 0 };
    const int n = boxaGetCount(boxes);
    *n_letters = *n_grain = 0;
    for (int i = 0; i < n; i++) {
        l_int32 w, h;
        boxaGetBoxGeometry(boxes, i, NULL, NULL, &w, &h);
        if (w <= 3 && h <= 3) {
            (*n_grain)++;
        }
        if (h >= PART_MIN && h <= PART_MAX && w >= 2 && w <= 4 * h && h <= 6 * w) {
            count[h]++;
            (*n_letters)++;
        }
    }
    int best = 0, best_sum = 0;
    for (int h = PART_MIN; h <= PART_MAX; h++) {
        const int sum = count[h - 1] + 2 * count[h] + count[h + 1];
        if (sum > best_sum) {
            best_sum = sum;
            best = h;
        }
    }
    return best;
}

/* Share of pixels that differ from their left neighbour: 0.02 to 0.1 on pages, half of it in noise.
 */
static float roughness(struct Pix *ink)
{
    const int w = pixGetWidth(ink), h = pixGetHeight(ink);
    struct Pix *edges = pixCopy(NULL, ink);
    l_int32 n = 0;
    if (!edges) {
        return 0;
    }
    pixRasterop(edges, 1, 0, w - 1, h, PIX_SRC ^ PIX_DST, ink, 0, 0);
    pixCountPixels(edges, &n, NULL);
    pixDestroy(&edges);
    return (float)n / ((float)w * (float)h);
}

static void look_at_skew(struct ocr_look *out, struct Pix *ink)
{
    l_float32 angle = 0, conf = 0;
    if (pixGetWidth(ink) < 100 || pixGetHeight(ink) < 100 ||
        pixFindSkewOrthogonalRange(ink, &angle, &conf, 4, 2, SWEEP, 1.0f, 0.02f, 0.0f) != 0 ||
        conf <= 0) {
        return;
    }
    out->sideways = fabsf(angle) > 45;
    out->skew = angle < -45 ? angle + 90 : angle > 45 ? angle - 90 : angle;
    out->skew_conf = conf;
}

bool ocr_look(struct ocr_look *out, const struct image *im, float scale)
{
    *out = (struct ocr_look){ 0 };
    float look_scale = scale;
    struct Pix *gray = raster_gray(im, &look_scale, LOOK_SCALE);
    if (!gray) {
        return false;
    }
    const struct paper paper = raster_paper(gray);
    struct Pix *ink = raster_ink_pix(gray, &paper, DROP);
    pixDestroy(&gray);
    BOXA *boxes = ink ? pixConnCompBB(ink, 8) : NULL;
    if (boxes) {
        int n_letters, n_grain;
        const int h = mode_height(boxes, &n_letters, &n_grain);
        out->n_parts = boxaGetCount(boxes);
        out->x_height = (int)lroundf((float)h * raster_scale(scale) / look_scale);
        look_at_skew(out, ink);
        /* Tesseract's layout analysis does not look at the clock and needs minutes for noise. */
        out->texture = out->n_parts - n_grain > MAX_PARTS || n_grain > MAX_PARTS ||
                       (n_grain > MAX_PARTS / 8 && n_grain > 8 * n_letters) ||
                       (out->n_parts > MANY_PARTS && out->skew_conf < LINES_CONF) ||
                       (roughness(ink) > ROUGH && out->skew_conf < ROUGH_CONF);
        pixOrientDetect(ink, &out->up_conf, &out->left_conf, UP_MIN_COUNT, 0);
    }
    const bool ok = boxes != NULL;
    boxaDestroy(&boxes);
    pixDestroy(&ink);
    return ok;
}

int ocr_look_turn(const struct ocr_look *l)
{
    const float up = fabsf(l->up_conf), left = fabsf(l->left_conf);
    if (up >= UP_MIN && up >= UP_RATIO * left) {
        return l->up_conf > 0 ? 0 : 180;
    }
    if (left >= UP_MIN && left >= UP_RATIO * up) {
        return l->left_conf > 0 ? 90 : 270;
    }
    return -1;
}
