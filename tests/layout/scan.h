/* scan.h - page images for the tests of raster and ocr: files read by Leptonica, drawn ones. */
#ifndef GALLEY_TESTS_LAYOUT_SCAN_H
#define GALLEY_TESTS_LAYOUT_SCAN_H

#include <leptonica/allheaders.h>
#include <stdint.h>
#include <string.h>

#include "layout/page.h"
#include "tests/t.h"

#define SCANS "tests/layout/scans/"

static inline struct image *scan_load(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, SCANS "%s", name);
    struct Pix *file = pixRead(path);
    struct Pix *pix = file ? pixConvertTo32(file) : NULL;
    struct image *im = pix ? image_new(pixGetWidth(pix), pixGetHeight(pix)) : NULL;
    if (!im) {
        T_FAIL("cannot read %s", path);
    }
    for (int y = 0; y < im->height; y++) {
        uint8_t *p = im->rgb + (size_t)y * im->stride;
        for (int x = 0; x < im->width; x++, p += 3) {
            l_int32 r, g, b;
            pixGetRGBPixel(pix, x, y, &r, &g, &b);
            p[0] = (uint8_t)r, p[1] = (uint8_t)g, p[2] = (uint8_t)b;
        }
    }
    pixDestroy(&pix);
    pixDestroy(&file);
    return im;
}

static inline struct image *scan_plain(int w, int h, int level)
{
    struct image *im = image_new(w, h);
    T_OK(im != NULL);
    memset(im->rgb, level, (size_t)h * im->stride);
    return im;
}

static inline uint32_t scan_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Every pixel on its own between lo and hi. */
static inline struct image *scan_noise(int w, int h, int lo, int hi, uint32_t seed)
{
    struct image *im = scan_plain(w, h, 0);
    for (int y = 0; y < h; y++) {
        uint8_t *p = im->rgb + (size_t)y * im->stride;
        for (int x = 0; x < w; x++, p += 3) {
            const int v = lo + (int)(scan_random(&seed) % (uint32_t)(hi - lo + 1));
            p[0] = p[1] = p[2] = (uint8_t)v;
        }
    }
    return im;
}

static inline void scan_fill(struct image *im, int x0, int y0, int x1, int y1, int level)
{
    for (int y = y0; y < y1; y++) {
        memset(im->rgb + (size_t)y * im->stride + (size_t)x0 * 3, level, (size_t)(x1 - x0) * 3);
    }
}

#endif
