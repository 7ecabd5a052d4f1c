/* test_pdf.c - what a page holds: text, styles, rules, pictures, links, frames. */
#include <math.h>

#include "layout/pdf.h"
#include "layout/pdf_proto.h"
#include "src/base/mem.h"
#include "tests/layout/pdf_write.h"
#include "tests/t.h"

#define A4 "/MediaBox[0 0 595 842]"

static struct pdf *open_written(struct pdf_writer *w)
{
    struct pdf *pdf;
    struct galley_err err = { 0 };
    T_OK(buf_ok(&w->out));
    if (pdf_open(&pdf, w->out.data, w->out.n, NULL, &err)) {
        T_FAIL("pdf_open: %s", err.msg);
    }
    return pdf;
}

static struct page *page_of(struct pdf *pdf, int i, double dpi)
{
    struct page *page;
    struct galley_err err = { 0 };
    if (pdf_page(pdf, i, dpi, &page, &err)) {
        T_FAIL("pdf_page %d: %s", i, err.msg);
    }
    return page;
}

/* The one page that this drawing makes. */
static struct page *page_drawn(const char *page, const char *content, double dpi)
{
    static struct pdf_writer w;
    pdf_write_pages(&w, 1, page, content);
    struct pdf *pdf = open_written(&w);
    T_EQ(pdf_n_pages(pdf), 1);
    struct page *p = page_of(pdf, 0, dpi);
    pdf_close(pdf);
    pdf_write_free(&w);
    return p;
}

/* Index of the first glyph of an ASCII word; -1. */
static int word_find(const struct page *p, const char *word)
{
    const int n = (int)strlen(word);
    for (int i = 0; i + n <= p->n_glyphs; i++) {
        int k = 0;
        while (k < n && p->glyphs[i + k].cp == (uint32_t)(unsigned char)word[k]) {
            k++;
        }
        if (k == n) {
            return i;
        }
    }
    return -1;
}

static const struct text_run *run_of(const struct page *p, const char *word)
{
    const int i = word_find(p, word);
    if (i < 0) {
        T_FAIL("no word \"%s\" on the page", word);
    }
    return &p->runs[p->glyphs[i].run];
}

static void text_and_styles(void)
{
    struct page *p =
        page_drawn(A4,
                   "BT /F1 12 Tf 72 700 Td (Plain words) Tj /F2 10.5 Tf 0 -20 Td 1 0 0 rg "
                   "(Strong) Tj 0 g /F3 9 Tf 0 -20 Td (typed) Tj ET",
                   144);
    T_NEAR(p->width, 595, 0.01);
    T_NEAR(p->height, 842, 0.01);
    T_NEAR(p->scale, 2, 1e-6);
    T_EQ(p->bitmap->width, 1190);
    T_EQ(p->bitmap->height, 1684);
    const struct text_run *r = run_of(p, "Plain");
    T_STR(r->font, "Helvetica");
    T_NEAR(r->size, 12, 0.01);
    T_EQ(r->flags, 0);
    T_EQ(r->angle, 0);
    T_NEAR(r->conf, 1, 0);
    r = run_of(p, "Strong");
    T_EQ(r->flags, RUN_BOLD | RUN_ITALIC);
    T_NEAR(r->size, 10.5, 0.01);
    T_EQ(r->rgb[0], 255);
    T_EQ(r->rgb[1], 0);
    r = run_of(p, "typed");
    T_EQ(r->flags, RUN_MONO);
    T_EQ(r->rgb[0], 0);
    /* Helvetica: P is 667, l 222 wide (of 1000), so the second glyph starts at 72 + 8.004. */
    const struct glyph *g = &p->glyphs[word_find(p, "Plain")];
    T_NEAR(g[0].box.x0, 72, 0.05);
    T_NEAR(g[1].box.x0, 80.004, 0.05);
    T_NEAR(g[1].box.x1, 82.668, 0.05);
    T_OK(g[0].box.y0 < 142 - 7 && g[0].box.y1 >= 142); /* base line at 842 - 700 */
    page_free(p);
}

static void invisible_text(void)
{
    struct page *p = page_drawn(A4,
                                "BT /F1 12 Tf 72 700 Td (seen) Tj 3 Tr 0 -30 Td (unseen) Tj ET\n"
                                "BT 0 Tr 1 g 72 600 Td (whited) Tj 0 g ET\n"
                                "BT 72 500 Td (buried) Tj ET q 100 0 0 50 60 480 cm /Im Do Q\n"
                                "BT 72 400 Td (stamp) Tj ET\n"
                                "q 100 0 0 50 60 280 cm /Im Do Q BT 72 300 Td (above) Tj ET\n"
                                "BT 1 Tr 72 200 Td (outlined) Tj ET\n"
                                "0 g 60 90 100 30 re f BT 0 Tr 1 g 72 100 Td (inverse) Tj ET",
                                144);
    T_EQ(run_of(p, "seen")->flags, 0);
    T_EQ(run_of(p, "unseen")->flags, RUN_INVISIBLE);
    T_EQ(run_of(p, "whited")->flags, RUN_INVISIBLE);
    T_EQ(run_of(p, "buried")->flags, RUN_INVISIBLE);
    T_EQ(run_of(p, "stamp")->flags, 0);
    T_EQ(run_of(p, "above")->flags, 0);
    T_EQ(run_of(p, "outlined")->flags, 0);
    T_EQ(run_of(p, "inverse")->flags, 0);
    page_free(p);
}

/* Predefined CMaps come from poppler-data, through descriptors opened before the sandbox. */
static void text_japanese(void)
{
    struct page *p = page_drawn(A4, "BT /F4 14 Tf 72 550 Td <004130423044> Tj ET", 72);
    T_OK(p->n_glyphs >= 3);
    T_EQ(p->glyphs[0].cp, 'A');
    T_EQ(p->glyphs[1].cp, 0x3042);
    T_EQ(p->glyphs[2].cp, 0x3044);
    page_free(p);
}

static void text_angles(void)
{
    struct page *p =
        page_drawn(A4,
                   "BT /F1 12 Tf 1 0 0 1 100 700 Tm (zero) Tj 0 -1 1 0 100 600 Tm (down) Tj "
                   "0 1 -1 0 300 300 Tm (rise) Tj -1 0 0 -1 300 200 Tm (flip) Tj ET",
                   144);
    T_EQ(run_of(p, "zero")->angle, 0);
    T_EQ(run_of(p, "down")->angle, 90);
    T_EQ(run_of(p, "rise")->angle, 270);
    T_EQ(run_of(p, "flip")->angle, 180);
    page_free(p);
}

/* The rule whose middle line runs from (x0, y0) to (x1, y1), all within 0.6 pt. */
static const struct page_rule *rule_at(const struct page *p, double x0, double y0, double x1,
                                       double y1)
{
    for (int i = 0; i < p->n_rules; i++) {
        const struct box b = p->rules[i].box;
        const double across_x = p->rules[i].vertical ? (b.x0 + b.x1) / 2 : x0;
        const double across_y = p->rules[i].vertical ? y0 : (b.y0 + b.y1) / 2;
        const bool ends = p->rules[i].vertical ? fabs(b.y0 - y0) < 0.6 && fabs(b.y1 - y1) < 0.6
                                               : fabs(b.x0 - x0) < 0.6 && fabs(b.x1 - x1) < 0.6;
        if (ends && fabs(across_x - x0) < 0.6 && fabs(across_y - y0) < 0.6 &&
            p->rules[i].vertical == (x0 == x1)) {
            return &p->rules[i];
        }
    }
    T_FAIL("no rule %g %g %g %g among %d", x0, y0, x1, y1, p->n_rules);
}

static void rules_of_a_table(void)
{
    /* A frame and a cross of 0.3 pt strokes; a thin filled rectangle; dashes; a slanted line. */
    struct page *p =
        page_drawn(A4,
                   "0.3 w 72 400 200 100 re S 72 450 m 272 450 l S 172 400 m 172 500 l S\n"
                   "1 0 0 rg 72 380 200 0.5 re f 0 g\n"
                   "[2 2] 0 d 72 350 m 272 350 l S [] 0 d\n"
                   "1 g 72 340 200 0.5 re f 0 g 0.8 g 300 400 100 40 re f",
                   144);
    rule_at(p, 72, 342, 272, 342);
    rule_at(p, 72, 392, 272, 392);
    rule_at(p, 72, 442, 272, 442);
    rule_at(p, 72, 342, 72, 442);
    rule_at(p, 172, 342, 172, 442);
    rule_at(p, 272, 342, 272, 442);
    T_EQ(rule_at(p, 72, 461.75, 272, 461.75)->rgb[0], 255);
    rule_at(p, 72, 492, 272, 492);
    T_EQ(p->n_rules, 8); /* neither the white one nor the grey box */
    T_EQ(p->n_pictures, 0);
    page_free(p);
}

static void rules_at_low_resolution(void)
{
    struct page *p = page_drawn(A4, "0.3 w 72 400 200 100 re S 72 380 200 0.3 re f", 0);
    T_OK(p->bitmap == NULL);
    T_EQ(p->n_rules, 5);
    page_free(p);
}

static void pictures(void)
{
    struct page *p =
        page_drawn(A4,
                   "q 50 0 0 60 400 400 cm /Im Do Q\n"
                   "1 w 100 100 m 150 200 200 50 250 150 c S 100 100 m 200 180 l S\n"
                   /* a rounded box is no artwork */
                   "310 100 m 390 100 l 395 100 400 105 400 110 c 400 190 l 400 195 395 200 390 "
                   "200 c 310 200 l 305 200 300 195 300 190 c 300 110 l 300 105 305 100 310 100 "
                   "c S\n"
                   /* bars of a chart */
                   "0 0 1 rg 100 600 20 50 re f 130 600 20 80 re f 160 600 20 30 re f",
                   144);
    T_EQ(p->n_pictures, 3);
    const struct box image = p->pictures[0].box;
    T_OK(!p->pictures[0].vector);
    T_NEAR(image.x0, 400, 0.6);
    T_NEAR(image.y0, 842 - 460, 0.6);
    T_NEAR(image.x1, 450, 0.6);
    T_NEAR(image.y1, 842 - 400, 0.6);
    T_OK(p->pictures[1].vector && p->pictures[2].vector);
    const struct box *chart = &p->pictures[1].box, *curve = &p->pictures[2].box;
    if (chart->y0 > curve->y0) {
        const struct box *swap = chart;
        chart = curve;
        curve = swap;
    }
    T_NEAR(chart->x0, 100, 1);
    T_NEAR(chart->x1, 180, 1);
    T_NEAR(chart->y1, 242, 1);
    T_NEAR(curve->x0, 100, 1.5);
    T_NEAR(curve->x1, 250, 1.5);
    page_free(p);
}

/* Marked lines and an icon on a shaded box make no large picture. */
static void backgrounds(void)
{
    struct page *p =
        page_drawn(A4,
                   "1 1 0 rg 72 698 150 14 re f 72 684 190 14 re f 72 670 90 14 re f 0 g\n"
                   "BT /F1 10 Tf 72 702 Td (a line of marked text here) Tj 0 -14 Td "
                   "(another line of marked text there) Tj 0 -14 Td (and the last one) Tj ET\n"
                   "0.9 g 72 400 400 200 re f 0 g\n"
                   "80 550 m 80 580 110 580 110 550 c 110 540 80 540 80 550 c f",
                   144);
    T_EQ(p->n_pictures, 1);
    T_NEAR(p->pictures[0].box.x0, 80, 1);
    T_NEAR(p->pictures[0].box.x1, 110, 1);
    page_free(p);
}

/* --- frames: 4 rotations x 2 crop origins --- */

struct frame {
    int turn;
    double x0, y0, x1, y1; /* crop box in user space */
};

/* By the definition of /Rotate: the crop box's content, turned clockwise. */
static void frame_point(const struct frame *f, double x, double y, double *px, double *py)
{
    switch (f->turn) {
    case 0:
        *px = x - f->x0;
        *py = f->y1 - y;
        break;
    case 90:
        *px = y - f->y0;
        *py = x - f->x0;
        break;
    case 180:
        *px = f->x1 - x;
        *py = y - f->y0;
        break;
    default:
        *px = f->y1 - y;
        *py = f->x1 - x;
    }
}

static void box_check(const struct frame *f, struct box b, double x0, double y0, double x1,
                      double y1)
{
    double ax, ay, bx, by;
    frame_point(f, x0, y0, &ax, &ay);
    frame_point(f, x1, y1, &bx, &by);
    T_NEAR(b.x0, fmin(ax, bx), 0.6);
    T_NEAR(b.x1, fmax(ax, bx), 0.6);
    T_NEAR(b.y0, fmin(ay, by), 0.6);
    T_NEAR(b.y1, fmax(ay, by), 0.6);
}

static void frame_check(const struct frame *f, const struct page *p)
{
    const bool lying = f->turn == 90 || f->turn == 270;
    T_NEAR(p->width, lying ? f->y1 - f->y0 : f->x1 - f->x0, 0.01);
    T_NEAR(p->height, lying ? f->x1 - f->x0 : f->y1 - f->y0, 0.01);
    /* the word: its origin on the base line, a little inside */
    double x, y;
    frame_point(f, 121, 302, &x, &y);
    const struct box first = p->glyphs[word_find(p, "Kite")].box;
    T_OK(x >= first.x0 && x <= first.x1 && y >= first.y0 && y <= first.y1);
    T_EQ(run_of(p, "Kite")->angle, f->turn);
    T_EQ(run_of(p, "Kite")->flags, 0);
    T_EQ(p->n_pictures, 1);
    box_check(f, p->pictures[0].box, 200, 400, 250, 430);
    T_EQ(p->n_rules, 1);
    box_check(f, p->rules[0].box, 120, 499.5, 320, 500.5);
    T_EQ(p->n_links, 1);
    T_STR(p->links[0].uri, "http://example.org/a");
    box_check(f, p->links[0].box, 120, 298, 150, 314);
    /* and the pixels are where the boxes say: red inside the image, white beside it */
    frame_point(f, 225, 415, &x, &y);
    const uint8_t *px =
        p->bitmap->rgb + (size_t)(y * p->scale) * p->bitmap->stride + 3 * (size_t)(x * p->scale);
    T_OK(px[0] > 200 && px[1] < 50);
    frame_point(f, 225, 395, &x, &y);
    px = p->bitmap->rgb + (size_t)(y * p->scale) * p->bitmap->stride + 3 * (size_t)(x * p->scale);
    T_OK(px[0] > 250 && px[1] > 250);
}

static void frames(void)
{
    static struct pdf_writer w;
    for (int turn = 0; turn < 360; turn += 90) {
        for (int crop = 0; crop < 2; crop++) {
            const struct frame f = crop ? (struct frame){ turn, 50, 70, 550, 770 }
                                        : (struct frame){ turn, 0, 0, 595, 842 };
            char page[512];
            snprintf(page, sizeof page,
                     A4 "/CropBox[%g %g %g %g]/Rotate %d/Annots[<</Type/Annot/Subtype/Link"
                        "/Border[0 0 0]/Rect[120 298 150 314]"
                        "/A<</S/URI/URI(http://example.org/a)>>>>]",
                     f.x0, f.y0, f.x1, f.y1, turn);
            pdf_write_pages(&w, 1, page,
                            "BT /F1 12 Tf 120 300 Td (Kite) Tj ET q 50 0 0 30 200 400 cm /Im Do Q "
                            "1 w 120 500 m 320 500 l S");
            struct pdf *pdf = open_written(&w);
            struct page *p = page_of(pdf, 0, 144);
            frame_check(&f, p);
            page_free(p);
            pdf_close(pdf);
            pdf_write_free(&w);
        }
    }
}

static void links_inside(void)
{
    static struct pdf_writer w;
    pdf_write_begin(&w);
    pdf_write_object(&w,
                     "<</Type/Catalog/Pages 2 0 R/Names<</Dests<</Names[(spot)[4 0 R/Fit]]>>>>>>");
    pdf_write_object(&w, "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>");
    pdf_write_object(&w, "<</Type/Page/Parent 2 0 R" A4 "/Annots[<</Subtype/Link/Rect[10 10 50 20]"
                         "/Dest[4 0 R/Fit]>><</Subtype/Link/Rect[10 30 50 40]/Dest(spot)>>"
                         "<</Subtype/Link/Rect[10 50 50 60]/Dest(nowhere)>>"
                         "<</Subtype/Link/Rect[10 70 50 80]/A<</S/Launch/F(x)>>>>]>>");
    pdf_write_object(&w, "<</Type/Page/Parent 2 0 R" A4 ">>");
    pdf_write_end(&w, 1);
    struct pdf *pdf = open_written(&w);
    T_EQ(pdf_n_pages(pdf), 2);
    struct page *p = page_of(pdf, 0, 0);
    T_EQ(p->n_links, 2);
    T_STR(p->links[0].uri, "#page=2");
    T_STR(p->links[1].uri, "#page=2");
    T_EQ(p->n_rules, 0); /* borders of links are none */
    page_free(p);
    pdf_close(pdf);
    pdf_write_free(&w);
}

/* Right-to-left words: the string carries controls, the boxes do not; Hebrew alef-bet-gimel drawn
 * from the right must read alef first, and alef's box must lie rightmost. */
static void right_to_left_beside(const char *latin)
{
    static struct pdf_writer w;
    static const char map[] =
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def 1 "
        "begincodespacerange <00> <ff> endcodespacerange 3 beginbfchar <41> <05D0> <42> <05D1> "
        "<43> <05D2> endbfchar endcmap end end";
    /* visual order: gimel (C) left, alef (A) right, then a Latin word */
    char text[256];
    snprintf(text, sizeof text,
             "BT /F 20 Tf 100 500 Td (CBA) Tj ET BT /L 20 Tf 200 500 Td (%s) Tj ET", latin);
    pdf_write_begin(&w);
    pdf_write_object(&w, "<</Type/Catalog/Pages 2 0 R>>");
    pdf_write_object(&w, "<</Type/Pages/Kids[3 0 R]/Count 1>>");
    pdf_write_object(&w, "<</Type/Page/Parent 2 0 R" A4
                         "/Contents 4 0 R/Resources<</Font<</F 5 0 R/L 7 0 R>>>>>>");
    pdf_write_stream(&w, "", text, strlen(text));
    pdf_write_object(&w, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>");
    pdf_write_stream(&w, "", map, strlen(map));
    pdf_write_object(&w, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>");
    pdf_write_end(&w, 1);
    struct pdf *pdf = open_written(&w);
    struct page *p = page_of(pdf, 0, 144);
    int at[3] = { -1, -1, -1 };
    for (int i = 0; i < p->n_glyphs; i++) {
        T_OK(p->glyphs[i].cp < 0x202a || p->glyphs[i].cp > 0x202e);
        if (p->glyphs[i].cp >= 0x5d0 && p->glyphs[i].cp <= 0x5d2) {
            at[p->glyphs[i].cp - 0x5d0] = i;
        }
    }
    T_OK(at[0] >= 0 && at[1] >= 0 && at[2] >= 0);
    /* Helvetica: C is 722 wide, B 667: at 20 pt they start at 100, 114.44, 127.78. */
    T_NEAR(p->glyphs[at[2]].box.x0, 100, 0.2);
    T_NEAR(p->glyphs[at[1]].box.x0, 114.44, 0.2);
    T_NEAR(p->glyphs[at[0]].box.x0, 127.78, 0.2);
    T_OK(at[0] < at[1] && at[1] < at[2]); /* reading order */
    T_NEAR(p->glyphs[word_find(p, "xyz")].box.x0, 200, 0.2);
    page_free(p);
    pdf_close(pdf);
    pdf_write_free(&w);
}

static void text_right_to_left(void)
{
    right_to_left_beside("xyz");                      /* a page mostly right to left */
    right_to_left_beside("xyz and many other words"); /* and one mostly left to right */
}

/* A form drawn as a half-transparent group, shifted by (50, 60); a Type 3 font; a tiling pattern; a
 * soft mask.  Groups keep the page's coordinates and are no pictures themselves; what is drawn
 * inside glyphs, tiles and masks is neither rule nor picture. */
static void groups_and_patterns(void)
{
    static struct pdf_writer w;
    static const char form[] = "1 w 100 500 m 300 500 l S q 50 0 0 30 200 400 cm /Im Do Q "
                               "BT /F 12 Tf 100 300 Td (inner) Tj ET";
    static const char box[] = "1000 0 0 0 750 750 d1 0 0 750 750 re f 0 0 m 10 900 500 0 0 0 c f";
    static const char tile[] = "0 0 m 10 10 l S 0 0 8 0.5 re f";
    static const char mask[] = "1 g 0 0 595 842 re f 0 0 300 1 re f";
    static const char page[] =
        "q /G gs 1 0 0 1 50 60 cm /X Do Q BT /T 10 Tf 100 200 Td (aaa) Tj ET\n"
        "q /Pattern cs /P scn 400 100 100 50 re f Q\n"
        "q /S gs 0 0 1 rg 400 300 100 0.5 re f Q";
    pdf_write_begin(&w);
    pdf_write_object(&w, "<</Type/Catalog/Pages 2 0 R>>");
    pdf_write_object(&w, "<</Type/Pages/Kids[3 0 R]/Count 1>>");
    pdf_write_object(
        &w, "<</Type/Page/Parent 2 0 R" A4
            "/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>/Font<</T 8 0 R>>/Pattern<</P "
            "10 0 R>>/ExtGState<</G<</ca 0.5/CA 0.5>>/S<</SMask<</S/Luminosity/G 11 0 R>>>>"
            ">>>>>>");
    pdf_write_stream(&w, "", page, strlen(page));
    pdf_write_stream(&w,
                     "/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Group<</S/Transparency>>"
                     "/Resources<</XObject<</Im 6 0 R>>/Font<</F 7 0 R>>>>",
                     form, strlen(form));
    pdf_write_stream(&w,
                     "/Type/XObject/Subtype/Image/Width 1/Height 2/BitsPerComponent 8"
                     "/ColorSpace/DeviceRGB",
                     "\377\0\0\377\0\0", 6);
    pdf_write_object(&w, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>");
    pdf_write_object(
        &w, "<</Type/Font/Subtype/Type3/FontBBox[0 0 750 750]/FontMatrix[0.001 0 0 0.001 0 "
            "0]/CharProcs<</a 9 0 R>>/Encoding<</Type/Encoding/Differences[97/a]>>"
            "/FirstChar 97/LastChar 97/Widths[1000]/Resources<<>>>>");
    pdf_write_stream(&w, "", box, strlen(box));
    pdf_write_stream(&w,
                     "/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 10 10]/XStep 10"
                     "/YStep 10/Resources<<>>",
                     tile, strlen(tile));
    pdf_write_stream(&w,
                     "/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Group<</S/Transparency/CS"
                     "/DeviceGray>>",
                     mask, strlen(mask));
    pdf_write_end(&w, 1);
    struct pdf *pdf = open_written(&w);
    struct page *p = page_of(pdf, 0, 144);
    rule_at(p, 150, 842 - 560, 350, 842 - 560);
    rule_at(p, 400, 842 - 300.25, 500, 842 - 300.25);
    int n_images = 0;
    for (int i = 0; i < p->n_pictures; i++) {
        n_images += !p->pictures[i].vector;
    }
    T_EQ(n_images, 1);
    T_NEAR(p->pictures[0].box.x0, 250, 0.6);
    T_NEAR(p->pictures[0].box.y1, 842 - 460, 0.6);
    T_EQ(p->n_pictures, 1);
    T_EQ(run_of(p, "inner")->flags, 0);
    T_EQ(run_of(p, "aaa")->flags, 0);
    T_NEAR(p->glyphs[word_find(p, "inner")].box.x0, 150, 0.1);
    page_free(p);
    pdf_close(pdf);
    pdf_write_free(&w);
}

static void scale_is_lowered(void)
{
    static struct pdf_writer w;
    const struct pdf_options opt = { .max_page_pixels = 100000 };
    struct pdf *pdf;
    struct galley_err err = { 0 };
    pdf_write_pages(&w, 1, A4, "BT /F1 12 Tf 72 700 Td (small) Tj ET");
    T_EQ(pdf_open(&pdf, w.out.data, w.out.n, &opt, &err), GALLEY_OK);
    struct page *p = page_of(pdf, 0, 300);
    T_OK(p->bitmap->width * p->bitmap->height <= 100000);
    T_OK(p->bitmap->width * p->bitmap->height > 97000);
    T_NEAR(p->scale, p->bitmap->width / p->width, 0.01);
    page_free(p);
    pdf_close(pdf);
    pdf_write_free(&w);
}

static void sandbox_holds(void)
{
    static struct pdf_writer w;
    uint32_t refused = 0;
    pdf_write_pages(&w, 1, A4, "");
    struct pdf *pdf = open_written(&w);
    T_EQ(pdf_probe_sandbox(pdf, &refused, NULL), GALLEY_OK);
    T_EQ(refused, PDF_PROBE_ALL);
    struct page *p = page_of(pdf, 0, 72);
    T_EQ(p->n_glyphs, 0);
    page_free(p);
    pdf_close(pdf);
    pdf_write_free(&w);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "text_and_styles", text_and_styles },
        { "invisible_text", invisible_text },
        { "text_japanese", text_japanese },
        { "text_angles", text_angles },
        { "text_right_to_left", text_right_to_left },
        { "rules_of_a_table", rules_of_a_table },
        { "rules_at_low_resolution", rules_at_low_resolution },
        { "pictures", pictures },
        { "backgrounds", backgrounds },
        { "frames", frames },
        { "links_inside", links_inside },
        { "groups_and_patterns", groups_and_patterns },
        { "scale_is_lowered", scale_is_lowered },
        { "sandbox_holds", sandbox_holds },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
