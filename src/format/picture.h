/* picture.h - which file is this, and its pixels: the one entry for image bytes. */
#ifndef GALLEY_FORMAT_PICTURE_H
#define GALLEY_FORMAT_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/base/image.h"

#define PICTURE_MAX_PIXELS 100000000u /* default limit: 100 Mpixel */

enum file_kind {
    FILE_UNKNOWN,
    FILE_EMPTY,
    FILE_PDF,
    FILE_PNG,
    FILE_JPEG,
    FILE_WEBP,
    FILE_GIF,
    FILE_BMP,
    FILE_TIFF,
    FILE_HEIC,
    FILE_AVIF,
    FILE_JP2,
    FILE_JXL,
    FILE_SVG,
    FILE_ZIP, /* docx, xlsx, odt, epub ... */
    FILE_HTML,
    FILE_TEXT
};

/* By content, never by extension. */
enum file_kind file_kind_of(const void *bytes, size_t n);
const char *file_kind_name(enum file_kind kind); /* "PDF", "WebP", "HEIC" ... */

/* Decodes PNG or JPEG; every other kind is refused by its name with what to do about it
 * (GALLEY_EUNSUP). */
GALLEY_MUST_USE enum galley_status picture_decode(struct image **out, bool *damaged,
                                                  const void *bytes, size_t n, uint64_t max_pixels,
                                                  struct galley_err *err);

#endif
