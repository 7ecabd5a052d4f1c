/* hash.h - SHA-256 (FIPS 180-4) of bytes, by nettle. */
#ifndef GALLEY_BASE_HASH_H
#define GALLEY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BYTES     32
#define HASH_HEX_BYTES 65

/* Piece by piece.  Caller's storage; no deinit needed. */
struct hash {
    _Alignas(16) unsigned char state[128]; /* nettle's struct sha256_ctx; its size is asserted */
};
void hash_init(struct hash *h);
void hash_add(struct hash *h, const void *bytes, size_t n);
/* Eight bytes, lowest first; a double by its bits: the same on every build. */
void hash_add_int(struct hash *h, int64_t v);
void hash_add_number(struct hash *h, double v);
void hash_finish(struct hash *h, unsigned char out[HASH_BYTES]); /* h is as after hash_init */

/* A digest as 64 lower-case hex digits and NUL. */
void hash_hex(const unsigned char digest[HASH_BYTES], char out[HASH_HEX_BYTES]);

/* The same in one call, as hex digits. */
void hash_sha256_hex(const void *bytes, size_t n, char out[HASH_HEX_BYTES]);

#endif
