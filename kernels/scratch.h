/* scratch.h - device memory that a module keeps between calls, and arrays laid out in it. */
#ifndef GALLEY_KERNELS_SCRATCH_H
#define GALLEY_KERNELS_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"

struct scratch {
    char *base; /* NULL while empty */
    uint64_t bytes;
};

/* Room for `bytes` at least; what lay in it is lost.  Grows by half again at least, so that slowly
 * growing batches settle soon.  False without memory: the block is empty then. */
GALLEY_MUST_USE bool scratch_reserve(struct scratch *s, struct device *dev, uint64_t bytes);
void scratch_deinit(struct scratch *s, struct device *dev);

/* Hands out arrays of 4-byte elements one behind another, each on its own cache line.  Without a
 * base it only counts, so the function that fills a layout also sizes it. */
struct scratch_cursor {
    char *base;
    uint64_t bytes; /* handed out so far */
};

void *scratch_take(struct scratch_cursor *c, uint64_t n, uint64_t width);

#endif
