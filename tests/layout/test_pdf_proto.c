/* test_pdf_proto.c - packets and pages survive the wire; nothing malformed gets through. */
#include <math.h>

#include "layout/pdf_proto.h"
#include "src/base/mem.h"
#include "tests/t.h"

static void request_round_trip(void)
{
    const struct pdf_request in = { .kind = PDF_REQUEST_PAGE,
                                    .page = 7,
                                    .dpi = 144.5,
                                    .max_pixels = 123456789012,
                                    .password = "s\xc3\xa9same" };
    struct pdf_request out;
    uint8_t bytes[PDF_MAX_PACKET];
    const size_t n = pdf_request_encode(&in, bytes);
    T_EQ(pdf_request_decode(&out, bytes, n, NULL), GALLEY_OK);
    T_EQ(out.kind, in.kind);
    T_EQ(out.page, 7);
    T_NEAR(out.dpi, 144.5, 0);
    T_EQ(out.max_pixels, 123456789012);
    T_STR(out.password, in.password);
    for (size_t cut = 0; cut < n; cut++) {
        T_EQ(pdf_request_decode(&out, bytes, cut, NULL), GALLEY_EINPUT);
    }
    T_EQ(pdf_request_decode(&out, bytes, n + 1, NULL), GALLEY_EINPUT);
}

static void reply_round_trip(void)
{
    const struct pdf_reply in = { .status = GALLEY_EENCRYPTED,
                                  .n_pages = 12,
                                  .page = 3,
                                  .refused = 127,
                                  .payload_bytes = 5000,
                                  .bitmap_width = 10,
                                  .bitmap_height = 20,
                                  .message = "why" };
    struct pdf_reply out;
    uint8_t bytes[PDF_MAX_PACKET];
    const size_t n = pdf_reply_encode(&in, bytes);
    T_EQ(pdf_reply_decode(&out, bytes, n, NULL), GALLEY_OK);
    T_EQ(out.status, in.status);
    T_EQ(out.n_pages, 12);
    T_EQ(out.refused, 127);
    T_EQ(out.bitmap_height, 20);
    T_STR(out.message, "why");
    T_EQ(pdf_bitmap_offset(&out), 8192);
    T_EQ(pdf_reply_bytes(&out), 8192 + 600);
    for (size_t cut = 0; cut < n; cut++) {
        T_EQ(pdf_reply_decode(&out, bytes, cut, NULL), GALLEY_EINPUT);
    }
}

static void reply_bad_fields(void)
{
    const struct pdf_reply bad[] = {
        { .status = (enum galley_status)5 },
        { .n_pages = -1 },
        { .page = -1 },
        { .payload_bytes = PDF_MAX_PAYLOAD + 1 },
        { .bitmap_width = 10 },
        { .bitmap_width = 40000, .bitmap_height = 1 },
        { .bitmap_width = -1, .bitmap_height = -1 },
    };
    uint8_t bytes[PDF_MAX_PACKET];
    struct pdf_reply out;
    for (size_t i = 0; i < COUNT(bad); i++) {
        const size_t n = pdf_reply_encode(&bad[i], bytes);
        T_EQ(pdf_reply_decode(&out, bytes, n, NULL), GALLEY_EINPUT);
    }
}

static struct glyph glyphs[3] = { { 'a', { 1, 2, 3, 4 }, 0 },
                                  { 0x1f600, { 3, 2, 5, 4 }, 1 },
                                  { '\n', { 5, 4, 5, 4 }, 1 } };
static struct text_run runs[2] = {
    { "Face-Bold", 10, { 1, 2, 3 }, RUN_BOLD, 1, 0 },
    { "", 0, { 0, 0, 0 }, RUN_INVISIBLE, 1, 270 },
};
static struct page_rule rules[1] = { { { 0, 5, 100, 5.3f }, false, { 9, 9, 9 } } };
static struct page_picture pictures[1] = { { { 10, 10, 20, 20 }, true } };
static char uri[] = "http://example.org/";
static struct page_link links[1] = { { { 1, 1, 2, 2 }, uri } };

static struct page sample(void)
{
    return (struct page){ .index = 4,
                          .width = 595,
                          .height = 842,
                          .scale = 2,
                          .glyphs = glyphs,
                          .n_glyphs = 3,
                          .runs = runs,
                          .n_runs = 2,
                          .rules = rules,
                          .n_rules = 1,
                          .pictures = pictures,
                          .n_pictures = 1,
                          .links = links,
                          .n_links = 1 };
}

static void encode(const struct page *p, struct buf *b)
{
    buf_init(b, PDF_MAX_PAYLOAD);
    pdf_page_encode(p, b);
    T_OK(buf_ok(b));
}

static void page_round_trip(void)
{
    struct page in = sample(), *out;
    struct buf b;
    encode(&in, &b);
    T_EQ(pdf_page_decode(&out, (uint8_t *)b.data, b.n, NULL), GALLEY_OK);
    T_EQ(out->index, 4);
    T_NEAR(out->height, 842, 0);
    T_EQ(out->n_glyphs, 3);
    T_EQ(out->glyphs[1].cp, 0x1f600);
    T_EQ(out->glyphs[1].run, 1);
    T_NEAR(out->glyphs[1].box.x1, 5, 0);
    T_STR(out->runs[0].font, "Face-Bold");
    T_EQ(out->runs[0].rgb[2], 3);
    T_EQ(out->runs[1].angle, 270);
    T_EQ(out->runs[1].flags, RUN_INVISIBLE);
    T_NEAR(out->runs[1].conf, 1, 0);
    T_NEAR(out->rules[0].box.y1, 5.3f, 0);
    T_OK(out->pictures[0].vector);
    T_STR(out->links[0].uri, uri);
    page_free(out);
    for (size_t cut = 0; cut < b.n; cut++) {
        T_EQ(pdf_page_decode(&out, (uint8_t *)b.data, cut, NULL), GALLEY_EINPUT);
        T_OK(out == NULL);
    }
    buf_add_char(&b, 0);
    T_EQ(pdf_page_decode(&out, (uint8_t *)b.data, b.n, NULL), GALLEY_EINPUT);
    buf_deinit(&b);
}

/* One field wrong at a time. */
static void page_expect_bad(const struct page *p)
{
    struct page *out;
    struct buf b;
    encode(p, &b);
    const enum galley_status rc = pdf_page_decode(&out, (uint8_t *)b.data, b.n, NULL);
    buf_deinit(&b);
    T_EQ(rc, GALLEY_EINPUT);
}

static void page_bad_fields(void)
{
    struct page p;
    p = sample(), p.width = NAN, page_expect_bad(&p);
    p = sample(), p.width = 0, page_expect_bad(&p);
    p = sample(), p.height = 20000, page_expect_bad(&p);
    p = sample(), p.scale = -1, page_expect_bad(&p);
    p = sample(), p.index = -1, page_expect_bad(&p);
    struct glyph g = glyphs[0];
    p = sample(), p.glyphs = &g, p.n_glyphs = 1;
    g.run = 2, page_expect_bad(&p);
    g = glyphs[0], g.run = -1, page_expect_bad(&p);
    g = glyphs[0], g.cp = 0xd800, page_expect_bad(&p);
    g = glyphs[0], g.cp = 0x110000, page_expect_bad(&p);
    g = glyphs[0], g.cp = 0, page_expect_bad(&p);
    g = glyphs[0], g.box.x1 = 0, page_expect_bad(&p);
    g = glyphs[0], g.box.y0 = NAN, page_expect_bad(&p);
    g = glyphs[0], g.box.x1 = INFINITY, page_expect_bad(&p);
    struct text_run r = runs[0];
    p = sample(), p.runs = &r, p.n_runs = 1, p.n_glyphs = 1;
    r.angle = 45, page_expect_bad(&p);
    r = runs[0], r.size = NAN, page_expect_bad(&p);
    r = runs[0], r.flags = 0x80, page_expect_bad(&p);
}

/* Every bit flipped, one at a time: never a crash, and what is accepted is well-formed. */
static void page_flipped_bits(void)
{
    struct page in = sample(), *out;
    struct buf b;
    encode(&in, &b);
    int n_good = 0;
    for (size_t i = 0; i < 8 * b.n; i++) {
        b.data[i / 8] ^= (char)(1 << i % 8);
        if (pdf_page_decode(&out, (uint8_t *)b.data, b.n, NULL) == GALLEY_OK) {
            n_good++;
            for (int k = 0; k < out->n_glyphs; k++) {
                T_OK(out->glyphs[k].run >= 0 && out->glyphs[k].run < out->n_runs);
                T_OK(out->glyphs[k].box.x0 <= out->glyphs[k].box.x1);
            }
            page_free(out);
        }
        b.data[i / 8] ^= (char)(1 << i % 8);
    }
    buf_deinit(&b);
    T_OK(n_good > 0);
}

static void page_memory_is_short(void)
{
    struct page in = sample(), *out;
    struct buf b;
    encode(&in, &b);
    for (long n = 1; n <= 7; n++) {
        mem_fail_at(n);
        const enum galley_status rc = pdf_page_decode(&out, (uint8_t *)b.data, b.n, NULL);
        mem_fail_at(0);
        T_EQ(rc, GALLEY_ENOMEM);
    }
    buf_deinit(&b);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "request_round_trip", request_round_trip },
        { "reply_round_trip", reply_round_trip },
        { "reply_bad_fields", reply_bad_fields },
        { "page_round_trip", page_round_trip },
        { "page_bad_fields", page_bad_fields },
        { "page_flipped_bits", page_flipped_bits },
        { "page_memory_is_short", page_memory_is_short },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
