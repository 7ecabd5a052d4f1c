/* roofline.h - what this machine can do at best, measured: the roof every plan and bench is held
 * against (Williams, Waterman, Patterson, CACM 2009). */
#ifndef GALLEY_ENGINE_ROOFLINE_H
#define GALLEY_ENGINE_ROOFLINE_H

#include <stdint.h>

#include "kernels/device.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

struct roofline {
    double read_bytes_per_s; /* from memory, all threads */
    uint64_t read_bytes; /* the buffer that was read: ROOFLINE_READ_BYTES unless memory is short */
    double f32_per_s;    /* multiply-adds twice, 256 rows of f32 weights inside a cache */
    double int8_per_s;   /* the same of Q8_0 or Q4_K weights, whichever is faster */
};

/* Beyond the share of any shared cache a guest gets. */
#define ROOFLINE_READ_BYTES (512ull << 20)

/* Takes about a second.  n_threads as device_open_cpu.  What there is no memory to measure is 0;
 * of the memory that is available no more than half is taken. */
GALLEY_MUST_USE enum galley_status roofline_measure(struct roofline *out, const char *isa,
                                                    int n_threads, struct galley_err *err);

#endif
