/* hash.h - SHA-256 (FIPS 180-4) of bytes, by nettle. */
#ifndef GALLEY_BASE_HASH_H
#define GALLEY_BASE_HASH_H

#include <stddef.h>

#define HASH_HEX_BYTES 65

/* 64 lower-case hex digits and NUL. */
void hash_sha256_hex(const void *bytes, size_t n, char out[HASH_HEX_BYTES]);

#endif
