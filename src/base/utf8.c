/* utf8.c - strict UTF-8. */
#include "src/base/utf8.h"

#include <assert.h>

/* Table 3-7 of the Unicode standard: the second byte's range per lead byte. */
static int lead_info(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (c >= 0xc2 && c <= 0xdf) {
        return 2;
    }
    if (c >= 0xe0 && c <= 0xef) {
        *lo = c == 0xe0 ? 0xa0 : 0x80;
        *hi = c == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        *lo = c == 0xf0 ? 0x90 : 0x80;
        *hi = c == 0xf4 ? 0x8f : 0xbf;
        return 4;
    }
    return 0;
}

int utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    assert(n >= 1);
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) {
        *cp = u[0];
        return 1;
    }
    *cp = UTF8_REPLACEMENT;
    unsigned char lo, hi;
    const int len = lead_info(u[0], &lo, &hi);
    if (len == 0) {
        return 1;
    }
    uint32_t v = u[0] & (0xffu >> (len + 1));
    for (int i = 1; i < len; i++) {
        if ((size_t)i >= n || u[i] < lo || u[i] > hi) {
            return i;
        }
        v = v << 6 | (u[i] & 0x3fu);
        lo = 0x80;
        hi = 0xbf;
    }
    *cp = v;
    return len;
}

int utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
        cp = UTF8_REPLACEMENT;
    }
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    const int n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (cp & 0x3f));
        cp >>= 6;
    }
    out[0] = (char)((0xf00 >> n & 0xff) | cp);
    return n;
}

bool utf8_valid(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint32_t cp;
        const int used = utf8_decode(s + i, n - i, &cp);
        /* A real U+FFFD is three bytes; anything else that decodes to it is broken. */
        if (cp == UTF8_REPLACEMENT &&
            !(used == 3 && (unsigned char)s[i] == 0xef && (unsigned char)s[i + 1] == 0xbf &&
              (unsigned char)s[i + 2] == 0xbd)) {
            return false;
        }
        i += (size_t)used;
    }
    return true;
}
