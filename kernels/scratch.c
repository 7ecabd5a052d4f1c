/* scratch.c - growing device memory. */
#include "kernels/scratch.h"

#define LINE 64

bool scratch_reserve(struct scratch *s, struct device *dev, uint64_t bytes)
{
    if (bytes <= s->bytes) {
        return true;
    }
    const uint64_t grown = s->bytes + s->bytes / 2;
    scratch_deinit(s, dev);
    bytes = bytes > grown ? bytes : grown;
    s->base = dev->ops->alloc(dev, bytes);
    s->bytes = s->base ? bytes : 0;
    return s->base != NULL;
}

void scratch_deinit(struct scratch *s, struct device *dev)
{
    dev->ops->free(dev, s->base);
    *s = (struct scratch){ 0 };
}

void *scratch_take(struct scratch_cursor *c, uint64_t n, uint64_t width)
{
    void *p = c->base ? c->base + c->bytes : NULL;
    c->bytes += (n * width * 4 + LINE - 1) / LINE * LINE;
    return p;
}
