/* ocr_words.c - Tesseract's lines and words become glyphs and runs.
 *
 * Tesseract gives words with boxes of their ink, a baseline per line and no size: the size comes
 * from how far the ink of each word rises above the baseline, given the letters it holds.  Glyph
 * boxes are an em high around the baseline, as a text layer's are; their widths share the word's
 * box by the usual width of each character. */
#include <leptonica/allheaders.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tesseract/capi.h>

#include "layout/ocr_parts.h"
#include "src/base/cp.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

#define MAX_GLYPHS   2000000
#define MAX_WORD_CP  256
#define CONF_DROP    20.0f /* words below are noise */
#define CONF_RESIDUE 55.0f /* words of bars, dots and quotes below: rests of rules */
#define CONF_LINE    30.0f /* a line that means less is a picture read as text */
#define CONF_SHORT   60.0f /* a line of one or two characters */
#define CONF_STEP    0.05f /* words of a line share a run while their confidence is that near */
#define CAP_SHARE    0.71f /* of the em above the baseline: capitals, digits, b d f h k l */
#define X_SHARE      0.50f
#define CJK_SHARE    0.90f /* of the em: height of the ink of a Hangul or Han character */
#define INK_LEVEL    128
#define BOLD         1.3f  /* times the stroke of most print */
#define ASCENT       0.80f /* glyph boxes */
#define DESCENT      0.22f
#define SIZE_STEP    0.11f /* sizes that near are one size: scans jitter */
#define SIZE_NEAR    0.06f
#define BIN_PT       0.25f
#define MAX_BINS     800
#define CJK_GAP      0.25f /* em: white between two Han or Kana that is a real space */

struct word {
    uint32_t cp[MAX_WORD_CP];
    int n_cp;
    float x0, y0, x1, y1, base; /* pixels; base: the baseline at the word's middle */
    float conf;                 /* 0..100 */
    bool space_before, noise;
};

struct line {
    struct word *words;
    int n, cap;
    float size;   /* pixels */
    float stroke; /* em */
    int angle;
    bool ends_paragraph;
    char *text; /* Tesseract's, with its spaces; NULL between lines */
    size_t at;  /* bytes of it that words have been found for */
    bool space; /* white space since the last word */
};

struct sink {
    struct page *page;
    int glyph_cap, run_cap;
    float *strokes; /* [run_cap] of the line that each run belongs to, in em; 0 unknown */
    float to_pt;
    bool failed;
};

static bool is_wide(uint32_t c)
{
    return cp_is_wide(c) || cp_is_hangul(c);
}

static bool is_residue(uint32_t c)
{
    return c < 0x80 ? strchr("|_-~.,'`\"!/\\:;=+*()[]{}<>^", (int)c) != NULL && c != 0
                    : (c >= 0x2010 && c <= 0x2027) || c == 0xAB || c == 0xBB || c == 0xB0 ||
                          c == 0xAE || c == 0xA9;
}

static bool is_low(uint32_t c) /* rises to the x-height only */
{
    return c < 0x80 && c != 0 && strchr("acegmnopqrsuvwxyz.,", (int)c) != NULL;
}

static bool is_tall(uint32_t c) /* rises to the capitals' height or so */
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c < 0x80 && c != 0 && strchr("bdfhijkl", (int)c) != NULL);
}

/* Relative advance of a character in usual print. */
static float advance_of(uint32_t c)
{
    if (is_wide(c)) {
        return 1.9f;
    }
    if (c < 0x80 && c != 0) {
        if (strchr("iljI.,:;'!|", (int)c)) {
            return 0.55f;
        }
        if (strchr("ftr()[]{}-/\\\"`", (int)c)) {
            return 0.75f;
        }
        if (strchr("mwMW@%", (int)c)) {
            return 1.55f;
        }
        if (c >= 'A' && c <= 'Z') {
            return 1.25f;
        }
    }
    return 1.0f;
}

/* --- reading the iterator --- */

static int word_decode(struct word *w, const char *text)
{
    const size_t n = strlen(text);
    w->n_cp = 0;
    for (size_t i = 0; i < n && w->n_cp < MAX_WORD_CP;) {
        uint32_t cp;
        const int len = utf8_decode(text + i, n - i, &cp);
        i += len > 0 ? (size_t)len : 1;
        if (len > 0 && cp > ' ') {
            w->cp[w->n_cp++] = cp;
        }
    }
    return w->n_cp;
}

static bool word_is_noise(const struct word *w)
{
    bool residue = true;
    for (int i = 0; i < w->n_cp; i++) {
        residue = residue && is_residue(w->cp[i]);
    }
    return w->n_cp == 0 || w->conf < CONF_DROP || (residue && w->conf < CONF_RESIDUE);
}

static struct word *line_room(struct line *l)
{
    if (l->n == l->cap) {
        const int cap = l->cap ? l->cap * 2 : 32;
        struct word *more = mem_resize_array(l->words, (size_t)cap, sizeof *more);
        if (!more) {
            return NULL;
        }
        l->words = more;
        l->cap = cap;
    }
    return &l->words[l->n];
}

/* Moves behind the word in the line's text and notes white space before it: pieces of one Korean
 * or Chinese word are words to the iterator, but stand together in the text. */
static void line_follow(struct line *l, const char *word)
{
    if (!l->text || !*word) {
        l->space = true;
        return;
    }
    const size_t white = strspn(l->text + l->at, " \t\n"), n = strlen(word);
    if (strncmp(l->text + l->at + white, word, n) == 0) {
        l->space = l->space || white > 0;
        l->at += white + n;
    } else {
        l->space = true; /* texts have parted: words are words */
    }
}

/* The word the iterator stands on.  False when memory is short. */
static bool line_add(struct line *l, TessResultIterator *it)
{
    const TessPageIterator *at = TessResultIteratorGetPageIteratorConst(it);
    int x0, y0, x1, y1, bx0, by0, bx1, by1;
    if (!TessPageIteratorBoundingBox(at, RIL_WORD, &x0, &y0, &x1, &y1)) {
        return true;
    }
    struct word *w = line_room(l);
    char *text = TessResultIteratorGetUTF8Text(it, RIL_WORD);
    if (!w || !text) {
        TessDeleteText(text);
        return false;
    }
    word_decode(w, text);
    line_follow(l, text);
    TessDeleteText(text);
    w->x0 = (float)x0, w->y0 = (float)y0, w->x1 = (float)x1, w->y1 = (float)y1;
    w->conf = TessResultIteratorConfidence(it, RIL_WORD);
    w->base = w->y1;
    if (TessPageIteratorBaseline(at, RIL_TEXTLINE, &bx0, &by0, &bx1, &by1) && bx1 != bx0) {
        const float t = ((w->x0 + w->x1) / 2 - (float)bx0) / (float)(bx1 - bx0);
        w->base = (float)by0 + t * (float)(by1 - by0);
    }
    w->space_before = l->space;
    w->noise = word_is_noise(w);
    l->space = false;
    l->n++;
    return true;
}

static int line_angle(TessResultIterator *it)
{
    TessOrientation o = ORIENTATION_PAGE_UP;
    TessWritingDirection d;
    TessTextlineOrder order;
    float deskew;
    TessPageIteratorOrientation(TessResultIteratorGetPageIterator(it), &o, &d, &order, &deskew);
    return o == ORIENTATION_PAGE_RIGHT  ? 90
           : o == ORIENTATION_PAGE_DOWN ? 180
           : o == ORIENTATION_PAGE_LEFT ? 270
                                        : 0;
}

/* --- size of print --- */

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The em that one word speaks for, 0 when its letters say nothing. */
static float word_em(const struct word *w, int angle)
{
    bool tall = false, low = true, wide = false;
    for (int i = 0; i < w->n_cp; i++) {
        tall = tall || is_tall(w->cp[i]);
        low = low && is_low(w->cp[i]);
        wide = wide || is_wide(w->cp[i]);
    }
    if (wide) {
        return (angle % 180 ? w->x1 - w->x0 : w->y1 - w->y0) / CJK_SHARE;
    }
    const float rise = angle == 90 ? w->x1 - w->x0 : angle == 270 ? w->x1 - w->x0 : w->base - w->y0;
    return tall ? rise / CAP_SHARE : low ? rise / X_SHARE : 0;
}

/* Median over the words; words too many for the table add nothing new. */
static float line_em(const struct line *l)
{
    float em[256];
    int n = 0;
    float height = 0;
    for (int i = 0; i < l->n; i++) {
        const float e = word_em(&l->words[i], l->angle);
        if (!l->words[i].noise && e > 0 && n < (int)COUNT(em)) {
            em[n++] = e;
        }
        const float h =
            l->angle % 180 ? l->words[i].x1 - l->words[i].x0 : l->words[i].y1 - l->words[i].y0;
        height = fmaxf(height, h);
    }
    if (n == 0) {
        return fmaxf(height / CAP_SHARE, 1);
    }
    qsort(em, (size_t)n, sizeof em[0], compare_floats);
    return fmaxf(em[n / 2], 1);
}

/* --- weight of print --- */

/* Twice the ink over its outline is the width of a stroke, in pixels; 0 without ink. */
static float stroke_width(struct Pix *gray, const struct word *w)
{
    const int x0 = (int)fmaxf(w->x0, 1), x1 = (int)fminf(w->x1, (float)pixGetWidth(gray) - 1);
    const int y0 = (int)fmaxf(w->y0, 1), y1 = (int)fminf(w->y1, (float)pixGetHeight(gray) - 1);
    const size_t wpl = (size_t)pixGetWpl(gray);
    int n_ink = 0, n_edge = 0;
    for (int y = y0; y < y1; y++) {
        const l_uint32 *row = pixGetData(gray) + (size_t)y * wpl;
        for (int x = x0; x < x1; x++) {
            if (GET_DATA_BYTE(row, x) >= INK_LEVEL) {
                continue;
            }
            n_ink++;
            n_edge += GET_DATA_BYTE(row, x - 1) >= INK_LEVEL ||
                      GET_DATA_BYTE(row, x + 1) >= INK_LEVEL ||
                      GET_DATA_BYTE(row - wpl, x) >= INK_LEVEL ||
                      GET_DATA_BYTE(row + wpl, x) >= INK_LEVEL;
        }
    }
    return n_edge > 0 ? 2 * (float)n_ink / (float)n_edge : 0;
}

/* Mean over the Latin words of three letters and more; shorter ones and other scripts say too
 * little. */
static void line_weigh(struct line *l, struct Pix *gray)
{
    float sum = 0, n = 0;
    for (int i = 0; i < l->n; i++) {
        const struct word *w = &l->words[i];
        int n_letters = 0;
        for (int k = 0; k < w->n_cp; k++) {
            n_letters += is_low(w->cp[k]) || is_tall(w->cp[k]);
        }
        if (n_letters >= 3 && l->angle == 0) {
            sum += stroke_width(gray, w) * (float)n_letters;
            n += (float)n_letters;
        }
    }
    l->stroke = n > 0 ? sum / n / l->size : 0;
}

/* --- glyphs --- */

static int sink_run(struct sink *s, const struct line *l, const struct word *w)
{
    struct page *p = s->page;
    if (p->n_runs == s->run_cap) {
        const int cap = s->run_cap ? s->run_cap * 2 : 64;
        struct text_run *more = mem_resize_array(p->runs, (size_t)cap, sizeof *more);
        float *strokes = mem_resize_array(s->strokes, (size_t)cap, sizeof *strokes);
        p->runs = more ? more : p->runs;
        s->strokes = strokes ? strokes : s->strokes;
        if (!more || !strokes) {
            s->failed = true;
            return 0;
        }
        s->run_cap = cap;
    }
    s->strokes[p->n_runs] = l->stroke;
    p->runs[p->n_runs] = (struct text_run){ .size = l->size * s->to_pt,
                                            .flags = RUN_OCR,
                                            .conf = fminf(fmaxf(w->conf / 100, 0), 1),
                                            .angle = (int16_t)l->angle };
    return p->n_runs++;
}

static void sink_glyph(struct sink *s, uint32_t cp, struct box px, int run)
{
    struct page *p = s->page;
    if (p->n_glyphs == s->glyph_cap && !s->failed) {
        const int cap = s->glyph_cap ? s->glyph_cap * 2 : 1024;
        struct glyph *more =
            cap <= MAX_GLYPHS ? mem_resize_array(p->glyphs, (size_t)cap, sizeof *more) : NULL;
        s->failed = !more;
        p->glyphs = more ? more : p->glyphs;
        s->glyph_cap = more ? cap : s->glyph_cap;
    }
    if (s->failed) {
        return;
    }
    const float k = s->to_pt;
    p->glyphs[p->n_glyphs++] =
        (struct glyph){ cp, { px.x0 * k, px.y0 * k, px.x1 * k, px.y1 * k }, run };
}

/* The word's box an em high around the baseline; wide characters sit lower in their em. */
static struct box word_frame(const struct line *l, const struct word *w)
{
    if (l->angle != 0) {
        return (struct box){ w->x0, w->y0, w->x1, w->y1 };
    }
    if (w->n_cp > 0 && is_wide(w->cp[0])) {
        const float mid = (w->y0 + w->y1) / 2;
        return (struct box){ w->x0, mid - 0.5f * l->size, w->x1, mid + 0.5f * l->size };
    }
    return (struct box){ w->x0, w->base - ASCENT * l->size, w->x1, w->base + DESCENT * l->size };
}

/* Part [from, to] of the frame along the reading direction. */
static struct box frame_part(const struct box *f, int angle, float from, float to)
{
    const float w = f->x1 - f->x0, h = f->y1 - f->y0;
    switch (angle) {
    case 90:
        return (struct box){ f->x0, f->y0 + from * h, f->x1, f->y0 + to * h };
    case 180:
        return (struct box){ f->x1 - to * w, f->y0, f->x1 - from * w, f->y1 };
    case 270:
        return (struct box){ f->x0, f->y1 - to * h, f->x1, f->y1 - from * h };
    default:
        return (struct box){ f->x0 + from * w, f->y0, f->x0 + to * w, f->y1 };
    }
}

static void emit_word(struct sink *s, const struct line *l, const struct word *w, int run)
{
    const struct box frame = word_frame(l, w);
    float total = 0, at = 0;
    for (int i = 0; i < w->n_cp; i++) {
        total += advance_of(w->cp[i]);
    }
    for (int i = 0; i < w->n_cp; i++) {
        const float next = at + advance_of(w->cp[i]);
        sink_glyph(s, w->cp[i], frame_part(&frame, l->angle, at / total, next / total), run);
        at = next;
    }
}

/* Between Han and Kana only a drawn gap is a space. */
static bool space_between(const struct line *l, const struct word *a, const struct word *b)
{
    const bool solid = l->angle == 0 && cp_is_wide(a->cp[a->n_cp - 1]) && cp_is_wide(b->cp[0]);
    return b->space_before && !(solid && b->x0 - a->x1 < CJK_GAP * l->size);
}

static void emit_line(struct sink *s, const struct line *l)
{
    int run = 0;
    float run_conf = -1;
    for (int i = 0; i < l->n; i++) {
        const struct word *w = &l->words[i];
        if (i > 0 && space_between(l, w - 1, w)) {
            const struct box f = word_frame(l, w - 1);
            const struct box gap = { f.x1, f.y0, fmaxf(f.x1, w->x0), f.y1 };
            sink_glyph(s, ' ', l->angle == 0 ? gap : f, run);
        }
        if (fabsf(w->conf / 100 - run_conf) > CONF_STEP) {
            run = sink_run(s, l, w);
            run_conf = w->conf / 100;
        }
        emit_word(s, l, w, run);
    }
    struct box end = word_frame(l, &l->words[l->n - 1]);
    end.x0 = end.x1;
    for (int i = 0; i < 1 + l->ends_paragraph; i++) {
        sink_glyph(s, '\n', end, run);
    }
}

/* A bullet reads as anything: a small blob at the line's start, half-way up the x-height, apart
 * from the words that follow. */
static bool is_bullet(const struct line *l)
{
    if (l->n < 2 || l->angle != 0 || l->words[0].n_cp != 1 || !l->words[1].space_before) {
        return false;
    }
    const struct word *w = &l->words[0];
    const float width = w->x1 - w->x0, height = w->y1 - w->y0, em = l->size;
    const float above = (w->base - w->y1) / em; /* white between blob and baseline */
    const uint32_t c = w->cp[0];
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || is_wide(c) ||
                        (c >= 'a' && c <= 'z' && w->conf > 60);
    return !letter && c != '-' && !(c >= 0x2010 && c <= 0x2015) && height < 0.5f * em &&
           width < 0.6f * em && width > 0.5f * height && width < 2 * height && above > 0.05f &&
           above < 0.4f && l->words[1].x0 - w->x1 > 0.2f * em;
}

/* "I" alone often reads as a bar; a printed bar goes below the baseline. */
static bool is_pronoun(const struct word *w, float em)
{
    return w->n_cp == 1 && w->cp[0] == '|' && fabsf(w->base - w->y1) < 0.08f * em &&
           w->base - w->y0 > 0.6f * em && w->base - w->y0 < 0.85f * em;
}

/* Settles what the line's size was needed for; what is noise goes. */
static void line_settle(struct line *l, struct Pix *gray)
{
    l->size = line_em(l);
    line_weigh(l, gray);
    if (is_bullet(l)) {
        l->words[0].cp[0] = 0x2022;
        l->words[0].noise = false;
        l->words[0].conf = fmaxf(l->words[0].conf, l->words[1].conf * 0.8f);
    }
    int n = 0;
    bool space = false;
    for (int i = 0; i < l->n; i++) {
        space = space || l->words[i].space_before;
        if (is_pronoun(&l->words[i], l->size)) {
            l->words[i].cp[0] = 'I';
            l->words[i].noise = l->words[i].conf < CONF_DROP;
        }
        if (!l->words[i].noise) {
            l->words[n] = l->words[i];
            l->words[n++].space_before = space;
            space = false;
        }
    }
    l->n = n;
}

static float line_conf(const struct line *l)
{
    float sum = 0, n = 0;
    for (int i = 0; i < l->n; i++) {
        sum += l->words[i].conf * (float)l->words[i].n_cp;
        n += (float)l->words[i].n_cp;
    }
    return n > 0 ? sum / n : 0;
}

/* A line of one or two characters must be sure of itself: folds and stains read as "oe" or "6". */
static bool line_is_print(const struct line *l)
{
    int n_cp = 0;
    for (int i = 0; i < l->n; i++) {
        n_cp += l->words[i].n_cp;
    }
    return l->n > 0 && line_conf(l) >= (n_cp <= 2 ? CONF_SHORT : CONF_LINE);
}

/* --- one size per kind of print --- */

static int size_bin(float size)
{
    const int b = (int)(size / BIN_PT);
    return b < MAX_BINS - 1 ? b : MAX_BINS - 1;
}

/* Centre of the three neighbouring bins that hold most glyphs. */
static float heaviest_size(const int *bin)
{
    int best = 0, best_sum = -1;
    for (int b = 0; b < MAX_BINS; b++) {
        const int sum = (b > 0 ? bin[b - 1] : 0) + 2 * bin[b] + (b + 1 < MAX_BINS ? bin[b + 1] : 0);
        if (bin[b] > 0 && sum > best_sum) {
            best_sum = sum;
            best = b;
        }
    }
    return ((float)best + 0.5f) * BIN_PT;
}

/* Sizes jitter by some percent from line to line.  The size that most glyphs share (within
 * SIZE_NEAR) takes all within SIZE_STEP of it, then the next one. */
static bool snap_sizes(struct page *p)
{
    int n_left = p->n_runs;
    int *weight = mem_zero_array((size_t)n_left + 1, sizeof(int));
    if (!weight) {
        return false;
    }
    for (int i = 0; i < p->n_glyphs; i++) {
        weight[p->glyphs[i].run]++;
    }
    int bin[MAX_BINS] = { 0 };
    for (int i = 0; i < p->n_runs; i++) {
        bin[size_bin(p->runs[i].size)] += weight[i];
    }
    while (n_left > 0) {
        const float size = heaviest_size(bin);
        float sum = 0, n = 0;
        for (int i = 0; i < p->n_runs; i++) {
            if (weight[i] >= 0 && fabsf(p->runs[i].size / size - 1) <= SIZE_NEAR) {
                sum += p->runs[i].size * (float)weight[i];
                n += (float)weight[i];
            }
        }
        const float mean = n > 0 ? roundf(10 * sum / n) / 10 : size;
        const int before = n_left;
        for (int i = 0; i < p->n_runs; i++) {
            if (weight[i] >= 0 && fabsf(p->runs[i].size / size - 1) <= SIZE_STEP) {
                bin[size_bin(p->runs[i].size)] -= weight[i];
                p->runs[i].size = mean;
                weight[i] = -1;
                n_left--;
            }
        }
        if (n_left == before) {
            break; /* only runs without glyphs are left */
        }
    }
    mem_free(weight);
    return true;
}

struct weight {
    float stroke;
    int n;
};

static int compare_weights(const void *a, const void *b)
{
    const float x = ((const struct weight *)a)->stroke, y = ((const struct weight *)b)->stroke;
    return (x > y) - (x < y);
}

/* Lines whose strokes are clearly wider than those of most glyphs are bold.  A page that is bold
 * all over is not. */
static bool mark_bold(struct sink *s)
{
    struct page *p = s->page;
    struct weight *w = mem_zero_array((size_t)p->n_runs + 1, sizeof *w);
    if (!w) {
        return false;
    }
    for (int i = 0; i < p->n_runs; i++) {
        w[i].stroke = s->strokes[i];
    }
    int n = 0, seen = 0, m = 0;
    for (int i = 0; i < p->n_glyphs; i++) {
        const int known = s->strokes[p->glyphs[i].run] > 0;
        w[p->glyphs[i].run].n += known;
        n += known;
    }
    qsort(w, (size_t)p->n_runs, sizeof *w, compare_weights);
    for (; m < p->n_runs; m++) {
        seen += w[m].n;
        if (seen * 2 >= n) {
            break;
        }
    }
    const float median = m < p->n_runs ? w[m].stroke : 0;
    for (int i = 0; i < p->n_runs && median > 0; i++) {
        p->runs[i].flags |= s->strokes[i] > BOLD * median ? RUN_BOLD : 0;
    }
    mem_free(w);
    return true;
}

bool ocr_words(struct page *p, struct TessBaseAPI *reader, struct Pix *gray, float to_pt)
{
    TessResultIterator *it = TessBaseAPIGetIterator(reader);
    if (!it) {
        return true; /* nothing found */
    }
    const TessPageIterator *at = TessResultIteratorGetPageIteratorConst(it);
    struct sink sink = { .page = p, .to_pt = to_pt };
    struct line line = { 0 };
    bool more = true;
    while (more && !sink.failed) {
        const bool last = TessPageIteratorIsAtFinalElement(at, RIL_TEXTLINE, RIL_WORD);
        if (!line.text) {
            line.text = TessResultIteratorGetUTF8Text(it, RIL_TEXTLINE);
            line.at = 0;
            line.space = true;
        }
        sink.failed = !line_add(&line, it);
        if (last) {
            line.angle = line_angle(it);
            line.ends_paragraph = TessPageIteratorIsAtFinalElement(at, RIL_PARA, RIL_WORD);
            line_settle(&line, gray);
            if (line_is_print(&line)) {
                emit_line(&sink, &line);
            }
            line.n = 0;
            TessDeleteText(line.text);
            line.text = NULL;
        }
        more = TessResultIteratorNext(it, RIL_WORD);
    }
    TessDeleteText(line.text);
    mem_free(line.words);
    TessResultIteratorDelete(it);
    const bool ok = !sink.failed && snap_sizes(p) && mark_bold(&sink);
    mem_free(sink.strokes);
    return ok;
}
