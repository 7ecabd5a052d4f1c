/* sheet.c - renders and observes a page, collects text and links, writes the memfd.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * The page is rendered even when no bitmap is wanted: drawing is what tells rules, pictures and
 * visible text, and it leaves Poppler's text cache filled, so that the page is interpreted once. */
#include "layout/galley_pdf/sheet.h"

#include <cairo.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "layout/galley_pdf/draw.h"
#include "layout/galley_pdf/observe.h"
#include "layout/galley_pdf/text.h"
#include "src/base/clock.h"
#include "src/base/mem.h"

#define SIDE_PIXELS 32767.0 /* cairo's limit */
#define BAND_ROWS   64

static int fail(struct pdf_reply *reply, enum galley_status status, const char *message)
{
    *reply = (struct pdf_reply){ .status = status };
    snprintf(reply->message, sizeof reply->message, "%s", message);
    return -1;
}

/* Pixels per point: what was asked for, lowered to the limits. */
static double scale_choose(const struct pdf_request *request, double w, double h)
{
    double scale = request->dpi > 0 ? request->dpi / 72 : 1;
    double pixels = request->dpi > 0 ? (double)request->max_pixels : 4e6;
    pixels = fmax(pixels, 1);
    scale = fmin(scale, fmin((SIDE_PIXELS - 1) / w, (SIDE_PIXELS - 1) / h));
    /* floor()ed so that w * h below, which rounds up, stays within the limit */
    while (ceil(w * scale) * ceil(h * scale) > pixels && scale > 1e-6) {
        scale = fmin(0.999 * scale, sqrt(pixels / (w * h)));
    }
    return scale;
}

static cairo_surface_t *page_render(PopplerPage *page, double scale, struct drawing *d)
{
    const int w = (int)fmax(1, ceil(d->width * scale)), h = (int)fmax(1, ceil(d->height * scale));
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, w, h);
    cairo_t *cr = cairo_create(surface);
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    cairo_scale(cr, scale, scale);
    observe_begin(d, cr, scale);
    poppler_page_render(page, cr);
    observe_end();
    const bool ok = cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS;
    cairo_destroy(cr);
    if (!ok) {
        cairo_surface_destroy(surface);
        return NULL;
    }
    cairo_surface_flush(surface);
    return surface;
}

/* --- links --- */

/* Where an action leads: a URI, "#page=N", or "" for what has no place in text.  The caller frees.
 */
static char *action_target(PopplerDocument *doc, const PopplerAction *action)
{
    if (action->type == POPPLER_ACTION_URI && action->uri.uri) {
        return g_utf8_make_valid(action->uri.uri, -1);
    }
    if (action->type != POPPLER_ACTION_GOTO_DEST || !action->goto_dest.dest) {
        return NULL;
    }
    const PopplerDest *dest = action->goto_dest.dest;
    int page = dest->page_num;
    if (dest->type == POPPLER_DEST_NAMED && dest->named_dest) {
        PopplerDest *found = poppler_document_find_dest(doc, dest->named_dest);
        page = found ? found->page_num : 0;
        if (found) {
            poppler_dest_free(found);
        }
    }
    return page > 0 ? g_strdup_printf("#page=%d", page) : NULL;
}

static struct box link_box(const struct page *p, const PopplerRectangle *r)
{
    /* Bottom-left origin, rotated and cropped already. */
    const float x0 = (float)fmin(r->x1, r->x2), x1 = (float)fmax(r->x1, r->x2);
    const float y0 = p->height - (float)fmax(r->y1, r->y2);
    const float y1 = p->height - (float)fmin(r->y1, r->y2);
    return (struct box){ fmaxf(x0, 0), fmaxf(y0, 0), fminf(x1, p->width), fminf(y1, p->height) };
}

/* Poppler draws a link's border; that is no rule of the page. */
static bool border_of(const struct box *r, const struct box *link)
{
    const float off = 1.6f;
    const bool along_x = fabsf(r->x0 - link->x0) < off && fabsf(r->x1 - link->x1) < off &&
                         (fabsf(r->y0 - link->y0) < off || fabsf(r->y1 - link->y1) < off);
    const bool along_y = fabsf(r->y0 - link->y0) < off && fabsf(r->y1 - link->y1) < off &&
                         (fabsf(r->x0 - link->x0) < off || fabsf(r->x1 - link->x1) < off);
    return along_x || along_y;
}

/* Border strokes come in fours: a lone one is an underline and stays. */
static void rules_drop_border(struct page *p, const struct box *link)
{
    int n = 0, kept = 0;
    for (int i = 0; i < p->n_rules; i++) {
        n += border_of(&p->rules[i].box, link);
    }
    for (int i = 0; n >= 4 && i < p->n_rules; i++) {
        if (!border_of(&p->rules[i].box, link)) {
            p->rules[kept++] = p->rules[i];
        }
    }
    p->n_rules = n >= 4 ? kept : p->n_rules;
}

/* p's rules must be complete. */
static bool links_collect(PopplerDocument *doc, PopplerPage *page, struct page *p)
{
    GList *list = poppler_page_get_link_mapping(page);
    const guint n = g_list_length(list);
    p->links = mem_many(struct page_link, n < PDF_MAX_LINKS ? n : PDF_MAX_LINKS);
    bool ok = p->links != NULL;
    /* Poppler's list is reversed. */
    int budget = PDF_MAX_LINKS;
    for (GList *at = g_list_last(list); ok && at && budget > 0; at = at->prev, budget--) {
        const PopplerLinkMapping *m = at->data;
        const struct box b = link_box(p, &m->area);
        if (budget > PDF_MAX_LINKS - 500) {
            rules_drop_border(p, &b);
        }
        char *uri = b.x1 > b.x0 && b.y1 > b.y0 && m->action ? action_target(doc, m->action) : NULL;
        if (uri && *uri && strlen(uri) <= PDF_MAX_URI) {
            struct page_link *l = &p->links[p->n_links];
            l->box = b;
            l->uri = mem_strdup(uri);
            ok = l->uri != NULL;
            p->n_links += ok;
        }
        g_free(uri);
    }
    poppler_page_free_link_mapping(list);
    return ok;
}

/* --- the memfd --- */

static bool write_all(int fd, const void *bytes, size_t n, uint64_t at)
{
    const char *from = bytes;
    while (n) {
        const ssize_t put = pwrite(fd, from, n, (off_t)at);
        if (put <= 0) {
            return false;
        }
        from += put;
        n -= (size_t)put;
        at += (uint64_t)put;
    }
    return true;
}

static bool write_bitmap(int fd, cairo_surface_t *surface, uint64_t at)
{
    const int w = cairo_image_surface_get_width(surface);
    const int h = cairo_image_surface_get_height(surface);
    const int stride = cairo_image_surface_get_stride(surface);
    const unsigned char *data = cairo_image_surface_get_data(surface);
    const size_t row = 3 * (size_t)w;
    uint8_t *band = mem_array(BAND_ROWS, row);
    bool ok = band != NULL;
    for (int y = 0; ok && y < h; y += BAND_ROWS) {
        const int rows = h - y < BAND_ROWS ? h - y : BAND_ROWS;
        uint8_t *to = band;
        for (int r = 0; r < rows; r++) {
            const unsigned char *line = data + (size_t)(y + r) * (size_t)stride;
            for (int x = 0; x < w; x++, to += 3) {
                uint32_t px; /* xRGB in the machine's order */
                memcpy(&px, line + 4 * (size_t)x, sizeof px);
                to[0] = (uint8_t)(px >> 16);
                to[1] = (uint8_t)(px >> 8);
                to[2] = (uint8_t)px;
            }
        }
        ok = write_all(fd, band, row * (size_t)rows, at);
        at += row * (size_t)rows;
    }
    mem_free(band);
    return ok;
}

/* -1: no memory. */
static int page_write(const struct page *p, cairo_surface_t *surface, struct pdf_reply *reply)
{
    struct buf payload;
    buf_init(&payload, PDF_MAX_PAYLOAD);
    pdf_page_encode(p, &payload);
    const int fd = buf_ok(&payload) ? memfd_create("galley-page", MFD_CLOEXEC) : -1;
    bool ok = fd >= 0;
    if (ok) {
        *reply = (struct pdf_reply){ .page = p->index, .payload_bytes = (uint32_t)payload.n };
        ok = write_all(fd, payload.data, payload.n, 0);
        if (surface) {
            reply->bitmap_width = cairo_image_surface_get_width(surface);
            reply->bitmap_height = cairo_image_surface_get_height(surface);
            ok = ok && write_bitmap(fd, surface, pdf_bitmap_offset(reply));
        }
    }
    buf_deinit(&payload);
    if (!ok && fd >= 0) {
        close(fd);
    }
    return ok ? fd : -1;
}

/* The page of a checked size. */
static int sheet_of(PopplerDocument *doc, PopplerPage *page, const struct pdf_request *request,
                    struct drawing *d, struct pdf_reply *reply)
{
    int fd = -1;
    const double scale = scale_choose(request, d->width, d->height);
    struct page *p = mem_new(struct page);
    const double start = clock_seconds();
    cairo_surface_t *surface = p ? page_render(page, scale, d) : NULL;
    if (surface) {
        p->render_seconds = (float)(clock_seconds() - start);
        p->index = request->page;
        p->width = d->width;
        p->height = d->height;
        p->scale = request->dpi > 0 ? (float)scale : 0;
        if (text_collect(page, d, surface, (float)scale, p) && drawing_finish(d, p) &&
            links_collect(doc, page, p)) {
            fd = page_write(p, request->dpi > 0 ? surface : NULL, reply);
        }
        cairo_surface_destroy(surface);
    }
    page_free(p);
    return fd >= 0 ? fd : fail(reply, GALLEY_ENOMEM, "no memory for the page");
}

int sheet_make(PopplerDocument *doc, const struct pdf_request *request, struct pdf_reply *reply)
{
    PopplerPage *page = poppler_document_get_page(doc, request->page);
    if (!page) {
        return fail(reply, GALLEY_EINPUT, "the page is damaged or missing");
    }
    double w = 0, h = 0;
    int fd;
    poppler_page_get_size(page, &w, &h);
    if (!(w > 0 && h > 0)) {
        fd = fail(reply, GALLEY_EINPUT, "the page has no size");
    } else if (w > PDF_MAX_SIDE || h > PDF_MAX_SIDE) {
        fd = fail(reply, GALLEY_ELIMIT, "the page is larger than 14400 pt");
    } else {
        struct drawing d = { .width = (float)w, .height = (float)h };
        fd = sheet_of(doc, page, request, &d, reply);
        drawing_deinit(&d);
    }
    g_object_unref(page);
    return fd;
}
