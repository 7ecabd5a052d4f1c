/* block.c - items in reading order to blocks: headings, lists, code, formulas, paragraphs. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "layout/figure.h"
#include "layout/heading.h"
#include "src/base/cp.h"

const struct line *item_line(const struct flow *f, int32_t i)
{
    if (i < 0 || i >= f->n_items || f->items[i].kind != ITEM_LINE) {
        return NULL;
    }
    return &f->lines[f->items[i].index];
}

static float size_tolerance(const struct line *a, const struct line *b)
{
    return (a->ocr || b->ocr ? 0.38f : 0.06f) * fmaxf(a->size, b->size);
}

static bool same_row(const struct line *a, const struct line *b)
{
    return fabsf(a->baseline - b->baseline) < 0.35f * fminf(a->size, b->size);
}

/* A line of a paragraph that happens to be all code: flush with its neighbours. */
static bool mono_in_text(const struct flow *f, int32_t i)
{
    const struct line *a = item_line(f, i), *b = item_line(f, i + 1);
    const struct line *text = a->mono ? item_line(f, i - 1) : a;
    if (!text || text->mono || fabsf(a->box.x0 - b->box.x0) > 0.5f * a->size ||
        fabsf(text->box.x0 - b->box.x0) > 0.5f * a->size) {
        return false;
    }
    const uint32_t last = line_last_cp(f, text);
    return last != ':' && last != '.' &&
           text->box.x1 > f->groups[f->items[i].group].right - 8 * a->size;
}

/* Near enough and alike enough that only indents and line ends can separate them. */
static bool lines_adjoin(const struct flow *f, int32_t i)
{
    const struct line *a = item_line(f, i), *b = item_line(f, i + 1);
    if (!a || !b || f->items[i].group != f->items[i + 1].group) {
        return false;
    }
    if (fabsf(a->size - b->size) > size_tolerance(a, b) ||
        (a->mono != b->mono && !mono_in_text(f, i))) {
        return false;
    }
    const float em = fmaxf(a->size, b->size);
    const float pitch = f->groups[f->items[i].group].pitch;
    const float slack = a->ocr ? 1.45f : 1.3f;
    return b->baseline - a->baseline <= slack * pitch * em;
}

static struct run *runs_measure(struct flow *f)
{
    struct run *runs = flow_many(f, struct run, (size_t)f->n_items);
    for (int32_t i = 0; runs && i < f->n_items;) {
        struct run r = { 1e9f, -1e9f };
        int32_t k = i;
        do {
            r.left = fminf(r.left, f->items[k].box.x0);
            r.right = fmaxf(r.right, f->items[k].box.x1);
            k++;
        } while (k < f->n_items && lines_adjoin(f, k - 1));
        /* A few short lines say nothing about the column's edge. */
        const struct group *g = &f->groups[f->items[i].group];
        if (k - i < 3 || (k - i < 8 && g->right - r.right > 0.4f * (g->right - g->left))) {
            r.left = fminf(r.left, g->left);
            r.right = fmaxf(r.right, g->right);
        }
        for (; i < k; i++) {
            runs[i] = r;
        }
    }
    return runs;
}

static bool line_centred(const struct line *l, const struct run *r)
{
    const float a = l->box.x0 - r->left, b = r->right - l->box.x1;
    return a > 1.5f * l->size && fabsf(a - b) < 0.8f * l->size;
}

static bool starts_upper(const struct flow *f, const struct line *l)
{
    const uint32_t cp = line_first_cp(f, l);
    return !cp_is_lower(cp) && cp != ',' && cp != ')';
}

/* Dots between an entry and its page. */
static bool line_has_leader(const struct line *l)
{
    return strstr(l->text, ". . . . .") || strstr(l->text, ".....") ||
           strstr(l->text, "\xe2\x80\xa6\xe2\x80\xa6");
}

/* Does another piece stand on the item's row? */
static bool row_has_peer(const struct flow *f, int32_t i)
{
    const struct line *l = item_line(f, i);
    for (int d = -1; d <= 1; d += 2) {
        const struct line *o = item_line(f, i + d);
        if (o && f->items[i].group == f->items[i + d].group && same_row(l, o)) {
            return true;
        }
    }
    return false;
}

/* Rows of labels and values below each other; a total may be larger and stand off a little. */
static bool rows_follow(const struct flow *f, int32_t i)
{
    const struct line *a = item_line(f, i), *b = item_line(f, i + 1);
    if (!a || !b || f->items[i].group != f->items[i + 1].group || same_row(a, b) ||
        b->marker.kind != MARKER_NONE) {
        return false;
    }
    const float em = fmaxf(a->size, b->size);
    return fabsf(a->size - b->size) < 0.25f * em && b->baseline - a->baseline < 1.9f * em &&
           row_has_peer(f, i) && row_has_peer(f, i + 1);
}

/* Once one line of a block of short lines ends where it wants, all do. */
static void hard_spread(struct flow *f, int32_t i, int32_t n)
{
    bool any = false, all_upper = true;
    for (int32_t k = i; k + 1 < i + n; k++) {
        const struct line *next = item_line(f, k + 1);
        any = any || f->hard[k];
        all_upper = all_upper && (starts_upper(f, next) || same_row(item_line(f, k), next));
    }
    for (int32_t k = i; any && all_upper && k + 1 < i + n; k++) {
        f->hard[k] = !same_row(item_line(f, k), item_line(f, k + 1));
    }
}

/* A bold line of its own; a bold phrase that runs over the line end is none. */
static bool weight_changes(const struct flow *f, const struct line *a, const struct line *b)
{
    if (a->ocr || b->ocr || a->bold == b->bold) {
        return false;
    }
    const struct word *tail = &f->words[a->word0 + a->n_words - 1], *head = &f->words[b->word0];
    return (tail->flags & RUN_BOLD) != (head->flags & RUN_BOLD);
}

/* Does a new paragraph begin between items i and i + 1? */
static bool paragraph_breaks(const struct flow *f, const struct run *runs, int32_t i0, int32_t i)
{
    const struct line *a = item_line(f, i), *b = item_line(f, i + 1);
    if (rows_follow(f, i)) {
        f->hard[i] = true; /* rows of labels and values keep their line ends */
        return false;
    }
    if (!lines_adjoin(f, i)) {
        return true;
    }
    if (line_has_leader(a) || line_has_leader(b)) {
        f->hard[i] = true; /* a contents page */
        return false;
    }
    if (same_row(a, b)) {
        return b->box.x0 - a->box.x1 > 12 * a->size;
    }
    if (b->marker.kind != MARKER_NONE || weight_changes(f, a, b)) {
        return true;
    }
    const float em = fmaxf(a->size, b->size);
    const struct run *r = &runs[i];
    const bool ends = cp_ends_sentence(line_last_cp(f, a));
    if (line_centred(a, r) && line_centred(b, r)) {
        return ends && starts_upper(f, b);
    }
    const uint32_t first = line_first_cp(f, b), last = line_last_cp(f, a);
    const bool cjk = cp_is_wide(first) || cp_is_wide(last) || cp_is_hangul(last);
    const float space = r->right - a->box.x1;
    const struct line *head = item_line(f, i0);
    const float indent = b->box.x0 - r->left;
    /* First-line indent: against the edge of the paragraph's other lines. */
    const bool hanging = i > i0 && head->box.x0 < a->box.x0 - 0.8f * em;
    if (indent > 0.8f * em && indent < 4.5f * em && !hanging && b->box.x0 > a->box.x0 + 0.8f * em &&
        (i > i0 || ends || space > 2 * em) && (ends || space > 2 * em)) {
        return true;
    }
    const struct word *w = &f->words[b->word0];
    float need = w->box.x1 - w->box.x0 + 0.3f * em;
    if (cjk && w->n_chars > 1) {
        need = fminf(need, 1.6f * em); /* may break inside the word */
    }
    if (a->ocr) {
        need += em;
    }
    if (space <= need + 0.2f * em) {
        return false;
    }
    /* It would have fitted: a paragraph (or a verse line) ended here. */
    if (ends && (a->n_words > 5 || i > i0)) {
        return !f->hard[i0];
    }
    if (starts_upper(f, b) && space > need + (a->ocr ? 3 : 1.5f) * em) {
        f->hard[i] = true;
        return false;
    }
    return ends;
}

static struct block *block_add(struct flow *f, enum region_kind kind, int32_t i, int32_t n)
{
    assert(n > 0 && i + n <= f->n_items && f->n_blocks < f->n_items);
    struct block *b = &f->blocks[f->n_blocks++];
    memset(b, 0, sizeof(*b));
    b->kind = kind;
    b->item0 = i;
    b->n_items = n;
    b->object = -1;
    b->score = 1;
    for (int32_t k = i; k < i + n; k++) {
        box_grow(&b->box, &f->items[k].box);
    }
    return b;
}

static int32_t code_extent(const struct flow *f, int32_t i0)
{
    int32_t i = i0;
    for (; i < f->n_items; i++) {
        const struct line *l = item_line(f, i);
        if (!l || !l->mono || f->items[i].group != f->items[i0].group) {
            break;
        }
        const struct line *prev = i > i0 ? item_line(f, i - 1) : NULL;
        if (prev && l->baseline - prev->baseline > 3.2f * l->size) {
            break;
        }
    }
    return i - i0;
}

static bool line_is_formula(const struct flow *f, int32_t i)
{
    const struct line *l = item_line(f, i);
    const struct group *g = &f->groups[f->items[i].group];
    int n_long = 0;
    bool has_sign = false;
    for (int32_t k = 0; k < l->n_words; k++) {
        const struct word *w = &f->words[l->word0 + k];
        n_long += w->n_chars >= 4 && !w->math;
        has_sign = has_sign || (w->n_chars == 1 && f->chars[w->char0].cp == '=') || w->math;
    }
    if (!has_sign || n_long >= 3 || l->marker.kind != MARKER_NONE) {
        return false;
    }
    return l->math >= 0.4f && l->box.x0 - g->left > 1.5f * l->size;
}

static int32_t formula_extent(const struct flow *f, int32_t i0)
{
    int32_t i = i0;
    while (i < f->n_items && item_line(f, i) && f->items[i].group == f->items[i0].group &&
           line_is_formula(f, i) &&
           (i == i0 || f->items[i].box.y0 - f->items[i - 1].box.y1 < f->em)) {
        i++;
    }
    return i - i0;
}

static int32_t line_block(struct flow *f, struct history *h, const struct run *runs, int32_t i)
{
    const struct line *l = item_line(f, i);
    if (l->mono) {
        const int32_t n = code_extent(f, i);
        const float indent = l->box.x0 - f->groups[f->items[i].group].left;
        if (n >= 2 || (n == 1 && indent > 1.5f * l->size && l->marker.kind == MARKER_NONE)) {
            block_add(f, REGION_CODE, i, n);
            return n;
        }
    }
    int32_t n = caption_extent(f, i);
    if (n > 0) {
        block_add(f, REGION_CAPTION, i, n)->score = 0.95f;
        return n;
    }
    const struct heading head = heading_at(f, h, i);
    if (head.n_items > 0) {
        struct block *b = block_add(f, REGION_HEADING, i, head.n_items);
        b->level = head.level;
        b->score = 0.5f + 0.5f * head.score;
        return head.n_items;
    }
    n = list_extent(f, i);
    if (n > 0) {
        block_add(f, REGION_LIST, i, n)->score = 0.97f;
        return n;
    }
    n = formula_extent(f, i);
    if (n > 0) {
        block_add(f, REGION_FORMULA, i, n)->score = 0.4f;
        return n;
    }
    int32_t k = i;
    while (k + 1 < f->n_items && !paragraph_breaks(f, runs, i, k) &&
           caption_extent(f, k + 1) == 0) {
        k++;
    }
    hard_spread(f, i, k + 1 - i);
    block_add(f, REGION_PARAGRAPH, i, k + 1 - i);
    return k + 1 - i;
}

/* A paragraph cut by a column's end: full last line, no final stop, flush lower-case start. */
static void blocks_join(struct flow *f, const struct run *runs)
{
    struct block *prev = NULL;
    for (int32_t i = 0; i < f->n_blocks; i++) {
        struct block *b = &f->blocks[i];
        if (b->kind == REGION_FIGURE || b->kind == REGION_TABLE || b->kind == REGION_CAPTION) {
            continue;
        }
        if (prev && b->kind == REGION_PARAGRAPH && prev->kind == REGION_PARAGRAPH) {
            const int32_t ia = prev->item0 + prev->n_items - 1;
            const struct line *a = item_line(f, ia), *l = item_line(f, b->item0);
            const uint32_t last = line_last_cp(f, a), first = line_first_cp(f, l);
            const bool apart = f->items[ia].group != f->items[b->item0].group || prev + 1 != b;
            const bool full = runs[ia].right - a->box.x1 < 1.5f * a->size || cp_is_hyphen(last);
            const bool flows = cp_is_lower(first) || cp_is_hyphen(last) ||
                               (!cp_is_upper(first) && !cp_is_digit(first) && cp_is_letter(first));
            const float size = fabsf(a->size - l->size);
            if (apart && full && flows && !cp_ends_sentence(last) && size <= size_tolerance(a, l)) {
                prev->joins_next = true;
                b->continues = true;
            }
        }
        prev = b;
    }
}

void blocks_find(struct flow *f, struct history *h)
{
    f->blocks = flow_many(f, struct block, (size_t)f->n_items);
    f->hard = flow_many(f, bool, (size_t)f->n_items);
    const struct run *runs = f->runs = runs_measure(f);
    if (f->failed) {
        return;
    }
    markers_find(f);
    for (int32_t i = 0; i < f->n_items && !f->failed;) {
        if (f->items[i].kind == ITEM_LINE) {
            i += line_block(f, h, runs, i);
            continue;
        }
        const bool table = f->items[i].kind == ITEM_TABLE;
        struct block *b = block_add(f, table ? REGION_TABLE : REGION_FIGURE, i, 1);
        b->object = f->items[i].index;
        b->score = table ? f->tables[b->object].score : 0.9f;
        i++;
    }
    blocks_join(f, runs);
}
