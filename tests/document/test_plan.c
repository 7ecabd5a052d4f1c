/* test_plan.c - crops, cuts and refusals. */
#include <math.h>

#include "src/base/mem.h"
#include "src/document/plan.h"
#include "tests/t.h"

enum { CELL = 28, LINES_MAX = 64 };

/* A page of white with a region of n lines, 10 pt high, 12 pt apart, `width` pt wide. */
struct setting {
    struct page_layout page;
    struct region region;
    struct region_line lines[LINES_MAX];
    char plain[LINES_MAX * 8];
    struct card card;
    struct galley_convert_options opt;
};

static void setting_init(struct setting *s, int n, float width, enum region_kind kind)
{
    *s = (struct setting){ 0 };
    card_default(&s->card);
    s->card.text_height = 24;
    s->card.max_visual_tokens = 256;
    s->card.max_lines = 8;
    s->card.tau_text = 0.5;
    s->page.scale = 2;
    s->page.width = 600;
    s->page.height = 800;
    s->page.bitmap = image_new(1200, 1600);
    T_OK(s->page.bitmap);
    memset(s->page.bitmap->rgb, 200, (size_t)1600 * s->page.bitmap->stride);
    for (int i = 0; i < n; i++) {
        const float y = 100 + 12 * (float)i;
        s->lines[i].box = (struct box){ 50, y, 50 + width, y + 10 };
        s->lines[i].size = 10;
        s->lines[i].plain_from = i * 6;
        s->lines[i].plain_to = i * 6 + 5;
        snprintf(s->plain + i * 6, sizeof(s->plain) - (size_t)i * 6, "w%04d%s", i,
                 i + 1 < n ? " " : "");
    }
    s->region = (struct region){ .kind = kind,
                                 .box = { 50, 100, 50 + width, 100 + 12 * (float)n - 2 },
                                 .lines = s->lines,
                                 .n_lines = n,
                                 .size = 10,
                                 .draft = { DRAFT_TEXT, 1, s->plain, s->plain } };
}

static void plan(struct setting *s, struct region_plan *p)
{
    struct galley_err err = { 0 };
    if (plan_region(p, &s->page, &s->region, &s->card, &s->opt, CELL, &err)) {
        T_FAIL("plan: %s", err.msg);
    }
}

static void setting_deinit(struct setting *s, struct region_plan *p)
{
    region_plan_deinit(p);
    image_unref(s->page.bitmap);
}

static void text_is_scaled_to_the_cards_height(void)
{
    struct setting s;
    struct region_plan p;
    setting_init(&s, 1, 100, REGION_PARAGRAPH);
    plan(&s, &p);
    T_EQ(p.n_pieces, 1);
    T_NEAR(p.pieces[0].scale, 2.4, 1e-6); /* 24 px for 10 pt */
    T_EQ(p.pieces[0].width, 9 * CELL);    /* (100 + 4) * 2.4 = 250 */
    T_EQ(p.pieces[0].height, 2 * CELL);   /* (10 + 4) * 2.4 = 34 */
    T_NEAR(p.tau, 0.5, 0);
    struct image *im = plan_crop(&s.page, &s.region, &p.pieces[0]);
    T_OK(im);
    T_EQ(im->width, lround(9 * CELL / 1.2));
    T_EQ(im->height, lround(2 * CELL / 1.2));
    T_EQ(im->rgb[0], 255); /* white margin */
    const size_t middle = (size_t)(im->height / 2) * im->stride + (size_t)(im->width / 2) * 3;
    T_EQ(im->rgb[middle], 200); /* the page */
    image_unref(im);
    setting_deinit(&s, &p);
}

/* Every line is in exactly one part, in order, each part within the limits; the parts' drafts are
 * the whole draft. */
static void tall_regions_are_cut_between_lines(void)
{
    struct setting s;
    struct region_plan p;
    setting_init(&s, 30, 480, REGION_PARAGRAPH);
    plan(&s, &p);
    T_OK(p.n_pieces > 1);
    int line = 0;
    char joined[512] = "";
    for (int i = 0; i < p.n_pieces; i++) {
        const struct piece *q = &p.pieces[i];
        T_EQ(q->line_from, line);
        T_OK(q->line_to > line && q->line_to - line <= 8);
        T_OK(q->width / CELL * (q->height / CELL) <= 256);
        line = q->line_to;
        snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? " " : "",
                 q->draft);
    }
    T_EQ(line, 30);
    T_STR(joined, s.plain);
    setting_deinit(&s, &p);
}

static void a_table_repeats_its_header(void)
{
    struct setting s;
    struct region_plan p;
    setting_init(&s, 20, 300, REGION_TABLE);
    s.region.n_header_rows = 1;
    plan(&s, &p);
    T_OK(p.n_pieces > 1);
    T_OK(!p.pieces[0].with_header && p.pieces[1].with_header);
    T_OK(strncmp(p.pieces[1].draft, "w0000 w", 7) == 0);
    struct image *im = plan_crop(&s.page, &s.region, &p.pieces[1]);
    T_OK(im);
    image_unref(im);
    setting_deinit(&s, &p);
}

static void one_line_too_wide_is_made_smaller(void)
{
    struct setting s;
    struct region_plan p;
    setting_init(&s, 1, 500, REGION_PARAGRAPH);
    s.card.max_visual_tokens = 20;
    plan(&s, &p);
    T_EQ(p.n_pieces, 1);
    T_OK(p.pieces[0].width / CELL * (p.pieces[0].height / CELL) <= 20);
    setting_deinit(&s, &p);
}

static void a_model_without_card_reads_pixels_as_they_are(void)
{
    struct setting s;
    struct region_plan p;
    setting_init(&s, 30, 480, REGION_PARAGRAPH);
    card_default(&s.card);
    plan(&s, &p);
    T_EQ(p.n_pieces, 1);
    T_EQ(p.pieces[0].width, 0);
    T_NEAR(p.tau, 1, 0); /* exact */
    setting_deinit(&s, &p);
}

static void expect_refusal(struct setting *s, const char *part)
{
    struct region_plan p;
    plan(s, &p);
    T_OK(!p.readable && p.n_pieces == 0);
    T_OK(strstr(p.why, part));
    setting_deinit(s, &p);
}

static void what_the_card_does_not_name_is_refused(void)
{
    struct setting s;
    setting_init(&s, 1, 100, REGION_FIGURE);
    expect_refusal(&s, "figure");
    setting_init(&s, 1, 100, REGION_FORMULA);
    s.card.kinds = 1u << REGION_PARAGRAPH;
    expect_refusal(&s, "formulas");
    setting_init(&s, 1, 100, REGION_PARAGRAPH);
    s.card.scripts = CARD_LATIN;
    s.region.draft.plain = (char[]){ "\xed\x95\x9c\xea\xb8\x80" };
    expect_refusal(&s, "Hangul");
    setting_init(&s, 1, 100, REGION_TABLE);
    s.card.inline_markup = false;
    s.region.draft.plain = (char[]){ "<table></table>" };
    expect_refusal(&s, "merged");
}

static void options_win_over_the_card(void)
{
    struct setting s;
    struct region_plan p;
    setting_init(&s, 1, 100, REGION_PARAGRAPH);
    s.opt.accept = 1;
    s.opt.draft = GALLEY_DRAFT_NONE;
    plan(&s, &p);
    T_NEAR(p.tau, 1, 0);
    T_OK(!p.pieces[0].draft);
    setting_deinit(&s, &p);
}

/* Boxes outside the page, of no size, or not finite in size must not crash. */
static void strange_boxes_are_harmless(void)
{
    static const struct box boxes[] = {
        { -500, -500, -400, -400 }, { 0, 0, 0, 0 }, { 599, 799, 100000, 100000 }, { 50, 1, 51, 1 }
    };
    for (size_t i = 0; i < COUNT(boxes); i++) {
        struct setting s;
        struct region_plan p;
        setting_init(&s, 1, 100, REGION_PARAGRAPH);
        s.region.box = boxes[i];
        s.region.n_lines = 0;
        plan(&s, &p);
        struct image *im = plan_crop(&s.page, &s.region, &p.pieces[0]);
        T_OK(im);
        image_unref(im);
        setting_deinit(&s, &p);
    }
}

/* card.kinds is a mask over enum region_kind: both lists must have the same order. */
static void card_and_layout_name_the_same_kinds(void)
{
    T_EQ(card_kind_count(), REGION_KIND_COUNT);
    for (int i = 0; i < REGION_KIND_COUNT; i++) {
        T_STR(card_kind_name(i), region_kind_name((enum region_kind)i));
    }
}

static const struct t_case cases[] = {
    { "card_and_layout_name_the_same_kinds", card_and_layout_name_the_same_kinds },
    { "text_is_scaled_to_the_cards_height", text_is_scaled_to_the_cards_height },
    { "tall_regions_are_cut_between_lines", tall_regions_are_cut_between_lines },
    { "a_table_repeats_its_header", a_table_repeats_its_header },
    { "one_line_too_wide_is_made_smaller", one_line_too_wide_is_made_smaller },
    { "a_model_without_card_reads_pixels_as_they_are",
      a_model_without_card_reads_pixels_as_they_are },
    { "what_the_card_does_not_name_is_refused", what_the_card_does_not_name_is_refused },
    { "options_win_over_the_card", options_win_over_the_card },
    { "strange_boxes_are_harmless", strange_boxes_are_harmless },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
