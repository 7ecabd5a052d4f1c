/* tensor_hash.h - a tensor's part in the identity of a model, for cache keys.
 *
 * Name, type, shape and three samples of the data: the first, middle and last 4 KiB (all of it up
 * to 12 KiB).  Sampling keeps the cost at some pages per tensor, which opening reads anyway;
 * training touches every page of a matrix, so three of them tell two checkpoints apart. */
#ifndef GALLEY_FORMAT_TENSOR_HASH_H
#define GALLEY_FORMAT_TENSOR_HASH_H

#include "kernels/tensor.h"
#include "src/base/hash.h"

void tensor_hash(struct hash *h, const char *name, const struct tensor *t);

#endif
