/* hash.c - SHA-256. */
#include "src/base/hash.h"

#include <nettle/sha2.h>
#include <stdint.h>

void hash_sha256_hex(const void *bytes, size_t n, char out[HASH_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    struct sha256_ctx ctx;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&ctx);
    sha256_update(&ctx, n, bytes);
    sha256_digest(&ctx, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[HASH_HEX_BYTES - 1] = '\0';
}
