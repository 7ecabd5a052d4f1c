/* test_order.c - reading order and paragraphs on pages set by page_builder.h. */
#include "tests/layout/page_builder.h"
#include "tests/t.h"

/* Is `b` somewhere after `a`? */
static bool follows(const char *text, const char *a, const char *b)
{
    const char *at = strstr(text, a);
    return at && strstr(at, b);
}

static void check_order(char *md, const char *const *marks, int n)
{
    for (int i = 0; i + 1 < n; i++) {
        if (!follows(md, marks[i], marks[i + 1])) {
            fprintf(stderr, "%s\n", md);
            T_FAIL("\"%s\" does not come before \"%s\"", marks[i], marks[i + 1]);
        }
    }
    mem_free(md);
}

static void case_columns_of_any_gutter(void)
{
    for (int gutter = 6; gutter <= 24; gutter += 6) {
        struct builder b = builder_new(595, 842);
        const float w = (475 - (float)gutter) / 2;
        builder_para(&b, 60, 100, w, 10, true, "Leftone ");
        float y = builder_para(&b, 60, 112.5f, w, 10, true, builder_prose);
        builder_para(&b, 60, y, w, 10, true, "and more text stands here until leftend.");
        builder_para(&b, 60 + w + (float)gutter, 100, w, 10, true, "Rightone ");
        y = builder_para(&b, 60 + w + (float)gutter, 112.5f, w, 10, true, builder_prose);
        builder_para(&b, 60 + w + (float)gutter, y, w, 10, true, "and the rest is rightend.");
        char *md = builder_markdown(&b);
        const char *const marks[] = { "Leftone", "leftend.", "Rightone", "rightend." };
        check_order(md, marks, 4);
    }
}

static void case_staggered_ragged_columns(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 220, 10, false, "Leftone stands at the top of the page and then");
    builder_para(&b, 60, 125, 220, 10, false, builder_prose);
    builder_para(&b, 310, 105.5f, 220, 10, false,
                 "Rightone is set half a line lower than the rest");
    builder_para(&b, 310, 130.5f, 220, 10, false, builder_prose);
    char *md = builder_markdown(&b);
    const char *const marks[] = { "Leftone", "come around again.", "Rightone", "around again." };
    check_order(md, marks, 4);
}

static void case_title_over_three_columns(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 80, 20, "A heading over everything on it");
    const char *const heads[] = { "Firstcol", "Secondcol", "Thirdcol" };
    for (int c = 0; c < 3; c++) {
        const float x = 60 + 165 * (float)c;
        builder_para(&b, x, 110, 150, 9, true, heads[c]);
        builder_para(&b, x, 121.25f, 150, 9, true, builder_prose);
    }
    char *md = builder_markdown(&b);
    T_OK(strncmp(md, "# A heading over everything on it\n\n", 35) == 0);
    const char *const marks[] = { "# A heading", "Firstcol", "Secondcol", "Thirdcol" };
    check_order(md, marks, 4);
}

static void case_wide_paragraph_between_bands(void)
{
    struct builder b = builder_new(595, 842);
    for (int band = 0; band < 2; band++) {
        const float y = 100 + 300 * (float)band;
        builder_para(&b, 60, y, 225, 10, true, band ? "Thirdpart" : "Firstpart");
        builder_para(&b, 60, y + 12.5f, 225, 10, true, builder_prose);
        builder_para(&b, 310, y, 225, 10, true, band ? "Fourthpart" : "Secondpart");
        builder_para(&b, 310, y + 12.5f, 225, 10, true, builder_prose);
    }
    builder_para(&b, 60, 300, 475, 10, true, "Middlepart runs across the page and says so");
    builder_para(&b, 60, 312.5f, 475, 10, true, builder_prose);
    char *md = builder_markdown(&b);
    const char *const marks[] = { "Firstpart", "Secondpart", "Middlepart", "Thirdpart",
                                  "Fourthpart" };
    check_order(md, marks, 5);
}

static void case_column_break_joins(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 225, 10, true, builder_prose);
    builder_para(&b, 60, 240, 225, 10, true,
                 "This paragraph is cut by the end of its column just before these very last words "
                 "and must go");
    /* Fill the last line so that it ends at the edge. */
    builder_para(&b, 60, 277.5f, 225, 10, true, "aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeee");
    builder_para(&b, 310, 100, 225, 10, true, "on here with the text that was left over for it.");
    builder_para(&b, 310, 140, 225, 10, true, builder_prose);
    struct page_layout *out = builder_layout(&b);
    bool found = false;
    for (int i = 0; i + 1 < out->n_regions; i++) {
        found = found || (out->regions[i].joins_next && out->regions[i + 1].continues &&
                          strncmp(out->regions[i + 1].draft.plain, "on here", 7) == 0);
    }
    page_layout_free(out);
    page_free(b.page);
    T_OK(found);
}

static void case_first_line_indents_part_paragraphs(void)
{
    struct builder b = builder_new(595, 842);
    float y = 100;
    for (int i = 0; i < 3; i++) {
        builder_line(&b, 75, y, 10,
                     "Indented first line of a paragraph that fills the measure nearly whole for "
                     "us and then");
        y = builder_para(&b, 60, y + 12.5f, 460, 10, true, builder_prose);
    }
    struct page_layout *out = builder_layout(&b);
    const int n = out->n_regions;
    page_layout_free(out);
    page_free(b.page);
    T_EQ(n, 3);
}

static void case_address_keeps_its_lines(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 100, 10, "Northgate Museum of Maps");
    builder_line(&b, 60, 112.5f, 10, "4 Observatory Rise");
    builder_line(&b, 60, 125, 10, "Hexham NE46 1QA");
    builder_para(&b, 60, 160, 460, 10, true, builder_prose);
    char *md = builder_markdown(&b);
    T_OK(strncmp(md, "Northgate Museum of Maps\n4 Observatory Rise\nHexham NE46 1QA\n\nthe quick",
                 70) == 0);
    mem_free(md);
}

/* A panel drawn behind sentences is no figure: its text stays.  A chart keeps its title. */
static void case_backdrop(void)
{
    struct builder b = builder_new(595, 842);
    builder_picture(&b, 50, 86, 530, 170);
    builder_para(&b, 60, 100, 460, 10, true, builder_prose);
    builder_picture(&b, 50, 300, 530, 600);
    builder_line(&b, 150, 320, 10, "Jobs done by month and press");
    char *md = builder_markdown(&b);
    char want[1000];
    snprintf(want, sizeof(want), "%s\n\n![](figure-p1-1.png)", builder_prose);
    const bool good = strcmp(md, want) == 0;
    if (!good) {
        fprintf(stderr, "%s\n", md);
    }
    mem_free(md);
    T_OK(good);
}

static void case_figure_and_captions(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 460, 10, true, builder_prose);
    builder_picture(&b, 150, 160, 400, 300);
    builder_line(&b, 150, 315, 9, "Figure 2. A tray of type.");
    builder_para(&b, 60, 345, 460, 10, true, builder_prose);
    char *md = builder_markdown(&b);
    T_OK(strstr(md, "again.\n\n![](figure-p1-1.png)\n\nFigure 2. A tray of type.\n\nthe quick"));
    mem_free(md);
}

static void case_rotated_margin_is_no_text(void)
{
    struct builder b = builder_new(595, 842);
    b.angle = 90;
    builder_line(&b, 20, 400, 10, "stamped in the margin");
    b.angle = 0;
    builder_para(&b, 60, 100, 460, 10, true, builder_prose);
    char *md = builder_markdown(&b);
    T_OK(!strstr(md, "stamped"));
    T_OK(strstr(md, "quick brown"));
    mem_free(md);
}

/* The same page with its text running down (90) or up (270) reads the same. */
static void case_turned_pages(void)
{
    for (int angle = 90; angle <= 270; angle += 90) {
        struct builder b = builder_new(842, 595);
        builder_line(&b, 60, 80, 20, "A heading");
        builder_para(&b, 60, 110, 700, 10, true, builder_prose);
        struct page *p = b.page;
        for (int i = 0; i < p->n_glyphs; i++) {
            const struct box o = p->glyphs[i].box;
            p->glyphs[i].box = angle == 90 ? (struct box){ 595 - o.y1, o.x0, 595 - o.y0, o.x1 }
                               : angle == 180
                                   ? (struct box){ 842 - o.x1, 595 - o.y1, 842 - o.x0, 595 - o.y0 }
                                   : (struct box){ o.y0, 842 - o.x1, o.y1, 842 - o.x0 };
        }
        for (int i = 0; i < p->n_runs; i++) {
            p->runs[i].angle = (int16_t)angle;
        }
        if (angle != 180) {
            p->width = 595;
            p->height = 842;
        }
        struct page_layout *out = builder_layout(&b);
        const bool good = out->n_regions == 2 && out->width == 842 && out->height == 595 &&
                          strcmp(out->regions[0].draft.markdown, "# A heading") == 0 &&
                          strcmp(out->regions[1].draft.markdown, builder_prose) == 0 &&
                          out->regions[0].box.x0 > 59 && out->regions[0].box.x0 < 61;
        page_layout_free(out);
        page_free(p);
        T_OK(good);
    }
}

/* The heads differ on every page; the number beside them keeps its place. */
static void case_heads_beside_numbers(void)
{
    static const char *const heads[] = { "Chapter 1: Type", "Chapter 2: Paper", "Index" };
    struct layout *l = NULL;
    struct galley_err err = { 0 };
    T_OK(layout_open(&l, NULL, NULL, &err) == GALLEY_OK);
    struct builder pages[3];
    for (int i = 0; i < 3; i++) {
        char number[16];
        pages[i] = builder_new(595, 842);
        pages[i].page->index = i;
        snprintf(number, sizeof(number), "%d", i + 1);
        builder_line(&pages[i], 60, 40, 10, heads[i]);
        builder_line(&pages[i], 514, 40, 10, number);
        builder_para(&pages[i], 60, 100, 460, 10, true, builder_prose);
        layout_see(l, pages[i].page, 3);
    }
    for (int i = 0; i < 3; i++) {
        struct page_layout *out = NULL;
        T_OK(layout_page(l, pages[i].page, &out, &err) == GALLEY_OK);
        T_EQ(out->n_regions, 3);
        T_EQ(out->regions[0].kind, REGION_PAGE_HEADER);
        T_EQ(out->regions[1].kind, REGION_PAGE_NUMBER);
        page_layout_free(out);
        page_free(pages[i].page);
    }
    layout_close(l);
}

static void case_running_heads_over_pages(void)
{
    struct layout *l = NULL;
    struct galley_err err = { 0 };
    T_OK(layout_open(&l, NULL, NULL, &err) == GALLEY_OK);
    struct builder pages[3];
    for (int i = 0; i < 3; i++) {
        char number[16];
        pages[i] = builder_new(595, 842);
        pages[i].page->index = i;
        builder_line(&pages[i], 60, 40, 8, "Harbour Lane Press");
        builder_line(&pages[i], 440, 40, 8, i == 0 ? "Reading" : "Writing");
        builder_para(&pages[i], 60, 100, 460, 10, true, builder_prose);
        builder_para(&pages[i], 60, 300, 460, 10, true, builder_prose);
        snprintf(number, sizeof(number), "%d", i + 7);
        builder_line(&pages[i], 295, 810, 9, number);
        layout_see(l, pages[i].page, 3);
    }
    int n_header = 0, n_number = 0, n_body = 0;
    for (int i = 0; i < 3; i++) {
        struct page_layout *out = NULL;
        T_OK(layout_page(l, pages[i].page, &out, &err) == GALLEY_OK);
        for (int r = 0; r < out->n_regions; r++) {
            n_header += out->regions[r].kind == REGION_PAGE_HEADER;
            n_number += out->regions[r].kind == REGION_PAGE_NUMBER;
            n_body += out->regions[r].kind == REGION_PARAGRAPH;
        }
        page_layout_free(out);
        page_free(pages[i].page);
    }
    layout_close(l);
    T_EQ(n_header, 6); /* both pieces of the line, on every page */
    T_EQ(n_number, 3);
    T_EQ(n_body, 6);
}

static const struct t_case cases[] = {
    { "columns_of_any_gutter", case_columns_of_any_gutter },
    { "staggered_ragged_columns", case_staggered_ragged_columns },
    { "title_over_three_columns", case_title_over_three_columns },
    { "wide_paragraph_between_bands", case_wide_paragraph_between_bands },
    { "column_break_joins", case_column_break_joins },
    { "first_line_indents_part_paragraphs", case_first_line_indents_part_paragraphs },
    { "address_keeps_its_lines", case_address_keeps_its_lines },
    { "backdrop", case_backdrop },
    { "figure_and_captions", case_figure_and_captions },
    { "rotated_margin_is_no_text", case_rotated_margin_is_no_text },
    { "turned_pages", case_turned_pages },
    { "heads_beside_numbers", case_heads_beside_numbers },
    { "running_heads_over_pages", case_running_heads_over_pages },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
