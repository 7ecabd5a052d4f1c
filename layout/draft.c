/* draft.c - writes a block's Markdown and plain text and measures its lines. */
#include "layout/draft.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layout/table.h"
#include "src/base/mem.h"

struct writer {
    const struct flow *f;
    const struct history *h;
    const struct draft_options *opt;
    struct pen pen;
    struct region *region;
    int n_figures;
};

static const struct line *block_line(const struct flow *f, const struct block *b, int32_t i)
{
    return item_line(f, b->item0 + i);
}

/* Notes where a line's words begin and end in the plain draft. */
static void line_mark(struct writer *w, int32_t i, size_t from, size_t to)
{
    const char *s = w->pen.plain.data;
    while (s && from < to && s[from] == ' ') {
        from++;
    }
    w->region->lines[i].plain_from = (int32_t)from;
    w->region->lines[i].plain_to = (int32_t)(to > from ? to : from);
}

/* A word joined over a line end belongs to the line it began on. */
static void lines_mark_settle(struct region *r)
{
    const char *s = r->draft.plain;
    for (int i = 0; s && i + 1 < r->n_lines; i++) {
        struct region_line *a = &r->lines[i], *b = &r->lines[i + 1];
        if (a->plain_to != b->plain_from || b->plain_from == 0) {
            continue;
        }
        const char c = s[b->plain_from - 1];
        if (c == ' ' || c == '\n' || (c & 0x80)) {
            continue; /* scripts without spaces are cut between characters */
        }
        int32_t at = b->plain_from;
        while (at < b->plain_to && s[at] != ' ' && s[at] != '\n' && !(s[at] & 0x80)) {
            at++;
        }
        a->plain_to = at;
        b->plain_from = at < b->plain_to && s[at] == ' ' ? at + 1 : at;
    }
}

/* A slant that nearly the whole block has is its style and no emphasis; bold always is. */
static uint8_t own_style(const struct flow *f, const struct block *b)
{
    int32_t n = 0, italic = 0, mono = 0;
    for (int32_t i = 0; i < b->n_items; i++) {
        const struct line *l = block_line(f, b, i);
        for (int32_t k = 0; k < l->n_words; k++) {
            const struct word *w = &f->words[l->word0 + k];
            n += w->n_chars;
            italic += w->flags & RUN_ITALIC ? w->n_chars : 0;
            mono += w->flags & RUN_MONO ? w->n_chars : 0;
        }
    }
    uint8_t s = 0;
    s |= italic * 10 > n * 6 ? RUN_ITALIC : 0;
    s |= mono * 10 > n * 6 ? RUN_MONO : 0;
    return s;
}

static float room_after(const struct flow *f, const struct block *b, int32_t i)
{
    const int32_t k = b->item0 + i;
    return f->runs ? f->runs[k].right - f->items[k].box.x1 : 0;
}

static enum join join_after(const struct writer *w, const struct block *b, int32_t i)
{
    if (i + 1 >= b->n_items) {
        return JOIN_SPACE;
    }
    const int32_t k = b->item0 + i;
    if (b->kind == REGION_PARAGRAPH && w->f->hard[k]) {
        return JOIN_LINE;
    }
    return lines_join(w->f, w->h, block_line(w->f, b, i), block_line(w->f, b, i + 1),
                      room_after(w->f, b, i));
}

static void write_text(struct writer *w, const struct block *b)
{
    struct pen *p = &w->pen;
    p->bare = b->kind == REGION_HEADING;
    p->ignored = b->kind == REGION_FORMULA ? 0xff : own_style(w->f, b);
    if (b->kind == REGION_HEADING) {
        char mark[8] = "###### ";
        assert(b->level >= 1 && b->level <= 6);
        pen_mark(p, mark + 6 - b->level);
        p->fresh = false;
    }
    for (int32_t i = 0; i < b->n_items; i++) {
        const size_t from = i == 0 ? 0 : p->plain.n;
        pen_line(p, block_line(w->f, b, i), 0, join_after(w, b, i), i + 1 == b->n_items);
        line_mark(w, i, from, p->plain.n);
    }
    pen_end(p);
}

#define MAX_DEPTH 8

struct nest {
    float x[MAX_DEPTH];
    int width[MAX_DEPTH]; /* of each level's marker */
    int n;
};

static int nest_indent(struct nest *t, const struct line *l)
{
    const float tol = 0.8f * l->size;
    while (t->n > 1 && l->marker.x < t->x[t->n - 1] - tol) {
        t->n--;
    }
    if (t->n == 0 || (l->marker.x > t->x[t->n - 1] + tol && t->n < MAX_DEPTH)) {
        t->x[t->n++] = l->marker.x;
    }
    int indent = 0;
    for (int i = 0; i + 1 < t->n; i++) {
        indent += t->width[i];
    }
    return indent;
}

static void item_open(struct writer *w, struct nest *t, const struct line *l)
{
    char mark[80];
    const int indent = nest_indent(t, l);
    int n = snprintf(mark, sizeof(mark), "%*s", indent < 60 ? indent : 60, "");
    if (l->marker.kind == MARKER_NUMBER) {
        n += snprintf(mark + n, sizeof(mark) - (size_t)n, "%d. ", (int)l->marker.number);
    } else {
        n += snprintf(mark + n, sizeof(mark) - (size_t)n, "- ");
    }
    t->width[t->n - 1] = n - (indent < 60 ? indent : 60);
    pen_mark(&w->pen, mark);
}

static void write_list(struct writer *w, const struct block *b)
{
    struct pen *p = &w->pen;
    struct nest t = { 0 };
    for (int32_t i = 0; i < b->n_items; i++) {
        const struct line *l = block_line(w->f, b, i);
        const bool opens = l->marker.kind != MARKER_NONE;
        const struct line *next = i + 1 < b->n_items ? block_line(w->f, b, i + 1) : NULL;
        const bool last = !next || next->marker.kind != MARKER_NONE;
        if (opens && i > 0) {
            pen_mark(p, "\n");
        }
        const size_t from = p->plain.n;
        if (opens) {
            item_open(w, &t, l);
        }
        const bool label = l->marker.kind == MARKER_LABEL;
        pen_line(p, l, opens && !label ? l->marker.n_words : 0,
                 last ? JOIN_SPACE : join_after(w, b, i), last);
        if (last) {
            pen_end(p);
        }
        line_mark(w, i, from, p->plain.n);
        if (opens) {
            w->region->lines[i].plain_from = (int32_t)from; /* the indent belongs to it */
        }
    }
}

/* Width of one character of a fixed-pitch line. */
static float advance_of(const struct flow *f, const struct block *b)
{
    float best = 0;
    int32_t most = 0;
    for (int32_t i = 0; i < b->n_items; i++) {
        const struct line *l = block_line(f, b, i);
        for (int32_t k = 0; k < l->n_words; k++) {
            const struct word *w = &f->words[l->word0 + k];
            if (w->n_chars > most) {
                most = w->n_chars;
                best = (w->box.x1 - w->box.x0) / (float)w->n_chars;
            }
        }
    }
    return best > 0.1f ? best : 1;
}

static void spaces_add(struct buf *b, float n)
{
    for (int i = 0; i < (int)(n + 0.5f) && i < 200; i++) {
        buf_add_char(b, ' ');
    }
}

static void code_line(struct writer *w, const struct line *l, float left, float advance)
{
    struct buf *b = &w->pen.plain;
    float x = left;
    for (int32_t k = 0; k < l->n_words; k++) {
        const struct word *word = &w->f->words[l->word0 + k];
        const float gap = (word->box.x0 - x) / advance;
        spaces_add(b, k > 0 && word->space && gap < 0.5f ? 1 : gap);
        for (int32_t c = 0; c < word->n_chars; c++) {
            buf_add_cp(b, w->f->chars[word->char0 + c].cp);
        }
        x = word->box.x1;
    }
}

static void write_code(struct writer *w, const struct block *b)
{
    struct pen *p = &w->pen;
    const float advance = advance_of(w->f, b);
    float pitch = 1e9f;
    for (int32_t i = 1; i < b->n_items; i++) {
        const float d = block_line(w->f, b, i)->baseline - block_line(w->f, b, i - 1)->baseline;
        pitch = d > 0.3f * w->f->em ? fminf(pitch, d) : pitch;
    }
    for (int32_t i = 0; i < b->n_items; i++) {
        const struct line *l = block_line(w->f, b, i);
        if (i > 0) {
            const float d = l->baseline - block_line(w->f, b, i - 1)->baseline;
            int n = pitch < 1e8f ? (int)(d / pitch + 0.4f) : 1;
            n = n < 1 ? 1 : n > 3 ? 3 : n;
            for (; n > 0; n--) {
                buf_add_char(&p->plain, '\n');
            }
        }
        const size_t from = p->plain.n;
        code_line(w, l, b->box.x0, advance);
        w->region->lines[i].plain_from = (int32_t)from;
        w->region->lines[i].plain_to = (int32_t)p->plain.n;
    }
    /* The fence is longer than any run of backticks inside. */
    int longest = 2, run = 0;
    for (size_t i = 0; i < p->plain.n; i++) {
        run = p->plain.data[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (int end = 0; end < 2; end++) {
        for (int i = 0; i <= longest; i++) {
            buf_add_char(&p->md, '`');
        }
        if (!end) {
            buf_add_char(&p->md, '\n');
            buf_add(&p->md, p->plain.data ? p->plain.data : "", p->plain.n);
            buf_add_char(&p->md, '\n');
        }
    }
}

static void write_note(struct writer *w, const struct block *b)
{
    struct pen *p = &w->pen;
    const struct line *first = block_line(w->f, b, 0);
    int32_t skip = 0;
    if (b->note > 0) {
        buf_addf(&p->md, "[^%d]: ", (int)b->note);
        buf_addf(&p->plain, "%d ", (int)b->note);
        skip = 1;
        /* "1." and "1)" carry their sign in the mark's word or the next. */
        if (first->marker.kind != MARKER_NONE) {
            skip = first->marker.n_words;
        }
        p->fresh = false;
    }
    p->ignored = own_style(w->f, b);
    for (int32_t i = 0; i < b->n_items; i++) {
        const size_t from = i == 0 ? 0 : p->plain.n;
        pen_line(p, block_line(w->f, b, i), i == 0 ? skip : 0, join_after(w, b, i),
                 i + 1 == b->n_items);
        line_mark(w, i, from, p->plain.n);
    }
    pen_end(p);
}

static bool region_lines(struct writer *w, const struct block *b)
{
    struct region *r = w->region;
    r->lines = mem_many(struct region_line, (size_t)b->n_items);
    if (!r->lines) {
        return false;
    }
    r->n_lines = b->n_items;
    float sizes[64];
    size_t n = 0;
    for (int32_t i = 0; i < b->n_items; i++) {
        const struct line *l = block_line(w->f, b, i);
        r->lines[i].box = l->box;
        r->lines[i].size = l->size;
        if (n < 64) {
            sizes[n++] = l->size;
        }
    }
    r->size = float_median(sizes, n);
    return true;
}

static bool write_table(struct writer *w, const struct block *b)
{
    const struct table *t = &w->f->tables[b->object];
    struct region *r = w->region;
    r->lines = mem_many(struct region_line, (size_t)t->n_rows);
    size_t *row_end = mem_many(size_t, (size_t)t->n_rows);
    if (!r->lines || !row_end) {
        mem_free(row_end);
        return false;
    }
    r->n_lines = t->n_rows;
    r->n_header_rows = t->n_header_rows > 0 ? 1 : 0;
    table_write(&w->pen, t, row_end);
    size_t from = 0;
    for (int32_t i = 0; i < t->n_rows; i++) {
        r->lines[i].box = t->row_box[i];
        r->lines[i].plain_from = (int32_t)from;
        r->lines[i].plain_to = (int32_t)row_end[i];
        from = row_end[i] + (i + 1 < t->n_rows); /* after the newline */
    }
    mem_free(row_end);
    float sizes[64];
    size_t n = 0;
    for (int32_t i = 0; i < t->n_cells; i++) {
        for (int32_t k = 0; k < t->cells[i].n_lines && n < 64; k++) {
            sizes[n++] = t->cells[i].lines[k].size;
        }
    }
    r->size = float_median(sizes, n);
    for (int32_t i = 0; i < t->n_rows; i++) {
        r->lines[i].size = r->size;
    }
    return true;
}

static float text_belief(const struct writer *w, const struct block *b)
{
    float sum = 0, n = 0;
    for (int32_t i = 0; i < b->n_items; i++) {
        const struct line *l = item_line(w->f, b->item0 + i);
        if (l) {
            sum += l->conf * (float)l->n_chars;
            n += (float)l->n_chars;
        }
    }
    if (b->kind == REGION_TABLE) {
        const struct table *t = &w->f->tables[b->object];
        for (int32_t i = 0; i < t->n_cells; i++) {
            for (int32_t k = 0; k < t->cells[i].n_lines; k++) {
                sum += t->cells[i].lines[k].conf * (float)t->cells[i].lines[k].n_chars;
                n += (float)t->cells[i].lines[k].n_chars;
            }
        }
    }
    const float conf = n > 0 ? sum / n : 1;
    return w->opt->source == DRAFT_OCR ? fminf(conf, 0.98f) : conf * w->opt->text_score;
}

static bool region_write(struct writer *w, const struct block *b)
{
    struct region *r = w->region;
    r->kind = b->kind;
    r->level = b->kind == REGION_HEADING ? b->level : 0;
    r->box = b->box;
    r->joins_next = b->joins_next;
    r->continues = b->continues;
    pen_init(&w->pen, w->f, w->h);
    w->pen.notes = w->f->notes;
    w->pen.n_notes = w->f->n_notes;
    bool ok = true;
    if (b->kind == REGION_FIGURE) {
        buf_addf(&w->pen.md, "![](%s-p%d-%d.png)", w->opt->figure_prefix, w->f->page->index + 1,
                 ++w->n_figures);
    } else if (b->kind == REGION_TABLE) {
        ok = write_table(w, b);
    } else {
        ok = region_lines(w, b);
    }
    if (ok && b->kind == REGION_LIST) {
        write_list(w, b);
    } else if (ok && b->kind == REGION_CODE) {
        write_code(w, b);
    } else if (ok && b->kind == REGION_FOOTNOTE) {
        write_note(w, b);
    } else if (ok && b->kind != REGION_FIGURE && b->kind != REGION_TABLE) {
        write_text(w, b);
    }
    if (ok && w->pen.md.n == 0) {
        buf_add_str(&w->pen.md, "");
    }
    r->draft.markdown = ok ? buf_take(&w->pen.md) : NULL;
    r->draft.plain = ok ? buf_take(&w->pen.plain) : NULL;
    r->draft.source = b->kind == REGION_FIGURE ? DRAFT_NONE : w->opt->source;
    r->draft.score = b->score * text_belief(w, b);
    pen_deinit(&w->pen);
    lines_mark_settle(r);
    return r->draft.markdown && r->draft.plain;
}

bool draft_regions(const struct flow *f, const struct history *h, const struct draft_options *opt,
                   struct page_layout *out)
{
    const int32_t n = f->n_blocks < FLOW_MAX_REGIONS ? f->n_blocks : FLOW_MAX_REGIONS;
    out->regions = mem_many(struct region, (size_t)n);
    if (!out->regions) {
        return false;
    }
    struct writer w = { .f = f, .h = h, .opt = opt };
    for (int32_t i = 0; i < n; i++) {
        w.region = &out->regions[out->n_regions++];
        if (!region_write(&w, &f->blocks[i])) {
            return false;
        }
    }
    return true;
}
