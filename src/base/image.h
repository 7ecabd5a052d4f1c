/* image.h - an RGB8 bitmap shared by reference count.
 *
 * Immutable once it has been handed on: decoders fill it, everybody after that
 * only reads.  Any thread. */
#ifndef GALLEY_BASE_IMAGE_H
#define GALLEY_BASE_IMAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_SIDE_MAX 1000000 /* pixels; keeps sizes in bytes far inside 64 bits */

struct image {
    int width, height;  /* pixels, both >= 1 */
    size_t stride;      /* bytes per row, >= 3 * width */
    uint8_t *rgb;       /* [height][stride], R G B */
    _Atomic int n_refs; /* image_ref / image_unref only */
};

/* A new image with one reference, rows tight, pixels undefined.  NULL when
 * memory is short; width and height must be 1..IMAGE_SIDE_MAX (else NULL). */
struct image *image_new(int width, int height);
struct image *image_ref(struct image *im);
void image_unref(struct image *im); /* NULL is fine; the last one frees */

/* A copy of the rectangle [x0,x1) x [y0,y1), clipped to the image; NULL when it
 * is empty or memory is short. */
struct image *image_crop(const struct image *im, int x0, int y0, int x1, int y1);

#endif
