/* test_layout_hostile.c - pages no printer made: the parser must end soon, leak nothing and keep
 * its promises. */
#include <math.h>

#include "src/base/clock.h"
#include "tests/layout/page_builder.h"
#include "tests/t.h"

static uint32_t seed = 1;

static uint32_t next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* What every layout promises, whatever the page. */
static void check_promises(const struct page_layout *out)
{
    T_OK(out->n_regions <= 10000);
    for (int i = 0; i < out->n_regions; i++) {
        const struct region *r = &out->regions[i];
        T_OK(r->draft.markdown && r->draft.plain);
        T_OK(r->draft.score >= 0 && r->draft.score <= 1);
        T_OK(isfinite(r->box.x0) && isfinite(r->box.y1) && r->box.x0 <= r->box.x1);
        T_OK(utf8_valid(r->draft.markdown, strlen(r->draft.markdown)));
        const int n = (int)strlen(r->draft.plain);
        for (int k = 0; k < r->n_lines; k++) {
            const struct region_line *l = &r->lines[k];
            T_OK(l->plain_from >= 0 && l->plain_from <= l->plain_to && l->plain_to <= n);
            T_OK(k == 0 || l->plain_from >= r->lines[k - 1].plain_to);
        }
    }
}

static void run(struct builder *b, double seconds)
{
    const double start = clock_seconds();
    struct page_layout *out = builder_layout(b);
    const double took = clock_seconds() - start;
    check_promises(out);
    page_layout_free(out);
    page_free(b->page);
    if (took > seconds) {
        T_FAIL("took %.2f s, allowed %.2f s", took, seconds);
    }
}

static void case_all_glyphs_at_one_place(void)
{
    struct builder b = builder_new(595, 842);
    const int r = builder_run(&b, 10);
    for (int i = 0; i < 100000; i++) {
        builder_glyph(&b, 'a' + (uint32_t)(i % 26), (struct box){ 100, 100, 105, 110 }, r);
        if (i % 3 == 0) {
            builder_glyph(&b, ' ', (struct box){ 105, 100, 105, 110 }, r);
        }
    }
    run(&b, 10);
}

static void case_half_a_million_random_glyphs(void)
{
    struct builder b = builder_new(595, 842);
    const int r = builder_run(&b, 4);
    for (int i = 0; i < 500000; i++) {
        const float x = (float)(next_random() % 595), y = (float)(next_random() % 842);
        builder_glyph(&b, 0x21 + next_random() % 90, (struct box){ x, y, x + 2, y + 4 }, r);
    }
    run(&b, 20);
}

static void case_boxes_without_sense(void)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY, -1e30f, 1e30f, 0, -5, 50, 100, 600 };
    struct builder b = builder_new(595, 842);
    for (int i = 0; i < 20000; i++) {
        const int r = i % 50 == 0 ? builder_run(&b, bad[next_random() % 10]) : 0;
        struct box box;
        float *v = (float *)&box;
        for (int k = 0; k < 4; k++) {
            v[k] = bad[next_random() % 10];
        }
        builder_glyph(&b, next_random() % 0x120000, box,
                      i % 7 == 0 ? (int)(next_random() % 90) - 9 : r);
        if (i % 10 == 0) {
            builder_rule(&b, v[1], v[2], v[3], v[0]);
            builder_picture(&b, v[0], v[1], v[2], v[3]);
            builder_link(&b, v[0], v[1], v[2], v[3], "x");
        }
    }
    run(&b, 10);
}

static void case_forests_of_rules(void)
{
    struct builder b = builder_new(595, 842);
    for (int i = 0; i < 3000; i++) {
        const float x = (float)(next_random() % 590), y = (float)(next_random() % 840);
        builder_rule(&b, 0, y, 595, y + 0.5f);
        builder_rule(&b, x, 0, x + 0.5f, 842);
        builder_line(&b, x, y, 6, "w");
    }
    run(&b, 20);
}

static void case_every_word_a_line(void)
{
    struct builder b = builder_new(14400, 14400);
    for (int i = 0; i < 30000; i++) {
        builder_line(&b, (float)(next_random() % 14000), (float)(next_random() % 14000), 8,
                     i % 2 ? "1. a" : "\xe2\x80\xa2 12");
    }
    run(&b, 20);
}

static void case_pages_without_size(void)
{
    static const float sizes[] = { 0, 1e-6f, 1e9f };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct builder b = builder_new(sizes[i], sizes[i]);
        builder_line(&b, 0, 0, 10, "text");
        run(&b, 5);
    }
}

/* A page with everything on it, for running short of memory at every step. */
static struct builder page_of_everything(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 60, 18, "A heading");
    builder_para(&b, 60, 90, 225, 10, true, builder_prose);
    builder_para(&b, 310, 90, 225, 10, true, builder_prose);
    builder_line(&b, 60, 250, 10, "1. one");
    builder_line(&b, 60, 263, 10, "2. two");
    builder_grid(&b, 60, 300, 100, 20, 3, 3);
    builder_line(&b, 70, 314, 9, "cell");
    builder_line(&b, 170, 314, 9, "cell");
    builder_picture(&b, 60, 400, 200, 500);
    builder_line(&b, 60, 515, 9, "Figure 1. Something.");
    b.flags = RUN_MONO;
    builder_line(&b, 60, 560, 10, "code();");
    builder_line(&b, 60, 572, 10, "more();");
    return b;
}

static void case_memory_runs_out(void)
{
    struct builder b = page_of_everything();
    mem_fail_at(0);
    page_layout_free(builder_layout(&b));
    const long n = mem_count();
    T_OK(n > 20);
    for (long i = 1; i <= n; i++) {
        struct layout *l = NULL;
        struct page_layout *out = NULL;
        struct galley_err err = { 0 };
        mem_fail_at(i);
        enum galley_status rc = layout_open(&l, NULL, NULL, &err);
        if (rc == GALLEY_OK) {
            rc = layout_page(l, b.page, &out, &err);
        }
        mem_fail_at(0);
        const bool good = (rc == GALLEY_ENOMEM && !out && err.msg[0]) || (rc == GALLEY_OK && out);
        page_layout_free(out);
        layout_close(l);
        if (!good) {
            page_free(b.page);
            T_FAIL("allocation %ld: status %d", i, (int)rc);
        }
    }
    page_free(b.page);
}

static void case_twice_is_the_same(void)
{
    struct builder b = page_of_everything();
    struct page_layout *one = builder_layout(&b), *two = builder_layout(&b);
    bool same = one->n_regions == two->n_regions;
    for (int i = 0; same && i < one->n_regions; i++) {
        same = strcmp(one->regions[i].draft.markdown, two->regions[i].draft.markdown) == 0;
    }
    page_layout_free(one);
    page_layout_free(two);
    page_free(b.page);
    T_OK(same);
}

/* Words of one kind each, "w123x", set in a random mixture of columns, lists and tables. */
static int set_tokens(struct builder *b)
{
    int n = 0;
    char s[64];
    for (float y = 60; y < 760;) {
        const int kind = (int)(next_random() % 4), rows = 2 + (int)(next_random() % 6);
        const int cols = kind == 0 ? 1 : 2 + (int)(next_random() % 3);
        const float w = 480 / (float)cols;
        if (kind == 3) {
            builder_grid(b, 50, y - 11, w, 14, cols, rows);
        }
        for (int r = 0; r < rows; r++, y += 14) {
            for (int c = 0; c < cols; c++) {
                const int words = kind == 1 ? (int)(w / 45) : 1 + (int)(next_random() % 2);
                float x = 55 + w * (float)c;
                for (int k = 0; k < words; k++) {
                    snprintf(s, sizeof(s), "%sw%dx", k == 0 && kind == 0 ? "\xe2\x80\xa2 " : "",
                             n++);
                    x = builder_put(b, x, y, 9, s);
                    builder_glyph(b, k + 1 < words ? ' ' : '\n', (struct box){ x, y, x, y },
                                  b->page->n_runs - 1);
                    x += 4;
                }
            }
        }
        y += (float)(next_random() % 30);
    }
    return n;
}

/* Every word on the page is in the drafts, once. */
static void case_no_word_lost_or_doubled(void)
{
    for (int round = 0; round < 60; round++) {
        struct builder b = builder_new(595, 842);
        const int n = set_tokens(&b);
        int *count = mem_many(int, (size_t)n);
        struct page_layout *out = builder_layout(&b);
        for (int i = 0; i < out->n_regions; i++) {
            const char *s = out->regions[i].draft.plain;
            while ((s = strchr(s, 'w')) != NULL) {
                const int v = atoi(++s);
                count[v >= 0 && v < n ? v : 0]++;
            }
        }
        page_layout_free(out);
        page_free(b.page);
        int bad = -1;
        for (int i = 0; i < n; i++) {
            bad = count[i] != 1 ? i : bad;
        }
        const int times = bad >= 0 ? count[bad] : 1;
        mem_free(count);
        if (bad >= 0) {
            T_FAIL("round %d: w%dx stands %d times in the drafts", round, bad, times);
        }
    }
}

static const struct t_case cases[] = {
    { "all_glyphs_at_one_place", case_all_glyphs_at_one_place },
    { "half_a_million_random_glyphs", case_half_a_million_random_glyphs },
    { "boxes_without_sense", case_boxes_without_sense },
    { "forests_of_rules", case_forests_of_rules },
    { "every_word_a_line", case_every_word_a_line },
    { "pages_without_size", case_pages_without_size },
    { "memory_runs_out", case_memory_runs_out },
    { "no_word_lost_or_doubled", case_no_word_lost_or_doubled },
    { "twice_is_the_same", case_twice_is_the_same },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
