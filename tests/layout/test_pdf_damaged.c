/* test_pdf_damaged.c - damaged, hostile and locked documents: the right status, soon. */
#include <stdlib.h>

#include "layout/pdf.h"
#include "layout/pdf_proto.h"
#include "src/base/clock.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "tests/layout/pdf_write.h"
#include "tests/t.h"

#define A4      "/MediaBox[0 0 595 842]"
#define IN_TIME 5.0 /* seconds for anything here */

static enum galley_status open_bytes(struct pdf **pdf, const void *bytes, size_t n,
                                     const char *password)
{
    struct galley_err err = { 0 };
    const struct pdf_options opt = { .password = password,
                                     .page_seconds = 1.5 }; /* three times that by the clock */
    const double start = clock_seconds();
    const enum galley_status rc = pdf_open(pdf, bytes, n, &opt, &err);
    T_OK(clock_seconds() - start < IN_TIME);
    T_OK((*pdf != NULL) == (rc == GALLEY_OK));
    T_OK((err.msg[0] != 0) == (rc != GALLEY_OK));
    return rc;
}

static enum galley_status page_in_time(struct pdf *pdf, int i, struct page **page)
{
    const double start = clock_seconds();
    const enum galley_status rc = pdf_page(pdf, i, 144, page, NULL);
    T_OK(clock_seconds() - start < IN_TIME);
    return rc;
}

static void no_documents(void)
{
    struct pdf *pdf;
    char noise[5000];
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof noise; i++) {
        seed = seed * 1103515245u + 12345u;
        noise[i] = (char)(seed >> 16);
    }
    T_EQ(open_bytes(&pdf, "", 0, NULL), GALLEY_EINPUT);
    T_EQ(open_bytes(&pdf, "x", 1, NULL), GALLEY_EINPUT);
    T_EQ(open_bytes(&pdf, noise, sizeof noise, NULL), GALLEY_EINPUT);
    T_EQ(open_bytes(&pdf, "%PDF-1.7\n%%EOF\n", 15, NULL), GALLEY_EINPUT);
    static const char html[] = "<!doctype html><html><body>not a PDF</body></html>";
    T_EQ(open_bytes(&pdf, html, sizeof html, NULL), GALLEY_EINPUT);
}

/* Cut anywhere: a status, never a crash of ours; what opens has pages that answer. */
static void truncated(void)
{
    static struct pdf_writer w;
    int n_good = 0, n_bad = 0;
    pdf_write_pages(&w, 3, A4, "BT /F1 12 Tf 72 700 Td (hello) Tj ET");
    for (size_t part = 0; part <= 20; part++) {
        struct pdf *pdf;
        /* The last cut loses only where the table is: the file can be repaired. */
        const size_t n = part < 20 ? w.out.n * part / 20 : w.out.n - 16;
        const enum galley_status rc = open_bytes(&pdf, w.out.data, n, NULL);
        if (rc) {
            T_EQ(rc, GALLEY_EINPUT);
            n_bad++;
            continue;
        }
        n_good++;
        for (int i = 0; i < pdf_n_pages(pdf); i++) {
            struct page *page;
            const enum galley_status page_rc = page_in_time(pdf, i, &page);
            T_OK(page_rc == GALLEY_OK || page_rc == GALLEY_EINPUT);
            page_free(page);
        }
        pdf_close(pdf);
    }
    T_OK(n_bad >= 10 && n_good >= 1);
    pdf_write_free(&w);
}

/* 100,000 pages claimed by a handful of objects are refused; 1,000 claimed where as many objects
 * exist are counted and found to be one. */
static void claimed_pages(void)
{
    static struct pdf_writer w;
    struct pdf *pdf;
    struct page *page;
    static const int claims[] = { 100000, 1000 };
    for (size_t i = 0; i < COUNT(claims); i++) {
        pdf_write_begin(&w);
        pdf_write_object(&w, "<</Type/Catalog/Pages 2 0 R>>");
        pdf_write_object(&w, "<</Type/Pages/Kids[3 0 R]/Count %d>>", claims[i]);
        pdf_write_object(&w, "<</Type/Page/Parent 2 0 R" A4 ">>");
        for (int k = 0; k < 1000; k++) {
            pdf_write_object(&w, "null");
        }
        pdf_write_end(&w, 1);
        const enum galley_status rc = open_bytes(&pdf, w.out.data, w.out.n, NULL);
        T_EQ(rc, i == 0 ? GALLEY_EINPUT : GALLEY_OK);
        if (!rc) {
            T_EQ(pdf_n_pages(pdf), 1);
            T_EQ(page_in_time(pdf, 0, &page), GALLEY_OK);
            T_EQ(page->n_glyphs, 0);
            page_free(page);
        }
        pdf_close(pdf);
        pdf_write_free(&w);
    }
}

/* The one page (or none) of a document made of these objects, numbered from 1. */
static enum galley_status objects_open(struct pdf **pdf, const char *const *objects, size_t n)
{
    static struct pdf_writer w;
    pdf_write_begin(&w);
    for (size_t i = 0; i < n; i++) {
        pdf_write_object(&w, "%s", objects[i]);
    }
    pdf_write_end(&w, 1);
    const enum galley_status rc = open_bytes(pdf, w.out.data, w.out.n, NULL);
    /* The child has its own copy. */
    pdf_write_free(&w);
    return rc;
}

static void page_tree_loops(void)
{
    static const char *const self[] = { "<</Type/Catalog/Pages 2 0 R>>",
                                        "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>" };
    static const char *const pair[] = { "<</Type/Catalog/Pages 2 0 R>>",
                                        "<</Type/Pages/Kids[3 0 R]/Count 5>>",
                                        "<</Type/Pages/Parent 2 0 R/Kids[2 0 R]/Count 5>>" };
    static const char *const none[] = { "<</Type/Catalog/Pages 1 0 R>>" };
    const char *const *all[] = { self, pair, none };
    const size_t n[] = { COUNT(self), COUNT(pair), COUNT(none) };
    for (size_t i = 0; i < COUNT(all); i++) {
        struct pdf *pdf;
        struct page *page;
        if (objects_open(&pdf, all[i], n[i]) == GALLEY_OK) {
            T_EQ(page_in_time(pdf, 0, &page), GALLEY_EINPUT);
            pdf_close(pdf);
        }
    }
}

static void page_sizes(void)
{
    static const struct {
        const char *media;
        enum galley_status rc;
    } cases[] = {
        { "/MediaBox[0 0 1000000 1000000]", GALLEY_ELIMIT },
        { "/MediaBox[0 0 14400 14400]", GALLEY_OK },
        { "/MediaBox[0 0 1 14000]", GALLEY_OK },
        { "/MediaBox[0 0 0.001 0.001]", GALLEY_OK },
        { "/MediaBox[0 0 99999999999999999999 5]", GALLEY_ELIMIT },
        { "/MediaBox[595 842 0 0]", GALLEY_OK }, /* corners swapped */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static struct pdf_writer w;
        struct pdf *pdf;
        struct page *page;
        pdf_write_pages(&w, 1, cases[i].media, "0 0 m 100 100 l S");
        /* Sizes, not seconds: 40 million pixels take a sanitizer build their time. */
        const struct pdf_options patient = { .page_seconds = 60 };
        T_EQ(pdf_open(&pdf, w.out.data, w.out.n, &patient, NULL), GALLEY_OK);
        const enum galley_status rc = pdf_page(pdf, 0, 144, &page, NULL);
        if (rc != cases[i].rc) {
            T_FAIL("%s gave %d, not %d", cases[i].media, rc, cases[i].rc);
        }
        T_OK(!page || (uint64_t)page->bitmap->width * (uint64_t)page->bitmap->height <= 40000000);
        page_free(page);
        pdf_close(pdf);
        pdf_write_free(&w);
    }
}

static void deep_nesting(void)
{
    static struct pdf_writer w;
    struct pdf *pdf;
    struct page *page;
    struct buf deep;
    /* 100,000 graphics states, arrays inside arrays, and a form that draws itself */
    buf_init(&deep, 8u << 20);
    for (int i = 0; i < 100000; i++) {
        buf_add_str(&deep, "q [ ");
    }
    pdf_write_pages(&w, 1, A4, deep.data);
    T_EQ(open_bytes(&pdf, w.out.data, w.out.n, NULL), GALLEY_OK);
    const enum galley_status rc = page_in_time(pdf, 0, &page);
    T_OK(rc == GALLEY_OK || rc == GALLEY_EINPUT);
    page_free(page);
    pdf_close(pdf);
    pdf_write_free(&w);
    buf_deinit(&deep);
}

static void form_draws_itself(void)
{
    static struct pdf_writer w;
    struct pdf *pdf;
    struct page *page;
    pdf_write_begin(&w);
    pdf_write_object(&w, "<</Type/Catalog/Pages 2 0 R>>");
    pdf_write_object(&w, "<</Type/Pages/Kids[3 0 R]/Count 1>>");
    pdf_write_object(&w, "<</Type/Page/Parent 2 0 R" A4
                         "/Contents 5 0 R/Resources<</XObject<</X 4 0 R>>>>>>");
    pdf_write_stream(
        &w, "/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</X 4 0 R>>>>",
        "/X Do /X Do", 11);
    pdf_write_stream(&w, "", "/X Do", 5);
    pdf_write_end(&w, 1);
    T_EQ(open_bytes(&pdf, w.out.data, w.out.n, NULL), GALLEY_OK);
    T_EQ(page_in_time(pdf, 0, &page), GALLEY_OK);
    page_free(page);
    pdf_close(pdf);
    pdf_write_free(&w);
}

/* More glyphs, rules and path segments than the caps. */
static void monstrous_pages(void)
{
    static struct pdf_writer w;
    struct pdf *pdf;
    struct page *page;
    struct buf c;
    buf_init(&c, 64u << 20);
    for (int i = 0; i < 25000; i++) {
        buf_addf(&c, "0.1 w %d %d m %d %d l S\n", i % 590, i / 590 * 3, i % 590, i / 590 * 3 + 50);
    }
    buf_add_str(&c, "0 0 m\n");
    for (int i = 0; i < 20000; i++) {
        buf_addf(&c, "%d %d l\n", (i * 7919) % 595, (i * 104729) % 842);
    }
    buf_add_str(&c, "S BT /F1 8 Tf\n");
    for (int i = 0; i < 2000; i++) {
        buf_addf(&c, "1 0 0 1 10 %d Tm (%s) Tj\n", i % 840,
                 "forty glyphs in a row and forty again ok");
    }
    buf_add_str(&c, "ET");
    pdf_write_pages(&w, 1, A4, c.data);
    T_EQ(open_bytes(&pdf, w.out.data, w.out.n, NULL), GALLEY_OK);
    const enum galley_status rc = page_in_time(pdf, 0, &page);
    T_OK(rc == GALLEY_OK || rc == GALLEY_ETIMEOUT);
    T_OK(!page || (page->n_glyphs <= PDF_MAX_GLYPHS && page->n_rules <= PDF_MAX_RULES));
    page_free(page);
    pdf_close(pdf);
    pdf_write_free(&w);
    buf_deinit(&c);
}

/* An image of 30,000 x 30,000 pixels in a few bytes: the child's memory limit, or time. */
static void image_bomb(void)
{
    static struct pdf_writer w;
    struct pdf *pdf;
    struct page *page;
    pdf_write_begin(&w);
    pdf_write_object(&w, "<</Type/Catalog/Pages 2 0 R>>");
    pdf_write_object(&w, "<</Type/Pages/Kids[3 0 R 6 0 R]/Count 2>>");
    pdf_write_object(&w, "<</Type/Page/Parent 2 0 R" A4
                         "/Contents 5 0 R/Resources<</XObject<</X 4 0 R>>>>>>");
    pdf_write_stream(&w,
                     "/Type/XObject/Subtype/Image/Width 60000/Height 60000/BitsPerComponent 8"
                     "/ColorSpace/DeviceRGB/Filter/RunLengthDecode",
                     "\x81\x00\x80", 3);
    pdf_write_stream(&w, "", "500 0 0 500 0 0 cm /X Do", 24);
    pdf_write_object(&w, "<</Type/Page/Parent 2 0 R" A4 ">>");
    pdf_write_end(&w, 1);
    T_EQ(open_bytes(&pdf, w.out.data, w.out.n, NULL), GALLEY_OK);
    const enum galley_status rc = page_in_time(pdf, 0, &page);
    T_OK(rc == GALLEY_OK || rc == GALLEY_EINPUT || rc == GALLEY_ETIMEOUT);
    page_free(page);
    T_EQ(page_in_time(pdf, 1, &page), GALLEY_OK);
    page_free(page);
    pdf_close(pdf);
    pdf_write_free(&w);
}

static void locked(void)
{
    static const char *const paths[] = { "tests/layout/fixtures/locked-rc4.pdf",
                                         "tests/layout/fixtures/locked-aes256.pdf" };
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct pdf *pdf;
        struct page *page;
        char *bytes;
        size_t n;
        T_EQ(file_read(paths[i], 1 << 20, &bytes, &n, NULL), GALLEY_OK);
        T_EQ(open_bytes(&pdf, bytes, n, NULL), GALLEY_EENCRYPTED);
        T_EQ(open_bytes(&pdf, bytes, n, "wrong"), GALLEY_EENCRYPTED);
        T_EQ(open_bytes(&pdf, bytes, n, "sesame"), GALLEY_OK);
        T_EQ(page_in_time(pdf, 0, &page), GALLEY_OK);
        T_EQ(page->glyphs[0].cp, 's');
        page_free(page);
        pdf_close(pdf);
        char long_password[PDF_MAX_PASSWORD + 2];
        memset(long_password, 'a', sizeof long_password - 1);
        long_password[sizeof long_password - 1] = 0;
        T_EQ(open_bytes(&pdf, bytes, n, long_password), GALLEY_EENCRYPTED);
        mem_free(bytes);
    }
}

/* Single bytes changed all over a good document. */
static void bytes_changed(void)
{
    static struct pdf_writer w;
    pdf_write_pages(&w, 1, A4, "BT /F1 12 Tf 72 700 Td (hello) Tj ET 0 0 100 50 re S");
    unsigned seed = 7;
    for (int round = 0; round < 40; round++) {
        struct pdf *pdf;
        struct page *page;
        char old[4];
        size_t at[4];
        for (int k = 0; k < 4; k++) {
            seed = seed * 1103515245u + 12345u;
            at[k] = (seed >> 8) % w.out.n;
            old[k] = w.out.data[at[k]];
            w.out.data[at[k]] = (char)(seed >> 3);
        }
        const enum galley_status rc = open_bytes(&pdf, w.out.data, w.out.n, NULL);
        if (rc == GALLEY_OK) {
            const enum galley_status page_rc = page_in_time(pdf, 0, &page);
            T_OK(page_rc == GALLEY_OK || page_rc == GALLEY_EINPUT || page_rc == GALLEY_ELIMIT);
            page_free(page);
            pdf_close(pdf);
        } else {
            T_OK(rc == GALLEY_EINPUT || rc == GALLEY_EENCRYPTED || rc == GALLEY_ELIMIT);
        }
        for (int k = 3; k >= 0; k--) {
            w.out.data[at[k]] = old[k];
        }
    }
    pdf_write_free(&w);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "no_documents", no_documents },
        { "truncated", truncated },
        { "claimed_pages", claimed_pages },
        { "page_tree_loops", page_tree_loops },
        { "page_sizes", page_sizes },
        { "deep_nesting", deep_nesting },
        { "form_draws_itself", form_draws_itself },
        { "monstrous_pages", monstrous_pages },
        { "image_bomb", image_bomb },
        { "locked", locked },
        { "bytes_changed", bytes_changed },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
