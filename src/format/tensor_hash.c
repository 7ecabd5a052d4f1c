/* tensor_hash.c - see tensor_hash.h. */
#include "src/format/tensor_hash.h"

#include <string.h>

#define SAMPLE_BYTES 4096

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

void tensor_hash(struct hash *h, const char *name, const struct tensor *t)
{
    add_head(h, name, t);
    if (t->dtype >= DTYPE_COUNT) {
        return; /* of a type nothing here can read */
    }
    const uint64_t n = tensor_bytes(t);
    const unsigned char *data = t->data;
    if (n <= 3 * SAMPLE_BYTES) {
        hash_add(h, data, (size_t)n);
        return;
    }
    hash_add(h, data, SAMPLE_BYTES);
    hash_add(h, data + (n - SAMPLE_BYTES) / 2, SAMPLE_BYTES);
    hash_add(h, data + n - SAMPLE_BYTES, SAMPLE_BYTES);
}

void tensor_digest(unsigned char out[HASH_BYTES], const char *name, const struct tensor *t)
{
    struct hash h;
    hash_init(&h);
    add_head(&h, name, t);
    if (t->dtype < DTYPE_COUNT) {
        hash_add(&h, t->data, (size_t)tensor_bytes(t));
    }
    hash_finish(&h, out);
}
