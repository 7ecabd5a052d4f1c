/* figure.c - which pictures are content, which text belongs to them, where captions go. */
#include "layout/figure.h"

#include <math.h>
#include <string.h>

#include "src/base/utf8.h"

#define MAX_FIGURES 200

/* True when the text starts like "Figure 3:" or "Table 2."; *table says which. */
static bool caption_starts(const char *text, bool *table)
{
    static const struct {
        const char *word;
        bool table;
    } heads[] = { { "Figure", false },
                  { "FIGURE", false },
                  { "Fig.", false },
                  { "FIG.", false },
                  { "Fig", false },
                  { "Abbildung", false },
                  { "Abb.", false },
                  { "Figura", false },
                  { "Table", true },
                  { "TABLE", true },
                  { "Tab.", true },
                  { "Tabelle", true },
                  { "Tableau", true },
                  { "Tabla", true },
                  { "\xec\x9e\x90\xeb\xa3\x8c", false },
                  { "\xea\xb7\xb8\xeb\xa6\xbc", false },
                  { "\xed\x91\x9c", true },
                  { "\xe5\x9b\xbe", false },
                  { "\xe5\x9c\x96", false },
                  { "\xe5\x9b\xb3", false },
                  { "\xe8\xa1\xa8", true },
                  { "Chart", false } };
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        const size_t n = strlen(heads[i].word);
        if (strncmp(text, heads[i].word, n) != 0) {
            continue;
        }
        const char *s = text + n;
        while (*s == ' ') {
            s++;
        }
        const char *digits = s;
        while (*s >= '0' && *s <= '9') {
            s++;
        }
        if (s > digits && (*s == ':' || *s == '.' || *s == ' ' || *s == '\0' || *s == '-' ||
                           *s == '|' || (unsigned char)*s >= 0x80)) {
            *table = heads[i].table;
            return true;
        }
    }
    return false;
}

static bool picture_counts(const struct page *p, const struct page_picture *pic)
{
    const struct box *b = &pic->box;
    if (!box_valid(b)) {
        return false;
    }
    const float w = fminf(b->x1, p->width) - fmaxf(b->x0, 0);
    const float h = fminf(b->y1, p->height) - fmaxf(b->y0, 0);
    if (w < 25 || h < 25 || w < 0.02f * h || h < 0.02f * w) {
        return false;
    }
    return !(w >= 0.9f * p->width && h >= 0.9f * p->height); /* the scan or a background */
}

/* Tiles and strips of one picture touch: they become one. */
static void figure_add(struct flow *f, struct box b, bool vector)
{
    const struct page *p = f->page;
    bool again = true;
    while (again) {
        again = false;
        for (int32_t i = 0; i < f->n_figures; i++) {
            const struct box *o = &f->figures[i].box;
            if (box_overlap_x(o, &b) > -0.6f && box_overlap_y(o, &b) > -0.6f) {
                box_grow(&b, o);
                vector = vector || f->figures[i].vector;
                f->figures[i] = f->figures[--f->n_figures];
                again = true;
                break;
            }
        }
    }
    /* Small dark patches of a scan are stains and stamps more often than pictures. */
    const bool weak = f->ocr && (b.x1 - b.x0) * (b.y1 - b.y0) < 0.02f * p->width * p->height;
    if (f->n_figures < MAX_FIGURES) {
        f->figures[f->n_figures++] = (struct figure){ b, vector, weak };
    }
}

/* Sentences that fill a good part of a picture are not its labels: it is drawn behind them. */
static bool picture_is_backdrop(const struct flow *f, const struct box *b)
{
    const struct word *prev = NULL;
    float area = 0;
    int run = 0, longest = 0;
    for (int32_t k = 0; !f->ocr && k < f->n_source; k++) {
        const struct word *w = &f->words[k];
        const struct box *o = &w->box;
        if (w->owner != OWNER_NONE || !box_has(b, (o->x0 + o->x1) / 2, (o->y0 + o->y1) / 2)) {
            prev = NULL;
            continue;
        }
        const bool next = prev && fabsf(w->baseline - prev->baseline) < 0.2f * w->size &&
                          o->x0 > prev->box.x0 && o->x0 - prev->box.x1 < 0.8f * w->size;
        run = next ? run + 1 : 1;
        longest = run > longest ? run : longest;
        area += (o->x1 - o->x0) * (o->y1 - o->y0);
        prev = w;
    }
    return longest >= 5 && area > 0.12f * (b->x1 - b->x0) * (b->y1 - b->y0);
}

static bool box_in_table(const struct flow *f, const struct box *b)
{
    for (int32_t i = 0; i < f->n_tables; i++) {
        if (box_cover(&f->tables[i].box, b) > 0.5f || box_cover(b, &f->tables[i].box) > 0.5f) {
            return true;
        }
    }
    return false;
}

void figures_find(struct flow *f)
{
    const struct page *p = f->page;
    f->figures = flow_many(f, struct figure, MAX_FIGURES + 1);
    if (f->failed) {
        return;
    }
    const int n = p->n_pictures < 5000 ? p->n_pictures : 5000;
    for (int i = 0; i < n; i++) {
        struct box b = p->pictures[i].box;
        if (!picture_counts(p, &p->pictures[i]) || box_in_table(f, &b)) {
            continue;
        }
        b.x0 = fmaxf(b.x0, 0);
        b.y0 = fmaxf(b.y0, 0);
        b.x1 = fminf(b.x1, p->width);
        b.y1 = fminf(b.y1, p->height);
        figure_add(f, b, p->pictures[i].vector);
    }
    for (int32_t i = f->n_figures - 1; i >= 0; i--) {
        if (picture_is_backdrop(f, &f->figures[i].box)) {
            f->figures[i] = f->figures[--f->n_figures];
        }
    }
    for (int32_t i = 0; i < f->n_figures; i++) {
        for (int32_t k = 0; k < f->n_source; k++) {
            struct word *w = &f->words[k];
            if (!f->figures[i].weak && w->owner == OWNER_NONE &&
                box_has(&f->figures[i].box, (w->box.x0 + w->box.x1) / 2,
                        (w->box.y0 + w->box.y1) / 2)) {
                w->owner = OWNER_FIGURE;
            }
        }
    }
}

static bool near_by(const struct box *a, const struct box *b, float x, float y)
{
    return -box_overlap_x(a, b) < x && -box_overlap_y(a, b) < y;
}

/* Axes and gridlines are rules; they widen the drawing they cross or frame. */
static void figure_grow_rules(const struct flow *f, struct figure *fig)
{
    const struct page *p = f->page;
    for (int i = 0; i < p->n_rules && i < 4000; i++) {
        const struct box *b = &p->rules[i].box;
        if (!box_valid(b) || box_in_table(f, b)) {
            continue;
        }
        const float along = p->rules[i].vertical ? box_overlap_y(&fig->box, b) / (b->y1 - b->y0)
                                                 : box_overlap_x(&fig->box, b) / (b->x1 - b->x0);
        if (along > 0.6f && near_by(&fig->box, b, 2.2f * f->em, 2.2f * f->em)) {
            box_grow(&fig->box, b);
        }
    }
}

static bool figure_grow_labels(struct flow *f, struct figure *fig)
{
    bool grew = false;
    bool table;
    for (int32_t i = 0; i < f->n_lines; i++) {
        struct line *l = &f->lines[i];
        if (l->role != LINE_BODY || l->size > 0.92f * f->em || l->n_words > 4 || l->n_chars > 30 ||
            !near_by(&fig->box, &l->box, 1.4f * l->size, 1.1f * l->size) ||
            caption_starts(l->text, &table)) {
            continue;
        }
        l->role = LINE_FIGURE;
        box_grow(&fig->box, &l->box);
        grew = true;
    }
    return grew;
}

/* Bars of one chart are parts of what stands above one caption. */
static struct figure *figures_of_caption(struct flow *f, const struct line *cap)
{
    struct figure *first = NULL;
    for (int32_t i = 0; i < f->n_figures;) {
        struct figure *g = &f->figures[i];
        const float gap = cap->box.y0 - g->box.y1;
        if (box_overlap_x(&g->box, &cap->box) <= 0 || gap < -f->em || gap > 4 * f->em) {
            i++;
        } else if (!first) {
            first = g;
            i++;
        } else if (near_by(&first->box, &g->box, 3 * f->em, f->em)) {
            box_grow(&first->box, &g->box);
            f->figures[i] = f->figures[--f->n_figures];
        } else {
            i++;
        }
    }
    return first;
}

static bool line_is_label(const struct line *l)
{
    return l->role == LINE_BODY && l->n_words <= 4 && l->n_chars <= 30 && l->marker.kind == 0;
}

/* Short pieces around a captioned chart, down to its caption, are its labels. */
static void caption_absorb(struct flow *f, const struct line *cap)
{
    struct figure *fig = figures_of_caption(f, cap);
    if (!fig) {
        return;
    }
    fig->weak = false;
    const float em = f->em;
    bool table;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < f->n_lines; i++) {
            struct line *l = &f->lines[i];
            const bool number = l->n_digits > 0 && l->n_letters == 0;
            const float h = l->box.y1 - l->box.y0;
            if (!line_is_label(l) || !near_by(&fig->box, &l->box, 3 * em, 1.2f * em) ||
                l->box.y1 > cap->box.y0 + 1 || caption_starts(l->text, &table) ||
                !(number || h < 0.95f * em)) {
                continue;
            }
            l->role = LINE_FIGURE;
            box_grow(&fig->box, &l->box);
        }
    }
}

void figures_absorb(struct flow *f)
{
    bool table;
    for (int32_t i = 0, n = 0; f->ocr && i < f->n_lines && n < 50 && !f->failed; i++) {
        if (caption_starts(f->lines[i].text, &table) && !table) {
            caption_absorb(f, &f->lines[i]);
            n++;
        }
    }
    for (int32_t i = f->n_figures - 1; i >= 0; i--) {
        if (f->figures[i].weak) {
            f->figures[i] = f->figures[--f->n_figures];
        }
    }
    for (int32_t i = 0; i < f->n_figures && i < 50 && !f->failed; i++) {
        struct figure *fig = &f->figures[i];
        if (!fig->vector && !f->ocr) {
            continue;
        }
        figure_grow_rules(f, fig);
        for (int pass = 0; pass < 4 && figure_grow_labels(f, fig); pass++) {
        }
    }
}

/* The sign after "Figure 3": with one the line is a caption, without it may be a sentence. */
static bool caption_has_stop(const char *text)
{
    const char *s = text;
    while (*s && !(*s >= '0' && *s <= '9')) {
        s++;
    }
    while ((*s >= '0' && *s <= '9') || (*s == '.' && s[1] >= '0' && s[1] <= '9')) {
        s++;
    }
    return *s == ':' || *s == '.' || *s == '|' || *s == '\0' || (unsigned char)*s >= 0x80;
}

static bool object_near(const struct flow *f, int32_t i)
{
    for (int32_t k = i - 3; k <= i + 3; k++) {
        if (k >= 0 && k < f->n_items && f->items[k].kind != ITEM_LINE) {
            const struct box *a = &f->items[i].box, *b = &f->items[k].box;
            if (box_overlap_x(a, b) > 0 && -box_overlap_y(a, b) < 3 * f->em) {
                return true;
            }
        }
    }
    return false;
}

int32_t caption_extent(const struct flow *f, int32_t i0)
{
    const struct line *first = item_line(f, i0);
    bool table;
    if (!first || !caption_starts(first->text, &table)) {
        return 0;
    }
    const bool near = object_near(f, i0);
    const bool stop = caption_has_stop(first->text);
    if (!(near && (stop || first->size < 0.97f * f->em || first->italic)) &&
        !(stop && (first->size < 0.95f * f->em || first->italic))) {
        return 0;
    }
    const struct line *prev = first;
    int32_t i = i0 + 1;
    for (; i < f->n_items && i < i0 + 12; i++) {
        const struct line *l = item_line(f, i);
        if (!l || f->items[i].group != f->items[i0].group || caption_starts(l->text, &table) ||
            fabsf(l->size - prev->size) > (l->ocr ? 0.15f : 0.04f) * l->size ||
            l->baseline - prev->baseline > 1.5f * l->size || l->italic != first->italic) {
            break;
        }
        prev = l;
    }
    return i - i0;
}

void captions_place(struct flow *f)
{
    for (int32_t i = 0; i + 1 < f->n_blocks; i++) {
        struct block *a = &f->blocks[i], *b = &f->blocks[i + 1];
        bool table = false;
        const enum region_kind want = a->kind == REGION_CAPTION   ? b->kind
                                      : b->kind == REGION_CAPTION ? a->kind
                                                                  : a->kind;
        if (a->kind != REGION_CAPTION && b->kind != REGION_CAPTION) {
            continue;
        }
        const struct block *cap = a->kind == REGION_CAPTION ? a : b;
        caption_starts(item_line(f, cap->item0)->text, &table);
        const float gap = b->box.y0 - a->box.y1;
        const bool swap = (a->kind == REGION_CAPTION && want == REGION_FIGURE && !table) ||
                          (b->kind == REGION_CAPTION && want == REGION_TABLE && table);
        /* A figure caption between two figures belongs to the one above it. */
        const bool taken =
            a->kind == REGION_CAPTION && i > 0 && f->blocks[i - 1].kind == REGION_FIGURE;
        if (swap && !taken && fabsf(gap) < 4 * f->em) {
            const struct block t = *a;
            *a = *b;
            *b = t;
            i++;
        }
    }
}
