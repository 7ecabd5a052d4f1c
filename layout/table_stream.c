/* table_stream.c - tables without a full grid: rows of aligned pieces.
 *
 * Works on one set of items (a page or a column) before that set is cut into columns: a run of rows
 * with several short pieces whose gaps line up is a table; two columns of prose are not.  Long
 * horizontal rules around the run count as evidence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout/table.h"

#define MAX_ROWS  400
#define MAX_COLS  40
#define MAX_TRIES 200

struct piece_row {
    int32_t i0, n; /* range of items */
    float y0, y1, baseline, size;
    bool object; /* holds a figure or another table */
    int32_t row; /* table row it became */
};

struct column {
    float x0, x1;
    int32_t n, n_words, n_numeric, n_full, n_colon, n_marks;
};

struct stream {
    struct flow *f;
    struct item *items;
    struct piece_row *rows;
    int32_t n_rows;
    struct column cols[MAX_COLS];
    int n_cols;
    int n_rules; /* horizontal rules that go with the table */
};

static const struct line *piece_line(const struct stream *s, int32_t i)
{
    return &s->f->lines[s->items[i].index];
}

/* Items arrive sorted by height. */
static void rows_build(struct stream *s, int32_t n)
{
    for (int32_t i = 0; i < n;) {
        struct piece_row *r = &s->rows[s->n_rows++];
        memset(r, 0, sizeof(*r));
        r->i0 = i;
        const struct box a = s->items[i].box;
        r->y0 = a.y0;
        r->y1 = a.y1;
        for (; i < n; i++) {
            const struct box *b = &s->items[i].box;
            const float h = fminf(a.y1 - a.y0, b->y1 - b->y0);
            if ((b->y0 + b->y1 - a.y0 - a.y1) / 2 > 0.4f * h) {
                break;
            }
            r->y0 = fminf(r->y0, b->y0);
            r->y1 = fmaxf(r->y1, b->y1);
            r->object = r->object || s->items[i].kind != ITEM_LINE;
        }
        r->n = i - r->i0;
        qsort(&s->items[r->i0], (size_t)r->n, sizeof(struct item), item_compare_x);
        if (!r->object) {
            r->size = piece_line(s, r->i0)->size;
            r->baseline = piece_line(s, r->i0)->baseline;
        }
    }
}

static bool text_is_numeric(const struct line *l)
{
    return l->n_digits > 0 && l->n_letters <= 3 && l->n_digits * 2 >= l->n_chars - l->n_letters - 4;
}

/* Number of long horizontal rules between two heights across most of [x0, x1]. */
static int rules_between(const struct flow *f, float x0, float x1, float y0, float y1)
{
    const struct page *p = f->page;
    float last = -1e9f;
    int count = 0;
    for (int i = 0; i < p->n_rules && i < 4000; i++) {
        const struct box *b = &p->rules[i].box;
        if (!p->rules[i].vertical && b->y0 >= y0 && b->y1 <= y1 && box_valid(b) &&
            fminf(b->x1, x1) - fmaxf(b->x0, x0) > 0.8f * (x1 - x0) && fabsf(b->y0 - last) > 3) {
            count++;
            last = b->y0;
        }
    }
    return count;
}

/* May a row of one piece go on with the cell above it? */
static bool row_wraps(const struct stream *s, const struct piece_row *prev,
                      const struct piece_row *r, float x0, float x1)
{
    const struct box *b = &s->items[r->i0].box;
    if (r->baseline - prev->baseline > 1.45f * r->size || b->x1 - b->x0 > 0.6f * (x1 - x0)) {
        return false;
    }
    for (int32_t i = prev->i0; i < prev->i0 + prev->n; i++) {
        const struct box *a = &s->items[i].box;
        if (fabsf(a->x0 - b->x0) < 0.5f * r->size && i > prev->i0) {
            return true;
        }
    }
    return false;
}

/* The last row of the run that starts at r0. */
static int32_t run_extent(const struct stream *s, int32_t r0, float *x0, float *x1)
{
    int32_t last = r0;
    *x0 = s->items[s->rows[r0].i0].box.x0;
    *x1 = s->items[s->rows[r0].i0 + s->rows[r0].n - 1].box.x1;
    for (int32_t r = r0 + 1; r < s->n_rows && r - r0 < MAX_ROWS; r++) {
        const struct piece_row *a = &s->rows[r - 1], *b = &s->rows[r];
        const float em = fmaxf(a->size, b->size);
        if (b->object || b->baseline - a->baseline > 3.2f * em ||
            fabsf(a->size - b->size) > 0.25f * em) {
            break;
        }
        if (b->n < 2 && !row_wraps(s, a, b, *x0, *x1)) {
            break;
        }
        *x0 = fminf(*x0, s->items[b->i0].box.x0);
        *x1 = fmaxf(*x1, s->items[b->i0 + b->n - 1].box.x1);
        if (b->n >= 2) {
            last = r;
        } else if (r == last + 1) {
            last = r; /* wrapped */
        }
    }
    return last;
}

static int column_cmp(const void *a, const void *b)
{
    const float x = ((const struct column *)a)->x0, y = ((const struct column *)b)->x0;
    return (x > y) - (x < y);
}

static int32_t rows_with(const struct stream *s, int32_t r0, int32_t r1, int32_t least)
{
    int32_t n = 0;
    for (int32_t r = r0; r <= r1; r++) {
        n += s->rows[r].n >= least;
    }
    return n;
}

/* Has row r a word over column c? */
static bool row_names(const struct stream *s, int32_t r, const struct column *c)
{
    for (int32_t i = 0; i < s->rows[r].n; i++) {
        const struct line *l = piece_line(s, s->rows[r].i0 + i);
        for (int32_t w = 0; w < l->n_words; w++) {
            const struct box *b = &s->f->words[l->word0 + w].box;
            if (b->x1 > c->x0 && b->x0 < c->x1) {
                return true;
            }
        }
    }
    return false;
}

/* White narrower than `gap` in every row parts columns only where the first row names both:
 * spreadsheets are set so tightly, but so are the words of "12 May" and the halves of a code. */
static void columns_join(struct stream *s, int32_t r0, float gap)
{
    int n = 0;
    for (int c = 1; c < s->n_cols; c++) {
        struct column *last = &s->cols[n], *col = &s->cols[c];
        if (col->x0 < last->x1 + gap && !(row_names(s, r0, last) && row_names(s, r0, col))) {
            last->x1 = col->x1;
        } else {
            s->cols[++n] = *col;
        }
    }
    s->n_cols = s->n_cols ? n + 1 : 0;
}

/* Columns are the merged x extents of the words of the fuller rows: an aligned gap narrower than a
 * piece gap still parts columns when enough rows share it. */
static bool columns_find(struct stream *s, int32_t r0, int32_t r1)
{
    int32_t most = 0, n_words = 0, n_used = 0, n = 0;
    for (int32_t r = r0; r <= r1; r++) {
        most = s->rows[r].n > most ? s->rows[r].n : most;
        for (int32_t i = 0; i < s->rows[r].n; i++) {
            n_words += piece_line(s, s->rows[r].i0 + i)->n_words;
        }
    }
    struct column *list = flow_many(s->f, struct column, (size_t)n_words);
    if (!list) {
        return false;
    }
    int32_t least = most > 3 ? most - 1 : most > 2 ? 2 : most;
    while (least > 2 && rows_with(s, r0, r1, least) * 2 < r1 - r0 + 1) {
        least--; /* only the heads stand apart */
    }
    for (int32_t r = r0; r <= r1; r++) {
        n_used += s->rows[r].n >= least;
        for (int32_t i = 0; s->rows[r].n >= least && i < s->rows[r].n; i++) {
            const struct line *l = piece_line(s, s->rows[r].i0 + i);
            for (int32_t w = 0; w < l->n_words; w++) {
                const struct box *b = &s->f->words[l->word0 + w].box;
                list[n++] = (struct column){ .x0 = b->x0, .x1 = b->x1 };
            }
        }
    }
    qsort(list, (size_t)n, sizeof(*list), column_cmp);
    const float gap = (n_used >= 5 ? 0.55f : n_used >= 3 ? 0.9f : 1.6f) * s->f->em;
    const float least_gap = n_used >= 8 ? 0.12f * s->f->em : gap;
    s->n_cols = 0;
    for (int32_t i = 0; i < n; i++) {
        struct column *last = s->n_cols ? &s->cols[s->n_cols - 1] : NULL;
        if (last && list[i].x0 < last->x1 + least_gap) {
            last->x1 = fmaxf(last->x1, list[i].x1);
        } else if (s->n_cols < MAX_COLS) {
            s->cols[s->n_cols++] = list[i];
        } else {
            return false;
        }
    }
    columns_join(s, r0, gap);
    return s->n_cols >= 2;
}

static int column_of(const struct stream *s, const struct box *b)
{
    int best = 0;
    float most = -1e9f;
    for (int c = 0; c < s->n_cols; c++) {
        const float x = fminf(b->x1, s->cols[c].x1) - fmaxf(b->x0, s->cols[c].x0);
        if (x > most) {
            most = x;
            best = c;
        }
    }
    return best;
}

/* Counts a piece over several columns; false when it lies in one. */
static bool piece_spreads(struct stream *s, const struct line *l)
{
    const struct word *words = &s->f->words[l->word0];
    if (column_of(s, &words[0].box) == column_of(s, &words[l->n_words - 1].box)) {
        return false;
    }
    int at = -1;
    for (int32_t w = 0; w < l->n_words; w++) {
        const int c = column_of(s, &words[w].box);
        s->cols[c].n += c != at;
        s->cols[c].n_words++;
        at = c;
    }
    return true;
}

static void columns_count(struct stream *s, int32_t r0, int32_t r1)
{
    for (int32_t r = r0; r <= r1; r++) {
        for (int32_t i = 0; i < s->rows[r].n; i++) {
            const int32_t at = s->rows[r].i0 + i;
            const struct line *l = piece_line(s, at);
            if (piece_spreads(s, l)) {
                continue;
            }
            struct column *c = &s->cols[column_of(s, &s->items[at].box)];
            const uint32_t last = line_last_cp(s->f, l);
            c->n++;
            c->n_words += l->n_words > l->n_chars / 8 ? l->n_words : l->n_chars / 8;
            c->n_numeric += text_is_numeric(l);
            c->n_full += c->x1 - l->box.x1 < l->size && l->n_words >= 3;
            c->n_colon += last == ':' || last == 0xff1a;
            c->n_marks += l->n_chars <= 3 && !text_is_numeric(l);
        }
    }
}

static bool column_is_prose(const struct column *c)
{
    const float words = (float)c->n_words / (float)c->n;
    return words >= 6 || (words >= 3.5f && c->n_full * 10 >= c->n * 6);
}

/* Row r's pieces that are numbers outside the first column. */
static bool row_has_numbers(const struct stream *s, int32_t r)
{
    for (int32_t i = 1; i < s->rows[r].n; i++) {
        if (text_is_numeric(piece_line(s, s->rows[r].i0 + i))) {
            return true;
        }
    }
    return false;
}

static bool header_shows(const struct stream *s, int32_t r0)
{
    const float x0 = s->cols[0].x0, x1 = s->cols[s->n_cols - 1].x1;
    return !row_has_numbers(s, r0) ||
           rules_between(s->f, x0, x1, s->rows[r0].baseline,
                         s->rows[r0 + 1].baseline - 0.4f * s->rows[r0].size) > 0;
}

/* Does a line of prose share a column with another piece of its row, or in very few rows any
 * piece?  Then this is running text with something beside it, a table perhaps. */
static bool prose_beside(const struct stream *s, int32_t r0, int32_t r1)
{
    const int least = r1 - r0 < 3 && s->n_rules < 2 ? 1 : 6;
    for (int32_t r = r0; r <= r1; r++) {
        for (int32_t i = s->rows[r].i0; i + 1 < s->rows[r].i0 + s->rows[r].n; i++) {
            const struct line *a = piece_line(s, i), *b = piece_line(s, i + 1);
            if ((a->n_words >= least || b->n_words >= least) &&
                column_of(s, &s->items[i].box) == column_of(s, &s->items[i + 1].box)) {
                return true;
            }
        }
    }
    return false;
}

static bool table_valid(const struct stream *s, int32_t r0, int32_t r1)
{
    const int32_t n_rows = r1 - r0 + 1;
    int32_t n_multi = 0, n_cells = 0, n_prose = 0, n_short = 0, n_full = 0;
    for (int32_t r = r0; r <= r1; r++) {
        n_multi += s->rows[r].n >= 2;
        n_cells += s->rows[r].n;
    }
    for (int c = 0; c < s->n_cols; c++) {
        const struct column *col = &s->cols[c];
        if (col->n == 0) {
            return false;
        }
        n_prose += column_is_prose(col);
        n_full += col->n_words >= 6 * col->n && col->n_full * 2 >= col->n;
        n_short += c > 0 && col->n_words <= 4 * col->n;
    }
    const struct column *a = &s->cols[0], *b = &s->cols[1];
    for (int c = 0; c < s->n_cols; c++) {
        if (s->cols[c].n_colon * 2 > s->cols[c].n && s->cols[c].n > 1) {
            return false; /* a form: labels and values */
        }
    }
    if (prose_beside(s, r0, r1)) {
        return false;
    }
    const bool ruled = s->n_rules >= 2;
    if (n_multi < (s->n_cols >= 3 || ruled ? 2 : 3) || n_rows < 2 || n_short == 0) {
        return false;
    }
    if (!ruled && (float)n_cells < 0.5f * (float)(n_rows * s->n_cols)) {
        return false;
    }
    if (n_full > 0 && s->n_rules < 3) {
        return false; /* running text beside something */
    }
    if (n_prose >= (ruled ? s->n_cols : 2) || (n_prose == 1 && s->n_cols == 2 && !ruled)) {
        return false;
    }
    if (s->n_cols == 2) {
        const bool numbers = b->n_numeric * 10 >= b->n * 6 && n_multi >= 3;
        return header_shows(s, r0) && a->n_marks * 2 < a->n && (numbers || ruled);
    }
    return true;
}

/* Wrapped lines join the row above; returns the number of table rows. */
static int32_t rows_number(struct stream *s, int32_t r0, int32_t r1)
{
    float steps[MAX_ROWS + 1];
    size_t n_steps = 0;
    for (int32_t r = r0 + 1; r <= r1; r++) {
        steps[n_steps++] = s->rows[r].baseline - s->rows[r - 1].baseline;
    }
    const float pitch = float_median(steps, n_steps);
    int32_t row = 0;
    s->rows[r0].row = 0;
    for (int32_t r = r0 + 1; r <= r1; r++) {
        const struct piece_row *p = &s->rows[r];
        const float step = p->baseline - s->rows[r - 1].baseline;
        const bool first_empty = column_of(s, &s->items[p->i0].box) > 0;
        const bool near = step < 1.4f * p->size && (step < 0.85f * pitch || p->n == 1);
        const bool cut = rules_between(s->f, s->cols[0].x0, s->cols[s->n_cols - 1].x1,
                                       s->rows[r - 1].baseline, p->baseline - 0.3f * p->size) > 0;
        if (!(first_empty && near && !cut)) {
            row++;
        }
        s->rows[r].row = row;
    }
    return row + 1;
}

static void table_fill(struct stream *s, struct table *t, int32_t r0, int32_t r1)
{
    struct flow *f = s->f;
    int32_t n_words = 0;
    for (int32_t r = r0; r <= r1; r++) {
        for (int32_t i = 0; i < s->rows[r].n; i++) {
            n_words += piece_line(s, s->rows[r].i0 + i)->n_words;
        }
    }
    struct word **list = flow_many(f, struct word *, (size_t)n_words);
    for (int32_t k = 0; k < t->n_cells && !f->failed; k++) {
        struct cell *c = &t->cells[k];
        int32_t n = 0;
        for (int32_t r = r0; r <= r1; r++) {
            for (int32_t i = 0; s->rows[r].row == c->row && i < s->rows[r].n; i++) {
                const int32_t at = s->rows[r].i0 + i;
                const struct line *l = piece_line(s, at);
                for (int32_t w = 0; w < l->n_words; w++) {
                    struct word *word = &f->words[l->word0 + w];
                    if (column_of(s, &word->box) == c->col) {
                        list[n++] = word;
                    }
                }
                f->lines[s->items[at].index].role = LINE_TABLE;
            }
        }
        table_cell_fill(f, t, c, list, n);
    }
}

static struct table *stream_build(struct stream *s, int32_t r0, int32_t r1)
{
    struct flow *f = s->f;
    const int32_t n_rows = rows_number(s, r0, r1);
    struct table *t = table_add(f);
    if (!t || n_rows * s->n_cols > TABLE_MAX_CELLS) {
        f->n_tables -= t != NULL;
        return NULL;
    }
    t->n_rows = n_rows;
    t->n_cols = s->n_cols;
    t->n_cells = n_rows * s->n_cols;
    t->cells = flow_many(f, struct cell, (size_t)t->n_cells);
    t->row_box = flow_many(f, struct box, (size_t)n_rows);
    if (f->failed) {
        return NULL;
    }
    for (int32_t r = r0; r <= r1; r++) {
        for (int32_t i = 0; i < s->rows[r].n; i++) {
            const struct box *b = &s->items[s->rows[r].i0 + i].box;
            box_grow(&t->row_box[s->rows[r].row], b);
            box_grow(&t->box, b);
        }
    }
    for (int32_t k = 0; k < t->n_cells; k++) {
        struct cell *c = &t->cells[k];
        c->row = k / s->n_cols;
        c->col = k % s->n_cols;
        c->row_span = c->col_span = 1;
        c->box = t->row_box[c->row];
        c->box.x0 = s->cols[c->col].x0;
        c->box.x1 = s->cols[c->col].x1;
    }
    for (int32_t r = 0; r < n_rows; r++) {
        t->row_box[r].x0 = t->box.x0;
        t->row_box[r].x1 = t->box.x1;
    }
    t->score = s->n_rules >= 2 ? 0.93f : 0.85f;
    table_fill(s, t, r0, r1);
    t->n_header_rows = table_header_rows(t);
    return t;
}

/* Totals under a table have nothing in its first column and stand apart. */
static int32_t run_trim(const struct stream *s, int32_t r0, int32_t r1)
{
    float steps[MAX_ROWS + 1];
    size_t n_steps = 0;
    for (int32_t r = r0 + 1; r <= r1; r++) {
        steps[n_steps++] = s->rows[r].baseline - s->rows[r - 1].baseline;
    }
    const float pitch = float_median(steps, n_steps);
    for (int32_t r = r0 + 2; r <= r1; r++) {
        const float step = s->rows[r].baseline - s->rows[r - 1].baseline;
        const bool empty = column_of(s, &s->items[s->rows[r].i0].box) > 0;
        if (empty && step > 1.25f * pitch) {
            return r - 1;
        }
    }
    while (r1 > r0 + 2 && s->rows[r1].n == 2 && s->n_cols > 3 &&
           column_of(s, &s->items[s->rows[r1].i0].box) > 1) {
        r1--;
    }
    return r1;
}

static bool run_take(struct stream *s, int32_t r0, int32_t *r1)
{
    float x0, x1;
    *r1 = run_extent(s, r0, &x0, &x1);
    if (*r1 <= r0 || !columns_find(s, r0, *r1)) {
        return false;
    }
    *r1 = run_trim(s, r0, *r1);
    if (*r1 <= r0 || !columns_find(s, r0, *r1)) {
        return false;
    }
    const float em = s->f->em;
    s->n_rules = rules_between(s->f, s->cols[0].x0, s->cols[s->n_cols - 1].x1,
                               s->rows[r0].y0 - 1.5f * em, s->rows[*r1].y1 + 1.5f * em);
    columns_count(s, r0, *r1);
    return table_valid(s, r0, *r1) && stream_build(s, r0, *r1) != NULL;
}

/* Gone items move to the end; returns how many stay. */
static int32_t items_settle(struct flow *f, struct item *items, int32_t n)
{
    struct item *gone = flow_many(f, struct item, (size_t)n);
    int32_t n_stay = 0, n_gone = 0;
    if (!gone) {
        return n;
    }
    for (int32_t i = 0; i < n; i++) {
        if (items[i].kind == ITEM_GONE) {
            gone[n_gone++] = items[i];
        } else {
            items[n_stay++] = items[i];
        }
    }
    memcpy(items + n_stay, gone, sizeof(*items) * (size_t)n_gone);
    return n_stay;
}

int32_t tables_stream(struct flow *f, struct item *items, int32_t n)
{
    struct stream *s = flow_many(f, struct stream, 1);
    if (f->failed || n < 4) {
        return n;
    }
    s->f = f;
    s->items = items;
    s->rows = flow_many(f, struct piece_row, (size_t)n);
    if (f->failed) {
        return n;
    }
    rows_build(s, n);
    int tries = 0;
    bool any = false;
    for (int32_t r = 0; r < s->n_rows && tries < MAX_TRIES && !f->failed; r++) {
        if (s->rows[r].n < 2 || s->rows[r].object) {
            continue;
        }
        int32_t r1;
        tries++;
        if (!run_take(s, r, &r1)) {
            continue;
        }
        any = true;
        const struct item it = { f->tables[f->n_tables - 1].box, ITEM_TABLE, f->n_tables - 1, 0 };
        for (int32_t k = r; k <= r1; k++) {
            for (int32_t i = 0; i < s->rows[k].n; i++) {
                items[s->rows[k].i0 + i].kind = ITEM_GONE;
            }
        }
        items[s->rows[r].i0] = it;
        r = r1;
    }
    if (!any) {
        return n;
    }
    return items_settle(f, items, n);
}
