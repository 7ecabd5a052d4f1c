/* imatrix.h - importance matrices: how much each input column of a weight matrix matters.
 *
 * llama.cpp's llama-imatrix makes them: mean squares of activations, as a GGUF file (general.type
 * imatrix) or in the older .dat form.  Only the proportions within a tensor mean anything. */
#ifndef GALLEY_FORMAT_IMATRIX_H
#define GALLEY_FORMAT_IMATRIX_H

#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/err.h"

struct imatrix;

GALLEY_MUST_USE enum galley_status imatrix_open(struct imatrix **out, const char *path,
                                                struct galley_err *err);
/* The older form from memory: tests and fuzzers. */
GALLEY_MUST_USE enum galley_status imatrix_parse(struct imatrix **out, const char *where,
                                                 const void *bytes, size_t n,
                                                 struct galley_err *err);
void imatrix_close(struct imatrix *im); /* NULL is fine */
int imatrix_count(const struct imatrix *im);
/* Lends [*n] finite numbers >= 0 for a tensor's GGUF name; NULL: it is not in there. */
const float *imatrix_lookup(const struct imatrix *im, const char *tensor, size_t *n);

#endif
