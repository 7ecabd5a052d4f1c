/* test_assemble.c - parts to regions to pages, and the status each failure leads to. */
#include "src/base/mem.h"
#include "src/document/assemble.h"
#include "tests/t.h"

enum { R_MAX = 4 };

/* A page of paragraphs with one piece each. */
struct setting {
    struct page_layout layout;
    struct region region[R_MAX];
    struct region_plan plan[R_MAX];
    struct piece piece[R_MAX][2];
    struct galley_convert_options opt;
};

static void setting_init(struct setting *s, int n)
{
    *s = (struct setting){ 0 };
    s->layout.regions = s->region;
    s->layout.n_regions = n;
    for (int i = 0; i < n; i++) {
        static char text[] = "the draft", draft[] = "the draft", read[] = "what was read";
        s->region[i] =
            (struct region){ .kind = REGION_PARAGRAPH, .draft = { DRAFT_TEXT, 1, text, text } };
        s->plan[i] = (struct region_plan){
            .readable = true, .why = "", .tau = 1, .pieces = s->piece[i], .n_pieces = 1
        };
        s->piece[i][0] = (struct piece){ .finish = FINISH_STOP,
                                         .draft = draft,
                                         .text = read,
                                         .n_output = 4,
                                         .n_steps = 1,
                                         .mean_logprob = -0.1 };
    }
}

static void assemble(struct setting *s, struct page_result *r)
{
    struct galley_err err = { 0 };
    if (assemble_page(r, 1, &s->layout, s->plan, &s->opt, true, &err)) {
        T_FAIL("assemble: %s", err.msg);
    }
}

static void regions_are_separated_by_blank_lines(void)
{
    struct setting s;
    struct page_result r;
    char one[] = "one\n", two[] = " two ";
    setting_init(&s, 2);
    s.piece[0][0].text = one;
    s.piece[1][0].text = two;
    assemble(&s, &r);
    T_STR(r.page.markdown, "one\n\ntwo");
    T_EQ(r.page.status, GALLEY_PAGE_OK);
    T_STR(r.page.regions[0].rule, "exact");
    page_result_deinit(&r);
}

static void continued_paragraphs_are_joined(void)
{
    struct setting s;
    struct page_result r;
    char one[] = "the end of a col-", two[] = "umn";
    setting_init(&s, 2);
    s.piece[0][0].text = one;
    s.piece[1][0].text = two;
    s.region[0].joins_next = true;
    s.region[1].continues = true;
    assemble(&s, &r);
    T_STR(r.page.markdown, "the end of a column");
    page_result_deinit(&r);
}

static void furniture_is_dropped_unless_kept(void)
{
    struct setting s;
    struct page_result r;
    setting_init(&s, 2);
    s.region[0].kind = REGION_PAGE_HEADER;
    assemble(&s, &r);
    T_STR(r.page.markdown, "what was read");
    page_result_deinit(&r);
    s.opt.keep_furniture = true;
    assemble(&s, &r);
    T_STR(r.page.markdown, "what was read\n\nwhat was read");
    page_result_deinit(&r);
}

static void parts_are_joined_as_the_draft_was(void)
{
    struct setting s;
    struct page_result r;
    struct region_line lines[2] = { { .plain_from = 0, .plain_to = 3 },
                                    { .plain_from = 3, .plain_to = 6 } };
    char draft[] = "prepay", a[] = "pre", b[] = "pay";
    setting_init(&s, 1);
    s.region[0].lines = lines;
    s.region[0].n_lines = 2;
    s.region[0].draft.plain = draft; /* a word that a hyphen had cut */
    s.piece[0][1] = s.piece[0][0];
    s.piece[0][0].line_to = 1;
    s.piece[0][1].line_from = 1;
    s.piece[0][1].line_to = 2;
    s.piece[0][0].text = a;
    s.piece[0][1].text = b;
    s.plan[0].n_pieces = 2;
    assemble(&s, &r);
    T_STR(r.page.markdown, "prepay");
    page_result_deinit(&r);
}

static void a_tables_repeated_header_goes(void)
{
    struct setting s;
    struct page_result r;
    char a[] = "| h |\n|---|\n| 1 |", b[] = "| h |\n|---|\n| 2 |";
    setting_init(&s, 1);
    s.region[0].kind = REGION_TABLE;
    s.piece[0][1] = s.piece[0][0];
    s.piece[0][0].text = a;
    s.piece[0][1].text = b;
    s.piece[0][1].with_header = true;
    s.plan[0].n_pieces = 2;
    assemble(&s, &r);
    T_STR(r.page.markdown, "| h |\n|---|\n| 1 |\n| 2 |");
    page_result_deinit(&r);
}

static void failures_keep_the_draft_and_say_so(void)
{
    static const struct {
        enum finish finish;
        enum galley_page_status status;
    } want[] = {
        { FINISH_REPETITION, GALLEY_PAGE_REPETITION },
        { FINISH_LENGTH, GALLEY_PAGE_TRUNCATED },
        { FINISH_FAILED, GALLEY_PAGE_CORRUPT },
        { FINISH_CANCELLED, GALLEY_PAGE_CANCELLED },
    };
    for (size_t i = 0; i < COUNT(want); i++) {
        struct setting s;
        struct page_result r;
        setting_init(&s, 1);
        s.piece[0][0].finish = want[i].finish;
        assemble(&s, &r);
        T_STR(r.page.markdown, "the draft");
        T_EQ(r.page.status, want[i].status);
        T_OK(r.page.reason[0]);
        page_result_deinit(&r);
        s.piece[0][0].draft = NULL; /* --draft none: what there is */
        assemble(&s, &r);
        T_STR(r.page.markdown, "what was read");
        T_EQ(r.page.status, want[i].status);
        page_result_deinit(&r);
    }
}

static void an_empty_text_keeps_the_draft(void)
{
    struct setting s;
    struct page_result r;
    char nothing[] = " \n";
    setting_init(&s, 1);
    s.piece[0][0].text = nothing;
    assemble(&s, &r);
    T_STR(r.page.markdown, "the draft");
    T_EQ(r.page.status, GALLEY_PAGE_LOW_CONFIDENCE);
    page_result_deinit(&r);
}

static void unreadable_regions_keep_the_draft_unverified(void)
{
    struct setting s;
    struct page_result r;
    setting_init(&s, 1);
    s.plan[0] = (struct region_plan){ .why = "a reason" };
    assemble(&s, &r);
    T_STR(r.page.markdown, "the draft");
    T_EQ(r.page.status, GALLEY_PAGE_UNVERIFIED);
    T_STR(r.page.regions[0].rule, "unverified");
    page_result_deinit(&r);
    s.opt.draft = GALLEY_DRAFT_NONE; /* the model alone: nothing is invented */
    assemble(&s, &r);
    T_STR(r.page.markdown, "");
    T_EQ(r.page.status, GALLEY_PAGE_UNVERIFIED);
    T_OK(strstr(r.page.reason, "a reason"));
    page_result_deinit(&r);
}

static void markup_returns_under_tau_only(void)
{
    struct setting s;
    struct page_result r;
    char markdown[] = "the **draft**", read[] = "the draft";
    setting_init(&s, 1);
    s.region[0].draft.markdown = markdown;
    s.piece[0][0].text = read;
    assemble(&s, &r);
    T_STR(r.page.markdown, "the draft"); /* exact: byte for byte the model's */
    page_result_deinit(&r);
    s.plan[0].tau = 0.01;
    assemble(&s, &r);
    T_STR(r.page.markdown, "the **draft**");
    T_STR(r.page.regions[0].rule, "tau");
    page_result_deinit(&r);
}

static void a_text_the_model_does_not_see_is_doubted(void)
{
    struct setting s;
    struct page_result r;
    setting_init(&s, 1);
    s.plan[0].tau = 1e-10;
    s.plan[0].doubt_logprob = -4;
    s.piece[0][0].mean_logprob = -3.9;
    assemble(&s, &r);
    T_EQ(r.page.status, GALLEY_PAGE_OK);
    page_result_deinit(&r);
    s.piece[0][0].mean_logprob = -4.1;
    assemble(&s, &r);
    T_EQ(r.page.status, GALLEY_PAGE_LOW_CONFIDENCE);
    T_OK(strstr(r.page.reason, "does not see"));
    page_result_deinit(&r);
    s.piece[0][0].n_output = 3; /* three tokens prove nothing */
    assemble(&s, &r);
    T_EQ(r.page.status, GALLEY_PAGE_OK);
    page_result_deinit(&r);
}

static void a_blank_page_is_blank(void)
{
    struct setting s;
    struct page_result r;
    setting_init(&s, 0);
    s.layout.blank = true;
    assemble(&s, &r);
    T_STR(r.page.markdown, "");
    T_EQ(r.page.status, GALLEY_PAGE_BLANK);
    page_result_deinit(&r);
    s.layout.blank = false; /* ink that nobody could read is not nothing */
    assemble(&s, &r);
    T_EQ(r.page.status, GALLEY_PAGE_LOW_CONFIDENCE);
    T_OK(r.page.reason[0]);
    page_result_deinit(&r);
}

static const struct t_case cases[] = {
    { "regions_are_separated_by_blank_lines", regions_are_separated_by_blank_lines },
    { "continued_paragraphs_are_joined", continued_paragraphs_are_joined },
    { "furniture_is_dropped_unless_kept", furniture_is_dropped_unless_kept },
    { "parts_are_joined_as_the_draft_was", parts_are_joined_as_the_draft_was },
    { "a_tables_repeated_header_goes", a_tables_repeated_header_goes },
    { "failures_keep_the_draft_and_say_so", failures_keep_the_draft_and_say_so },
    { "an_empty_text_keeps_the_draft", an_empty_text_keeps_the_draft },
    { "unreadable_regions_keep_the_draft_unverified",
      unreadable_regions_keep_the_draft_unverified },
    { "markup_returns_under_tau_only", markup_returns_under_tau_only },
    { "a_text_the_model_does_not_see_is_doubted", a_text_the_model_does_not_see_is_doubted },
    { "a_blank_page_is_blank", a_blank_page_is_blank },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
