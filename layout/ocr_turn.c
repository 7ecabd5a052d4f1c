/* ocr_turn.c - bitmaps turned by right angles and straightened; the picture that is read. */
#include <leptonica/allheaders.h>
#include <math.h>
#include <string.h>

#include "layout/ocr_parts.h"

#define X_HEIGHT_GOOD \
    22.0f /* pixels: 10..11 pt print at 300 dpi, what the models were trained on */
#define X_HEIGHT_MIN 17.0f
#define X_HEIGHT_MAX 44.0f
#define MAX_ZOOM     3.0f
#define INPUT_AREA   40e6f    /* pixels */
#define INPUT_SIDE   30000.0f /* Tesseract refuses 32768 */
#define UNEVEN       24.0f    /* gray levels of paper spread: normalise the background */

struct image *ocr_turn(struct image *im, int clockwise)
{
    if (clockwise == 0) {
        return image_ref(im);
    }
    const int w = im->width, h = im->height;
    struct image *out = clockwise == 180 ? image_new(w, h) : image_new(h, w);
    if (!out) {
        return NULL;
    }
    for (int y = 0; y < h; y++) {
        const uint8_t *from = im->rgb + (size_t)y * im->stride;
        for (int x = 0; x < w; x++, from += 3) {
            const int tx = clockwise == 90 ? h - 1 - y : clockwise == 180 ? w - 1 - x : y;
            const int ty = clockwise == 90 ? x : clockwise == 180 ? h - 1 - y : w - 1 - x;
            memcpy(out->rgb + (size_t)ty * out->stride + (size_t)tx * 3, from, 3);
        }
    }
    return out;
}

static struct Pix *pix_of(const struct image *im)
{
    struct Pix *pix = pixCreateNoInit(im->width, im->height, 32);
    for (int y = 0; pix && y < im->height; y++) {
        l_uint32 *line = pixGetData(pix) + (size_t)y * (size_t)pixGetWpl(pix);
        const uint8_t *p = im->rgb + (size_t)y * im->stride;
        for (int x = 0; x < im->width; x++, p += 3) {
            line[x] = (l_uint32)p[0] << 24 | (l_uint32)p[1] << 16 | (l_uint32)p[2] << 8;
        }
    }
    return pix;
}

static struct image *image_of(struct Pix *pix)
{
    struct image *im = image_new(pixGetWidth(pix), pixGetHeight(pix));
    for (int y = 0; im && y < im->height; y++) {
        const l_uint32 *line = pixGetData(pix) + (size_t)y * (size_t)pixGetWpl(pix);
        uint8_t *p = im->rgb + (size_t)y * im->stride;
        for (int x = 0; x < im->width; x++, p += 3) {
            p[0] = (uint8_t)(line[x] >> 24);
            p[1] = (uint8_t)(line[x] >> 16);
            p[2] = (uint8_t)(line[x] >> 8);
        }
    }
    return im;
}

struct image *ocr_straighten(struct image *im, float degrees_clockwise)
{
    struct Pix *pix = pix_of(im);
    /* Passing the size makes the canvas grow, so that no corner is cut off. */
    struct Pix *straight =
        pix ? pixRotate(pix, degrees_clockwise * (float)M_PI / 180, L_ROTATE_AREA_MAP,
                        L_BRING_IN_WHITE, im->width, im->height)
            : NULL;
    pixDestroy(&pix);
    struct image *out = straight ? image_of(straight) : NULL;
    pixDestroy(&straight);
    return out;
}

static float zoom_for(const struct Pix *gray, int x_height, float gray_per_pixel)
{
    const float xh = (float)x_height * gray_per_pixel;
    const float w = (float)pixGetWidth(gray), h = (float)pixGetHeight(gray);
    float zoom = 1;
    if (xh > 0 && (xh < X_HEIGHT_MIN || xh > X_HEIGHT_MAX)) {
        zoom = fminf(X_HEIGHT_GOOD / xh, MAX_ZOOM);
    }
    zoom = fminf(zoom, sqrtf(INPUT_AREA / (w * h)));
    return fminf(zoom, INPUT_SIDE / fmaxf(w, h));
}

struct Pix *ocr_input(const struct image *im, float scale, int x_height, float *zoom)
{
    float gray_scale = scale;
    struct Pix *gray = raster_gray(im, &gray_scale, 0);
    if (!gray) {
        return NULL;
    }
    *zoom = gray_scale / raster_scale(scale);
    const struct paper paper = raster_paper(gray);
    if (paper.spread > UNEVEN) {
        struct Pix *even = pixBackgroundNorm(gray, NULL, NULL, 16, 16, 60, 40, 230, 2, 2);
        if (even) { /* refused for tiny pictures: the uneven one will do */
            pixDestroy(&gray);
            gray = even;
        }
    }
    const float more = zoom_for(gray, x_height, *zoom);
    if (fabsf(more - 1) > 0.05f) {
        struct Pix *scaled =
            more > 1 ? pixScaleGrayLI(gray, more, more) : pixScaleAreaMap(gray, more, more);
        if (scaled) {
            pixDestroy(&gray);
            gray = scaled;
            *zoom *= more;
        }
    }
    return gray;
}
