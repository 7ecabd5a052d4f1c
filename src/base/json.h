/* json.h - reading JSON files that strangers wrote, on top of cJSON.
 *
 * Trees are bounded in bytes and nesting before cJSON sees them.  The getters
 * take `where` (a file name) and make one sentence of every mismatch. */
#ifndef GALLEY_BASE_JSON_H
#define GALLEY_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"

/* Parses text[0..n).  The tree is the caller's (cJSON_Delete). */
GALLEY_MUST_USE enum galley_status json_parse(cJSON **out, const char *where, const char *text,
                                              size_t n, struct galley_err *err);
/* Reads and parses a file of at most max bytes. */
GALLEY_MUST_USE enum galley_status json_read(cJSON **out, const char *path, size_t max,
                                             struct galley_err *err);

/* Getters: a missing key leaves *out alone when `required` is false, else it is
 * GALLEY_EINPUT.  A present key of the wrong type or outside [lo, hi] always is. */
GALLEY_MUST_USE enum galley_status json_get_int(const cJSON *obj, const char *where,
                                                const char *key, bool required, int64_t lo,
                                                int64_t hi, int64_t *out, struct galley_err *err);
GALLEY_MUST_USE enum galley_status json_get_number(const cJSON *obj, const char *where,
                                                   const char *key, bool required, double lo,
                                                   double hi, double *out, struct galley_err *err);
GALLEY_MUST_USE enum galley_status json_get_bool(const cJSON *obj, const char *where,
                                                 const char *key, bool required, bool *out,
                                                 struct galley_err *err);
/* Lends the string; it lives as long as the tree. */
GALLEY_MUST_USE enum galley_status json_get_string(const cJSON *obj, const char *where,
                                                   const char *key, bool required, const char **out,
                                                   struct galley_err *err);

#endif
