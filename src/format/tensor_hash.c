/* tensor_hash.c - see tensor_hash.h. */
#include "src/format/tensor_hash.h"

#include <string.h>

#define SAMPLE_BYTES 4096
#define PIECE_BYTES  65536

static void add_head(struct hash *h, const char *name, const struct tensor *t)
{
    hash_add_int(h, (int64_t)strlen(name));
    hash_add(h, name, strlen(name));
    hash_add_int(h, (int64_t)t->dtype);
    hash_add_int(h, t->n_dim);
    for (int i = 0; i < t->n_dim && i < TENSOR_DIM_MAX; i++) {
        hash_add_int(h, t->shape[i]);
    }
}

static bool add_bytes(struct hash *h, const struct tensor *t, uint64_t at, uint64_t n)
{
    unsigned char piece[PIECE_BYTES];
    while (n > 0) {
        const size_t each = n < sizeof(piece) ? (size_t)n : sizeof(piece);
        if (!tensor_read(t, piece, at, each)) {
            return false;
        }
        hash_add(h, piece, each);
        at += each;
        n -= each;
    }
    return true;
}

bool tensor_hash(struct hash *h, const char *name, const struct tensor *t)
{
    add_head(h, name, t);
    if (t->dtype >= DTYPE_COUNT) {
        return true; /* of a type nothing here can read */
    }
    const uint64_t n = tensor_bytes(t);
    if (n <= 3 * SAMPLE_BYTES) {
        return add_bytes(h, t, 0, n);
    }
    return add_bytes(h, t, 0, SAMPLE_BYTES) &&
           add_bytes(h, t, (n - SAMPLE_BYTES) / 2, SAMPLE_BYTES) &&
           add_bytes(h, t, n - SAMPLE_BYTES, SAMPLE_BYTES);
}

bool tensor_digest(unsigned char out[HASH_BYTES], const char *name, const struct tensor *t)
{
    struct hash h;
    hash_init(&h);
    add_head(&h, name, t);
    const bool all = t->dtype >= DTYPE_COUNT || add_bytes(&h, t, 0, tensor_bytes(t));
    hash_finish(&h, out);
    return all;
}
