/* fuzz_png.c - claims: a picture within the limit or a sentence; a picture that was read is
 * written and read again without a change.  Each input also runs with its checksums repaired. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/format/png.h"

#define LIMIT 250000

#define CLAIM(cond)  \
    do {             \
        if (!(cond)) \
            abort(); \
    } while (0)

static void check_round_trip(const struct image *im)
{
    struct buf out;
    struct galley_err err = { 0 };
    struct image *back;
    buf_init(&out, 8 << 20);
    CLAIM(png_encode(&out, im, &err) == GALLEY_OK);
    CLAIM(png_decode(&back, out.data, out.n, LIMIT, &err) == GALLEY_OK);
    CLAIM(back->width == im->width && back->height == im->height);
    CLAIM(memcmp(back->rgb, im->rgb, im->stride * (size_t)im->height) == 0);
    image_unref(back);
    buf_deinit(&out);
}

static void check_file(const uint8_t *data, size_t n)
{
    struct galley_err err = { 0 };
    struct image *im;
    const enum galley_status rc = png_decode(&im, data, n, LIMIT, &err);
    CLAIM((rc == GALLEY_OK) == (im != NULL));
    if (rc) {
        CLAIM(err.msg[0] && err.status == rc && rc != GALLEY_EINTERNAL);
    } else {
        CLAIM((uint64_t)im->width * (uint64_t)im->height <= LIMIT);
        check_round_trip(im);
    }
    image_unref(im);
}

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

/* Makes every chunk's checksum right: mutations would otherwise never get past it. */
static void repair(uint8_t *p, size_t n)
{
    size_t at = 8;
    while (n >= 12 && at <= n - 12) {
        const size_t len =
            (size_t)p[at] << 24 | (size_t)p[at + 1] << 16 | (size_t)p[at + 2] << 8 | p[at + 3];
        if (len > n - 12 - at) {
            return;
        }
        const uint32_t crc = crc32_of(p + at + 4, len + 4);
        for (size_t i = 0; i < 4; i++) {
            p[at + 8 + len + i] = (uint8_t)(crc >> (24 - 8 * i));
        }
        at += 12 + len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    check_file(data, n);
    uint8_t *copy = malloc(n ? n : 1);
    CLAIM(copy);
    if (n) {
        memcpy(copy, data, n);
    }
    repair(copy, n);
    check_file(copy, n);
    free(copy);
    return 0;
}
