/* fuzz_jpeg.c - claims: a picture within the limit or a sentence, never both; a picture's every
 * byte may be read; damage is only ever reported with a picture. */
#include <stdint.h>
#include <stdlib.h>

#include "src/format/exif.h"
#include "src/format/jpeg.h"

#define LIMIT 250000

#define CLAIM(cond)  \
    do {             \
        if (!(cond)) \
            abort(); \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct galley_err err = { 0 };
    struct image *im;
    bool damaged;
    const enum galley_status rc = jpeg_decode(&im, &damaged, data, n, LIMIT, &err);
    CLAIM((rc == GALLEY_OK) == (im != NULL));
    if (rc) {
        CLAIM(err.msg[0] && err.status == rc && !damaged && rc != GALLEY_EINTERNAL);
    } else {
        CLAIM(im->width > 0 && im->height > 0);
        CLAIM((uint64_t)im->width * (uint64_t)im->height <= LIMIT);
        unsigned sum = 0;
        for (size_t i = 0; i < im->stride * (size_t)im->height; i++) {
            sum += im->rgb[i];
        }
        CLAIM(sum <= 255u * 3 * LIMIT);
    }
    image_unref(im);
    const int o = exif_orientation(data, n);
    CLAIM(o >= 1 && o <= 8);
    return 0;
}
