/* plan.c - crops, cuts and drafts of a region. */
#include "src/document/plan.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/document/script.h"

static_assert(REGION_KIND_COUNT <= 32, "card.kinds is a 32-bit mask");

#define MARGIN_EM  0.2  /* white around the text, in font sizes */
#define SCALE_MIN  0.25 /* target pixels per source pixel: below, nothing is legible */
#define SCALE_MAX  8.0
#define TOKENS_MAX (1 << 20) /* visual tokens of a crop without a limit of its own */

/* How one region is cut: the same for all its parts. */
struct cutting {
    const struct page_layout *page;
    const struct region *r;
    int max_lines; /* of a part; 0: any */
    double scale;  /* target pixels per pt */
    int cell;      /* side of a visual token in pixels */
    int limit;     /* visual tokens of a part; 0: any */
    bool own_size; /* the model's own smart_resize decides the size */
    bool with_draft;
};

/* Why the model is not asked about this region; NULL when it is. */
static const char *refusal(const struct region *r, const struct card *card)
{
    if (r->kind == REGION_FIGURE) {
        return "a figure has no text to read";
    }
    if (!(card->kinds & 1u << r->kind)) {
        return r->kind == REGION_FORMULA ? "the model's card does not name formulas"
                                         : "the model's card does not name this kind of region";
    }
    const bool html = r->kind == REGION_TABLE && r->draft.plain && r->draft.plain[0] == '<';
    if (html && !card->inline_markup) {
        return "the model's card names no tables with merged cells";
    }
    const uint32_t foreign = r->draft.plain ? script_bits(r->draft.plain) & ~card->scripts : 0;
    if (foreign) {
        static const char *const why[] = {
            "the model's card does not name the Latin script",
            "the model's card does not name the Greek script",
            "the model's card does not name the Cyrillic script",
            "the model's card does not name the Han script",
            "the model's card does not name the Kana script",
            "the model's card does not name the Hangul script",
            "the model's card does not name the Arabic script",
            "the model's card does not name the Hebrew script",
        };
        for (size_t b = 0; b < COUNT(why); b++) {
            if (foreign & 1u << b) {
                return why[b];
            }
        }
        return "the model's card does not name this script";
    }
    return NULL;
}

static double region_tau(const struct region *r, const struct card *card,
                         const struct galley_convert_options *opt)
{
    if (opt->accept > 0) {
        return opt->accept;
    }
    const double tau = r->draft.source == DRAFT_TEXT ? card->tau_text : card->tau_ocr;
    return tau > 0 ? tau : 1;
}

/* Target pixels per pt, before limits. */
static double wanted_scale(const struct page_layout *page, const struct region *r,
                           const struct card *card)
{
    if (card->text_height <= 0 || !(r->size > 0)) {
        return page->scale;
    }
    double height = card->text_height;
    if (r->kind == REGION_HEADING && r->level == 1 && card->heading_height > 0) {
        height = card->heading_height;
    }
    double scale = height / r->size;
    scale = fmax(scale, page->scale * SCALE_MIN);
    return fmin(scale, page->scale * SCALE_MAX);
}

static int cells(double pixels, int cell)
{
    const int n = (int)ceil(pixels / cell - 0.05); /* a few pixels of margin may go */
    return n < 1 ? 1 : n;
}

static float clamp(float v, float hi)
{
    return v > 0 ? fminf(v, hi) : 0;
}

/* The frame of lines [from, to) in pt, without margins, inside the page. */
static struct box lines_box(const struct page_layout *page, const struct region *r, int from,
                            int to)
{
    struct box b = r->box;
    if (to > from) {
        b.y0 = r->lines[from].box.y0;
        b.y1 = r->lines[from].box.y1;
        for (int i = from + 1; i < to; i++) {
            b.y0 = fminf(b.y0, r->lines[i].box.y0);
            b.y1 = fmaxf(b.y1, r->lines[i].box.y1);
        }
    }
    b.x0 = clamp(b.x0, page->width);
    b.x1 = clamp(b.x1, page->width);
    b.y0 = clamp(b.y0, page->height);
    b.y1 = clamp(b.y1, page->height);
    return b;
}

static double margin_of(const struct region *r)
{
    return MARGIN_EM * (r->size > 0 ? r->size : 8);
}

static double height_of(const struct page_layout *page, const struct region *r, int from, int to)
{
    const struct box b = lines_box(page, r, from, to);
    return b.y1 - b.y0;
}

/* Header rows' height on top of a later part of a table. */
static double header_height(const struct page_layout *page, const struct region *r,
                            bool with_header)
{
    return with_header && r->n_header_rows > 0 ? height_of(page, r, 0, r->n_header_rows) : 0;
}

/* A later part of a table has the header rows on top. */
static bool repeats_header(const struct region *r, int from)
{
    return r->kind == REGION_TABLE && from > 0 && from >= r->n_header_rows;
}

/* In visual tokens. */
struct cells {
    int w, h;
};

/* Lines [from, to) at a scale. */
static struct cells piece_cells(const struct cutting *c, int from, int to, double scale)
{
    const double margin = 2 * margin_of(c->r);
    const double head = header_height(c->page, c->r, repeats_header(c->r, from));
    const struct box b = lines_box(c->page, c->r, from, to);
    return (struct cells){ cells((b.x1 - b.x0 + margin) * scale, c->cell),
                           cells((b.y1 - b.y0 + head + margin) * scale, c->cell) };
}

/* Most tokens a crop may have. */
static int token_limit(const struct card *card, const struct galley_convert_options *opt, int cell)
{
    int64_t limit = card->max_visual_tokens > 0 ? card->max_visual_tokens : 0;
    const int64_t max_pixels = opt->max_pixels ? opt->max_pixels : card->max_pixels;
    const int64_t by_pixels = max_pixels / ((int64_t)cell * cell);
    if (max_pixels > 0 && (limit == 0 || by_pixels < limit)) {
        limit = by_pixels < 1 ? 1 : by_pixels;
    }
    return limit > TOKENS_MAX ? TOKENS_MAX : (int)limit;
}

/* Where the part that starts at line `from` ends: as many lines as fit. */
static int part_end(const struct cutting *c, int from)
{
    if (c->r->n_lines <= 1 || (c->limit == 0 && c->max_lines <= 0)) {
        return c->r->n_lines;
    }
    const int limit = c->limit ? c->limit : TOKENS_MAX;
    int to = from + 1;
    while (to < c->r->n_lines) {
        const struct cells n = piece_cells(c, from, to + 1, c->scale);
        if (n.w * n.h > limit || (c->max_lines > 0 && to + 1 - from > c->max_lines)) {
            break;
        }
        to++;
    }
    return to;
}

static char *slice(const char *s, int from, int to)
{
    return mem_strndup(s + from, (size_t)(to - from));
}

/* The draft of lines [from, to): its bytes, a table's header in front of later parts.  The whole
 * draft where the bytes are not known (the drafter finds the place by itself). */
static char *piece_draft(const struct region *r, int from, int to, bool with_header)
{
    const char *plain = r->draft.plain;
    const int n = (int)strlen(plain);
    if (to <= from || (from == 0 && to == r->n_lines)) {
        return mem_strdup(plain);
    }
    const int a = from == 0 ? 0 : r->lines[from].plain_from;
    const int b = to == r->n_lines ? n : r->lines[to - 1].plain_to;
    if (a < 0 || b > n || a >= b) {
        return mem_strdup(plain);
    }
    if (!with_header || r->n_header_rows < 1) {
        return slice(plain, a, b);
    }
    int head = r->lines[r->n_header_rows].plain_from; /* header and delimiter row, with newline */
    head = head < 0 ? 0 : head > a ? a : head;
    char *s = mem_alloc((size_t)head + (size_t)(b - a) + 1);
    if (s) {
        memcpy(s, plain, (size_t)head);
        memcpy(s + head, plain + a, (size_t)(b - a));
        s[head + b - a] = '\0';
    }
    return s;
}

static enum galley_status add_piece(struct region_plan *out, const struct cutting *c, int from,
                                    int to, struct galley_err *err)
{
    assert(from >= 0 && from <= to && to <= c->r->n_lines);
    struct piece *more =
        mem_resize_array(out->pieces, (size_t)out->n_pieces + 1, sizeof(*out->pieces));
    if (!more) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a region's parts");
    }
    out->pieces = more;
    struct piece *p = &out->pieces[out->n_pieces];
    *p = (struct piece){ .line_from = from, .line_to = to };
    p->with_header = repeats_header(c->r, from);
    p->scale = c->scale;
    struct cells n = piece_cells(c, from, to, p->scale);
    /* One line, or a whole box, may be too large. */
    while (c->limit > 0 && n.w * n.h > c->limit && p->scale > 1e-3) {
        p->scale *= 0.95;
        n = piece_cells(c, from, to, p->scale);
    }
    p->width = c->own_size ? 0 : n.w * c->cell;
    p->height = c->own_size ? 0 : n.h * c->cell;
    if (c->with_draft) {
        p->draft = piece_draft(c->r, from, to, p->with_header);
        if (!p->draft) {
            return galley_err_set(err, GALLEY_ENOMEM, "no memory for a region's draft");
        }
    }
    out->n_pieces++;
    return GALLEY_OK;
}

enum galley_status plan_region(struct region_plan *out, const struct page_layout *page,
                               const struct region *r, const struct card *card,
                               const struct galley_convert_options *opt, int cell,
                               struct galley_err *err)
{
    *out = (struct region_plan){ .why = "" };
    const char *why = refusal(r, card);
    if (why) {
        out->why = why;
        return GALLEY_OK;
    }
    out->readable = true;
    out->tau = region_tau(r, card, opt);
    out->doubt_logprob = card->doubt_logprob;
    const struct cutting c = {
        .page = page,
        .r = r,
        .max_lines = card->max_lines,
        .scale = wanted_scale(page, r, card),
        .cell = cell,
        .limit = token_limit(card, opt, cell),
        /* Without a card that wants a text height the crop keeps its pixels. */
        .own_size = card->text_height <= 0,
        .with_draft = opt->draft != GALLEY_DRAFT_NONE && r->draft.source != DRAFT_NONE &&
                      r->draft.plain && r->draft.plain[0],
    };
    int from = 0;
    do {
        const int to = part_end(&c, from);
        const enum galley_status rc = add_piece(out, &c, from, to, err);
        if (rc) {
            region_plan_deinit(out);
            return rc;
        }
        from = to;
    } while (from < r->n_lines);
    return GALLEY_OK;
}

void region_plan_deinit(struct region_plan *p)
{
    for (int i = 0; i < p->n_pieces; i++) {
        mem_free(p->pieces[i].draft);
        mem_free(p->pieces[i].error);
        mem_free(p->pieces[i].text);
    }
    mem_free(p->pieces);
    *p = (struct region_plan){ .why = "" };
}

/* Copies the page's rectangle (pt) to row y of out, centred horizontally; returns the rows used. */
static int paste(struct image *out, const struct page_layout *page, struct box b, int y)
{
    const double s = page->scale;
    struct image *part = image_crop(page->bitmap, (int)floor(b.x0 * s), (int)floor(b.y0 * s),
                                    (int)ceil(b.x1 * s), (int)ceil(b.y1 * s));
    if (!part) {
        return 0; /* an empty rectangle: white stays white */
    }
    const int x = part->width < out->width ? (out->width - part->width) / 2 : 0;
    const int w = part->width < out->width ? part->width : out->width;
    int rows = 0;
    for (; rows < part->height && y + rows < out->height; rows++) {
        memcpy(out->rgb + (size_t)(y + rows) * out->stride + (size_t)x * 3,
               part->rgb + (size_t)rows * part->stride, (size_t)w * 3);
    }
    image_unref(part);
    return rows;
}

/* Grows the box by the margin, but not into the neighbouring lines of the same region. */
static struct box with_margin(const struct page_layout *page, const struct region *r,
                              const struct piece *p)
{
    struct box b = lines_box(page, r, p->line_from, p->line_to);
    const float m = (float)margin_of(r);
    b.x0 -= m;
    b.x1 += m;
    float above = m, below = m;
    if (p->line_to > p->line_from) {
        if (p->line_from > 0) {
            above = fminf(m, (b.y0 - r->lines[p->line_from - 1].box.y1) / 2);
        }
        if (p->line_to < r->n_lines) {
            below = fminf(m, (r->lines[p->line_to].box.y0 - b.y1) / 2);
        }
    }
    b.y0 -= fmaxf(above, 0);
    b.y1 += fmaxf(below, 0);
    return b;
}

struct image *plan_crop(const struct page_layout *page, const struct region *r,
                        const struct piece *p)
{
    const struct box b = with_margin(page, r, p);
    const double s = page->scale;
    struct box head = { 0 };
    if (p->with_header && r->n_header_rows > 0) {
        head = lines_box(page, r, 0, r->n_header_rows);
        head.x0 = b.x0;
        head.x1 = b.x1;
    }
    const double content = (double)(b.y1 - b.y0) + (double)(head.y1 - head.y0);
    /* The canvas in source pixels that becomes width x height after scaling. */
    const double factor = p->scale / s;
    int w = p->width ? (int)lround(p->width / factor) : (int)ceil((b.x1 - b.x0) * s);
    int h = p->height ? (int)lround(p->height / factor) : (int)ceil(content * s);
    w = w < 1 ? 1 : w;
    h = h < 1 ? 1 : h;
    struct image *out = image_new(w, h);
    if (!out) {
        return NULL;
    }
    memset(out->rgb, 255, (size_t)h * out->stride);
    const int spare = h - (int)ceil(content * s);
    int y = spare > 0 ? spare / 2 : 0;
    if (head.y1 > head.y0) {
        y += paste(out, page, head, y);
    }
    paste(out, page, b, y);
    return out;
}
