/* safetensors.h - one safetensors file as a list of checked views.
 *
 * Layout of the file: 8 bytes little-endian header length, a JSON object from tensor name to
 * {dtype, shape, data_offsets}, then the data.  Everything is compared with the file's size
 * before a view exists.  Immutable after opening. */
#ifndef GALLEY_FORMAT_SAFETENSORS_H
#define GALLEY_FORMAT_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/tensor.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

#define SAFETENSORS_HEADER_MAX ((size_t)100 << 20) /* the format's own limit */

struct safetensors;

struct st_entry {
    const char *name;    /* lent by the file */
    const char *dtype;   /* as written: "F32", "I64", "F8_E4M3" ... */
    bool usable;         /* F32, F16 or BF16 and at most TENSOR_DIM_MAX dimensions */
    uint64_t begin, end; /* bytes, from the start of the data */
    struct tensor view;  /* dtype DTYPE_COUNT unless usable; no shape with too many dimensions */
};

/* Maps the file; it stays mapped until safetensors_close. */
GALLEY_MUST_USE enum galley_status safetensors_open(struct safetensors **out, const char *path,
                                                    struct galley_err *err);
/* The same over bytes[0..n), which are lent and must outlive the result. */
GALLEY_MUST_USE enum galley_status safetensors_open_memory(struct safetensors **out,
                                                           const char *where, const void *bytes,
                                                           size_t n, struct galley_err *err);
void safetensors_close(struct safetensors *s); /* NULL is fine */

int safetensors_count(const struct safetensors *s);
/* In name order. */
const struct st_entry *safetensors_at(const struct safetensors *s, int i);

#endif
