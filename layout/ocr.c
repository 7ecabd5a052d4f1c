/* ocr.c - a bitmap becomes a page: upright, straight, read, with rules and pictures. */
#include "layout/ocr.h"

#include <leptonica/allheaders.h>
#include <math.h>

#include "layout/ocr_parts.h"
#include "layout/ocr_reader.h"
#include "layout/raster.h"
#include "src/base/clock.h"
#include "src/base/mem.h"

#define PAGE_SECONDS   60.0
#define OSD_CLEAR      6.0f /* Tesseract's orientation confidence: believed without a second look */
#define OSD_SOME       1.0f /* worth a second look */
#define TURN_BETTER    12.0f /* confidence points by which a turned strip must read better */
#define SKEW_MIN       0.1f  /* degrees */
#define SKEW_CONF      2.5f
#define STRIP_X_HEIGHT 14   /* a strip is so many x-heights high: five or six lines */
#define RULE_NEAR      3.0f /* pt */
#define PICTURE_CONF   0.6f /* words that mean less and lie in a picture are not text */

struct ocr {
    struct ocr_reader reader;
    struct ocr_times times;
};

enum galley_status ocr_open(struct ocr **out, const struct ocr_options *opt, struct galley_err *err)
{
    static const struct ocr_options defaults;
    opt = opt ? opt : &defaults;
    *out = NULL;
    struct ocr *o = mem_new(struct ocr);
    if (!o) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory for OCR");
    }
    o->reader.page_seconds = opt->page_seconds > 0 ? opt->page_seconds : PAGE_SECONDS;
    const enum galley_status rc =
        ocr_reader_open(&o->reader, opt->languages ? opt->languages : "eng", opt->datapath, err);
    if (rc) {
        ocr_close(o);
        return rc;
    }
    *out = o;
    return GALLEY_OK;
}

void ocr_close(struct ocr *o)
{
    if (o) {
        ocr_reader_close(&o->reader);
        mem_free(o);
    }
}

void ocr_cancel(struct ocr *o)
{
    atomic_store_explicit(&o->reader.cancelled, true, memory_order_relaxed);
}

void ocr_last_times(const struct ocr *o, struct ocr_times *out)
{
    *out = o->times;
    out->load = o->reader.load_seconds;
}

static enum galley_status no_memory(const struct page *in, struct galley_err *err)
{
    return galley_err_set(err, GALLEY_ENOMEM, "out of memory for OCR of a page of %d x %d pixels",
                          in->bitmap->width, in->bitmap->height);
}

/* --- orientation --- */

/* First row of the band of h rows that holds the most ink. */
static int densest_band(struct Pix *gray, int h)
{
    struct Pix *ink = pixThresholdToBinary(gray, 128);
    NUMA *rows = ink ? pixCountPixelsByRow(ink, NULL) : NULL;
    const int n = rows ? numaGetCount(rows) : 0;
    int best = 0;
    double sum = 0, best_sum = -1;
    for (int y = 0; y < n; y++) {
        l_float32 in = 0, out = 0;
        numaGetFValue(rows, y, &in);
        sum += in;
        if (y >= h) {
            numaGetFValue(rows, y - h, &out);
            sum -= out;
        }
        if (y >= h - 1 && sum > best_sum) {
            best_sum = sum;
            best = y - h + 1;
        }
    }
    numaDestroy(&rows);
    pixDestroy(&ink);
    return best;
}

/* How well some lines read when the page is turned so. */
static enum galley_status strip_conf(struct ocr *o, const struct page *in,
                                     const struct ocr_look *look, int turn, float *conf,
                                     struct galley_err *err)
{
    *conf = 0;
    float zoom = 1;
    struct image *im = ocr_turn(in->bitmap, turn);
    struct Pix *gray = im ? ocr_input(im, in->scale, look->x_height, &zoom) : NULL;
    enum galley_status rc = gray ? GALLEY_OK : no_memory(in, err);
    if (!rc) {
        const int want = (int)((float)(STRIP_X_HEIGHT * look->x_height) * zoom);
        const int h = want > 0 && want < pixGetHeight(gray) ? want : 0;
        rc = ocr_reader_read(&o->reader, gray, h ? densest_band(gray, h) : 0, h, err);
        *conf = rc ? 0 : ocr_reader_conf(&o->reader);
    }
    pixDestroy(&gray);
    image_unref(im);
    return rc;
}

/* A page is turned only for a reason: several candidates are read and compared with the page as it
 * is. */
static enum galley_status second_look(struct ocr *o, const struct page *in,
                                      const struct ocr_look *look, const bool may[4], int *turn,
                                      struct galley_err *err)
{
    float best;
    enum galley_status rc = strip_conf(o, in, look, 0, &best, err);
    best += TURN_BETTER;
    for (int q = 1; q < 4 && !rc; q++) {
        float conf = 0;
        if (may[q]) {
            rc = strip_conf(o, in, look, q * 90, &conf, err);
        }
        if (!rc && conf > best) {
            best = conf;
            *turn = q * 90;
        }
    }
    return rc;
}

static enum galley_status ask_tesseract(struct ocr *o, const struct page *in,
                                        const struct ocr_look *look, int *turn, float *conf,
                                        struct galley_err *err)
{
    float scale = in->scale;
    struct Pix *gray = raster_gray(in->bitmap, &scale, 300.0f / 72.0f);
    if (!gray) {
        return no_memory(in, err);
    }
    /* x-height 21 pixels is body text at 300 dpi. */
    const float x_height = (float)look->x_height * scale / raster_scale(in->scale);
    const int dpi = (int)fminf(fmaxf(x_height * 300 / 21, 70), 600);
    const enum galley_status rc = ocr_reader_turn(&o->reader, gray, dpi, turn, conf, err);
    pixDestroy(&gray);
    return rc;
}

static enum galley_status find_turn(struct ocr *o, const struct page *in,
                                    const struct ocr_look *look, int *turn, struct galley_err *err)
{
    const int by_pixels = ocr_look_turn(look);
    int by_tess;
    float conf;
    *turn = 0;
    if (by_pixels == 0 && !look->sideways) {
        return GALLEY_OK;
    }
    enum galley_status rc = ask_tesseract(o, in, look, &by_tess, &conf, err);
    if (rc) {
        return rc;
    }
    if (by_tess >= 0 && conf >= OSD_SOME && (by_tess == by_pixels || conf >= OSD_CLEAR)) {
        *turn = by_tess;
        return GALLEY_OK;
    }
    bool may[4] = { true, false, false, false };
    may[1] = may[3] = look->sideways && look->skew_conf >= SKEW_CONF;
    if (by_pixels > 0) {
        may[by_pixels / 90] = true;
    }
    if (by_tess > 0) {
        may[by_tess / 90] = true;
    }
    return may[1] || may[2] || may[3] ? second_look(o, in, look, may, turn, err) : GALLEY_OK;
}

/* --- stages --- */

static double lap(double *t)
{
    const double now = clock_seconds(), d = now - *t;
    *t = now;
    return d;
}

/* The bitmap upright and straight into p, with the frame that belongs to it. */
static enum galley_status set_upright(struct ocr *o, const struct page *in,
                                      const struct ocr_look *look, struct page *p,
                                      struct galley_err *err)
{
    double t = clock_seconds();
    const double load = o->reader.load_seconds;
    const enum galley_status rc =
        look->texture ? GALLEY_OK : find_turn(o, in, look, &p->turned, err);
    o->times.orient_tess = lap(&t) - (o->reader.load_seconds - load);
    if (rc) {
        return rc;
    }
    struct image *im = ocr_turn(in->bitmap, p->turned);
    if (im && !look->texture && fabsf(look->skew) >= SKEW_MIN && look->skew_conf >= SKEW_CONF) {
        struct image *straight = ocr_straighten(im, look->skew);
        image_unref(im);
        im = straight;
    }
    p->bitmap = im;
    if (!im) {
        return no_memory(in, err);
    }
    p->width = (float)im->width / p->scale;
    p->height = (float)im->height / p->scale;
    o->times.upright = lap(&t);
    return GALLEY_OK;
}

static enum galley_status read_text(struct ocr *o, const struct ocr_look *look, struct page *p,
                                    struct galley_err *err)
{
    double t = clock_seconds();
    float zoom = 1;
    struct Pix *gray = ocr_input(p->bitmap, p->scale, look->x_height, &zoom);
    o->times.input = lap(&t);
    const double load = o->reader.load_seconds;
    enum galley_status rc = gray ? ocr_reader_read(&o->reader, gray, 0, 0, err) : no_memory(p, err);
    if (!rc && !ocr_words(p, o->reader.text, gray, 1 / (zoom * p->scale))) {
        rc = no_memory(p, err);
    }
    pixDestroy(&gray);
    o->times.recognise = lap(&t) - (o->reader.load_seconds - load);
    return rc;
}

static void box_add(struct box *b, const struct box *by)
{
    b->x0 = fminf(b->x0, by->x0), b->y0 = fminf(b->y0, by->y0);
    b->x1 = fmaxf(b->x1, by->x1), b->y1 = fmaxf(b->y1, by->y1);
}

/* One box per believable word; *n of them.  NULL when memory is short. */
static struct box *word_boxes(const struct page *p, int *n)
{
    struct box *boxes = mem_array((size_t)p->n_glyphs + 1, sizeof *boxes);
    bool open = false;
    *n = 0;
    for (int i = 0; boxes && i < p->n_glyphs; i++) {
        const struct glyph *g = &p->glyphs[i];
        if (g->cp <= ' ' || p->runs[g->run].conf < PICTURE_CONF) {
            open = false;
        } else if (open) {
            box_add(&boxes[*n - 1], &g->box);
        } else {
            boxes[(*n)++] = g->box;
            open = true;
        }
    }
    return boxes;
}

static bool in_picture(const struct page *p, const struct glyph *g)
{
    const float x = (g->box.x0 + g->box.x1) / 2, y = (g->box.y0 + g->box.y1) / 2;
    for (int i = 0; i < p->n_pictures; i++) {
        const struct box *b = &p->pictures[i].box;
        if (x >= b->x0 && x <= b->x1 && y >= b->y0 && y <= b->y1) {
            return true;
        }
    }
    return false;
}

/* Axes and tangents of a drawing are no rules of a table. */
static void drop_picture_rules(struct page *p)
{
    int n = 0;
    for (int i = 0; i < p->n_rules; i++) {
        const struct box *r = &p->rules[i].box;
        bool inside = false;
        for (int k = 0; k < p->n_pictures && !inside; k++) {
            const struct box *b = &p->pictures[k].box;
            inside = r->x0 >= b->x0 - 2 && r->x1 <= b->x1 + 2 && r->y0 >= b->y0 - 2 &&
                     r->y1 <= b->y1 + 2;
        }
        if (!inside) {
            p->rules[n++] = p->rules[i];
        }
    }
    p->n_rules = n;
}

/* Drops what was read into the texture of pictures. */
static void drop_picture_text(struct page *p)
{
    int n = 0;
    for (int i = 0; i < p->n_glyphs; i++) {
        const struct glyph *g = &p->glyphs[i];
        if (p->runs[g->run].conf >= PICTURE_CONF || !in_picture(p, g)) {
            p->glyphs[n++] = *g;
        }
    }
    p->n_glyphs = n;
}

static bool is_white(const struct page *p, int i)
{
    return i < 0 || i >= p->n_glyphs || p->glyphs[i].cp <= ' ';
}

static bool on_rule(const struct page *p, const struct glyph *g)
{
    const float x = (g->box.x0 + g->box.x1) / 2, y = (g->box.y0 + g->box.y1) / 2;
    for (int i = 0; i < p->n_rules; i++) {
        const struct box *r = &p->rules[i].box;
        if (p->rules[i].vertical && x > r->x0 - RULE_NEAR && x < r->x1 + RULE_NEAR && y > r->y0 &&
            y < r->y1) {
            return true;
        }
    }
    return false;
}

/* The rule between two cells reads as a bar: it is known as a rule already. */
static void drop_bars(struct page *p)
{
    int n = 0;
    for (int i = 0; i < p->n_glyphs; i++) {
        const struct glyph *g = &p->glyphs[i];
        const uint32_t cp = g->cp;
        if ((cp == '|' || cp == '[' || cp == ']' || cp == '!' || cp == 'I') && is_white(p, i - 1) &&
            is_white(p, i + 1) && on_rule(p, g)) {
            i += i + 1 < p->n_glyphs && p->glyphs[i + 1].cp == ' '; /* its space goes as well */
            continue;
        }
        p->glyphs[n++] = *g;
    }
    p->n_glyphs = n;
}

static enum galley_status find_pixels(struct ocr *o, struct page *p, struct galley_err *err)
{
    double t = clock_seconds();
    int n;
    struct box *text = word_boxes(p, &n);
    const bool ok = text && raster_rules(p, p->bitmap, p->scale, text, n) &&
                    raster_pictures(p, p->bitmap, p->scale, text, n);
    mem_free(text);
    if (!ok) {
        return no_memory(p, err);
    }
    drop_picture_rules(p);
    drop_picture_text(p);
    drop_bars(p);
    o->times.pixels = lap(&t);
    return GALLEY_OK;
}

static enum galley_status read_page(struct ocr *o, const struct page *in, struct page *p,
                                    struct galley_err *err)
{
    double t = clock_seconds();
    const bool blank = raster_blank(in->bitmap, p->scale);
    o->times.blank = lap(&t);
    if (blank) {
        p->bitmap = image_ref(in->bitmap);
        p->width = (float)in->bitmap->width / p->scale;
        p->height = (float)in->bitmap->height / p->scale;
        return GALLEY_OK;
    }
    struct ocr_look look;
    if (!ocr_look(&look, in->bitmap, p->scale)) {
        return no_memory(in, err);
    }
    o->times.look = lap(&t);
    enum galley_status rc = set_upright(o, in, &look, p, err);
    if (!rc && !look.texture) {
        rc = read_text(o, &look, p, err);
    }
    return rc ? rc : find_pixels(o, p, err);
}

enum galley_status ocr_page(struct ocr *o, const struct page *in, struct page **out,
                            struct galley_err *err)
{
    *out = NULL;
    if (!in->bitmap) {
        return galley_err_set(err, GALLEY_EINPUT, "page %d has no bitmap to read", in->index + 1);
    }
    struct page *p = mem_new(struct page);
    if (!p) {
        return no_memory(in, err);
    }
    o->times = (struct ocr_times){ 0 };
    o->reader.load_seconds = 0;
    o->reader.deadline = clock_seconds() + o->reader.page_seconds;
    p->index = in->index;
    p->scale = raster_scale(in->scale);
    const enum galley_status rc = read_page(o, in, p, err);
    /* A cancel is for one page. */
    atomic_store_explicit(&o->reader.cancelled, false, memory_order_relaxed);
    if (rc) {
        page_free(p);
        return rc;
    }
    *out = p;
    return GALLEY_OK;
}
