/* chrome.c - what repeats at the page's edges, and footnotes.
 *
 * Precision first: a kept footer is a blemish, a lost line of text is an error. */
#include "layout/chrome.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"

#define BAND     0.12f
#define MAX_MARK 1000 /* footnote marks have up to three digits */

/* "7", "- 7 -", "Page 7 of 9", "7/9", "iv"; the number or -1. */
static int32_t page_number_of(const char *s)
{
    static const char *const words[] = { "Page", "page", "PAGE", "Seite", "p.", "of", "von", "/" };
    int32_t v = -1;
    int n_numbers = 0;
    while (*s) {
        if (*s >= '0' && *s <= '9') {
            int32_t n = 0;
            int digits = 0;
            while (*s >= '0' && *s <= '9') {
                n = digits < 6 ? n * 10 + (*s - '0') : n;
                digits++;
                s++;
            }
            if (digits > 4) {
                return -1;
            }
            v = n_numbers++ == 0 ? n : v;
            continue;
        }
        if (*s == ' ' || *s == '-' || *s == '|' || *s == '(' || *s == ')' || *s == '[' ||
            *s == ']') {
            s++;
            continue;
        }
        if (strncmp(s, "\xe2\x80\x93", 3) == 0 || strncmp(s, "\xe2\x80\x94", 3) == 0 ||
            strncmp(s, "\xec\xaa\xbd", 3) == 0) {
            s += 3;
            continue;
        }
        size_t len = 0;
        for (size_t i = 0; i < sizeof(words) / sizeof(*words) && len == 0; i++) {
            len = strncmp(s, words[i], strlen(words[i])) == 0 ? strlen(words[i]) : 0;
        }
        if (len == 0) {
            return -1;
        }
        s += len;
    }
    return n_numbers == 1 || n_numbers == 2 ? v : -1;
}

static bool is_roman(const char *s)
{
    const size_t n = strlen(s);
    return n > 0 && n < 7 && strspn(s, "ivxl") == n;
}

struct edge {
    struct line *lines[12]; /* nearest to the edge first */
    int n;
    float y; /* inner side of the outermost block, grows inwards */
};

/* Nearest text line on the inner side, as a gap; large when nothing follows. */
static float gap_inward(const struct flow *f, const struct line *l, bool top)
{
    float best = 1e9f;
    for (int32_t i = 0; i < f->n_lines; i++) {
        const struct line *o = &f->lines[i];
        if (o == l || fabsf(o->baseline - l->baseline) < 0.5f * l->size) {
            continue;
        }
        const float gap = top ? o->box.y0 - l->box.y1 : l->box.y0 - o->box.y1;
        if (gap > -0.2f * l->size && gap < best) {
            best = gap;
        }
    }
    for (int32_t i = 0; i < f->n_tables; i++) {
        const struct box *b = &f->tables[i].box;
        const float gap = top ? b->y0 - l->box.y1 : l->box.y0 - b->y1;
        best = gap > 0 ? fminf(best, gap) : best;
    }
    return best;
}

static bool outermost(const struct flow *f, const struct line *l, bool top)
{
    for (int32_t i = 0; i < f->n_lines; i++) {
        const struct line *o = &f->lines[i];
        const float d = top ? l->box.y0 - o->box.y1 : o->box.y0 - l->box.y1;
        if (d > -0.3f * l->size && o->role == LINE_BODY && o != l) {
            return false;
        }
    }
    return true;
}

static bool line_repeats(const struct history *h, const struct page *p, const struct line *l,
                         bool top)
{
    const float yc = (l->box.y0 + l->box.y1) / 2;
    const float y = top ? yc : p->height - yc;
    const struct chrome_key *k = chrome_lookup(h, chrome_hash(l->text, (size_t)l->n_text), y, top);
    if (!k || h->n_seen < 2) {
        return false;
    }
    return k->count >= 3 || (k->count == 2 && h->n_seen <= 4);
}

/* One line in a band: chrome by repetition, by being a page number, or by standing apart. */
static enum line_role role_of(const struct flow *f, const struct history *h, const struct line *l,
                              bool top)
{
    const struct page *p = f->page;
    const float gap = gap_inward(f, l, top);
    const int32_t number = page_number_of(l->text);
    const bool edge = outermost(f, l, top);
    if ((number >= 0 || is_roman(l->text)) && l->n_chars <= 20 && edge && gap > 0.9f * l->size &&
        l->size < 1.3f * history_body_size(h)) {
        return LINE_NUMBER;
    }
    const enum line_role role = top ? LINE_HEADER : LINE_FOOTER;
    if (gap > 0.4f * l->size && line_repeats(h, p, l, top) &&
        l->size < 1.35f * history_body_size(h)) {
        return role;
    }
    /* Alone in the document: small, short and well apart from a page of text. */
    if (edge && f->n_lines >= 8 && l->n_chars <= 90 && gap > 1.8f * l->size &&
        l->size < 0.93f * history_body_size(h) && gap < 1e8f && h->n_pages <= 2) {
        return role;
    }
    return LINE_BODY;
}

static int line_outward_top(const void *a, const void *b)
{
    const struct line *x = *(struct line *const *)a, *y = *(struct line *const *)b;
    return (x->box.y0 > y->box.y0) - (x->box.y0 < y->box.y0);
}

static int line_outward_bottom(const void *a, const void *b)
{
    return line_outward_top(b, a);
}

/* Pieces of one baseline go together: "Chapter ... 7".  A number alone says so only where it
 * stands on page after page: heads change with the chapter, the place of the number does not. */
static bool goes_with(const struct flow *f, const struct history *h, const struct line *l,
                      const struct line *mark, bool top)
{
    if (mark->role == LINE_BODY || fabsf(l->baseline - mark->baseline) >= 1 ||
        l->size >= 1.1f * mark->size) {
        return false;
    }
    return mark->role != LINE_NUMBER ||
           (line_repeats(h, f->page, mark, top) && gap_inward(f, l, top) > 0.9f * l->size);
}

static void band_mark(struct flow *f, const struct history *h, bool top)
{
    const struct page *p = f->page;
    struct line *list[24];
    int n = 0;
    for (int32_t k = 0; k < f->n_lines && n < 24; k++) {
        struct line *l = &f->lines[top ? k : f->n_lines - 1 - k];
        const float yc = (l->box.y0 + l->box.y1) / 2;
        if (l->role == LINE_BODY && (top ? yc : p->height - yc) < BAND * p->height) {
            list[n++] = l;
        }
    }
    qsort(list, (size_t)n, sizeof(*list), top ? line_outward_top : line_outward_bottom);
    for (int i = 0; i < n; i++) {
        if (list[i]->role == LINE_BODY) {
            list[i]->role = (uint8_t)role_of(f, h, list[i], top);
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n && list[i]->role == LINE_BODY; k++) {
            if (goes_with(f, h, list[i], list[k], top)) {
                list[i]->role = page_number_of(list[i]->text) >= 0 ? LINE_NUMBER
                                : top                              ? LINE_HEADER
                                                                   : LINE_FOOTER;
            }
        }
    }
}

void chrome_find(struct flow *f, const struct history *h)
{
    if (f->page->height < 200 || f->failed) {
        return;
    }
    band_mark(f, h, true);
    band_mark(f, h, false);
}

/* The number of a footnote's mark at the line's start; 0: none. */
static int32_t note_mark(const struct flow *f, const struct line *l)
{
    const struct word *w = &f->words[l->word0];
    int32_t v = 0, k = 0;
    if (l->n_words < 2) {
        return 0;
    }
    for (; k < w->n_chars && k < 4; k++) {
        const uint32_t cp = f->chars[w->char0 + k].cp;
        if (cp < '0' || cp > '9') {
            break;
        }
        v = v * 10 + (int32_t)(cp - '0');
    }
    if (k == 0 || k > 3) {
        return 0;
    }
    assert(v < MAX_MARK);
    if (k == w->n_chars) {
        return w->script == 1 || w[1].space || w->size < 0.8f * w[1].size ? v : 0;
    }
    const uint32_t stop = f->chars[w->char0 + k].cp;
    return k + 1 == w->n_chars && (stop == '.' || stop == ')' || stop == ']') ? v : 0;
}

/* Which numbers stand raised behind text somewhere on the page. */
static void cited_find(const struct flow *f, bool *cited)
{
    for (int32_t i = 0; i < f->n_lines; i++) {
        const struct line *l = &f->lines[i];
        for (int32_t k = 1; k < l->n_words; k++) {
            const struct word *w = &f->words[l->word0 + k];
            int32_t v = w->script == 1 && w->n_chars <= 3 ? 0 : -1;
            for (int32_t c = 0; v >= 0 && c < w->n_chars; c++) {
                const uint32_t cp = f->chars[w->char0 + c].cp;
                v = cp >= '0' && cp <= '9' ? v * 10 + (int32_t)(cp - '0') : -1;
            }
            if (v >= 0) {
                cited[v] = true;
            }
        }
    }
}

/* A short rule above the notes, 10..50 % of the page wide. */
static bool rule_above(const struct flow *f, const struct line *l)
{
    const struct page *p = f->page;
    for (int i = 0; i < p->n_rules && i < 4000; i++) {
        const struct box *b = &p->rules[i].box;
        const float w = b->x1 - b->x0;
        if (!p->rules[i].vertical && w > 0.08f * p->width && w < 0.5f * p->width &&
            b->x0 < l->box.x1 && b->x1 > l->box.x0 && b->y1 <= l->box.y0 + 2 &&
            l->box.y0 - b->y1 < 2.5f * l->size) {
            return true;
        }
    }
    return false;
}

static bool text_below(const struct flow *f, const struct line *l, float body)
{
    for (int32_t i = 0; i < f->n_lines; i++) {
        const struct line *o = &f->lines[i];
        if (o->role == LINE_BODY && o->box.y0 > l->box.y1 - 1 && o->size > 0.95f * body &&
            box_overlap_x(&o->box, &l->box) > 0) {
            return true;
        }
    }
    return false;
}

void notes_find(struct flow *f, const struct history *h)
{
    const float body = history_body_size(h);
    bool cited[MAX_MARK] = { false };
    cited_find(f, cited);
    /* Lines are sorted by height: from the first note line down, its column's small lines. */
    for (int32_t i = 0; i < f->n_lines && !f->failed; i++) {
        struct line *l = &f->lines[i];
        if (l->role != LINE_BODY || l->box.y0 < 0.4f * f->page->height ||
            f->n_notes >= FLOW_MAX_NOTES) {
            continue;
        }
        const bool small = l->size <= 0.95f * body;
        const int32_t v = note_mark(f, l);
        if (v <= 0 || !cited[v] || !(small || rule_above(f, l)) ||
            text_below(f, l, small ? body : 1e9f)) {
            continue;
        }
        f->notes[f->n_notes++] = v;
        l->role = LINE_NOTE;
        const struct line *prev = l;
        for (int32_t k = i + 1; k < f->n_lines; k++) {
            struct line *o = &f->lines[k];
            if (o->role != LINE_BODY || box_overlap_x(&o->box, &prev->box) <= 0) {
                continue;
            }
            if (o->baseline - prev->baseline > 1.6f * prev->size ||
                fabsf(o->size - l->size) > 0.12f * l->size ||
                (note_mark(f, o) > 0 && cited[note_mark(f, o)])) {
                break;
            }
            o->role = LINE_NOTE;
            prev = o;
        }
    }
}

static struct block *place_line(struct flow *f, struct block *out, int32_t *n, int32_t line,
                                enum region_kind kind)
{
    struct item *it = &f->items[f->n_items];
    *it = (struct item){ f->lines[line].box, ITEM_LINE, line, 0 };
    struct block *b = &out[(*n)++];
    *b = (struct block){
        .kind = kind, .box = it->box, .item0 = f->n_items++, .n_items = 1, .object = -1, .score = 1
    };
    return b;
}

static void place_role(struct flow *f, struct block *out, int32_t *n, enum line_role role,
                       enum region_kind kind, int top)
{
    struct block *open = NULL;
    for (int32_t i = 0; i < f->n_lines; i++) {
        const struct line *l = &f->lines[i];
        const bool upper = (l->box.y0 + l->box.y1) / 2 < f->page->height / 2;
        if (l->role != role || (top >= 0 && upper != (top != 0))) {
            continue;
        }
        const int32_t v = kind == REGION_FOOTNOTE ? note_mark(f, l) : 0;
        bool starts = kind != REGION_FOOTNOTE || !open;
        for (int32_t k = 0; v > 0 && k < f->n_notes; k++) {
            starts = starts || f->notes[k] == v;
        }
        if (!starts && open->item0 + open->n_items == f->n_items) {
            f->items[f->n_items++] = (struct item){ l->box, ITEM_LINE, i, 0 };
            open->n_items++;
            box_grow(&open->box, &l->box);
            continue;
        }
        open = place_line(f, out, n, i, kind);
        open->note = v;
    }
}

void chrome_place(struct flow *f)
{
    /* Room for every line once more: chrome and notes were not among the items. */
    struct block *out = flow_many(f, struct block, (size_t)(f->n_blocks + f->n_lines));
    struct item *items = flow_many(f, struct item, (size_t)(f->n_items + f->n_lines));
    struct run *runs = flow_many(f, struct run, (size_t)(f->n_items + f->n_lines));
    if (f->failed) {
        return;
    }
    memcpy(items, f->items, sizeof(*items) * (size_t)f->n_items);
    memcpy(runs, f->runs, sizeof(*runs) * (size_t)f->n_items);
    f->items = items;
    const int32_t first = f->n_items;
    int32_t n = 0;
    place_role(f, out, &n, LINE_HEADER, REGION_PAGE_HEADER, -1);
    place_role(f, out, &n, LINE_NUMBER, REGION_PAGE_NUMBER, 1);
    memcpy(out + n, f->blocks, sizeof(*out) * (size_t)f->n_blocks);
    n += f->n_blocks;
    place_role(f, out, &n, LINE_NOTE, REGION_FOOTNOTE, -1);
    place_role(f, out, &n, LINE_FOOTER, REGION_PAGE_FOOTER, -1);
    place_role(f, out, &n, LINE_NUMBER, REGION_PAGE_NUMBER, 0);
    for (int32_t i = first; i < f->n_items; i++) {
        runs[i] = (struct run){ f->items[i].box.x0, f->items[i].box.x1 };
    }
    f->runs = runs;
    f->blocks = out;
    f->n_blocks = n;
}
