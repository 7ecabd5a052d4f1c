/* err.h - filling struct galley_err. */
#ifndef GALLEY_BASE_ERR_H
#define GALLEY_BASE_ERR_H

#include "src/base/compiler.h"
#include "src/galley_status.h"

/* Writes one formatted sentence into *err (NULL is fine) and returns `status`,
 * so that `return galley_err_set(err, GALLEY_EINPUT, "...")` reads in one line.
 * Too long a sentence is cut at a UTF-8 boundary; control characters that came
 * in from a file are replaced by '?'. */
enum galley_status galley_err_set(struct galley_err *err, enum galley_status status,
                                  const char *fmt, ...) GALLEY_PRINTF(3, 4);

/* Puts "prefix: " before the sentence already in *err: callers add the file or
 * page they know about.  err->status becomes `status`, which is returned. */
enum galley_status galley_err_prefix(struct galley_err *err, enum galley_status status,
                                     const char *fmt, ...) GALLEY_PRINTF(3, 4);

/* The constant text of a code ("out of memory"), never NULL. */
const char *status_text(enum galley_status status);

#endif
