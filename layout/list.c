/* list.c - list markers and the extent of lists.
 *
 * A marker counts when it is a bullet sign or when its number has a neighbour in sequence at the
 * same indent; a number alone is a paragraph that happens to start with one. */
#include <math.h>
#include <string.h>

#include "layout/flow.h"
#include "layout/raster.h"
#include "src/base/cp.h"

static bool cp_is_bullet(uint32_t cp)
{
    static const uint32_t signs[] = { 0x2022, 0x2023, 0x2043, 0x25e6, 0x25cb, 0x25cf, 0x25a0,
                                      0x25a1, 0x25aa, 0x25ab, 0x25b6, 0x25ba, 0x27a2, 0x27a4,
                                      0x2713, 0x2714, 0x2610, 0x2611, 0x2219, 0xb7,   0x30fb };
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
        if (signs[i] == cp) {
            return true;
        }
    }
    return false;
}

/* What recognisers make of a bullet. */
static bool cp_is_misread_bullet(uint32_t cp)
{
    return cp == 0xa2 || cp == 0xab || cp == 0xbb || cp == 0xb0 || cp == 0xae || cp == 0xa9 ||
           cp == 0x2019 || cp == 'e' || cp == '~' || cp == '>';
}

static bool cp_is_dash(uint32_t cp)
{
    return cp == '-' || cp == '*' || cp == 0x2013 || cp == 0x2014 || cp == 0x2212;
}

/* The first characters of a line up to the first space. */
struct head {
    uint32_t cp[12];
    int n;           /* characters, 12: too long for a marker */
    int32_t n_words; /* words it fills */
};

static void head_read(const struct flow *f, const struct line *l, struct head *h)
{
    h->n = 0;
    h->n_words = 0;
    for (int32_t i = 0; i < l->n_words && h->n < 12; i++) {
        const struct word *w = &f->words[l->word0 + i];
        /* A superscript is a note mark, not a list number. */
        if ((i > 0 && w->space) || w->script) {
            break;
        }
        h->n_words++;
        for (int32_t k = 0; k < w->n_chars && h->n < 12; k++) {
            h->cp[h->n++] = f->chars[w->char0 + k].cp;
        }
    }
}

static int32_t head_number(const struct head *h, int from, int to)
{
    int32_t v = 0;
    if (to <= from || to - from > 3) {
        return -1;
    }
    for (int i = from; i < to; i++) {
        if (h->cp[i] < '0' || h->cp[i] > '9') {
            return -1;
        }
        v = v * 10 + (int32_t)(h->cp[i] - '0');
    }
    return v;
}

static int32_t head_label(const struct head *h, int from, int to)
{
    static const char *const roman[] = { "i",   "ii",   "iii", "iv", "v",  "vi",
                                         "vii", "viii", "ix",  "x",  "xi", "xii" };
    for (int32_t r = 1; r < 12; r++) { /* a lone "i" counts as a letter below */
        const size_t n = strlen(roman[r]);
        bool same = n == (size_t)(to - from) && n > 1;
        for (size_t i = 0; same && i < n; i++) {
            same = h->cp[from + (int)i] == (uint8_t)roman[r][i];
        }
        if (same) {
            return r + 1;
        }
    }
    if (to - from != 1) {
        return -1;
    }
    const uint32_t c = h->cp[from];
    if (c >= 'a' && c <= 'z') {
        return (int32_t)(c - 'a') + 1;
    }
    if (c >= 'A' && c <= 'Z') {
        return (int32_t)(c - 'A') + 1;
    }
    static const uint32_t ga[] = { 0xac00, 0xb098, 0xb2e4, 0xb77c, 0xb9c8, 0xbc14, 0xc0ac };
    for (int32_t i = 0; i < 7; i++) {
        if (ga[i] == c) {
            return i + 1;
        }
    }
    return -1;
}

enum number_style { NUMBER_DOT = 1, NUMBER_CLOSED, NUMBER_BOTH };

static void marker_parse(const struct flow *f, struct line *l)
{
    struct marker *m = &l->marker;
    memset(m, 0, sizeof(*m));
    struct head h;
    head_read(f, l, &h);
    if (h.n == 0 || h.n >= 12 || h.n_words >= l->n_words) {
        return; /* nothing follows */
    }
    const struct word *next = &f->words[l->word0 + h.n_words];
    m->x = l->box.x0;
    m->text_x = next->box.x0;
    m->n_words = h.n_words;
    const uint32_t last = h.cp[h.n - 1];
    if (h.n == 1 && (cp_is_bullet(last) || cp_is_dash(last))) {
        m->kind = MARKER_BULLET;
        m->style = cp_is_dash(last) ? 2 : 1;
        return;
    }
    if (f->ocr && h.n == 1 && cp_is_misread_bullet(last) &&
        next->box.x0 - f->words[l->word0].box.x1 > 0.35f * l->size) {
        m->kind = MARKER_BULLET;
        m->style = 1;
        return;
    }
    if (h.n == 1 && last == 'o' && next->box.x0 - f->words[l->word0].box.x1 > 0.7f * l->size) {
        m->kind = MARKER_BULLET;
        m->style = 1;
        return;
    }
    if (h.n < 2 || (last != '.' && last != ')' && last != 0xff0e)) {
        return;
    }
    const int from = h.cp[0] == '(' ? 1 : 0;
    const uint8_t style = from ? NUMBER_BOTH : last == ')' ? NUMBER_CLOSED : NUMBER_DOT;
    m->number = head_number(&h, from, h.n - 1);
    if (m->number >= 0) {
        m->kind = style == NUMBER_BOTH ? MARKER_LABEL : MARKER_NUMBER;
        m->style = style;
        return;
    }
    m->number = head_label(&h, from, h.n - 1);
    if (m->number > 0) {
        m->kind = MARKER_LABEL;
        m->style = (uint8_t)(style + 3);
    }
}

static bool markers_fit(const struct line *a, const struct line *b)
{
    return a->marker.kind == b->marker.kind && a->marker.style == b->marker.style &&
           b->marker.number == a->marker.number + 1 &&
           fabsf(a->marker.text_x - b->marker.text_x) < 0.6f * a->size + 3 &&
           fabsf(a->size - b->size) < 0.15f * a->size;
}

/* A scan's bullet is often lost in recognition: look for its ink left of an indented line. */
static void marker_from_ink(const struct flow *f, int32_t i)
{
    struct line *l = (struct line *)item_line(f, i);
    const struct page *p = f->page;
    const struct group *g = &f->groups[f->items[i].group];
    const float h = l->box.y1 - l->box.y0, indent = l->box.x0 - g->left;
    if (!p->bitmap || l->marker.kind != MARKER_NONE || indent < 0.7f * l->size ||
        indent > 8 * l->size || l->n_words < 2) {
        return;
    }
    const struct box near = { l->box.x0 - 1.7f * h, l->box.y0 + 0.2f * h, l->box.x0 - 0.25f * h,
                              l->box.y1 - 0.15f * h };
    const struct box far = { l->box.x0 - 3.4f * h, near.y0, near.x0, near.y1 };
    const float ink = raster_ink(p->bitmap, p->scale, &near);
    if (ink > 0.02f && ink < 0.4f && raster_ink(p->bitmap, p->scale, &far) < 0.004f) {
        l->marker = (struct marker){
            .kind = MARKER_BULLET, .style = 1, .x = l->box.x0 - 1.3f * h, .text_x = l->box.x0
        };
    }
}

/* Lines are in reading order here; numbers keep only when a neighbour continues them. */
void markers_find(struct flow *f)
{
    bool *keep = flow_many(f, bool, (size_t)f->n_items);
    if (f->failed) {
        return;
    }
    for (int32_t i = 0; i < f->n_items; i++) {
        if (f->items[i].kind == ITEM_LINE) {
            marker_parse(f, &f->lines[f->items[i].index]);
            if (f->ocr) {
                marker_from_ink(f, i);
            }
        }
    }
    for (int32_t i = 0; i < f->n_items; i++) {
        const struct line *a = item_line(f, i);
        if (!a || a->marker.kind < MARKER_NUMBER) {
            continue;
        }
        for (int32_t k = i + 1; k < f->n_items && k < i + 60; k++) {
            const struct line *b = item_line(f, k);
            if (b && b->marker.kind != MARKER_NONE && markers_fit(a, b)) {
                keep[i] = keep[k] = true;
                break;
            }
        }
    }
    for (int32_t i = 0; i < f->n_items; i++) {
        struct line *l = (struct line *)item_line(f, i);
        if (l && l->marker.kind >= MARKER_NUMBER && !keep[i]) {
            l->marker.kind = MARKER_NONE;
        }
    }
}

static bool line_continues_item(const struct flow *f, const struct line *prev, const struct line *l,
                                const struct line *mark, float right)
{
    const float em = l->size;
    const float gap = l->baseline - prev->baseline;
    if (gap > 1.75f * fmaxf(em, mark->size) || gap < 0.2f * em ||
        fabsf(l->size - mark->size) > (l->ocr ? 0.45f : 0.12f) * fmaxf(em, mark->size)) {
        return false;
    }
    if (fabsf(l->box.x0 - mark->marker.text_x) < 0.45f * em + 1) {
        return true;
    }
    /* Wrapped to the marker's edge: only after a full line. */
    const struct word *w = &f->words[l->word0];
    const bool full = right - prev->box.x1 < w->box.x1 - w->box.x0 + 0.5f * em;
    return full && fabsf(l->box.x0 - mark->marker.x) < 0.45f * em &&
           !cp_ends_sentence(line_last_cp(f, prev));
}

int32_t list_extent(const struct flow *f, int32_t i0)
{
    const struct line *first = item_line(f, i0);
    if (!first || first->marker.kind == MARKER_NONE) {
        return 0;
    }
    const struct group *g = &f->groups[f->items[i0].group];
    const struct line *prev = first, *mark = first;
    int32_t i = i0 + 1;
    for (; i < f->n_items; i++) {
        const struct line *l = item_line(f, i);
        if (!l || f->items[i].group != f->items[i0].group) {
            break;
        }
        const float em = first->size;
        if (l->marker.kind != MARKER_NONE) {
            const float dx = l->marker.x - first->marker.x;
            const bool sibling = fabsf(dx) <= 0.8f * em;
            if (dx < -0.8f * em || l->baseline - prev->baseline > 3.2f * em ||
                fabsf(l->size - first->size) > (l->ocr ? 0.45f : 0.15f) * em ||
                (sibling && l->marker.kind != first->marker.kind)) {
                break;
            }
            mark = l;
        } else if (!line_continues_item(f, prev, l, mark, g->right)) {
            break;
        }
        prev = l;
    }
    return i - i0;
}
