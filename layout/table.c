/* table.c - table storage and its Markdown. */
#include "layout/table.h"

#include <stdio.h>
#include <string.h>

struct table *table_add(struct flow *f)
{
    if (f->n_tables == f->cap_tables) {
        const int32_t cap = f->cap_tables ? 2 * f->cap_tables : 8;
        struct table *grown = flow_many(f, struct table, (size_t)cap);
        if (!grown) {
            return NULL;
        }
        if (f->n_tables > 0) {
            memcpy(grown, f->tables, sizeof(*grown) * (size_t)f->n_tables);
        }
        f->tables = grown;
        f->cap_tables = cap;
    }
    struct table *t = &f->tables[f->n_tables++];
    memset(t, 0, sizeof(*t));
    return t;
}

/* Recognisers read pieces of the rules as bars. */
static int32_t bars_drop(const struct flow *f, struct word **words, int32_t n)
{
    int32_t m = 0;
    for (int32_t i = 0; i < n; i++) {
        const uint32_t cp = f->chars[words[i]->char0].cp;
        if (words[i]->n_chars != 1 || (cp != '|' && cp != '[' && cp != ']' && cp != '_')) {
            words[m++] = words[i];
        }
    }
    return m;
}

void table_cell_fill(struct flow *f, struct table *t, struct cell *c, struct word **words,
                     int32_t n)
{
    struct line *lines = NULL;
    c->lines = NULL;
    if (f->ocr) {
        n = bars_drop(f, words, n);
    }
    c->n_lines = n > 0 ? lines_of_words(f, words, n, &lines) : 0;
    if (f->failed) {
        return;
    }
    c->lines = lines;
    for (int32_t i = 0; i < c->n_lines; i++) {
        lines[i].role = LINE_TABLE;
    }
    t->n_lines += c->n_lines;
}

static void cell_write(struct pen *p, const struct cell *c)
{
    for (int32_t i = 0; i < c->n_lines; i++) {
        const struct line *l = &c->lines[i];
        const bool last = i + 1 == c->n_lines;
        const float room = c->box.x1 - l->box.x1;
        pen_line(p, l, 0, last ? JOIN_SPACE : lines_join(p->f, p->h, l, l + 1, room), last);
    }
    pen_end(p);
}

static const struct cell *cell_at(const struct table *t, int32_t row, int32_t col)
{
    /* Cells are row-major and spans make them fewer: search from the expected place backwards. */
    int32_t i = row * t->n_cols + col;
    i = i < t->n_cells ? i : t->n_cells - 1;
    for (; i >= 0; i--) {
        const struct cell *c = &t->cells[i];
        if (c->row == row && c->col == col) {
            return c;
        }
        if (c->row < row) {
            break;
        }
    }
    return NULL;
}

/* The words' own weight in a header row is no emphasis: headers are bold anyway. */
static bool row_all_bold(const struct table *t, int32_t row)
{
    bool any = false;
    for (int32_t i = 0; i < t->n_cells; i++) {
        const struct cell *c = &t->cells[i];
        for (int32_t k = 0; c->row == row && k < c->n_lines; k++) {
            if (!c->lines[k].bold) {
                return false;
            }
            any = true;
        }
    }
    return any;
}

static void write_gfm(struct pen *p, const struct table *t, size_t *row_end)
{
    p->cell = true;
    for (int32_t r = 0; r < t->n_rows; r++) {
        p->ignored =
            row_all_bold(t, r) && r < (t->n_header_rows ? t->n_header_rows : 1) ? RUN_BOLD : 0;
        pen_mark(p, r > 0 ? "\n|" : "|");
        for (int32_t c = 0; c < t->n_cols; c++) {
            const struct cell *cell = cell_at(t, r, c);
            pen_mark(p, " ");
            if (cell && cell->n_lines > 0) {
                cell_write(p, cell);
            }
            pen_mark(p, " |");
        }
        if (r == 0) {
            pen_mark(p, "\n|");
            for (int32_t c = 0; c < t->n_cols; c++) {
                pen_mark(p, "---|");
            }
        }
        row_end[r] = p->plain.n;
    }
    p->cell = false;
    p->ignored = 0;
}

static void write_html(struct pen *p, const struct table *t, size_t *row_end)
{
    char open[64];
    p->html = true;
    pen_mark(p, "<table>");
    int32_t i = 0;
    for (int32_t r = 0; r < t->n_rows; r++) {
        pen_mark(p, "\n<tr>");
        for (; i < t->n_cells && t->cells[i].row == r; i++) {
            const struct cell *c = &t->cells[i];
            const char *tag = r < t->n_header_rows ? "th" : "td";
            p->ignored = r < t->n_header_rows ? RUN_BOLD : 0;
            int n = snprintf(open, sizeof(open), "<%s", tag);
            if (c->row_span > 1) {
                n += snprintf(open + n, sizeof(open) - (size_t)n, " rowspan=\"%d\"",
                              (int)c->row_span);
            }
            if (c->col_span > 1) {
                n += snprintf(open + n, sizeof(open) - (size_t)n, " colspan=\"%d\"",
                              (int)c->col_span);
            }
            snprintf(open + n, sizeof(open) - (size_t)n, ">");
            pen_mark(p, open);
            cell_write(p, c);
            snprintf(open, sizeof(open), "</%s>", tag);
            pen_mark(p, open);
        }
        pen_mark(p, "</tr>");
        if (r + 1 == t->n_rows) {
            pen_mark(p, "\n</table>");
        }
        row_end[r] = p->plain.n;
    }
    p->html = false;
    p->ignored = 0;
}

int32_t table_header_rows(const struct table *t)
{
    int32_t n = 0;
    while (n < 4 && n + 1 < t->n_rows && row_all_bold(t, n)) {
        n++;
    }
    return n > 1 ? n : 1;
}

void table_write(struct pen *p, const struct table *t, size_t *row_end)
{
    if (t->spans) {
        write_html(p, t, row_end);
    } else {
        write_gfm(p, t, row_end);
    }
}
