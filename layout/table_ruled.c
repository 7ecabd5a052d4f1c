/* table_ruled.c - tables drawn with rules: lines to a grid, grid to cells with spans.
 *
 * Rules that touch form components; a component with at least two cells and two columns is a table
 * when enough of its cells hold text.  Cells without a rule between them are one spanning cell if
 * together they fill a rectangle. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout/table.h"

#define MAX_RULES 2000
#define MAX_LINES 256 /* grid lines per direction */
#define SNAP      3.0f

struct rule {
    float at;       /* y of a horizontal, x of a vertical */
    float from, to; /* extent along it */
    bool vertical;
    int32_t parent; /* union-find */
};

struct grid {
    float xs[MAX_LINES], ys[MAX_LINES];
    int nx, ny;
    const struct rule *rules;
    int32_t n_rules, component;
};

static int32_t find_root(struct rule *r, int32_t i)
{
    while (r[i].parent != i) {
        r[i].parent = r[r[i].parent].parent;
        i = r[i].parent;
    }
    return i;
}

static int rule_cmp(const void *a, const void *b)
{
    const struct rule *x = a, *y = b;
    if (x->vertical != y->vertical) {
        return x->vertical ? 1 : -1;
    }
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return (x->from > y->from) - (x->from < y->from);
}

/* Usable rules, sorted; collinear pieces that touch are joined. */
static int32_t rules_collect(const struct page *p, struct rule *out)
{
    int32_t n = 0;
    for (int i = 0; i < p->n_rules && n < MAX_RULES; i++) {
        const struct box *b = &p->rules[i].box;
        const float w = b->x1 - b->x0, h = b->y1 - b->y0;
        if (!box_valid(b) || (p->rules[i].vertical ? h : w) < 4) {
            continue;
        }
        const bool v = p->rules[i].vertical;
        out[n++] = (struct rule){ v ? (b->x0 + b->x1) / 2 : (b->y0 + b->y1) / 2, v ? b->y0 : b->x0,
                                  v ? b->y1 : b->x1, v, 0 };
    }
    qsort(out, (size_t)n, sizeof(*out), rule_cmp);
    int32_t m = 0;
    for (int32_t i = 0; i < n; i++) {
        bool joined = false;
        for (int32_t k = m - 1;
             k >= 0 && !joined && out[k].vertical == out[i].vertical && out[i].at - out[k].at < 1;
             k--) {
            if (out[i].from <= out[k].to + SNAP && out[i].to >= out[k].from - SNAP) {
                out[k].from = fminf(out[k].from, out[i].from);
                out[k].to = fmaxf(out[k].to, out[i].to);
                joined = true;
            }
        }
        if (!joined) {
            out[m++] = out[i];
        }
    }
    for (int32_t i = 0; i < m; i++) {
        out[i].parent = i;
    }
    return m;
}

static void rules_connect(struct rule *r, int32_t n)
{
    for (int32_t i = 0; i < n && !r[i].vertical; i++) {
        for (int32_t k = i + 1; k < n; k++) {
            if (r[k].vertical && r[k].at > r[i].from - SNAP && r[k].at < r[i].to + SNAP &&
                r[i].at > r[k].from - SNAP && r[i].at < r[k].to + SNAP) {
                r[find_root(r, k)].parent = find_root(r, i);
            }
        }
    }
}

static int lines_unique(float *v, int n)
{
    int m = 0;
    qsort(v, (size_t)n, sizeof(*v), float_compare);
    for (int i = 0; i < n; i++) {
        if (m == 0 || v[i] - v[m - 1] > SNAP) {
            v[m++] = v[i];
        }
    }
    return m;
}

/* Grid lines of a component; where the crossing rules stick out, a missing border is added. */
static bool grid_init(struct grid *g, struct rule *r, int32_t n, int32_t component)
{
    float x0 = 1e9f, x1 = -1e9f, y0 = 1e9f, y1 = -1e9f;
    g->rules = r;
    g->n_rules = n;
    g->component = component;
    g->nx = g->ny = 0;
    for (int32_t i = 0; i < n; i++) {
        if (find_root(r, i) != component) {
            continue;
        }
        if (r[i].vertical) {
            if (g->nx < MAX_LINES - 2) {
                g->xs[g->nx++] = r[i].at;
            }
            y0 = fminf(y0, r[i].from);
            y1 = fmaxf(y1, r[i].to);
        } else {
            if (g->ny < MAX_LINES - 2) {
                g->ys[g->ny++] = r[i].at;
            }
            x0 = fminf(x0, r[i].from);
            x1 = fmaxf(x1, r[i].to);
        }
    }
    if (g->nx == 0 || g->ny == 0) {
        return false;
    }
    g->xs[g->nx++] = x0;
    g->xs[g->nx++] = x1;
    g->ys[g->ny++] = y0;
    g->ys[g->ny++] = y1;
    g->nx = lines_unique(g->xs, g->nx);
    g->ny = lines_unique(g->ys, g->ny);
    return g->nx >= 3 && g->ny >= 2 && (g->nx - 1) * (g->ny - 1) <= TABLE_MAX_CELLS;
}

/* Is the border at `at` drawn over most of [from, to]? */
static bool border_drawn(const struct grid *g, bool vertical, float at, float from, float to)
{
    float sum = 0;
    for (int32_t i = 0; i < g->n_rules; i++) {
        const struct rule *r = &g->rules[i];
        if (r->vertical == vertical && fabsf(r->at - at) <= SNAP) {
            sum += fmaxf(0, fminf(r->to, to) - fmaxf(r->from, from));
        }
    }
    return sum >= 0.6f * (to - from);
}

struct cells {
    struct flow *f;
    const struct grid *g;
    int nr, nc;
    int32_t *owner; /* [nr * nc] first cell of its span */
};

static int32_t owner_of(const struct cells *c, int32_t i)
{
    while (c->owner[i] != i) {
        i = c->owner[i];
    }
    return i;
}

/* Joins cells without a border between; keeps only full rectangles. */
static void cells_join(struct cells *c)
{
    const struct grid *g = c->g;
    const int32_t n = c->nr * c->nc;
    for (int32_t i = 0; i < n; i++) {
        c->owner[i] = i;
    }
    for (int r = 0; r < c->nr; r++) {
        for (int k = 0; k < c->nc; k++) {
            const int32_t i = r * c->nc + k;
            if (k > 0 && !border_drawn(g, true, g->xs[k], g->ys[r], g->ys[r + 1])) {
                const int32_t a = owner_of(c, i - 1), b = owner_of(c, i);
                c->owner[a > b ? a : b] = a < b ? a : b;
            }
            if (r > 0 && !border_drawn(g, false, g->ys[r], g->xs[k], g->xs[k + 1])) {
                const int32_t a = owner_of(c, i - c->nc), b = owner_of(c, i);
                c->owner[a > b ? a : b] = a < b ? a : b;
            }
        }
    }
    for (int32_t i = 0; i < n; i++) {
        c->owner[i] = owner_of(c, i);
    }
}

struct extent {
    int r1, c1, count;
};

static void extents_find(const struct cells *c, struct extent *e)
{
    for (int r = 0; r < c->nr; r++) {
        for (int k = 0; k < c->nc; k++) {
            struct extent *x = &e[c->owner[r * c->nc + k]];
            x->r1 = r > x->r1 ? r : x->r1;
            x->c1 = k > x->c1 ? k : x->c1;
            x->count++;
        }
    }
}

/* A joined shape that is no rectangle falls apart again. */
static void cells_check(struct cells *c, struct extent *e)
{
    const int32_t n = c->nr * c->nc;
    extents_find(c, e);
    for (int32_t i = 0; i < n; i++) {
        const int32_t o = c->owner[i];
        const int r0 = o / c->nc, k0 = o % c->nc;
        if (e[o].count != (e[o].r1 - r0 + 1) * (e[o].c1 - k0 + 1)) {
            c->owner[i] = i;
        }
    }
    /* Owners that fell apart are single now. */
    memset(e, 0, sizeof(*e) * (size_t)n);
    extents_find(c, e);
}

struct pick {
    int32_t cell, word;
};

static int pick_cmp(const void *a, const void *b)
{
    const struct pick *x = a, *y = b;
    if (x->cell != y->cell) {
        return x->cell < y->cell ? -1 : 1;
    }
    return (x->word > y->word) - (x->word < y->word);
}

static int band_of(const float *v, int n, float at)
{
    int lo = 0, hi = n - 1;
    if (at < v[0] || at >= v[n - 1]) {
        return -1;
    }
    while (hi - lo > 1) {
        const int mid = (lo + hi) / 2;
        if (at < v[mid]) {
            hi = mid;
        } else {
            lo = mid;
        }
    }
    return lo;
}

static int32_t words_pick(const struct cells *c, struct pick *picks)
{
    const struct grid *g = c->g;
    int32_t n = 0;
    for (int32_t i = 0; i < c->f->n_source; i++) {
        const struct word *w = &c->f->words[i];
        const int r = band_of(g->ys, g->ny, (w->box.y0 + w->box.y1) / 2);
        const int k = band_of(g->xs, g->nx, (w->box.x0 + w->box.x1) / 2);
        if (w->owner == OWNER_NONE && r >= 0 && k >= 0) {
            picks[n++] = (struct pick){ c->owner[r * c->nc + k], i };
        }
    }
    qsort(picks, (size_t)n, sizeof(*picks), pick_cmp);
    return n;
}

static struct table *table_build(struct cells *c, const struct extent *e, const struct pick *picks,
                                 int32_t n_picks)
{
    struct flow *f = c->f;
    const struct grid *g = c->g;
    struct table *t = table_add(f);
    const int32_t n = c->nr * c->nc;
    struct word **list = flow_many(f, struct word *, (size_t)n_picks);
    if (!t || f->failed) {
        return NULL;
    }
    t->cells = flow_many(f, struct cell, (size_t)n);
    t->row_box = flow_many(f, struct box, (size_t)c->nr);
    if (f->failed) {
        return NULL;
    }
    t->box = (struct box){ g->xs[0], g->ys[0], g->xs[c->nc], g->ys[c->nr] };
    t->n_rows = c->nr;
    t->n_cols = c->nc;
    int32_t at = 0;
    for (int32_t i = 0; i < n && !f->failed; i++) {
        if (c->owner[i] != i) {
            continue;
        }
        struct cell *cell = &t->cells[t->n_cells++];
        cell->row = i / c->nc;
        cell->col = i % c->nc;
        cell->row_span = e[i].r1 - cell->row + 1;
        cell->col_span = e[i].c1 - cell->col + 1;
        cell->box = (struct box){ g->xs[cell->col], g->ys[cell->row], g->xs[e[i].c1 + 1],
                                  g->ys[e[i].r1 + 1] };
        t->spans = t->spans || cell->row_span > 1 || cell->col_span > 1;
        int32_t n_words = 0;
        for (; at < n_picks && picks[at].cell == i; at++) {
            list[n_words] = &f->words[picks[at].word];
            list[n_words++]->owner = OWNER_TABLE;
        }
        table_cell_fill(f, t, cell, list, n_words);
    }
    assert(f->failed || at == n_picks); /* every word has found its cell */
    for (int32_t r = 0; r < c->nr; r++) {
        t->row_box[r] = (struct box){ t->box.x0, g->ys[r], t->box.x1, g->ys[r + 1] };
    }
    t->score = 0.97f;
    t->n_header_rows = table_header_rows(t);
    return t;
}

/* Grid rows and columns that hold nothing and are thin (double rules) vanish. */
static void grid_thin(struct grid *g, const struct flow *f)
{
    for (int dir = 0; dir < 2; dir++) {
        float *v = dir ? g->ys : g->xs;
        int *n = dir ? &g->ny : &g->nx;
        for (int i = 0; i + 1 < *n;) {
            if (*n > 2 && v[i + 1] - v[i] < 0.6f * f->em) {
                const int drop = i == 0 ? 1 : i;
                memmove(v + drop, v + drop + 1, sizeof(*v) * (size_t)(*n - drop - 1));
                (*n)--;
            } else {
                i++;
            }
        }
    }
}

static void component_take(struct flow *f, struct grid *g)
{
    grid_thin(g, f);
    struct cells c = { .f = f, .g = g, .nr = g->ny - 1, .nc = g->nx - 1 };
    const int32_t n = c.nr * c.nc;
    if (c.nc < 2 || n < 2) {
        return;
    }
    c.owner = flow_many(f, int32_t, (size_t)n);
    struct extent *e = flow_many(f, struct extent, (size_t)n);
    struct pick *picks = flow_many(f, struct pick, (size_t)f->n_source);
    if (f->failed) {
        return;
    }
    cells_join(&c);
    cells_check(&c, e);
    const int32_t n_picks = words_pick(&c, picks);
    int32_t n_cells = 0, n_filled = 0;
    for (int32_t i = 0; i < n; i++) {
        n_cells += c.owner[i] == i;
    }
    for (int32_t i = 0; i < n_picks; i++) {
        n_filled += i == 0 || picks[i].cell != picks[i - 1].cell;
    }
    /* A frame, a chart's gridlines or an ornament is no table. */
    if (n_cells < 2 || n_filled < 2 || n_filled * 4 < n_cells) {
        return;
    }
    table_build(&c, e, picks, n_picks);
}

void tables_ruled(struct flow *f)
{
    const struct page *p = f->page;
    struct rule *r = flow_many(f, struct rule, MAX_RULES);
    struct grid *g = flow_many(f, struct grid, 1);
    if (f->failed || p->n_rules < 4) {
        return;
    }
    const int32_t n = rules_collect(p, r);
    rules_connect(r, n);
    int n_taken = 0;
    for (int32_t i = 0; i < n && n_taken < 100 && !f->failed; i++) {
        if (find_root(r, i) == i && grid_init(g, r, n, i)) {
            component_take(f, g);
            n_taken++;
        }
    }
}
