/* test_raster.c - ink, blankness, rules and pictures on drawn pages with known answers. */
#include "layout/raster.h"

#include <math.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "tests/layout/scan.h"
#include "tests/t.h"

#define DPI144 2.0f /* pixels per pt */

static void page_drop(struct page *p)
{
    mem_free(p->rules);
    mem_free(p->pictures);
}

static void test_ink(void)
{
    struct image *im = scan_plain(200, 100, 250);
    scan_fill(im, 0, 0, 50, 100, 20);
    const struct box all = { 0, 0, 100, 50 }, right = { 25, 0, 100, 50 }, left = { 0, 0, 25, 50 };
    const struct box off = { 200, 200, 300, 300 }, nan = { NAN, 0, NAN, 50 };
    const struct box half = { 0, 0, 50, 50 };
    T_NEAR(raster_ink(im, DPI144, &all), 0.25, 1e-6);
    T_NEAR(raster_ink(im, DPI144, &right), 0, 1e-6);
    T_NEAR(raster_ink(im, DPI144, &left), 0, 1e-6); /* all dark: that is its paper */
    T_NEAR(raster_ink(im, DPI144, &half), 0.5, 1e-6);
    T_NEAR(raster_ink(im, DPI144, &off), 0, 0);
    T_NEAR(raster_ink(im, DPI144, &nan), 0, 0);
    /* Colour counts although its luminance equals the paper's. */
    struct image *red = scan_plain(100, 100, 128);
    for (int i = 0; i < 10; i++) {
        uint8_t *p = red->rgb + (size_t)i * red->stride;
        for (int x = 0; x < 100; x++, p += 3) {
            p[0] = 255, p[1] = 65, p[2] = 137;
        }
    }
    T_NEAR(raster_ink(red, 1, &(struct box){ 0, 0, 100, 100 }), 0.1, 1e-6);
    image_unref(red);
    image_unref(im);
}

static void test_blank(void)
{
    struct image *im = scan_load("blank.png"); /* grain, specks, punch holes, edge shadow */
    T_OK(raster_blank(im, 100 / 72.0f));
    /* One small page number makes it a page: a 6 x 8 pt outline. */
    scan_fill(im, 400, 1060, 408, 1071, 40);
    scan_fill(im, 402, 1063, 406, 1068, 240);
    T_OK(!raster_blank(im, 100 / 72.0f));
    image_unref(im);
    for (int level = 0; level <= 255; level += 51) {
        im = scan_plain(300, 400, level);
        T_OK(raster_blank(im, DPI144));
        image_unref(im);
    }
    im = scan_noise(600, 800, 225, 255, 1);
    T_OK(raster_blank(im, DPI144));
    image_unref(im);
    static const char *const full[] = { "plain.png", "inverted.png", "korean.png",
                                        "photo.jpg", "small.png",    "figure.png" };
    for (size_t i = 0; i < COUNT(full); i++) {
        im = scan_load(full[i]);
        T_OK(!raster_blank(im, 150 / 72.0f));
        image_unref(im);
    }
}

/* A sheet that grows darker towards one side, 255 to 120, is still an empty sheet. */
static void test_blank_gradient(void)
{
    struct image *im = scan_plain(600, 800, 0);
    for (int x = 0; x < 600; x++) {
        scan_fill(im, x, 0, x + 1, 800, 255 - x * 135 / 600);
    }
    T_OK(raster_blank(im, DPI144));
    scan_fill(im, 550, 400, 570, 404, 60); /* a dash in the dim part */
    T_OK(!raster_blank(im, DPI144));
    image_unref(im);
}

static const struct page_rule *rule_near(const struct page *p, bool vertical, float at)
{
    for (int i = 0; i < p->n_rules; i++) {
        const struct box *b = &p->rules[i].box;
        const float mid = vertical ? (b->x0 + b->x1) / 2 : (b->y0 + b->y1) / 2;
        if (p->rules[i].vertical == vertical && fabsf(mid - at) < 1) {
            return &p->rules[i];
        }
    }
    T_FAIL("no %s rule at %.1f", vertical ? "vertical" : "horizontal", (double)at);
}

/* tests/layout/make_scans.py drew it: hairlines of one pixel, gray 90, with gaps; 6 rows, 4
 * columns. */
static void test_rules_table(void)
{
    struct image *im = scan_load("table.png");
    struct page p = { 0 };
    const float scale = 150 / 72.0f;
    T_OK(raster_rules(&p, im, scale, &(struct box){ 40, 175, 330, 195 }, 1));
    int n_h = 0, n_v = 0;
    for (int i = 0; i < p.n_rules; i++) {
        const struct box *b = &p.rules[i].box;
        n_h += !p.rules[i].vertical && b->x1 - b->x0 > 100;
        n_v += p.rules[i].vertical;
    }
    T_EQ(n_h, 6);
    T_EQ(n_v, 4);
    for (int i = 0; i < 6; i++) {
        const struct page_rule *r = rule_near(&p, false, 40.0f + 24.0f * (float)i);
        T_NEAR(r->box.x0, 40, 1);
        T_NEAR(r->box.x1, 360, 1);
        T_NEAR(r->rgb[0], 90, 8);
    }
    static const float xs[] = { 40, 180, 270, 360 };
    for (int i = 0; i < 4; i++) {
        const struct page_rule *r = rule_near(&p, true, xs[i]);
        T_NEAR(r->box.y0, 40, 1);
        T_NEAR(r->box.y1, 160, 1);
    }
    page_drop(&p);
    image_unref(im);
}

/* One rule broken every 20 pt, one climbing by 3 pixels, one red, one far too short, a box. */
static void test_rules_drawn(void)
{
    struct image *im = scan_plain(1000, 600, 255);
    for (int x = 100; x < 900; x += 40) {
        scan_fill(im, x, 100, x + 37, 101, 60);
    }
    for (int x = 100; x < 900; x++) {
        scan_fill(im, x, 200 + (x - 100) / 200, x + 1, 202 + (x - 100) / 200, 0);
    }
    scan_fill(im, 100, 300, 900, 302, 30);
    for (int y = 300; y < 302; y++) {
        for (int x = 100; x < 900; x++) {
            im->rgb[(size_t)y * im->stride + (size_t)x * 3] = 200;
        }
    }
    scan_fill(im, 100, 400, 120, 402, 0);
    scan_fill(im, 300, 400, 400, 500, 0);
    struct page p = { 0 };
    T_OK(raster_rules(&p, im, DPI144, NULL, 0));
    T_EQ(p.n_rules, 3);
    for (int i = 0; i < 3; i++) {
        const struct page_rule *r =
            rule_near(&p, false, i == 1 ? 101.25f : 50.5f + 50.0f * (float)i);
        T_NEAR(r->box.x0, 50, 1.1);
        T_NEAR(r->box.x1, 450, 2.1);
    }
    T_EQ(rule_near(&p, false, 150.5f)->rgb[0], 200);
    T_EQ(rule_near(&p, false, 150.5f)->rgb[1], 30);
    page_drop(&p);
    image_unref(im);
}

/* A hand's shadow over the corner: neither its edge nor its inside is a rule or a picture, and a
 * rule that runs into it is found whole. */
static void test_rules_shadow(void)
{
    struct image *im = scan_plain(1000, 800, 0);
    for (int y = 0; y < 800; y++) {
        for (int x = 0; x < 1000; x++) {
            const double r = hypot(x - 1000.0, y - 800.0);
            const int v = r > 420 ? 235 : r < 380 ? 150 : 150 + (int)((r - 380) * 85 / 40);
            scan_fill(im, x, y, x + 1, y + 1, v);
        }
    }
    scan_fill(im, 100, 700, 900, 702, 40);
    struct page p = { 0 };
    T_OK(raster_rules(&p, im, DPI144, NULL, 0));
    T_EQ(p.n_rules, 1);
    T_NEAR(p.rules[0].box.x0, 50, 1);
    T_NEAR(p.rules[0].box.x1, 450, 1);
    page_drop(&p);
    image_unref(im);
}

/* Print of 24 pt whose text boxes are known: stems and bars are letters, the underline stays. */
static void test_rules_text(void)
{
    struct image *im = scan_plain(800, 300, 255);
    for (int x = 100; x < 500; x += 40) {
        scan_fill(im, x, 100, x + 5, 140, 0);  /* stems of 20 pt */
        scan_fill(im, x, 100, x + 32, 104, 0); /* bars of 16 pt */
    }
    const struct box text = { 50, 46, 250, 74 };
    struct page p = { 0 };
    T_OK(raster_rules(&p, im, DPI144, &text, 1));
    T_EQ(p.n_rules, 0);
    scan_fill(im, 100, 144, 500, 146, 0);
    T_OK(raster_rules(&p, im, DPI144, &text, 1));
    T_EQ(p.n_rules, 1);
    T_NEAR(p.rules[0].box.y0, 72, 0.6);
    page_drop(&p);
    image_unref(im);
}

static void test_pictures(void)
{
    struct image *im = scan_load("figure.png");
    const float scale = 150 / 72.0f;
    const struct box text[] = { { 34, 28, 370, 62 }, { 34, 213, 300, 230 } };
    struct page p = { 0 };
    T_OK(raster_rules(&p, im, scale, text, 2));
    T_OK(raster_pictures(&p, im, scale, text, 2));
    T_EQ(p.n_pictures, 2);
    const int photo = p.pictures[0].box.x0 < p.pictures[1].box.x0 ? 0 : 1;
    const struct box *a = &p.pictures[photo].box, *b = &p.pictures[1 - photo].box;
    T_NEAR(a->x0, 40, 2);
    T_NEAR(a->y0, 80, 2);
    T_NEAR(a->x1, 190, 2);
    T_NEAR(a->y1, 190, 2);
    T_NEAR(b->x0, 230, 2);
    T_NEAR(b->y0, 90, 3);
    T_NEAR(b->x1, 350, 3);
    T_NEAR(b->y1, 185, 3);
    page_drop(&p);
    image_unref(im);
    /* A ruled table is no picture, nor is text that nobody has read. */
    im = scan_load("table.png");
    p = (struct page){ 0 };
    T_OK(raster_rules(&p, im, scale, NULL, 0));
    T_OK(raster_pictures(&p, im, scale, NULL, 0));
    T_EQ(p.n_pictures, 0);
    page_drop(&p);
    image_unref(im);
}

/* Any picture, any scale: an answer with boxes on the page, soon. */
static void check_survives(struct image *im, float scale)
{
    struct page p = { 0 };
    const struct box odd[] = { { 0, 0, 1e30f, 1e30f }, { NAN, NAN, NAN, NAN }, { 5, 5, 4, 4 } };
    const double t0 = clock_seconds();
    (void)raster_blank(im, scale);
    T_OK(raster_rules(&p, im, scale, odd + 1, 2));
    T_OK(raster_pictures(&p, im, scale, odd, 3));
    T_OK(raster_pictures(&p, im, scale, NULL, 0));
    for (size_t i = 0; i < COUNT(odd); i++) {
        const float ink = raster_ink(im, scale, &odd[i]);
        T_OK(ink >= 0 && ink <= 1);
    }
    for (int i = 0; i < p.n_pictures; i++) {
        const struct box *b = &p.pictures[i].box;
        T_OK(b->x0 >= 0 && b->y0 >= 0 && b->x0 < b->x1 && b->y0 < b->y1);
    }
    const double t = clock_seconds() - t0;
    if (t > 20) {
        T_FAIL("%d x %d took %.1f s", im->width, im->height, t);
    }
    page_drop(&p);
    image_unref(im);
}

static void test_hostile(void)
{
    static const int sizes[][2] = { { 1, 1 },   { 2, 3 },      { 1, 3000 },   { 3000, 1 },
                                    { 31, 33 }, { 30000, 20 }, { 20, 30000 }, { 500, 500 } };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const int w = sizes[i][0], h = sizes[i][1];
        check_survives(scan_plain(w, h, 0), DPI144);
        check_survives(scan_plain(w, h, 255), 1);
        check_survives(scan_noise(w, h, 0, 255, 7), DPI144);
    }
    static const float scales[] = { 0, -1, NAN, INFINITY, 1e-9f, 0.06f, 99, 1e9f };
    for (size_t i = 0; i < COUNT(scales); i++) {
        check_survives(scan_noise(300, 200, 0, 255, 3), scales[i]);
    }
    check_survives(scan_noise(1700, 2200, 0, 255, 11), 200 / 72.0f);
    check_survives(scan_noise(1700, 2200, 150, 255, 11), 200 / 72.0f);
}

static void test_memory(void)
{
    struct image *im = scan_load("figure.png");
    for (long n = 1;; n++) {
        struct page p = { 0 };
        mem_fail_at(n);
        const bool ok =
            raster_rules(&p, im, DPI144, NULL, 0) && raster_pictures(&p, im, DPI144, NULL, 0);
        const bool failed = mem_count() >= n;
        mem_fail_at(0);
        page_drop(&p);
        T_EQ(ok, !failed);
        if (ok) {
            T_OK(n > 3);
            break;
        }
    }
    image_unref(im);
}

static const struct t_case cases[] = {
    { "ink", test_ink },
    { "blank", test_blank },
    { "blank_gradient", test_blank_gradient },
    { "rules_table", test_rules_table },
    { "rules_drawn", test_rules_drawn },
    { "rules_shadow", test_rules_shadow },
    { "rules_text", test_rules_text },
    { "pictures", test_pictures },
    { "hostile", test_hostile },
    { "memory", test_memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
