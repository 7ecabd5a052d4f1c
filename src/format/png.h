/* png.h - libpng to RGB8: 1-16 bit, gray, palette, tRNS, alpha over white, Adam7; and a writer
 * for figures and region pictures. */
#ifndef GALLEY_FORMAT_PNG_H
#define GALLEY_FORMAT_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/base/image.h"

GALLEY_MUST_USE enum galley_status png_decode(struct image **out, const void *bytes, size_t n,
                                              uint64_t max_pixels, struct galley_err *err);
/* Appends a PNG file to out. */
GALLEY_MUST_USE enum galley_status png_encode(struct buf *out, const struct image *im,
                                              struct galley_err *err);

#endif
