/* strip.c - vertical white that separates columns.
 *
 * A sweep over text rows keeps the white intervals that all rows so far share; an interval that
 * holds over enough rows with text on both sides is a strip.  Rows of staggered columns have text
 * on one side only and keep the interval alive. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout/flow.h"

#define MAX_ACTIVE 48
#define MAX_GAPS   64
#define MAX_STRIPS 400

struct span {
    float x0, x1;
};

struct sweep {
    struct flow *f;
    struct strip active[MAX_ACTIVE];
    int n_active;
    float min_width, em;
};

struct row_gap {
    float x0, x1;
    bool left, right; /* real text beside it in this row */
};

static int word_by_y(const void *a, const void *b)
{
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    const float cx = x->box.y0 + x->box.y1, cy = y->box.y0 + y->box.y1;
    if (cx != cy) {
        return cx < cy ? -1 : 1;
    }
    return (x->source > y->source) - (x->source < y->source);
}

static int span_by_x(const void *a, const void *b)
{
    const float x = ((const struct span *)a)->x0, y = ((const struct span *)b)->x0;
    return (x > y) - (x < y);
}

static bool strip_holds(const struct sweep *s, const struct strip *t)
{
    const float h = t->y1 - t->y0;
    const int n = t->n_left < t->n_right ? t->n_left : t->n_right;
    /* Narrow white may be a chain of wide spaces: it needs more rows. */
    return n >= (t->x1 - t->x0 < s->em ? 6 : 3) && h >= 2.5f * s->em;
}

static void strip_finish(struct sweep *s, const struct strip *t)
{
    struct flow *f = s->f;
    if (!strip_holds(s, t) || f->n_strips >= MAX_STRIPS) {
        return;
    }
    for (int32_t i = 0; i < f->n_strips; i++) {
        const struct strip *o = &f->strips[i];
        if (o->x0 >= t->x0 && o->x1 <= t->x1 && o->y0 <= t->y0 && o->y1 >= t->y1) {
            return; /* a taller one already says so */
        }
    }
    f->strips[f->n_strips++] = *t;
}

static int row_gaps(const struct sweep *s, struct span *spans, int n, struct row_gap *gaps)
{
    const float width = s->f->page->width;
    qsort(spans, (size_t)n, sizeof(*spans), span_by_x);
    int n_gaps = 0;
    float edge = 0, run0 = spans[0].x0;
    for (int i = 0; i <= n; i++) {
        const float next = i < n ? spans[i].x0 : width;
        if (next - edge >= s->min_width && n_gaps < MAX_GAPS) {
            /* A lone list marker is no column: it counts as text only when wide enough. */
            const bool left = i > 0 && edge - run0 > 2.2f * s->em;
            gaps[n_gaps++] = (struct row_gap){ edge, next, left, i < n };
        }
        if (i < n) {
            if (next - edge >= s->min_width) {
                run0 = next;
            }
            edge = fmaxf(edge, spans[i].x1);
        }
    }
    return n_gaps;
}

static void active_add(struct strip *list, int *n, const struct strip *t)
{
    for (int i = 0; i < *n; i++) {
        if (fabsf(list[i].x0 - t->x0) < 0.5f && fabsf(list[i].x1 - t->x1) < 0.5f) {
            if (t->y0 < list[i].y0) {
                list[i] = *t;
            }
            return;
        }
    }
    if (*n < MAX_ACTIVE) {
        list[(*n)++] = *t;
    }
}

static void sweep_row(struct sweep *s, struct span *spans, int n, float y0, float y1)
{
    struct row_gap gaps[MAX_GAPS];
    struct strip next[MAX_ACTIVE];
    int n_next = 0;
    const int n_gaps = row_gaps(s, spans, n, gaps);
    for (int i = 0; i < s->n_active; i++) {
        const struct strip *t = &s->active[i];
        bool whole = false;
        for (int k = 0; k < n_gaps; k++) {
            struct strip u = *t;
            u.x0 = fmaxf(u.x0, gaps[k].x0);
            u.x1 = fminf(u.x1, gaps[k].x1);
            if (u.x1 - u.x0 < s->min_width || y0 - t->y1 > 4 * s->em) {
                continue;
            }
            u.y1 = fmaxf(u.y1, y1);
            u.n_left += gaps[k].left;
            u.n_right += gaps[k].right;
            whole = whole || u.x1 - u.x0 > 0.98f * (t->x1 - t->x0);
            active_add(next, &n_next, &u);
        }
        if (!whole) {
            strip_finish(s, t);
        }
    }
    for (int k = 0; k < n_gaps; k++) {
        const struct strip u = { gaps[k].x0, gaps[k].x1, y0, y1, gaps[k].left, gaps[k].right };
        active_add(next, &n_next, &u);
    }
    memcpy(s->active, next, sizeof(*next) * (size_t)n_next);
    s->n_active = n_next;
}

void strips_find(struct flow *f)
{
    struct word **by_y = flow_many(f, struct word *, (size_t)f->n_source);
    struct span *spans = flow_many(f, struct span, (size_t)f->n_source);
    f->strips = flow_many(f, struct strip, MAX_STRIPS);
    if (f->failed) {
        return;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < f->n_source; i++) {
        if (f->words[i].owner == OWNER_NONE) {
            by_y[n++] = &f->words[i];
        }
    }
    qsort(by_y, (size_t)n, sizeof(struct word *), word_by_y);
    struct sweep s = { .f = f, .em = f->em, .min_width = fmaxf(0.55f * f->em, 4) };
    for (int32_t i = 0; i < n;) {
        const float yc = (by_y[i]->box.y0 + by_y[i]->box.y1) / 2;
        float y0 = by_y[i]->box.y0, y1 = by_y[i]->box.y1;
        int m = 0;
        for (; i < n; i++) {
            const struct box *b = &by_y[i]->box;
            if ((b->y0 + b->y1) / 2 - yc > 0.3f * fminf(f->em, b->y1 - b->y0) + 0.01f) {
                break;
            }
            y0 = fminf(y0, b->y0);
            y1 = fmaxf(y1, b->y1);
            spans[m++] = (struct span){ b->x0, b->x1 };
        }
        sweep_row(&s, spans, m, y0, y1);
    }
    for (int i = 0; i < s.n_active; i++) {
        strip_finish(&s, &s.active[i]);
    }
}
