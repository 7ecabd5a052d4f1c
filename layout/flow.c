/* flow.c - the flow's memory, boxes and character classes. */
#include "layout/flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

void flow_init(struct flow *f, const struct page *p, bool ocr)
{
    memset(f, 0, sizeof(*f));
    f->page = p;
    f->ocr = ocr;
}

void flow_deinit(struct flow *f)
{
    for (size_t i = 0; i < f->n_mem; i++) {
        mem_free(f->blocks_mem[i]);
    }
    mem_free(f->blocks_mem);
    memset(f, 0, sizeof(*f));
}

void *flow_array(struct flow *f, size_t n, size_t size)
{
    if (f->failed) {
        return NULL;
    }
    if (f->n_mem == f->cap_mem) {
        const size_t cap = f->cap_mem ? 2 * f->cap_mem : 64;
        void **grown = mem_resize_array(f->blocks_mem, cap, sizeof(*grown));
        if (!grown) {
            f->failed = true;
            return NULL;
        }
        f->blocks_mem = grown;
        f->cap_mem = cap;
    }
    void *block = mem_zero_array(n ? n : 1, size);
    if (!block) {
        f->failed = true;
        return NULL;
    }
    f->blocks_mem[f->n_mem++] = block;
    return block;
}

bool box_valid(const struct box *b)
{
    return isfinite(b->x0) && isfinite(b->y0) && isfinite(b->x1) && isfinite(b->y1) &&
           b->x0 <= b->x1 && b->y0 <= b->y1;
}

void box_grow(struct box *a, const struct box *b)
{
    if (a->x1 <= a->x0 && a->y1 <= a->y0) {
        *a = *b;
        return;
    }
    a->x0 = fminf(a->x0, b->x0);
    a->y0 = fminf(a->y0, b->y0);
    a->x1 = fmaxf(a->x1, b->x1);
    a->y1 = fmaxf(a->y1, b->y1);
}

float box_overlap_x(const struct box *a, const struct box *b)
{
    return fminf(a->x1, b->x1) - fmaxf(a->x0, b->x0);
}

float box_overlap_y(const struct box *a, const struct box *b)
{
    return fminf(a->y1, b->y1) - fmaxf(a->y0, b->y0);
}

bool box_has(const struct box *b, float x, float y)
{
    return x >= b->x0 && x <= b->x1 && y >= b->y0 && y <= b->y1;
}

float box_cover(const struct box *a, const struct box *b)
{
    const float w = box_overlap_x(a, b), h = box_overlap_y(a, b);
    const float area = (b->x1 - b->x0) * (b->y1 - b->y0);
    return w > 0 && h > 0 && area > 0 ? w * h / area : 0;
}

int float_compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

float float_median(float *v, size_t n)
{
    if (n == 0) {
        return 0;
    }
    qsort(v, n, sizeof(*v), float_compare);
    return v[n / 2];
}

int item_compare_x(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->box.x0 != y->box.x0) {
        return x->box.x0 < y->box.x0 ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}
