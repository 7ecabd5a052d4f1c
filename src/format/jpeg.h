/* jpeg.h - libjpeg-turbo to RGB8: baseline, progressive, grayscale, RGB, CMYK and YCCK (with
 * and without the Adobe marker), EXIF orientation 1-8 applied.  Limits are checked from the
 * header before anything is allocated. */
#ifndef GALLEY_FORMAT_JPEG_H
#define GALLEY_FORMAT_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/base/image.h"

/* Truncated data is an error unless at least one whole row came: then the rest is gray and
 * *damaged says so. */
GALLEY_MUST_USE enum galley_status jpeg_decode(struct image **out, bool *damaged, const void *bytes,
                                               size_t n, uint64_t max_pixels,
                                               struct galley_err *err);

#endif
