/* figures.c - crops and overlays as PNG. */
#include "src/cli/figures.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/compiler.h"
#include "src/base/image.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/format/png.h"

#define PNG_BYTES_MAX ((size_t)512 << 20)

static bool write_png(const struct image *im, const char *path)
{
    struct galley_err err = { 0 };
    struct buf b;
    buf_init(&b, PNG_BYTES_MAX);
    enum galley_status rc = png_encode(&b, im, &err);
    if (!rc) {
        rc = file_write(path, b.data, b.n, &err);
    }
    buf_deinit(&b);
    if (rc) {
        complain("%s", err.msg);
    }
    return rc == GALLEY_OK;
}

/* A copy of the rectangle given in pt. */
static struct image *crop(const struct galley_page *p, struct galley_box b)
{
    struct image view = { .width = p->px_width,
                          .height = p->px_height,
                          .stride = p->stride,
                          .rgb = (uint8_t *)(uintptr_t)p->rgb };
    const float s = p->scale;
    return image_crop(&view, (int)floorf(b.x0 * s), (int)floorf(b.y0 * s), (int)ceilf(b.x1 * s),
                      (int)ceilf(b.y1 * s));
}

/* The file name in the region's own Markdown, ![](NAME); "" when it has none. */
static void figure_name(const struct galley_region *r, char *out, size_t size)
{
    out[0] = '\0';
    const char *open = strstr(r->markdown, "](");
    const char *close = open ? strchr(open, ')') : NULL;
    if (close && (size_t)(close - open - 2) < size) {
        memcpy(out, open + 2, (size_t)(close - open - 2));
        out[close - open - 2] = '\0';
    }
}

bool figures_write(const struct galley_page *page, const char *dir, const char *prefix)
{
    if (!page->rgb) {
        return true;
    }
    bool ok = true;
    for (int i = 0; i < page->n_regions && ok; i++) {
        const struct galley_region *r = &page->regions[i];
        char name[256];
        if (strcmp(r->kind, "figure") != 0) {
            continue;
        }
        figure_name(r, name, sizeof(name));
        const char *slash = strrchr(name, '/');
        const char *file = slash ? slash + 1 : name;
        if (!file[0] || strncmp(file, prefix, strlen(prefix)) != 0) {
            continue;
        }
        struct image *im = crop(page, r->box);
        char *path = path_join(dir, file);
        ok = im && path && write_png(im, path);
        if (!im || !path) {
            complain("page %d: cannot cut out %s", page->number, file);
        }
        mem_free(path);
        image_unref(im);
    }
    return ok;
}

/* ---- overlay ---- */

static const struct {
    const char *kind;
    uint8_t rgb[3];
} colours[] = {
    { "heading", { 200, 30, 60 } },   { "paragraph", { 40, 90, 200 } },
    { "list", { 20, 140, 90 } },      { "table", { 200, 110, 0 } },
    { "figure", { 140, 60, 180 } },   { "caption", { 180, 60, 140 } },
    { "formula", { 0, 130, 150 } },   { "code", { 90, 90, 90 } },
    { "footnote", { 110, 110, 40 } },
};

static const uint8_t *colour_of(const char *kind)
{
    static const uint8_t furniture[3] = { 150, 150, 150 };
    for (size_t i = 0; i < COUNT(colours); i++) {
        if (strcmp(kind, colours[i].kind) == 0) {
            return colours[i].rgb;
        }
    }
    return furniture;
}

/* Mixes a rectangle with a colour; alpha 0..256. */
static void tint(struct image *im, int x0, int y0, int x1, int y1, const uint8_t c[3], int alpha)
{
    x0 = x0 < 0 ? 0 : x0;
    y0 = y0 < 0 ? 0 : y0;
    x1 = x1 > im->width ? im->width : x1;
    y1 = y1 > im->height ? im->height : y1;
    for (int y = y0; y < y1; y++) {
        uint8_t *p = im->rgb + (size_t)y * im->stride + (size_t)(x0 > x1 ? x1 : x0) * 3;
        for (int x = x0; x < x1; x++, p += 3) {
            for (int k = 0; k < 3; k++) {
                p[k] = (uint8_t)((p[k] * (256 - alpha) + c[k] * alpha) >> 8);
            }
        }
    }
}

/* Digits as 3 x 5 dots, a row per octal digit from the top. */
static const char *const digit_dots[10] = { "75557", "26227", "71747", "71717", "55711",
                                            "74717", "74757", "71111", "75757", "75717" };

static void draw_number(struct image *im, int x, int y, int number, int dot)
{
    static const uint8_t white[3] = { 255, 255, 255 };
    char text[12];
    snprintf(text, sizeof(text), "%d", number);
    for (const char *t = text; *t; t++, x += 4 * dot) {
        for (int row = 0; row < 5; row++) {
            const int bits = digit_dots[*t - '0'][row] - '0';
            for (int col = 0; col < 3; col++) {
                if (bits & 4 >> col) {
                    tint(im, x + col * dot, y + row * dot, x + (col + 1) * dot, y + (row + 1) * dot,
                         white, 256);
                }
            }
        }
    }
}

static void draw_region(struct image *im, const struct galley_page *page,
                        const struct galley_region *r, int number)
{
    const float s = page->scale;
    const uint8_t *c = colour_of(r->kind);
    const int pad = (int)(2 * s), line = (int)(0.9f * s) + 1, dot = (int)(1.1f * s) + 1;
    const int x0 = (int)(r->box.x0 * s) - pad, y0 = (int)(r->box.y0 * s) - pad;
    const int x1 = (int)(r->box.x1 * s) + pad, y1 = (int)(r->box.y1 * s) + pad;
    tint(im, x0, y0, x1, y1, c, 22);
    tint(im, x0, y0, x1, y0 + line, c, 220);
    tint(im, x0, y1 - line, x1, y1, c, 220);
    tint(im, x0, y0, x0 + line, y1, c, 220);
    tint(im, x1 - line, y0, x1, y1, c, 220);
    const int n_digits = number > 99 ? 3 : number > 9 ? 2 : 1;
    const int w = (4 * n_digits + 1) * dot, h = 7 * dot;
    const int left = x0 - w > 0 ? x0 - w : 0;
    tint(im, left, y0, left + w, y0 + h, c, 240);
    draw_number(im, left + dot, y0 + dot, number, dot);
}

bool regions_write(const struct galley_page *page, const char *path)
{
    if (!page->rgb) {
        complain("page %d has no picture: %s", page->number, page->reason);
        return false;
    }
    const struct galley_box all = { 0, 0, page->width, page->height };
    struct image *im = crop(page, all);
    if (!im) {
        complain("no memory for the picture of page %d", page->number);
        return false;
    }
    for (int i = 0; i < page->n_regions; i++) {
        draw_region(im, page, &page->regions[i], i + 1);
    }
    const bool ok = write_png(im, path);
    image_unref(im);
    return ok;
}
