/* tensor_hash.h - a tensor's part in the identity of a model, for cache keys.
 *
 * Name, type, shape and the data: three samples of it, the first, middle and last 4 KiB (all of it
 * up to 12 KiB), or every byte.  Samples cost some pages per tensor, which opening reads anyway,
 * and will do among the models of one process: training touches every page of a matrix.  Two files
 * that differ in a few values elsewhere are one to them.  Both are false when the bytes cannot be
 * read (tensor_read). */
#ifndef GALLEY_FORMAT_TENSOR_HASH_H
#define GALLEY_FORMAT_TENSOR_HASH_H

#include "kernels/tensor.h"
#include "src/base/hash.h"

GALLEY_MUST_USE bool tensor_hash(struct hash *h, const char *name, const struct tensor *t);
/* Of one tensor, every byte. */
GALLEY_MUST_USE bool tensor_digest(unsigned char out[HASH_BYTES], const char *name,
                                   const struct tensor *t);

#endif
