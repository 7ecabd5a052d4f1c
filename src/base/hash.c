/* hash.c - SHA-256. */
#include "src/base/hash.h"

#include <assert.h>
#include <nettle/sha2.h>
#include <string.h>

static_assert(sizeof(struct sha256_ctx) <= sizeof(((struct hash *)0)->state),
              "struct hash holds nettle's state");
static_assert(_Alignof(struct sha256_ctx) <= _Alignof(struct hash), "and aligns it");
static_assert(HASH_BYTES == SHA256_DIGEST_SIZE && HASH_HEX_BYTES == 2 * HASH_BYTES + 1,
              "the header's sizes");

static struct sha256_ctx *ctx_of(struct hash *h)
{
    return (struct sha256_ctx *)(void *)h->state;
}

void hash_init(struct hash *h)
{
    sha256_init(ctx_of(h));
}

void hash_add(struct hash *h, const void *bytes, size_t n)
{
    if (n > 0) { /* nettle's memcpy must not see NULL */
        sha256_update(ctx_of(h), n, bytes);
    }
}

void hash_add_int(struct hash *h, int64_t v)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)((uint64_t)v >> (8 * i));
    }
    hash_add(h, bytes, sizeof(bytes));
}

void hash_add_number(struct hash *h, double v)
{
    int64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    hash_add_int(h, bits);
}

void hash_finish(struct hash *h, unsigned char out[HASH_BYTES])
{
    sha256_digest(ctx_of(h), HASH_BYTES, out);
}

void hash_hex(const unsigned char digest[HASH_BYTES], char out[HASH_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < HASH_BYTES; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[HASH_HEX_BYTES - 1] = '\0';
}

void hash_sha256_hex(const void *bytes, size_t n, char out[HASH_HEX_BYTES])
{
    struct hash h;
    unsigned char digest[HASH_BYTES];
    hash_init(&h);
    hash_add(&h, bytes, n);
    hash_finish(&h, digest);
    hash_hex(digest, out);
}
