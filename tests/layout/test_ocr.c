/* test_ocr.c - pages of known words (make_scans.py) through ocr_page: text, turn, skew, rules,
 * limits, and pictures that are no pages at all. */
#include "layout/ocr.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "tests/layout/scan.h"
#include "tests/t.h"

static struct ocr *open_ocr(const char *languages, double seconds)
{
    const struct ocr_options opt = { .languages = languages, .page_seconds = seconds };
    struct galley_err err = { 0 };
    struct ocr *o = NULL;
    if (ocr_open(&o, &opt, &err) != GALLEY_OK) {
        T_FAIL("%s", err.msg);
    }
    return o;
}

/* The page of a bitmap; im is given away. */
static struct page *read_image(struct ocr *o, struct image *im, float dpi)
{
    struct galley_err err = { 0 };
    const struct page in = { .width = (float)im->width * 72 / dpi,
                             .height = (float)im->height * 72 / dpi,
                             .bitmap = im,
                             .scale = dpi / 72 };
    struct page *out = NULL;
    const enum galley_status rc = ocr_page(o, &in, &out, &err);
    image_unref(im);
    if (rc != GALLEY_OK) {
        T_FAIL("%s", err.msg);
    }
    return out;
}

static struct page *read_scan(struct ocr *o, const char *name, float dpi)
{
    const double t0 = clock_seconds();
    struct page *p = read_image(o, scan_load(name), dpi);
    struct ocr_times t;
    ocr_last_times(o, &t);
    printf("%-13s %5.0f ms: blank %.0f, look %.0f, upright %.0f, input %.0f, pixels %.0f; "
           "tesseract: load %.0f, orientation %.0f, read %.0f\n",
           name, 1e3 * (clock_seconds() - t0), 1e3 * t.blank, 1e3 * t.look, 1e3 * t.upright,
           1e3 * t.input, 1e3 * t.pixels, 1e3 * t.load, 1e3 * t.orient_tess, 1e3 * t.recognise);
    return p;
}

/* The page's text with single spaces between words, in code points' UTF-8. */
static char *page_text(const struct page *p)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    bool white = true;
    for (int i = 0; i < p->n_glyphs; i++) {
        const uint32_t cp = p->glyphs[i].cp;
        if (cp > ' ') {
            buf_add_cp(&b, cp);
        } else if (!white) {
            buf_add_char(&b, ' ');
        }
        white = cp <= ' ';
    }
    buf_add_char(&b, '\0');
    return buf_take(&b);
}

static char *truth_text(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, SCANS "%s", name);
    FILE *f = fopen(path, "rb");
    T_OK(f != NULL);
    static char text[4096];
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    for (char *c = text; *c; c++) {
        *c = *c == '\n' ? ' ' : *c;
    }
    return text;
}

/* Levenshtein distance of bytes over the length of the truth. */
static double distance(const char *got, const char *want)
{
    const size_t n = strlen(got), m = strlen(want);
    int *row = mem_array(m + 1, sizeof(int));
    for (size_t j = 0; j <= m; j++) {
        row[j] = (int)j;
    }
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            const int change = diagonal + (got[i - 1] != want[j - 1]);
            const int step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < step ? change : step;
        }
    }
    const double d = (double)row[m] / (double)(m > 0 ? m : 1);
    mem_free(row);
    return d;
}

static void check_text(const struct page *p, const char *truth, double limit)
{
    char *got = page_text(p);
    const char *want = truth_text(truth);
    const double d = distance(got, want);
    if (d > limit) {
        T_FAIL("%s: text distance %.3f over %.3f: %s", truth, d, limit, got);
    }
    mem_free(got);
}

/* Every glyph on the page, its run known, white space between words and ends of lines. */
static void check_glyphs(const struct page *p)
{
    for (int i = 0; i < p->n_glyphs; i++) {
        const struct glyph *g = &p->glyphs[i];
        T_OK(g->run >= 0 && g->run < p->n_runs);
        T_OK(g->box.x0 <= g->box.x1 && g->box.y0 <= g->box.y1);
        T_OK(g->box.x0 >= -1 && g->box.x1 <= p->width + 1);
        T_OK(g->cp == '\n' || g->cp == ' ' || g->box.x1 > g->box.x0);
    }
    for (int i = 0; i < p->n_runs; i++) {
        T_OK(p->runs[i].flags & RUN_OCR);
        T_OK(p->runs[i].conf >= 0 && p->runs[i].conf <= 1 && p->runs[i].size > 0);
    }
}

/* The glyph at which `word` begins. */
static const struct glyph *find_word(const struct page *p, const char *word)
{
    const int n = (int)strlen(word);
    for (int i = 0; i + n <= p->n_glyphs; i++) {
        int k = 0;
        while (k < n && p->glyphs[i + k].cp == (unsigned char)word[k]) {
            k++;
        }
        if (k == n) {
            return &p->glyphs[i];
        }
    }
    T_FAIL("no word \"%s\"", word);
}

/* The body is 11 pt with its first line at y = 66 pt and x = 36 pt, the title 16 pt. */
static void check_frame(const struct page *p, double tolerance)
{
    const struct glyph *most = find_word(p, "Most"), *title = find_word(p, "harbour");
    const struct glyph *last = find_word(p, "tides");
    T_NEAR(most->box.x0, 36, 2);
    T_OK(most->box.y0 > 62 && most->box.y0 < 70 && most->box.y1 > 75 && most->box.y1 < 84);
    T_NEAR(p->runs[most->run].size, 11, 11 * tolerance);
    T_NEAR(p->runs[last->run].size, 11, 11 * tolerance);
    T_NEAR(p->runs[title->run].size, 16, 16 * tolerance);
    T_OK(p->runs[most->run].conf > 0.8f);
    T_OK(p->runs[title->run].flags & RUN_BOLD); /* drawn in DejaVu Sans Bold */
    T_OK(!(p->runs[most->run].flags & RUN_BOLD) && !(p->runs[last->run].flags & RUN_BOLD));
}

static void test_plain(void)
{
    struct ocr *o = open_ocr(NULL, 0);
    struct page *p = read_scan(o, "plain.png", 150);
    check_text(p, "plain.txt", 0.03);
    check_glyphs(p);
    check_frame(p, 0.10);
    T_EQ(p->turned, 0);
    T_EQ(p->n_rules, 0);
    T_EQ(p->n_pictures, 0);
    int n_breaks = 0;
    for (int i = 1; i < p->n_glyphs; i++) {
        n_breaks += p->glyphs[i].cp == '\n' && p->glyphs[i - 1].cp != '\n';
    }
    T_EQ(n_breaks, 12 + 1); /* the lines of text and the title */
    page_free(p);
    p = read_scan(o, "small.png", 100);
    check_text(p, "plain.txt", 0.05);
    check_frame(p, 0.12);
    page_free(p);
    p = read_scan(o, "photo.jpg", 150);
    check_text(p, "plain.txt", 0.05);
    check_frame(p, 0.12);
    T_EQ(p->n_rules + p->n_pictures, 0);
    page_free(p);
    p = read_scan(o, "inverted.png", 150);
    check_text(p, "plain.txt", 0.03);
    page_free(p);
    ocr_close(o);
}

static void check_turn(struct ocr *o, const char *name, int turned)
{
    struct page *p = read_scan(o, name, 150);
    T_EQ(p->turned, turned);
    T_EQ(p->bitmap->width, 825);
    T_EQ(p->bitmap->height, 630);
    T_NEAR(p->width, 396, 0.1);
    check_text(p, "plain.txt", 0.03);
    check_frame(p, 0.10);
    page_free(p);
}

static void test_turned(void)
{
    struct ocr *o = open_ocr("eng", 0);
    check_turn(o, "turn90.png", 90);
    check_turn(o, "turn180.png", 180);
    check_turn(o, "turn270.png", 270);
    ocr_close(o);
}

/* 3 degrees: lines of the page handed on are level, its pixels are still gray. */
static void test_skewed(void)
{
    struct ocr *o = open_ocr("eng", 0);
    struct page *p = read_scan(o, "skew3.png", 150);
    check_text(p, "plain.txt", 0.03);
    const struct glyph *first = find_word(p, "first"), *lay = find_word(p, "lay");
    T_NEAR(first->box.y1, lay->box.y1, 1.0); /* 320 pt apart: 17 pt askew before */
    const struct glyph *most = find_word(p, "Most"), *ferry = find_word(p, "the ferry");
    T_NEAR(most->box.x0, ferry->box.x0, 1.5);
    T_EQ(p->n_rules, 0);
    int n_gray = 0;
    for (int x = 0; x < p->bitmap->width; x++) {
        const uint8_t v = p->bitmap->rgb[(size_t)200 * p->bitmap->stride + (size_t)x * 3];
        n_gray += v > 16 && v < 240;
    }
    T_OK(n_gray > 20);
    page_free(p);
    ocr_close(o);
}

static void test_table(void)
{
    struct ocr *o = open_ocr("eng", 0);
    struct page *p = read_scan(o, "table.png", 150);
    check_text(p, "table.txt", 0.03);
    int n_v = 0;
    for (int i = 0; i < p->n_rules; i++) {
        n_v += p->rules[i].vertical;
    }
    T_EQ(n_v, 4);
    T_EQ(p->n_rules - n_v, 6);
    T_EQ(p->n_pictures, 0);
    /* Words stand in their cells. */
    const struct glyph *tar = find_word(p, "Tar"), *n = find_word(p, "900");
    T_OK(tar->box.x0 > 40 && tar->box.x0 < 60);
    T_OK(n->box.x0 > 180 && n[2].box.x1 < 270);
    page_free(p);
    p = read_scan(o, "figure.png", 150);
    check_text(p, "figure.txt", 0.03);
    T_EQ(p->n_pictures, 2);
    T_EQ(p->n_rules, 0);
    page_free(p);
    ocr_close(o);
}

/* Bullets are bullets whatever they read as, and a lone bar is the pronoun. */
static void test_list(void)
{
    struct ocr *o = open_ocr("eng", 0);
    struct page *p = read_scan(o, "list.png", 150);
    check_text(p, "list.txt", 0.01);
    int n_bullets = 0;
    for (int i = 0; i < p->n_glyphs; i++) {
        n_bullets += p->glyphs[i].cp == 0x2022 && (i == 0 || p->glyphs[i - 1].cp == '\n');
    }
    T_EQ(n_bullets, 3);
    page_free(p);
    ocr_close(o);
}

static void test_blank(void)
{
    struct ocr *o = open_ocr("eng", 0);
    struct page *p = read_scan(o, "blank.png", 100);
    T_EQ(p->n_glyphs + p->n_rules + p->n_pictures, 0);
    T_OK(p->bitmap != NULL);
    T_NEAR(p->width, 595, 1);
    struct ocr_times t;
    ocr_last_times(o, &t);
    T_NEAR(t.load + t.recognise, 0, 0); /* Tesseract was not even loaded */
    page_free(p);
    ocr_close(o);
}

static void test_korean(void)
{
    struct ocr *o = open_ocr("eng+kor", 0);
    struct page *p = read_scan(o, "korean.png", 150);
    check_text(p, "korean.txt", 0.03); /* spaces where they are, none inside words */
    check_glyphs(p);
    T_EQ(p->turned, 0);
    T_NEAR(p->runs[0].size, 12, 1.8);
    page_free(p);
    p = read_scan(o, "plain.png", 150);
    check_text(p, "plain.txt", 0.03);
    page_free(p);
    ocr_close(o);
}

static void test_languages(void)
{
    struct ocr *o = NULL;
    struct galley_err err = { 0 };
    struct ocr_options opt = { .languages = "eng+tlh" };
    T_EQ(ocr_open(&o, &opt, &err), GALLEY_EUNSUP);
    T_OK(o == NULL && strstr(err.msg, "tlh") && strstr(err.msg, "tesseract-ocr-tlh"));
    opt.languages = "chi_nowhere";
    T_EQ(ocr_open(&o, &opt, &err), GALLEY_EUNSUP);
    T_OK(strstr(err.msg, "tesseract-ocr-chi-nowhere"));
    static const char *const bad[] = { "", "+", "eng+", "+eng", "eng++kor", "../eng", "eng kor" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        opt.languages = bad[i];
        T_EQ(ocr_open(&o, &opt, &err), GALLEY_EUSAGE);
        T_OK(o == NULL && err.msg[0]);
    }
    opt = (struct ocr_options){ .languages = "eng", .datapath = "/nonexistent" };
    T_EQ(ocr_open(&o, &opt, &err), GALLEY_EUNSUP);
    ocr_close(NULL);
}

/* A time limit and a cancel end one page; the next one is read as if nothing had happened. */
static void test_limits(void)
{
    struct galley_err err = { 0 };
    struct page in = { .bitmap = scan_load("plain.png"), .scale = 150 / 72.0f }, *out = NULL;
    struct ocr *o = open_ocr("eng", 0.2);
    const double t0 = clock_seconds();
    enum galley_status rc = ocr_page(o, &in, &out, &err);
    T_OK(rc == GALLEY_ETIMEOUT && out == NULL && strstr(err.msg, "0.2"));
    T_OK(clock_seconds() - t0 < 5);
    ocr_close(o);
    o = open_ocr("eng", 0);
    ocr_cancel(o);
    rc = ocr_page(o, &in, &out, &err);
    T_OK(rc == GALLEY_ECANCELLED && out == NULL);
    T_EQ(ocr_page(o, &in, &out, &err), GALLEY_OK);
    check_text(out, "plain.txt", 0.03);
    page_free(out);
    const struct page none = { .scale = 2 };
    T_EQ(ocr_page(o, &none, &out, &err), GALLEY_EINPUT);
    ocr_close(o);
    image_unref(in.bitmap);
}

static struct image *checkered(int w, int h, int cell)
{
    struct image *im = scan_plain(w, h, 255);
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            if ((x / cell + y / cell) % 2) {
                scan_fill(im, x, y, x + 1, y + 1, 0);
            }
        }
    }
    return im;
}

/* Nothing here is a page: an answer, in time, and silence on stderr. */
static void test_hostile(void)
{
    struct ocr *o = open_ocr("eng", 10);
    fflush(stderr);
    const int keep = dup(2);
    FILE *catch = tmpfile();
    T_OK(catch && dup2(fileno(catch), 2) == 2);
    static const int sizes[][2] = { { 1, 1 },      { 3, 2 },      { 1, 700 },   { 700, 1 },
                                    { 30000, 20 }, { 20, 30000 }, { 300, 400 }, { 40, 40 } };
    double worst = 0;
    for (size_t i = 0; i < 4 * COUNT(sizes) + 4; i++) {
        const int w = sizes[i / 4 % COUNT(sizes)][0], h = sizes[i / 4 % COUNT(sizes)][1];
        struct image *im = i >= 4 * COUNT(sizes) ? NULL
                           : i % 4 == 0          ? scan_plain(w, h, 0)
                           : i % 4 == 1          ? scan_plain(w, h, 255)
                           : i % 4 == 2          ? scan_noise(w, h, 0, 255, 5)
                                                 : checkered(w, h, 9);
        const size_t big = i - 4 * COUNT(sizes);
        if (!im) {
            im = big == 0   ? scan_noise(1700, 2200, 0, 255, 1)
                 : big == 1 ? scan_noise(1700, 2200, 190, 255, 2)
                 : big == 2 ? checkered(1700, 2200, 12)
                            : checkered(1700, 2200, 1);
        }
        const struct page in = { .bitmap = im, .scale = 200 / 72.0f };
        struct page *out = NULL;
        struct galley_err err = { 0 };
        const double t0 = clock_seconds();
        const enum galley_status rc = ocr_page(o, &in, &out, &err);
        const double t = clock_seconds() - t0;
        worst = t > worst ? t : worst;
        image_unref(im);
        page_free(out);
        if (rc != GALLEY_OK && rc != GALLEY_ETIMEOUT) {
            dup2(keep, 2);
            T_FAIL("hostile picture %zu: %s", i, err.msg);
        }
    }
    fflush(stderr);
    const off_t noise = lseek(2, 0, SEEK_CUR);
    dup2(keep, 2);
    close(keep);
    fclose(catch);
    ocr_close(o);
    T_EQ(noise, 0);
    T_OK(worst < 60); /* the limit is 10 s; other work on the machine counts too */
}

/* The n-th allocation fails: ENOMEM or the same page, never a crash. */
static void test_memory(void)
{
    struct ocr *o = open_ocr("eng", 0);
    struct image *whole = scan_load("plain.png");
    struct image *im = image_crop(whole, 60, 55, 500, 105); /* the title */
    image_unref(whole);
    const struct page in = { .bitmap = im, .scale = 150 / 72.0f };
    long n = 1;
    for (;; n++) {
        struct page *out = NULL;
        struct galley_err err = { 0 };
        mem_fail_at(n);
        const enum galley_status rc = ocr_page(o, &in, &out, &err);
        const bool failed = mem_count() >= n;
        mem_fail_at(0);
        T_EQ(rc, failed ? GALLEY_ENOMEM : GALLEY_OK);
        T_OK((out != NULL) == (rc == GALLEY_OK));
        page_free(out);
        if (rc == GALLEY_OK) {
            break;
        }
        T_OK(err.msg[0]);
    }
    T_OK(n > 6);
    image_unref(im);
    ocr_close(o);
}

static const struct t_case cases[] = {
    { "plain", test_plain },     { "turned", test_turned },       { "skewed", test_skewed },
    { "table", test_table },     { "list", test_list },           { "blank", test_blank },
    { "korean", test_korean },   { "languages", test_languages }, { "limits", test_limits },
    { "hostile", test_hostile }, { "memory", test_memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
