/* pdf_proto.c - encoder and decoder of the packets and pages of pdf_proto.h. */
#include "layout/pdf_proto.h"

#include <math.h>
#include <string.h>

#include "src/base/mem.h"

#define MAGIC_REQUEST 0x71724750u
#define MAGIC_REPLY   0x70724750u
#define MAGIC_PAGE    0x67704750u

/* Bounded cursors: the first access outside sets `bad` and everything after reads as zero. */
struct reader {
    const uint8_t *p;
    size_t n;
    bool bad;
};

static void read_bytes(struct reader *r, void *to, size_t n)
{
    if (r->bad || n > r->n) {
        r->bad = true;
        memset(to, 0, n);
        return;
    }
    memcpy(to, r->p, n);
    r->p += n;
    r->n -= n;
}

static uint32_t read_u32(struct reader *r)
{
    uint32_t v;
    read_bytes(r, &v, sizeof v);
    return v;
}

static int32_t read_i32(struct reader *r)
{
    return (int32_t)read_u32(r);
}

static float read_f32(struct reader *r)
{
    float v;
    read_bytes(r, &v, sizeof v);
    return v;
}

/* A counted string of at most max bytes into to[max + 1]. */
static void read_text(struct reader *r, char *to, size_t max)
{
    const uint32_t n = read_u32(r);
    to[0] = 0;
    if (n > max || n > r->n) {
        r->bad = true;
        return;
    }
    read_bytes(r, to, n);
    to[n] = 0;
}

struct writer {
    uint8_t *p;
    size_t n;
};

static void write_bytes(struct writer *w, const void *from, size_t n)
{
    memcpy(w->p + w->n, from, n);
    w->n += n;
}

static void write_u32(struct writer *w, uint32_t v)
{
    write_bytes(w, &v, sizeof v);
}

static void write_text(struct writer *w, const char *s, size_t max)
{
    const size_t n = strnlen(s, max);
    write_u32(w, (uint32_t)n);
    write_bytes(w, s, n);
}

size_t pdf_request_encode(const struct pdf_request *r, uint8_t out[PDF_MAX_PACKET])
{
    struct writer w = { out, 0 };
    write_u32(&w, MAGIC_REQUEST);
    write_u32(&w, (uint32_t)r->kind);
    write_u32(&w, (uint32_t)r->page);
    write_bytes(&w, &r->dpi, sizeof r->dpi);
    write_bytes(&w, &r->max_pixels, sizeof r->max_pixels);
    write_text(&w, r->password, PDF_MAX_PASSWORD);
    return w.n;
}

enum galley_status pdf_request_decode(struct pdf_request *r, const uint8_t *bytes, size_t n,
                                      struct galley_err *err)
{
    struct reader in = { bytes, n, false };
    *r = (struct pdf_request){ 0 };
    const uint32_t magic = read_u32(&in);
    const uint32_t kind = read_u32(&in);
    r->page = read_i32(&in);
    read_bytes(&in, &r->dpi, sizeof r->dpi);
    read_bytes(&in, &r->max_pixels, sizeof r->max_pixels);
    read_text(&in, r->password, PDF_MAX_PASSWORD);
    if (in.bad || in.n || magic != MAGIC_REQUEST || kind < PDF_REQUEST_OPEN ||
        kind > PDF_REQUEST_PROBE || !(r->dpi >= 0 && r->dpi <= 1e5)) {
        *r = (struct pdf_request){ 0 };
        return galley_err_set(err, GALLEY_EINPUT, "malformed request of %zu bytes", n);
    }
    r->kind = (enum pdf_request_kind)kind;
    return GALLEY_OK;
}

size_t pdf_reply_encode(const struct pdf_reply *r, uint8_t out[PDF_MAX_PACKET])
{
    struct writer w = { out, 0 };
    write_u32(&w, MAGIC_REPLY);
    write_u32(&w, (uint32_t)r->status);
    write_u32(&w, (uint32_t)r->n_pages);
    write_u32(&w, (uint32_t)r->page);
    write_u32(&w, r->refused);
    write_u32(&w, r->payload_bytes);
    write_u32(&w, (uint32_t)r->bitmap_width);
    write_u32(&w, (uint32_t)r->bitmap_height);
    write_text(&w, r->message, PDF_MAX_MESSAGE);
    return w.n;
}

static bool status_known(int status)
{
    switch (status) {
#define X(name, value, text) case value:
        GALLEY_STATUS_MAP(X)
#undef X
        return true;
    default:
        return false;
    }
}

enum galley_status pdf_reply_decode(struct pdf_reply *r, const uint8_t *bytes, size_t n,
                                    struct galley_err *err)
{
    struct reader in = { bytes, n, false };
    *r = (struct pdf_reply){ 0 };
    const uint32_t magic = read_u32(&in);
    const int status = read_i32(&in);
    r->n_pages = read_i32(&in);
    r->page = read_i32(&in);
    r->refused = read_u32(&in);
    r->payload_bytes = read_u32(&in);
    r->bitmap_width = read_i32(&in);
    r->bitmap_height = read_i32(&in);
    read_text(&in, r->message, PDF_MAX_MESSAGE);
    const bool one_side = (r->bitmap_width == 0) != (r->bitmap_height == 0);
    if (in.bad || in.n || magic != MAGIC_REPLY || !status_known(status) || r->n_pages < 0 ||
        r->page < 0 || r->payload_bytes > PDF_MAX_PAYLOAD || r->bitmap_width < 0 ||
        r->bitmap_height < 0 || r->bitmap_width > 32767 || r->bitmap_height > 32767 || one_side) {
        *r = (struct pdf_reply){ 0 };
        return galley_err_set(err, GALLEY_EINPUT, "malformed reply of %zu bytes", n);
    }
    r->status = (enum galley_status)status;
    return GALLEY_OK;
}

uint64_t pdf_bitmap_offset(const struct pdf_reply *r)
{
    return ((uint64_t)r->payload_bytes + PDF_BITMAP_ALIGN - 1) / PDF_BITMAP_ALIGN *
           PDF_BITMAP_ALIGN;
}

uint64_t pdf_reply_bytes(const struct pdf_reply *r)
{
    if (!r->bitmap_width) {
        return r->payload_bytes;
    }
    return pdf_bitmap_offset(r) + 3ull * (uint64_t)r->bitmap_width * (uint64_t)r->bitmap_height;
}

/* --- pages --- */

static void add_u32(struct buf *b, uint32_t v)
{
    buf_add(b, &v, sizeof v);
}

static void add_f32(struct buf *b, float v)
{
    buf_add(b, &v, sizeof v);
}

static void add_box(struct buf *b, const struct box *x)
{
    const float v[4] = { x->x0, x->y0, x->x1, x->y1 };
    buf_add(b, v, sizeof v);
}

static void add_text(struct buf *b, const char *s)
{
    const size_t n = strlen(s);
    add_u32(b, (uint32_t)n);
    buf_add(b, s, n);
}

void pdf_page_encode(const struct page *p, struct buf *b)
{
    add_u32(b, MAGIC_PAGE);
    add_u32(b, (uint32_t)p->index);
    add_f32(b, p->width);
    add_f32(b, p->height);
    add_f32(b, p->scale);
    add_f32(b, p->render_seconds);
    const int counts[5] = { p->n_glyphs, p->n_runs, p->n_rules, p->n_pictures, p->n_links };
    buf_add(b, counts, sizeof counts);
    for (int i = 0; i < p->n_glyphs; i++) {
        add_u32(b, p->glyphs[i].cp);
        add_box(b, &p->glyphs[i].box);
        add_u32(b, (uint32_t)p->glyphs[i].run);
    }
    for (int i = 0; i < p->n_runs; i++) {
        const struct text_run *r = &p->runs[i];
        add_text(b, r->font);
        add_f32(b, r->size);
        buf_add(b, r->rgb, 3);
        buf_add(b, &r->flags, 1);
        add_u32(b, (uint32_t)r->angle);
    }
    for (int i = 0; i < p->n_rules; i++) {
        add_box(b, &p->rules[i].box);
        buf_add(b, p->rules[i].rgb, 3);
        buf_add_char(b, p->rules[i].vertical ? 1 : 0);
    }
    for (int i = 0; i < p->n_pictures; i++) {
        add_box(b, &p->pictures[i].box);
        add_u32(b, p->pictures[i].vector);
    }
    for (int i = 0; i < p->n_links; i++) {
        add_box(b, &p->links[i].box);
        add_text(b, p->links[i].uri);
    }
}

/* Any box inside +-1e6 pt with ordered corners; text may lie a little outside its page. */
static struct box read_box(struct reader *r)
{
    struct box x;
    x.x0 = read_f32(r);
    x.y0 = read_f32(r);
    x.x1 = read_f32(r);
    x.y1 = read_f32(r);
    /* Written so that NaN fails too. */
    const bool good = x.x0 >= -1e6f && x.y0 >= -1e6f && x.x1 <= 1e6f && x.y1 <= 1e6f &&
                      x.x0 <= x.x1 && x.y0 <= x.y1;
    r->bad = r->bad || !good;
    return x;
}

/* A count of things of at least `least` encoded bytes each: never more than the rest can hold, so
 * that a lie cannot make the decoder allocate much. */
static int read_count(struct reader *r, int max, size_t least)
{
    const int32_t n = read_i32(r);
    if (n < 0 || n > max || (size_t)n > r->n / least) {
        r->bad = true;
        return 0;
    }
    return n;
}

static void read_glyphs(struct reader *r, struct page *p)
{
    for (int i = 0; i < p->n_glyphs && !r->bad; i++) {
        struct glyph *g = &p->glyphs[i];
        g->cp = read_u32(r);
        g->box = read_box(r);
        g->run = read_i32(r);
        const bool scalar = g->cp && g->cp <= 0x10ffff && (g->cp < 0xd800 || g->cp > 0xdfff);
        r->bad = r->bad || !scalar || g->run < 0 || g->run >= p->n_runs;
    }
}

static void read_runs(struct reader *r, struct page *p)
{
    const uint8_t known = RUN_BOLD | RUN_ITALIC | RUN_MONO | RUN_INVISIBLE;
    for (int i = 0; i < p->n_runs && !r->bad; i++) {
        struct text_run *t = &p->runs[i];
        read_text(r, t->font, sizeof t->font - 1);
        t->size = read_f32(r);
        read_bytes(r, t->rgb, 3);
        read_bytes(r, &t->flags, 1);
        const int32_t angle = read_i32(r);
        t->angle = (int16_t)angle;
        t->conf = 1.0f;
        const bool right = angle == 0 || angle == 90 || angle == 180 || angle == 270;
        r->bad = r->bad || !right || !(t->size >= 0 && t->size <= 1e5f) || (t->flags & ~known);
    }
}

static void read_rules(struct reader *r, struct page *p)
{
    for (int i = 0; i < p->n_rules && !r->bad; i++) {
        uint8_t vertical;
        p->rules[i].box = read_box(r);
        read_bytes(r, p->rules[i].rgb, 3);
        read_bytes(r, &vertical, 1);
        p->rules[i].vertical = vertical == 1;
        r->bad = r->bad || vertical > 1;
    }
}

static void read_pictures(struct reader *r, struct page *p)
{
    for (int i = 0; i < p->n_pictures && !r->bad; i++) {
        p->pictures[i].box = read_box(r);
        const uint32_t vector = read_u32(r);
        p->pictures[i].vector = vector == 1;
        r->bad = r->bad || vector > 1;
    }
}

/* False when memory is short. */
static bool read_links(struct reader *r, struct page *p)
{
    char uri[PDF_MAX_URI + 1];
    for (int i = 0; i < p->n_links && !r->bad; i++) {
        p->links[i].box = read_box(r);
        read_text(r, uri, PDF_MAX_URI);
        /* A NUL inside would make two readers see two addresses. */
        p->links[i].uri = mem_strdup(uri);
        if (!p->links[i].uri) {
            return false;
        }
    }
    return true;
}

enum galley_status pdf_page_decode(struct page **out, const uint8_t *bytes, size_t n,
                                   struct galley_err *err)
{
    struct reader r = { bytes, n, false };
    enum galley_status rc;
    *out = NULL;
    struct page *p = mem_new(struct page);
    if (!p) {
        goto no_memory;
    }
    const uint32_t magic = read_u32(&r);
    p->index = read_i32(&r);
    p->width = read_f32(&r);
    p->height = read_f32(&r);
    p->scale = read_f32(&r);
    p->render_seconds = read_f32(&r);
    p->n_glyphs = read_count(&r, PDF_MAX_GLYPHS, 24);
    p->n_runs = read_count(&r, PDF_MAX_RUNS, 16);
    p->n_rules = read_count(&r, PDF_MAX_RULES, 20);
    p->n_pictures = read_count(&r, PDF_MAX_PICTURES, 20);
    const int n_links = read_count(&r, PDF_MAX_LINKS, 20);
    if (r.bad || magic != MAGIC_PAGE || p->index < 0 ||
        !(p->width > 0 && p->width <= PDF_MAX_SIDE && p->height > 0 && p->height <= PDF_MAX_SIDE) ||
        !(p->scale >= 0 && p->scale <= 1e4f) ||
        !(p->render_seconds >= 0 && p->render_seconds <= 1e6f)) {
        goto malformed;
    }
    p->glyphs = mem_many(struct glyph, (size_t)p->n_glyphs);
    p->runs = mem_many(struct text_run, (size_t)p->n_runs);
    p->rules = mem_many(struct page_rule, (size_t)p->n_rules);
    p->pictures = mem_many(struct page_picture, (size_t)p->n_pictures);
    p->links = mem_many(struct page_link, (size_t)n_links);
    if (!p->glyphs || !p->runs || !p->rules || !p->pictures || !p->links) {
        goto no_memory;
    }
    p->n_links = n_links;
    read_glyphs(&r, p);
    read_runs(&r, p);
    read_rules(&r, p);
    read_pictures(&r, p);
    if (!read_links(&r, p)) {
        goto no_memory;
    }
    if (r.bad || r.n) {
        goto malformed;
    }
    *out = p;
    return GALLEY_OK;
malformed:
    rc = galley_err_set(err, GALLEY_EINPUT, "malformed page of %zu bytes", n);
    page_free(p);
    return rc;
no_memory:
    page_free(p);
    return galley_err_set(err, GALLEY_ENOMEM, "no memory for a page of %zu bytes", n);
}
