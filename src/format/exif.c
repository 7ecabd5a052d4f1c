/* exif.c - reads tag 0x0112 of IFD 0; every offset is compared before it is used. */
#include "src/format/exif.h"

#include <stdint.h>
#include <string.h>

#define TAG_ORIENTATION 0x0112u
#define TYPE_SHORT      3u
#define HEAD_BYTES      6 /* "Exif\0\0" */
#define ENTRY_BYTES     12

static unsigned load16(const uint8_t *p, bool big)
{
    return big ? (unsigned)p[0] << 8 | p[1] : (unsigned)p[1] << 8 | p[0];
}

static uint32_t load32(const uint8_t *p, bool big)
{
    const uint32_t a = load16(p, big), b = load16(p + 2, big);
    return big ? a << 16 | b : b << 16 | a;
}

bool exif_is(const void *data, size_t n)
{
    return n >= HEAD_BYTES && memcmp(data, "Exif\0\0", HEAD_BYTES) == 0;
}

int exif_orientation(const void *data, size_t n)
{
    if (!exif_is(data, n) || n - HEAD_BYTES < 8) {
        return 1;
    }
    const uint8_t *tiff = (const uint8_t *)data + HEAD_BYTES;
    n -= HEAD_BYTES;
    const bool big = tiff[0] == 'M';
    if (memcmp(tiff, big ? "MM\0*" : "II*\0", 4) != 0) {
        return 1;
    }
    const size_t ifd = load32(tiff + 4, big);
    if (ifd > n || n - ifd < 2) {
        return 1;
    }
    const size_t room = (n - ifd - 2) / ENTRY_BYTES;
    size_t n_entries = load16(tiff + ifd, big);
    n_entries = n_entries < room ? n_entries : room;
    for (size_t i = 0; i < n_entries; i++) {
        const uint8_t *e = tiff + ifd + 2 + i * ENTRY_BYTES;
        if (load16(e, big) == TAG_ORIENTATION) {
            const unsigned o = load16(e + 8, big);
            const bool valid = load16(e + 2, big) == TYPE_SHORT && o >= 1 && o <= 8;
            return valid ? (int)o : 1;
        }
    }
    return 1;
}
