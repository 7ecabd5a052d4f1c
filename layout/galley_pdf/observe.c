/* observe.c - this program's own cairo_fill, cairo_stroke and friends.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * poppler-glib has no call for vector rules, none for the exact place of an image and none that
 * tells invisible text from visible.  But all drawing passes through a dozen public cairo
 * functions. The program defines those itself (the program comes first in symbol lookup), looks at
 * path, colour and clip through cairo's public calls, and forwards to the real function.  So one
 * interpretation of the page gives bitmap, text, rules and pictures.
 *
 * Only the page's own cairo_t is looked at: soft masks, pattern tiles and Type 3 glyphs are drawn
 * through others.  Transparency groups use the same one, and their coordinates stay the page's. */
#include "layout/galley_pdf/observe.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"

#define STEPS_MAX 200000 /* of one path; longer ones are only artwork anyway */

static struct {
    struct drawing *drawing; /* NULL: not observing */
    cairo_t *cr;
    double scale;
    bool glyph_path; /* the current path holds glyph outlines, not drawing */
} seen;

/* The real function; the union avoids a cast between object and function pointers. */
#define REAL(type, name, ...)                  \
    static union {                             \
        void *object;                          \
        type (*call)(__VA_ARGS__);             \
    } real;                                    \
    if (!real.object) {                        \
        real.object = dlsym(RTLD_NEXT, #name); \
        if (!real.object) {                    \
            abort();                           \
        }                                      \
    }

void observe_begin(struct drawing *d, cairo_t *cr, double scale)
{
    seen.drawing = d;
    seen.cr = cr;
    seen.scale = scale;
    seen.glyph_path = false;
}

void observe_end(void)
{
    seen.drawing = NULL;
    seen.cr = NULL;
}

static bool watching(const cairo_t *cr)
{
    return seen.drawing && cr == seen.cr;
}

static void to_page(cairo_t *cr, double x, double y, float *px, float *py)
{
    cairo_user_to_device(cr, &x, &y);
    *px = (float)(x / seen.scale);
    *py = (float)(y / seen.scale);
}

static void box_add(struct box *b, float x, float y)
{
    b->x0 = fminf(b->x0, x);
    b->y0 = fminf(b->y0, y);
    b->x1 = fmaxf(b->x1, x);
    b->y1 = fmaxf(b->y1, y);
}

/* The page box of a rectangle in user space. */
static struct box box_of(cairo_t *cr, const double x[2], const double y[2])
{
    struct box b = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    for (int i = 0; i < 4; i++) {
        float px, py;
        to_page(cr, x[i & 1], y[i >> 1], &px, &py);
        box_add(&b, px, py);
    }
    return b;
}

static struct box clip_box(cairo_t *cr)
{
    double x[2], y[2];
    cairo_clip_extents(cr, &x[0], &y[0], &x[1], &y[1]);
    return box_of(cr, x, y);
}

static bool style_of(cairo_t *cr, struct draw_style *style)
{
    double r = 0.5, g = 0.5, b = 0.5, a = 1;
    const cairo_status_t rc = cairo_pattern_get_rgba(cairo_get_source(cr), &r, &g, &b, &a);
    style->flat = rc == CAIRO_STATUS_SUCCESS;
    if (style->flat && a < 0.05) {
        return false; /* nobody sees it */
    }
    const double v[3] = { r, g, b };
    for (int i = 0; i < 3; i++) {
        const double mixed = 255 * (1 - a + a * v[i]); /* over white paper */
        style->rgb[i] = (uint8_t)(fmin(255, fmax(0, mixed)) + 0.5);
    }
    style->clip = clip_box(cr);
    return style->clip.x1 > style->clip.x0 && style->clip.y1 > style->clip.y0;
}

/* Where a curve really goes: control points may lie far outside.  Eight points of it are enough to
 * place artwork. */
static struct box curve_box(cairo_t *cr, const cairo_path_data_t *from, const cairo_path_data_t *to)
{
    struct box b = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    for (int i = 0; i <= 8; i++) {
        const double t = i / 8.0, u = 1 - t;
        const double w[4] = { u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t };
        float x, y;
        to_page(cr,
                w[0] * from->point.x + w[1] * to[1].point.x + w[2] * to[2].point.x +
                    w[3] * to[3].point.x,
                w[0] * from->point.y + w[1] * to[1].point.y + w[2] * to[2].point.y +
                    w[3] * to[3].point.y,
                &x, &y);
        box_add(&b, x, y);
    }
    return b;
}

/* The current path in page coordinates; the caller frees.  NULL: nothing to look at. */
static struct draw_step *path_steps(cairo_t *cr, size_t *n)
{
    *n = 0;
    cairo_path_t *path = cairo_copy_path(cr);
    struct draw_step *steps = NULL;
    const cairo_path_data_t *from = path->data; /* the current point */
    if (path->status == CAIRO_STATUS_SUCCESS && path->num_data > 0) {
        steps = mem_many(struct draw_step, (size_t)path->num_data);
    }
    for (int i = 0; steps && i < path->num_data && *n < STEPS_MAX;
         i += path->data[i].header.length) {
        const cairo_path_data_t *at = &path->data[i];
        struct draw_step *s = &steps[(*n)++];
        static const enum draw_verb verbs[] = { [CAIRO_PATH_MOVE_TO] = DRAW_MOVE,
                                                [CAIRO_PATH_LINE_TO] = DRAW_LINE,
                                                [CAIRO_PATH_CURVE_TO] = DRAW_CURVE,
                                                [CAIRO_PATH_CLOSE_PATH] = DRAW_CLOSE };
        s->verb = verbs[at->header.type];
        if (s->verb == DRAW_CURVE) {
            s->hull = curve_box(cr, from, at);
        }
        if (at->header.length > 1) {
            from = &at[at->header.length - 1];
            to_page(cr, from->point.x, from->point.y, &s->x, &s->y);
        }
    }
    cairo_path_destroy(path);
    return steps;
}

static const cairo_user_data_key_t canvas_key;

static bool drawn_canvas(cairo_surface_t *surface)
{
    return cairo_surface_get_user_data(surface, &canvas_key) != NULL;
}

/* Surfaces that are drawn on are no images.  The mark goes with the surface. */
static void mark_canvas(cairo_surface_t *surface)
{
    const cairo_status_t rc = cairo_surface_set_user_data(surface, &canvas_key, &seen, NULL);
    (void)rc; /* without memory it counts as one picture too many */
}

static void mark_group(cairo_pattern_t *group)
{
    cairo_surface_t *surface = NULL;
    if (cairo_pattern_get_surface(group, &surface) == CAIRO_STATUS_SUCCESS) {
        mark_canvas(surface);
    }
}

/* True when the pattern is an image; its box is added. */
static bool note_image(cairo_t *cr, cairo_pattern_t *pattern, bool opaque)
{
    cairo_surface_t *surface = NULL;
    if (cairo_pattern_get_surface(pattern, &surface) != CAIRO_STATUS_SUCCESS ||
        cairo_surface_get_type(surface) != CAIRO_SURFACE_TYPE_IMAGE ||
        cairo_pattern_get_extend(pattern) == CAIRO_EXTEND_REPEAT || drawn_canvas(surface)) {
        return false;
    }
    cairo_matrix_t m;
    cairo_pattern_get_matrix(pattern, &m);
    if (cairo_matrix_invert(&m) != CAIRO_STATUS_SUCCESS) {
        return false;
    }
    struct box b = { INFINITY, INFINITY, -INFINITY, -INFINITY };
    for (int i = 0; i < 4; i++) {
        double u = i & 1 ? cairo_image_surface_get_width(surface) : 0;
        double v = i & 2 ? cairo_image_surface_get_height(surface) : 0;
        float px, py;
        cairo_matrix_transform_point(&m, &u, &v);
        to_page(cr, u, v, &px, &py);
        box_add(&b, px, py);
    }
    const struct box c = clip_box(cr);
    b = (struct box){ fmaxf(b.x0, c.x0), fmaxf(b.y0, c.y0), fminf(b.x1, c.x1), fminf(b.y1, c.y1) };
    draw_cover(seen.drawing, b,
               opaque && cairo_image_surface_get_format(surface) == CAIRO_FORMAT_RGB24);
    return true;
}

static void note_path(cairo_t *cr, bool stroke)
{
    struct draw_style style = { 0 };
    if (!stroke && note_image(cr, cairo_get_source(cr), true)) {
        return;
    }
    if (!style_of(cr, &style)) {
        return;
    }
    double dx = cairo_get_line_width(cr), dy = dx;
    cairo_user_to_device_distance(cr, &dx, &dy);
    style.width = (float)(hypot(dx, dy) / sqrt(2.0) / seen.scale);
    size_t n;
    struct draw_step *steps = path_steps(cr, &n);
    if (steps && stroke) {
        draw_stroke(seen.drawing, steps, n, &style);
    } else if (steps) {
        draw_fill(seen.drawing, steps, n, &style);
    }
    mem_free(steps);
}

/* The whole clip is painted: a shading or one colour. */
static void note_paint(cairo_t *cr)
{
    struct draw_style style = { 0 };
    if (note_image(cr, cairo_get_source(cr), true) || !style_of(cr, &style)) {
        return;
    }
    cairo_surface_t *surface;
    if (cairo_pattern_get_surface(cairo_get_source(cr), &surface) == CAIRO_STATUS_SUCCESS) {
        return; /* a group */
    }
    const struct box c = style.clip;
    const struct draw_step steps[] = { { DRAW_MOVE, c.x0, c.y0, c },
                                       { DRAW_LINE, c.x1, c.y0, c },
                                       { DRAW_LINE, c.x1, c.y1, c },
                                       { DRAW_LINE, c.x0, c.y1, c },
                                       { DRAW_CLOSE, c.x0, c.y0, c } };
    draw_fill(seen.drawing, steps, 5, &style);
}

/* A mask is an image's own shape, or (drawn by Poppler on a canvas) a soft mask laid over the
 * filling of the clip. */
static void note_mask(cairo_t *cr, cairo_pattern_t *mask)
{
    cairo_surface_t *surface = NULL;
    const bool soft =
        cairo_pattern_get_surface(mask, &surface) == CAIRO_STATUS_SUCCESS && drawn_canvas(surface);
    if (!note_image(cr, cairo_get_source(cr), false)) {
        if (soft) {
            note_paint(cr);
        } else {
            note_image(cr, mask, false);
        }
    }
}

/* The reading direction is the glyphs' x axis on the device, rounded to a quarter turn. */
static void note_glyphs(cairo_t *cr, const cairo_glyph_t *glyphs, int n)
{
    cairo_matrix_t font;
    cairo_get_font_matrix(cr, &font);
    double dx = font.xx, dy = font.yx;
    cairo_user_to_device_distance(cr, &dx, &dy);
    const int quarter = (int)lround(atan2(dy, dx) / 1.5707963267948966);
    const int angle = ((quarter % 4 + 4) % 4) * 90;
    for (int i = 0; i < n; i++) {
        float x, y;
        to_page(cr, glyphs[i].x, glyphs[i].y, &x, &y);
        draw_ink(seen.drawing, x, y, angle);
    }
}

/* --- what Poppler calls --- */

void cairo_fill(cairo_t *cr)
{
    REAL(void, cairo_fill, cairo_t *);
    if (watching(cr) && !seen.glyph_path) {
        note_path(cr, false);
    }
    if (watching(cr)) {
        seen.glyph_path = false;
    }
    real.call(cr);
}

void cairo_stroke(cairo_t *cr)
{
    REAL(void, cairo_stroke, cairo_t *);
    if (watching(cr) && !seen.glyph_path) {
        note_path(cr, true);
    }
    if (watching(cr)) {
        seen.glyph_path = false;
    }
    real.call(cr);
}

void cairo_new_path(cairo_t *cr)
{
    REAL(void, cairo_new_path, cairo_t *);
    if (watching(cr)) {
        seen.glyph_path = false;
    }
    real.call(cr);
}

void cairo_paint(cairo_t *cr)
{
    REAL(void, cairo_paint, cairo_t *);
    if (watching(cr)) {
        note_paint(cr);
    }
    real.call(cr);
}

void cairo_paint_with_alpha(cairo_t *cr, double alpha)
{
    REAL(void, cairo_paint_with_alpha, cairo_t *, double);
    if (watching(cr) && alpha > 0.05) {
        note_paint(cr);
    }
    real.call(cr, alpha);
}

void cairo_mask(cairo_t *cr, cairo_pattern_t *pattern)
{
    REAL(void, cairo_mask, cairo_t *, cairo_pattern_t *);
    if (watching(cr)) {
        note_mask(cr, pattern);
    }
    real.call(cr, pattern);
}

void cairo_show_glyphs(cairo_t *cr, const cairo_glyph_t *glyphs, int num_glyphs)
{
    REAL(void, cairo_show_glyphs, cairo_t *, const cairo_glyph_t *, int);
    if (watching(cr)) {
        note_glyphs(cr, glyphs, num_glyphs);
    }
    real.call(cr, glyphs, num_glyphs);
}

void cairo_show_text_glyphs(cairo_t *cr, const char *utf8, int utf8_len,
                            const cairo_glyph_t *glyphs, int num_glyphs,
                            const cairo_text_cluster_t *clusters, int num_clusters,
                            cairo_text_cluster_flags_t cluster_flags)
{
    REAL(void, cairo_show_text_glyphs, cairo_t *, const char *, int, const cairo_glyph_t *, int,
         const cairo_text_cluster_t *, int, cairo_text_cluster_flags_t);
    if (watching(cr)) {
        note_glyphs(cr, glyphs, num_glyphs);
    }
    real.call(cr, utf8, utf8_len, glyphs, num_glyphs, clusters, num_clusters, cluster_flags);
}

void cairo_glyph_path(cairo_t *cr, const cairo_glyph_t *glyphs, int num_glyphs)
{
    REAL(void, cairo_glyph_path, cairo_t *, const cairo_glyph_t *, int);
    if (watching(cr)) {
        note_glyphs(cr, glyphs, num_glyphs);
        seen.glyph_path = true;
    }
    real.call(cr, glyphs, num_glyphs);
}

/* Soft masks and pattern tiles. */
cairo_t *cairo_create(cairo_surface_t *target)
{
    REAL(cairo_t *, cairo_create, cairo_surface_t *);
    if (seen.drawing) {
        mark_canvas(target);
    }
    return real.call(target);
}

cairo_pattern_t *cairo_pop_group(cairo_t *cr)
{
    REAL(cairo_pattern_t *, cairo_pop_group, cairo_t *);
    cairo_pattern_t *group = real.call(cr);
    if (watching(cr)) {
        mark_group(group);
    }
    return group;
}

void cairo_pop_group_to_source(cairo_t *cr)
{
    REAL(void, cairo_pop_group_to_source, cairo_t *);
    real.call(cr);
    if (watching(cr)) {
        mark_group(cairo_get_source(cr));
    }
}
