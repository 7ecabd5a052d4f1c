/* line.c - words to lines.
 *
 * Words are taken from left to right; each joins the open line whose band it shares and whose end
 * is near, unless a strip or a vertical rule stands between.  Open lines are kept in buckets by
 * height, so that the cost per word is constant. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout/flow.h"
#include "src/base/cp.h"
#include "src/base/utf8.h"

#define MAX_LOOK    48 /* open lines looked at per bucket */
#define MAX_BUCKETS 2000
#define REPEATED    (-2)

struct open_line {
    struct box band; /* of its largest word */
    float x1, size;
    uint8_t flags;   /* of its last word */
    int32_t last, n; /* last word; words so far */
    int32_t next;    /* older line of the same bucket */
    int32_t first;
};

struct chainer {
    struct flow *f;
    struct open_line *open;
    int32_t n_open;
    int32_t *bucket, n_buckets;
    float bucket_height;
    int32_t *next_word; /* chain of words of one line */
    bool cell;          /* inside a table cell: no splitting */
};

static int word_by_x(const void *a, const void *b)
{
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    if (x->box.x0 != y->box.x0) {
        return x->box.x0 < y->box.x0 ? -1 : 1;
    }
    return (x->source > y->source) - (x->source < y->source);
}

/* Strips at least `tall` high and rules count. */
static bool gap_is_cut(const struct flow *f, float x0, float x1, const struct box *band, float tall)
{
    const float y = (band->y0 + band->y1) / 2;
    for (int32_t i = 0; i < f->n_strips; i++) {
        const struct strip *s = &f->strips[i];
        if (s->y1 - s->y0 >= tall && y >= s->y0 - 0.5f && y <= s->y1 + 0.5f && s->x0 >= x0 - 0.5f &&
            s->x1 <= x1 + 0.5f) {
            return true;
        }
    }
    const struct page *p = f->page;
    const int n = p->n_rules < 4000 ? p->n_rules : 4000;
    for (int i = 0; x1 - x0 > 1 && i < n; i++) {
        const struct box *b = &p->rules[i].box;
        if (p->rules[i].vertical && b->x0 >= x0 - 0.5f && b->x1 <= x1 + 0.5f && b->y0 <= y &&
            b->y1 >= y) {
            return true;
        }
    }
    return false;
}

static bool line_accepts(const struct chainer *c, const struct open_line *o, const struct word *w)
{
    const float h = fminf(o->band.y1 - o->band.y0, w->box.y1 - w->box.y0);
    if (box_overlap_y(&o->band, &w->box) < 0.5f * h) {
        return false;
    }
    const float em = fmaxf(o->size, w->size), gap = w->box.x0 - o->x1;
    if (gap < -0.6f * em) {
        return false;
    }
    if (c->cell) {
        return true;
    }
    /* Tall display type beside small text is no line of it (drop caps, numbers in boxes). */
    if (o->size > 1.9f * w->size && gap > 0.4f * o->size) {
        return false;
    }
    if ((o->flags & w->flags & RUN_MONO) && gap < 16 * em) {
        /* Code is set in columns of its own: only the page's gutters part it. */
        return !gap_is_cut(c->f, o->x1, w->box.x0, &w->box, 0.5f * c->f->page->height);
    }
    if (gap > 2.0f * em) {
        return false;
    }
    return gap < 0.35f * em || !gap_is_cut(c->f, o->x1, w->box.x0, &w->box, 0);
}

static int32_t bucket_of(const struct chainer *c, float y)
{
    const int32_t b = (int32_t)(y / c->bucket_height);
    return b < 0 ? 0 : b >= c->n_buckets ? c->n_buckets - 1 : b;
}

/* The same word printed once more a hair beside: fake bold or a shadow. */
static bool word_repeats(const struct flow *f, const struct word *a, const struct word *b)
{
    if (a->n_chars != b->n_chars || box_cover(&a->box, &b->box) < 0.7f) {
        return false;
    }
    for (int32_t i = 0; i < a->n_chars; i++) {
        if (f->chars[a->char0 + i].cp != f->chars[b->char0 + i].cp) {
            return false;
        }
    }
    return true;
}

static int32_t line_lookup(const struct chainer *c, const struct word *w)
{
    const int32_t from = bucket_of(c, w->box.y0 - c->bucket_height);
    const int32_t to = bucket_of(c, w->box.y1 + c->bucket_height);
    int32_t best = -1;
    float best_score = 1e9f;
    for (int32_t b = from; b <= to && b - from < 64; b++) {
        int look = 0;
        for (int32_t i = c->bucket[b]; i >= 0 && look < MAX_LOOK; i = c->open[i].next, look++) {
            const struct open_line *o = &c->open[i];
            if (word_repeats(c->f, &c->f->words[o->last], w)) {
                return REPEATED;
            }
            if (!line_accepts(c, o, w)) {
                continue;
            }
            const float off = fabsf((o->band.y0 + o->band.y1 - w->box.y0 - w->box.y1) / 2);
            const float score = fmaxf(0, w->box.x0 - o->x1) + 2 * off;
            if (score < best_score) {
                best_score = score;
                best = i;
            }
        }
    }
    return best;
}

static void word_chain(struct chainer *c, int32_t i_word)
{
    struct flow *f = c->f;
    const struct word *w = &f->words[i_word];
    int32_t i = line_lookup(c, w);
    c->next_word[i_word] = -1;
    if (i == REPEATED) {
        return;
    }
    if (i < 0) {
        if (c->n_open >= FLOW_MAX_LINES) {
            return;
        }
        i = c->n_open++;
        const int32_t b = bucket_of(c, (w->box.y0 + w->box.y1) / 2);
        c->open[i] = (struct open_line){ w->box, w->box.x1, w->size,      w->flags,
                                         i_word, 1,         c->bucket[b], i_word };
        c->bucket[b] = i;
        return;
    }
    struct open_line *o = &c->open[i];
    c->next_word[o->last] = i_word;
    o->last = i_word;
    o->flags = w->flags;
    o->n++;
    o->x1 = fmaxf(o->x1, w->box.x1);
    const float h = w->box.y1 - w->box.y0, band_h = o->band.y1 - o->band.y0;
    if (w->size > 1.1f * o->size || (f->ocr && h > band_h)) {
        o->band.y0 = w->box.y0;
        o->band.y1 = w->box.y1;
        o->size = w->size;
    }
}

/* Right-to-left words come in the source's (logical) order. */
static int word_by_source(const void *a, const void *b)
{
    const int32_t x = ((const struct word *)a)->source, y = ((const struct word *)b)->source;
    return (x > y) - (x < y);
}

static void line_order_rtl(struct flow *f, struct line *l)
{
    int n_rtl = 0, n_other = 0;
    for (int32_t i = 0; i < l->n_words; i++) {
        const struct word *w = &f->words[l->word0 + i];
        for (int32_t k = 0; k < w->n_chars; k++) {
            const uint32_t cp = f->chars[w->char0 + k].cp;
            n_rtl += cp_is_rtl(cp);
            n_other += !cp_is_rtl(cp) && cp_is_letter(cp);
        }
    }
    l->rtl = n_rtl > n_other;
    if (l->rtl) {
        qsort(&f->words[l->word0], (size_t)l->n_words, sizeof(struct word), word_by_source);
    }
}

static void line_scripts(struct flow *f, struct line *l)
{
    const float s = l->size;
    for (int32_t i = 0; i < l->n_words; i++) {
        struct word *w = &f->words[l->word0 + i];
        w->script = 0;
        if (f->ocr || w->n_chars > 8 || w->size > 0.8f * s || w->size < 0.35f * s) {
            continue;
        }
        const float rise = l->baseline - w->baseline;
        if (rise > 0.12f * s && rise < 0.75f * s) {
            w->script = 1;
        } else if (rise < -0.08f * s && rise > -0.5f * s) {
            w->script = -1;
        }
    }
}

static bool gap_is_space(const struct flow *f, const struct word *a, const struct word *b)
{
    const uint32_t l = f->chars[a->char0 + a->n_chars - 1].cp, r = f->chars[b->char0].cp;
    const float em = fminf(a->size, b->size);
    const float gap = b->box.x0 - a->box.x1;
    if (cp_is_wide(l) && cp_is_wide(r)) {
        return gap > 0.9f * em;
    }
    if (b->source == a->source + 1) {
        return !b->tight; /* the source knows */
    }
    if (b->script != a->script) {
        return gap > 0.25f * em;
    }
    return gap > 0.1f * em || gap < -0.5f * em;
}

/* Recognisers sometimes give a line the height of two; letters that narrow cannot be that tall. */
static void size_check_width(const struct flow *f, struct line *l)
{
    int32_t n = l->n_words - 1;
    for (int32_t i = 0; i < l->n_words; i++) {
        const struct word *w = &f->words[l->word0 + i];
        n += w->n_chars;
        if (f->chars[w->char0].cp >= 0x1100) {
            return; /* wide scripts have their own widths */
        }
    }
    const float advance = (l->box.x1 - l->box.x0) / (float)(n > 0 ? n : 1);
    if (n >= 5 && l->size > 3.1f * advance) {
        l->size = advance / 0.47f;
    }
}

static void line_measure(struct flow *f, struct line *l)
{
    float sizes[64];
    size_t n = 0;
    float best = 0;
    struct box box = { 0 };
    /* Dominant size: weighted by characters, sampled from at most 64 words. */
    for (int32_t i = 0; i < l->n_words; i++) {
        const struct word *w = &f->words[l->word0 + i];
        box_grow(&box, &w->box);
        best = fmaxf(best, w->size);
        for (int32_t k = 0; k < w->n_chars && n < 64; k += 2) {
            sizes[n++] = w->size;
        }
    }
    l->box = box;
    l->size = n ? float_median(sizes, n) : best;
    float base[64];
    n = 0;
    for (int32_t i = 0; i < l->n_words && n < 64; i++) {
        const struct word *w = &f->words[l->word0 + i];
        if (w->size > 0.85f * l->size) {
            base[n++] = w->baseline;
        }
    }
    l->baseline = n ? float_median(base, n) : box.y1;
    if (f->ocr) {
        size_check_width(f, l);
    }
}

/* A lone bar inside a sentence is the pronoun: recognisers confuse the two. */
static void bars_read(struct flow *f, const struct line *l)
{
    for (int32_t i = 0; l->n_words >= 5 && i < l->n_words; i++) {
        const struct word *w = &f->words[l->word0 + i];
        const struct word *next = i + 1 < l->n_words ? w + 1 : NULL;
        if (w->n_chars == 1 && f->chars[w->char0].cp == '|' && next &&
            cp_is_lower(f->chars[next->char0].cp)) {
            f->chars[w->char0].cp = 'I';
        }
    }
}

/* Sets text, counts and style flags of a line whose words are in place. */
static void line_describe(struct flow *f, struct line *l)
{
    l->i_object = -1;
    line_order_rtl(f, l);
    line_measure(f, l);
    line_scripts(f, l);
    size_t bytes = 1;
    int32_t n_bold = 0, n_italic = 0, n_mono = 0, n_ocr = 0, n_math = 0;
    if (f->ocr) {
        bars_read(f, l);
    }
    float conf = 0;
    l->n_letters = l->n_digits = l->n_chars = 0;
    for (int32_t i = 0; i < l->n_words; i++) {
        struct word *w = &f->words[l->word0 + i];
        w->space = i > 0 && gap_is_space(f, w - 1, w);
        bytes += 4 * (size_t)w->n_chars + 1;
        l->n_chars += w->n_chars;
        n_bold += w->flags & RUN_BOLD ? w->n_chars : 0;
        n_italic += w->flags & RUN_ITALIC ? w->n_chars : 0;
        n_mono += w->flags & RUN_MONO ? w->n_chars : 0;
        n_ocr += w->flags & RUN_OCR ? w->n_chars : 0;
        n_math += w->math ? w->n_chars : 0;
        conf += w->conf * (float)w->n_chars;
    }
    const float n = (float)(l->n_chars > 0 ? l->n_chars : 1);
    l->bold = (float)n_bold > 0.9f * n;
    l->italic = (float)n_italic > 0.9f * n;
    l->mono = (float)n_mono > 0.9f * n;
    l->ocr = n_ocr * 2 > l->n_chars;
    l->math = (float)n_math / n;
    l->conf = conf / n;
    l->text = flow_array(f, bytes, 1);
    if (!l->text) {
        return;
    }
    int32_t at = 0;
    for (int32_t i = 0; i < l->n_words; i++) {
        const struct word *w = &f->words[l->word0 + i];
        if (w->space) {
            l->text[at++] = ' ';
        }
        for (int32_t k = 0; k < w->n_chars; k++) {
            const uint32_t cp = f->chars[w->char0 + k].cp;
            l->n_letters += cp_is_letter(cp);
            l->n_digits += cp_is_digit(cp);
            at += utf8_encode(cp, l->text + at);
        }
    }
    l->text[at] = '\0';
    l->n_text = at;
}

uint32_t line_first_cp(const struct flow *f, const struct line *l)
{
    return l->n_words ? f->chars[f->words[l->word0].char0].cp : 0;
}

uint32_t line_last_cp(const struct flow *f, const struct line *l)
{
    if (!l->n_words) {
        return 0;
    }
    const struct word *w = &f->words[l->word0 + l->n_words - 1];
    return f->chars[w->char0 + w->n_chars - 1].cp;
}

static bool chainer_init(struct chainer *c, struct flow *f, int32_t n, bool cell)
{
    memset(c, 0, sizeof(*c));
    c->f = f;
    c->cell = cell;
    c->bucket_height = fmaxf(fmaxf(4, f->em), f->page->height / MAX_BUCKETS);
    const float rows = fminf(f->page->height / c->bucket_height, MAX_BUCKETS - 1);
    c->n_buckets = (int32_t)rows + 1;
    if (!f->chain) {
        f->chain = flow_many(f, int32_t, (size_t)f->cap_words);
        f->bucket = flow_many(f, int32_t, MAX_BUCKETS);
    }
    c->open = flow_many(f, struct open_line, (size_t)(n < FLOW_MAX_LINES ? n : FLOW_MAX_LINES));
    c->bucket = f->bucket;
    c->next_word = f->chain;
    if (f->failed) {
        return false;
    }
    for (int32_t i = 0; i < c->n_buckets; i++) {
        c->bucket[i] = -1;
    }
    return true;
}

/* Chains the listed words into lines; copies of a line's words become contiguous at the end of
 * flow.words. */
static int32_t lines_chain(struct flow *f, struct word **list, int32_t n, bool cell,
                           struct line **out)
{
    struct chainer c;
    *out = NULL;
    if (n > f->cap_words - f->n_words) {
        n = f->cap_words - f->n_words;
    }
    if (!chainer_init(&c, f, n, cell)) {
        return 0;
    }
    qsort(list, (size_t)n, sizeof(*list), word_by_x);
    for (int32_t i = 0; i < n; i++) {
        word_chain(&c, (int32_t)(list[i] - f->words));
    }
    struct line *lines = flow_many(f, struct line, (size_t)c.n_open);
    if (f->failed) {
        return 0;
    }
    for (int32_t i = 0; i < c.n_open; i++) {
        lines[i].word0 = f->n_words;
        for (int32_t w = c.open[i].first; w >= 0; w = c.next_word[w]) {
            assert(f->n_words < f->cap_words);
            f->words[f->n_words++] = f->words[w];
            lines[i].n_words++;
        }
        line_describe(f, &lines[i]);
        if (f->failed) {
            return 0;
        }
    }
    *out = lines;
    return c.n_open;
}

static int line_by_y(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->box.y0 != y->box.y0) {
        return x->box.y0 < y->box.y0 ? -1 : 1;
    }
    return (x->word0 > y->word0) - (x->word0 < y->word0);
}

int32_t lines_of_words(struct flow *f, struct word **list, int32_t n, struct line **out)
{
    const int32_t n_lines = lines_chain(f, list, n, true, out);
    if (!f->failed) {
        qsort(*out, (size_t)n_lines, sizeof(struct line), line_by_y);
    }
    return f->failed ? 0 : n_lines;
}

void lines_find(struct flow *f)
{
    struct word **list = flow_many(f, struct word *, (size_t)f->n_source);
    if (f->failed) {
        return;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < f->n_source; i++) {
        if (f->words[i].owner == OWNER_NONE) {
            list[n++] = &f->words[i];
        }
    }
    f->n_lines = lines_chain(f, list, n, false, &f->lines);
    if (!f->failed) {
        qsort(f->lines, (size_t)f->n_lines, sizeof(struct line), line_by_y);
    }
}
