/* picture.c - file kinds by their first bytes, and the way to the right decoder. */
#include "src/format/picture.h"

#include <ctype.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/format/jpeg.h"
#include "src/format/png.h"

#define SNIFF_BYTES 1024 /* PDF readers accept "%PDF-" anywhere in here */

struct magic {
    enum file_kind kind;
    unsigned char at, n;
    const char *bytes;
};

/* In this order; the first match decides. */
static const struct magic magics[] = {
    { FILE_PNG, 0, 8, "\x89PNG\r\n\x1a\n" },
    { FILE_JPEG, 0, 3, "\xff\xd8\xff" },
    { FILE_GIF, 0, 4, "GIF8" },
    { FILE_WEBP, 8, 4, "WEBP" },
    { FILE_TIFF, 0, 4, "II*\0" },
    { FILE_TIFF, 0, 4, "MM\0*" },
    { FILE_TIFF, 0, 4, "II+\0" }, /* BigTIFF */
    { FILE_TIFF, 0, 4, "MM\0+" },
    { FILE_JP2, 0, 12, "\0\0\0\x0cjP  \r\n\x87\n" },
    { FILE_JP2, 0, 4, "\xff\x4f\xff\x51" },
    { FILE_JXL, 0, 12, "\0\0\0\x0cJXL \r\n\x87\n" },
    { FILE_JXL, 0, 2, "\xff\x0a" },
    { FILE_ZIP, 0, 4, "PK\3\4" },
    { FILE_ZIP, 0, 4, "PK\5\6" }, /* empty archive */
};

static const char *find_bytes(const char *s, size_t n, const char *what)
{
    return memmem(s, n, what, strlen(what));
}

/* ISO base media files name their brands in the first box: major brand, then compatible ones. */
static enum file_kind kind_of_ftyp(const unsigned char *p, size_t n)
{
    static const struct {
        char brand[5];
        enum file_kind kind;
    } brands[] = {
        { "avif", FILE_AVIF }, { "avis", FILE_AVIF }, { "heic", FILE_HEIC }, { "heix", FILE_HEIC },
        { "hevc", FILE_HEIC }, { "hevx", FILE_HEIC }, { "heim", FILE_HEIC }, { "heis", FILE_HEIC },
        { "mif1", FILE_HEIC }, { "msf1", FILE_HEIC },
    };
    if (n < 12 || memcmp(p + 4, "ftyp", 4) != 0) {
        return FILE_UNKNOWN;
    }
    const size_t box = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    const size_t end = box < n ? box : n;
    /* Brand by brand, because generic ones (mif1) come first in some AVIF files. */
    for (size_t b = 0; b < COUNT(brands); b++) {
        for (size_t at = 8; at + 4 <= end; at += 4) {
            if (at != 12 && memcmp(p + at, brands[b].brand, 4) == 0) { /* 12: minor version */
                return brands[b].kind;
            }
        }
    }
    return FILE_UNKNOWN;
}

/* "BM", then a file size, reserved zeros, and an information header of a known length. */
static bool is_bmp(const unsigned char *p, size_t n)
{
    return n >= 26 && memcmp(p, "BM", 2) == 0 && memcmp(p + 6, "\0\0\0\0", 4) == 0 && p[14] >= 12 &&
           p[14] <= 124 && memcmp(p + 15, "\0\0\0", 3) == 0;
}

static bool starts_with(const char *s, size_t n, const char *what)
{
    const size_t len = strlen(what);
    return n >= len && strncasecmp(s, what, len) == 0;
}

/* UTF-8 without control characters; the piece may end inside a character. */
static bool is_text(const char *s, size_t n, bool whole)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        const int used = utf8_decode(s + i, n - i, &cp);
        const bool cut = !whole && n - i < 4;
        if (cp == UTF8_REPLACEMENT && memcmp(s + i, "\xef\xbf\xbd", used < 3 ? 1 : 3) != 0) {
            return cut;
        }
        if ((cp < 0x20 && !memchr("\t\n\r\f", (int)cp, 4)) || cp == 0x7f) {
            return false;
        }
        i += (size_t)used;
    }
    return true;
}

static enum file_kind kind_of_text(const char *s, size_t n, bool whole)
{
    if (n >= 2 && (memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0)) {
        return FILE_TEXT; /* UTF-16 */
    }
    if (!is_text(s, n, whole)) {
        return FILE_UNKNOWN;
    }
    if (n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0) {
        s += 3;
        n -= 3;
    }
    while (n > 0 && isspace((unsigned char)*s)) {
        s++;
        n--;
    }
    if (starts_with(s, n, "<svg") || (starts_with(s, n, "<?xml") && find_bytes(s, n, "<svg"))) {
        return FILE_SVG;
    }
    if (starts_with(s, n, "<!doctype html") || starts_with(s, n, "<html") ||
        (starts_with(s, n, "<?xml") && find_bytes(s, n, "<html"))) {
        return FILE_HTML;
    }
    return FILE_TEXT;
}

enum file_kind file_kind_of(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    if (n == 0) {
        return FILE_EMPTY;
    }
    for (size_t i = 0; i < COUNT(magics); i++) {
        const struct magic *m = &magics[i];
        if (n >= (size_t)m->at + m->n && memcmp(p + m->at, m->bytes, m->n) == 0 &&
            (m->kind != FILE_WEBP || memcmp(p, "RIFF", 4) == 0)) {
            return m->kind;
        }
    }
    const enum file_kind media = kind_of_ftyp(p, n);
    if (media) {
        return media;
    }
    if (is_bmp(p, n)) {
        return FILE_BMP;
    }
    const size_t head = n < SNIFF_BYTES ? n : SNIFF_BYTES;
    if (find_bytes(bytes, head, "%PDF-")) {
        return FILE_PDF;
    }
    return kind_of_text(bytes, head, head == n);
}

static const struct {
    const char *name, *tool; /* tool: a command that makes something Galley reads */
} kinds[] = {
    [FILE_UNKNOWN] = { "an unknown format", NULL },
    [FILE_EMPTY] = { "empty", NULL },
    [FILE_PDF] = { "PDF", "pdftoppm -png" },
    [FILE_PNG] = { "PNG", NULL },
    [FILE_JPEG] = { "JPEG", NULL },
    [FILE_WEBP] = { "WebP", "dwebp IN -o OUT.png" },
    [FILE_GIF] = { "GIF", "convert IN OUT.png" },
    [FILE_BMP] = { "BMP", "convert IN OUT.png" },
    [FILE_TIFF] = { "TIFF", "tiff2pdf IN -o OUT.pdf" },
    [FILE_HEIC] = { "HEIC", "heif-convert IN OUT.png" },
    [FILE_AVIF] = { "AVIF", "avifdec IN OUT.png" },
    [FILE_JP2] = { "JPEG 2000", "opj_decompress -i IN -o OUT.png" },
    [FILE_JXL] = { "JPEG XL", "djxl IN OUT.png" },
    [FILE_SVG] = { "SVG", "rsvg-convert -f pdf IN -o OUT.pdf" },
    [FILE_ZIP] = { "ZIP (or an office document)", "soffice --convert-to pdf IN" },
    [FILE_HTML] = { "HTML", "wkhtmltopdf IN OUT.pdf" },
    [FILE_TEXT] = { "text", NULL },
};

const char *file_kind_name(enum file_kind kind)
{
    return (size_t)kind < COUNT(kinds) ? kinds[kind].name : kinds[FILE_UNKNOWN].name;
}

static enum galley_status refuse(enum file_kind kind, const unsigned char *p, size_t n,
                                 struct galley_err *err)
{
    if (kind == FILE_EMPTY) {
        return galley_err_set(err, GALLEY_EINPUT, "the file is empty");
    }
    if (kind == FILE_UNKNOWN) {
        unsigned char head[4] = { 0 };
        memcpy(head, p, n < 4 ? n : 4);
        return galley_err_set(err, GALLEY_EUNSUP,
                              "unknown format (%zu bytes, first %02x %02x %02x %02x); Galley reads "
                              "PDF, PNG and JPEG",
                              n, head[0], head[1], head[2], head[3]);
    }
    if (kind == FILE_PDF) {
        return galley_err_set(err, GALLEY_EUNSUP, "this is PDF, where a picture was expected");
    }
    if (kind == FILE_TEXT) {
        return galley_err_set(err, GALLEY_EUNSUP,
                              "this is text already; Galley reads PDF, PNG and JPEG");
    }
    return galley_err_set(err, GALLEY_EUNSUP,
                          "this is %s; Galley reads PDF, PNG and JPEG: convert it, for example "
                          "with `%s`",
                          kinds[kind].name, kinds[kind].tool);
}

enum galley_status picture_decode(struct image **out, bool *damaged, const void *bytes, size_t n,
                                  uint64_t max_pixels, struct galley_err *err)
{
    *out = NULL;
    *damaged = false;
    const enum file_kind kind = file_kind_of(bytes, n);
    if (max_pixels == 0) {
        max_pixels = PICTURE_MAX_PIXELS;
    }
    if (kind == FILE_PNG) {
        return png_decode(out, bytes, n, max_pixels, err);
    }
    if (kind == FILE_JPEG) {
        return jpeg_decode(out, damaged, bytes, n, max_pixels, err);
    }
    return refuse(kind, bytes, n, err);
}
