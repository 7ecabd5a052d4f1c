/* image.c - shared RGB8 bitmaps. */
#include "src/base/image.h"

#include <assert.h>
#include <string.h>

#include "src/base/mem.h"

struct image *image_new(int width, int height)
{
    if (width < 1 || height < 1 || width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX) {
        return NULL;
    }
    struct image *im = mem_new(struct image);
    if (!im) {
        return NULL;
    }
    im->width = width;
    im->height = height;
    im->stride = (size_t)width * 3;
    im->rgb = mem_array((size_t)height, im->stride);
    if (!im->rgb) {
        mem_free(im);
        return NULL;
    }
    atomic_init(&im->n_refs, 1);
    return im;
}

struct image *image_ref(struct image *im)
{
    /* Relaxed: the caller already holds a reference. */
    atomic_fetch_add_explicit(&im->n_refs, 1, memory_order_relaxed);
    return im;
}

void image_unref(struct image *im)
{
    if (!im) {
        return;
    }
    /* acq_rel: the last owner must see every reader's accesses finished. */
    const int before = atomic_fetch_sub_explicit(&im->n_refs, 1, memory_order_acq_rel);
    assert(before >= 1);
    if (before == 1) {
        mem_free(im->rgb);
        mem_free(im);
    }
}

static int clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

struct image *image_crop(const struct image *im, int x0, int y0, int x1, int y1)
{
    x0 = clamp(x0, 0, im->width);
    x1 = clamp(x1, 0, im->width);
    y0 = clamp(y0, 0, im->height);
    y1 = clamp(y1, 0, im->height);
    if (x0 >= x1 || y0 >= y1) {
        return NULL;
    }
    struct image *out = image_new(x1 - x0, y1 - y0);
    if (!out) {
        return NULL;
    }
    for (int y = 0; y < out->height; y++) {
        memcpy(out->rgb + (size_t)y * out->stride,
               im->rgb + (size_t)(y0 + y) * im->stride + (size_t)x0 * 3, out->stride);
    }
    return out;
}
