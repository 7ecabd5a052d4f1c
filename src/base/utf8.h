/* utf8.h - strict UTF-8 (RFC 3629: no surrogates, no overlong forms). */
#ifndef GALLEY_BASE_UTF8_H
#define GALLEY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xfffdu

/* Decodes one code point from s[0..n), n >= 1.  Sets *cp and returns the bytes
 * used (>= 1).  A malformed sequence gives U+FFFD and uses the maximal subpart
 * (Unicode 15, section 3.9), so that scanning always ends. */
int utf8_decode(const char *s, size_t n, uint32_t *cp);
/* Writes 1..4 bytes and returns how many; an invalid cp is written as U+FFFD. */
int utf8_encode(uint32_t cp, char out[4]);
bool utf8_valid(const char *s, size_t n);

#endif
