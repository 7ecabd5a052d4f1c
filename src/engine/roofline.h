/* roofline.h - what this machine can do at best, measured: the roof every plan and bench is held
 * against (Williams, Waterman, Patterson, CACM 2009). */
#ifndef GALLEY_ENGINE_ROOFLINE_H
#define GALLEY_ENGINE_ROOFLINE_H

#include "kernels/device.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

struct roofline {
    double read_bytes_per_s; /* from memory, all threads: 256 MiB, or more than the caches */
    double f32_per_s;        /* multiply-adds twice, 256 rows of f32 weights inside a cache */
    double int8_per_s;       /* the same of Q8_0 weights */
};

/* Takes about a second.  n_threads as device_open_cpu. */
GALLEY_MUST_USE enum galley_status roofline_measure(struct roofline *out, const char *isa,
                                                    int n_threads, struct galley_err *err);

#endif
