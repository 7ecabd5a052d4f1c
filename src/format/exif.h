/* exif.h - the one thing Galley wants from EXIF: how the camera was held. */
#ifndef GALLEY_FORMAT_EXIF_H
#define GALLEY_FORMAT_EXIF_H

#include <stdbool.h>
#include <stddef.h>

/* data[0..n) is the payload of an APP1 marker. */
bool exif_is(const void *data, size_t n);
/* 1..8 as in the standard; 1 when it says nothing usable.  Never fails: a damaged EXIF block
 * must not cost the picture. */
int exif_orientation(const void *data, size_t n);

#endif
