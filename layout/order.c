/* order.c - reading order: bands and columns by strips, rows inside a column.
 *
 * A set of items is cut at its best strip: what lies above the strip's extent comes first, then the
 * left side, the right side, and what lies below; each part is cut again.  A set without a strip is
 * one column, read row by row. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout/flow.h"

#define MAX_DEPTH 40

struct sorter {
    struct flow *f;
    struct item *tmp;
    bool rtl;
};

static int item_by_y(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    const float cx = x->box.y0 + x->box.y1, cy = y->box.y0 + y->box.y1;
    if (cx != cy) {
        return cx < cy ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

static int item_by_x_rtl(const void *a, const void *b)
{
    return item_compare_x(b, a);
}

/* One column: rows from top to bottom, each from left to right. */
static void leaf_sort(struct sorter *s, struct item *items, int32_t n)
{
    qsort(items, (size_t)n, sizeof(*items), item_by_y);
    for (int32_t i = 0; i < n;) {
        const struct box *a = &items[i].box;
        int32_t k = i + 1;
        for (; k < n; k++) {
            const struct box *b = &items[k].box;
            const float h = fminf(a->y1 - a->y0, b->y1 - b->y0);
            if ((b->y0 + b->y1 - a->y0 - a->y1) / 2 > 0.4f * h) {
                break;
            }
        }
        qsort(items + i, (size_t)(k - i), sizeof(*items), s->rtl ? item_by_x_rtl : item_compare_x);
        i = k;
    }
    const int32_t group = s->f->n_groups++;
    for (int32_t i = 0; i < n; i++) {
        items[i].group = group;
    }
}

/* Facts about one side of a strip. */
struct side {
    int32_t n_lines, n_words, n_colon, n_numbers;
    float x0, x1, width_sum;
};

static void side_add(const struct flow *f, struct side *d, const struct item *it)
{
    if (d->n_lines == 0 || it->box.x0 < d->x0) {
        d->x0 = it->box.x0;
    }
    if (d->n_lines == 0 || it->box.x1 > d->x1) {
        d->x1 = it->box.x1;
    }
    d->n_lines++;
    d->width_sum += it->box.x1 - it->box.x0;
    if (it->kind == ITEM_LINE) {
        const struct line *l = &f->lines[it->index];
        /* Scripts without spaces count six characters as a word. */
        const int32_t n = l->n_chars / 6;
        d->n_words += l->n_words > n ? l->n_words : n;
        const uint32_t last = line_last_cp(f, l);
        d->n_colon += last == ':' || last == 0xff1a;
        d->n_numbers += l->n_digits > 0 && l->n_letters <= 3;
    } else {
        d->n_words += 12;
    }
}

/* A strip between labels and their values is no column gap. */
static bool sides_are_rows(const struct side *a, const struct side *b, int32_t paired)
{
    const int32_t fewer = a->n_lines < b->n_lines ? a->n_lines : b->n_lines;
    return paired * 10 >= fewer * 8 &&
           (a->n_colon * 2 > a->n_lines || b->n_numbers * 10 > b->n_lines * 6);
}

struct cut {
    float x, y0, y1;
};

/* Cuts the band short where a table or figure lies across the strip. */
static bool band_limit(const struct item *items, int32_t n, const struct strip *s, struct cut *c)
{
    c->x = (s->x0 + s->x1) / 2;
    c->y0 = s->y0;
    c->y1 = s->y1;
    for (int32_t i = 0; i < n; i++) {
        const struct box *b = &items[i].box;
        const float yc = (b->y0 + b->y1) / 2;
        if (b->x0 >= c->x - 1 || b->x1 <= c->x + 1 || yc < c->y0 || yc > c->y1) {
            continue;
        }
        /* Keep the larger part beside the crossing item. */
        if (yc - c->y0 > c->y1 - yc) {
            c->y1 = fminf(c->y1, b->y0);
        } else {
            c->y0 = fmaxf(c->y0, b->y1);
        }
    }
    return c->y1 > c->y0;
}

/* Short last lines of a wide paragraph above lie on one side only: they go with it. */
static void band_trim(const struct flow *f, const struct item *items, int32_t n, struct cut *c)
{
    float bottom = -1e9f; /* of the crossing line right above */
    for (int32_t i = 0; i < n; i++) {
        const struct box *b = &items[i].box;
        if (b->x0 < c->x - 1 && b->x1 > c->x + 1 && items[i].kind == ITEM_LINE &&
            (b->y0 + b->y1) / 2 < c->y0 + 0.5f * f->em) {
            bottom = fmaxf(bottom, b->y1);
        }
    }
    for (int32_t i = 0; i < n; i++) { /* sorted by height */
        const struct box *b = &items[i].box;
        const float yc = (b->y0 + b->y1) / 2;
        if (yc < bottom || items[i].kind != ITEM_LINE) {
            continue;
        }
        const bool alone = i + 1 == n || items[i + 1].box.y0 > b->y1 - 0.3f * (b->y1 - b->y0);
        if (b->y0 - bottom > 0.6f * f->em || !alone) {
            return;
        }
        bottom = b->y1;
        c->y0 = fmaxf(c->y0, b->y1);
    }
}

/* A heading right above a wide item stands on one side only and belongs to that item. */
static void band_trim_end(const struct flow *f, const struct item *items, int32_t n, struct cut *c)
{
    float top = 1e9f; /* of the nearest crossing item below */
    for (int32_t i = 0; i < n; i++) {
        const struct box *b = &items[i].box;
        if (b->x0 < c->x - 1 && b->x1 > c->x + 1 && (b->y0 + b->y1) / 2 > c->y1) {
            top = fminf(top, b->y0);
        }
    }
    for (int32_t i = n - 1; i > 0 && top < 1e8f; i--) {
        const struct box *b = &items[i].box;
        const float yc = (b->y0 + b->y1) / 2;
        if (yc > c->y1) {
            continue;
        }
        float above = -1e9f;
        for (int32_t k = i - 1; k >= 0 && k > i - 8; k--) {
            above = fmaxf(above, items[k].box.y1);
        }
        const float gap = b->y0 - above;
        if (yc < c->y0 || top - b->y1 > 2.5f * f->em || gap < 0.5f * f->em || gap < top - b->y1) {
            return;
        }
        c->y1 = fminf(c->y1, (above + b->y0) / 2);
        top = b->y0;
    }
}

static int32_t rows_paired(const struct item *items, int32_t n, const struct cut *c)
{
    /* items are sorted by height: neighbours in the list are the only possible partners. */
    int32_t paired = 0;
    for (int32_t i = 0; i + 1 < n; i++) {
        const struct box *a = &items[i].box, *b = &items[i + 1].box;
        const bool a_left = a->x1 < c->x + 1, b_left = b->x1 < c->x + 1;
        const float h = fminf(a->y1 - a->y0, b->y1 - b->y0);
        if (a_left != b_left && fabsf(a->y0 + a->y1 - b->y0 - b->y1) / 2 < 0.2f * h) {
            paired++;
        }
    }
    return paired;
}

static bool strip_cuts(struct sorter *s, const struct item *items, int32_t n,
                       const struct strip *st, struct cut *c)
{
    struct side left = { 0 }, right = { 0 };
    if (!band_limit(items, n, st, c)) {
        return false;
    }
    band_trim(s->f, items, n, c);
    band_trim_end(s->f, items, n, c);
    int32_t from = n, to = 0;
    for (int32_t i = 0; i < n; i++) {
        const struct box *b = &items[i].box;
        const float yc = (b->y0 + b->y1) / 2;
        if (yc < c->y0 || yc > c->y1) {
            continue;
        }
        from = i < from ? i : from;
        to = i + 1;
        side_add(s->f, (b->x0 + b->x1) / 2 < c->x ? &left : &right, &items[i]);
    }
    if (left.n_lines < 2 || right.n_lines < 2) {
        return left.n_lines && right.n_lines && left.n_words + right.n_words > 40;
    }
    if (left.x1 - left.x0 < 3 * s->f->em || right.x1 - right.x0 < 3 * s->f->em) {
        return false;
    }
    return !sides_are_rows(&left, &right, rows_paired(items + from, to - from, c));
}

static bool cut_find(struct sorter *s, struct item *items, int32_t n, struct cut *best)
{
    struct box box = { 0 };
    for (int32_t i = 0; i < n; i++) {
        box_grow(&box, &items[i].box);
    }
    float best_score = 0;
    for (int32_t i = 0; i < s->f->n_strips; i++) {
        struct strip st = s->f->strips[i];
        if (st.x0 < box.x0 + 1 || st.x1 > box.x1 - 1) {
            /* A strip wider than the set's inner gap still cuts when its centre lies inside. */
            const float x = (st.x0 + st.x1) / 2;
            if (x < box.x0 + s->f->em || x > box.x1 - s->f->em) {
                continue;
            }
        }
        st.y0 = fmaxf(st.y0, box.y0);
        st.y1 = fminf(st.y1, box.y1);
        const float score = (st.y1 - st.y0) * (1 + fminf(st.x1 - st.x0, 40) / 40);
        struct cut c;
        if (st.y1 - st.y0 < 2 * s->f->em || score <= best_score ||
            !strip_cuts(s, items, n, &st, &c)) {
            continue;
        }
        best_score = score;
        *best = c;
    }
    return best_score > 0;
}

enum part { PART_ABOVE, PART_FIRST, PART_SECOND, PART_BELOW, PART_COUNT };

static void set_sort(struct sorter *s, struct item *items, int32_t n, int depth)
{
    if (n <= 0) {
        return;
    }
    qsort(items, (size_t)n, sizeof(*items), item_by_y);
    n = tables_stream(s->f, items, n);
    qsort(items, (size_t)n, sizeof(*items), item_by_y);
    struct cut c = { 0 };
    if (n < 4 || depth > MAX_DEPTH || !cut_find(s, items, n, &c)) {
        leaf_sort(s, items, n);
        return;
    }
    int32_t count[PART_COUNT] = { 0 }, at = 0;
    for (int p = 0; p < PART_COUNT; p++) {
        for (int32_t i = 0; i < n; i++) {
            const struct box *b = &items[i].box;
            const float yc = (b->y0 + b->y1) / 2;
            const bool left = (b->x0 + b->x1) / 2 < c.x;
            const int part = yc < c.y0        ? PART_ABOVE
                             : yc > c.y1      ? PART_BELOW
                             : left != s->rtl ? PART_FIRST
                                              : PART_SECOND;
            if (part == p) {
                s->tmp[at++] = items[i];
                count[p]++;
            }
        }
    }
    memcpy(items, s->tmp, sizeof(*items) * (size_t)n);
    at = 0;
    for (int p = 0; p < PART_COUNT; p++) {
        if (count[p] == n) {
            leaf_sort(s, items, n); /* the cut separates nothing */
            return;
        }
    }
    for (int p = 0; p < PART_COUNT; p++) {
        set_sort(s, items + at, count[p], depth + 1);
        at += count[p];
    }
}

static void strips_drop_in_tables(struct flow *f)
{
    int32_t n = 0;
    for (int32_t i = 0; i < f->n_strips; i++) {
        const struct strip *s = &f->strips[i];
        bool inside = false;
        for (int32_t t = 0; t < f->n_tables && !inside; t++) {
            const struct box *b = &f->tables[t].box;
            const float y = fminf(s->y1, b->y1) - fmaxf(s->y0, b->y0);
            inside = s->x0 > b->x0 - 1 && s->x1 < b->x1 + 1 && y > 0.6f * (s->y1 - s->y0);
        }
        if (!inside) {
            f->strips[n++] = *s;
        }
    }
    f->n_strips = n;
}

static void groups_measure(struct flow *f)
{
    f->groups = flow_many(f, struct group, (size_t)f->n_groups);
    float *steps = flow_many(f, float, (size_t)f->n_items);
    if (f->failed) {
        return;
    }
    for (int32_t i = 0; i < f->n_items;) {
        const int32_t g = f->items[i].group;
        struct group *out = &f->groups[g];
        int32_t n_steps = 0;
        const struct line *prev = NULL;
        out->left = 1e9f;
        out->right = -1e9f;
        for (; i < f->n_items && f->items[i].group == g; i++) {
            const struct item *it = &f->items[i];
            if (it->kind != ITEM_LINE) {
                prev = NULL;
                continue;
            }
            const struct line *l = &f->lines[it->index];
            out->left = fminf(out->left, l->box.x0);
            out->right = fmaxf(out->right, l->box.x1);
            out->n_lines++;
            if (prev && l->baseline > prev->baseline + 0.3f * l->size) {
                steps[n_steps++] = (l->baseline - prev->baseline) / l->size;
            }
            prev = l;
        }
        /* Pitch in em, the lower quartile: inner steps are smaller than paragraph gaps. */
        qsort(steps, (size_t)n_steps, sizeof(*steps), float_compare);
        out->pitch = n_steps ? fmaxf(0.9f, fminf(steps[n_steps / 4], 2.2f)) : 1.25f;
    }
}

void order_find(struct flow *f)
{
    f->items = flow_many(f, struct item, (size_t)(f->n_lines + f->n_tables + f->n_figures));
    struct sorter s = { .f = f };
    s.tmp = flow_many(f, struct item, (size_t)(f->n_lines + f->n_tables + f->n_figures));
    if (f->failed) {
        return;
    }
    int32_t n = 0, n_rtl = 0;
    for (int32_t i = 0; i < f->n_lines; i++) {
        const struct line *l = &f->lines[i];
        if (l->role == LINE_BODY) {
            f->items[n++] = (struct item){ l->box, ITEM_LINE, i, 0 };
            n_rtl += l->rtl;
        }
    }
    s.rtl = n_rtl * 2 > n;
    for (int32_t i = 0; i < f->n_tables; i++) {
        f->items[n++] = (struct item){ f->tables[i].box, ITEM_TABLE, i, 0 };
    }
    for (int32_t i = 0; i < f->n_figures; i++) {
        f->items[n++] = (struct item){ f->figures[i].box, ITEM_FIGURE, i, 0 };
    }
    f->n_items = n;
    strips_drop_in_tables(f);
    set_sort(&s, f->items, n, 0);
    n = 0;
    for (int32_t i = 0; i < f->n_items; i++) {
        if (f->items[i].kind != ITEM_GONE) {
            f->items[n++] = f->items[i];
        }
    }
    f->n_items = n;
    groups_measure(f);
}
