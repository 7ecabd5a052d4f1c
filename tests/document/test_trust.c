/* test_trust.c - whose word counts for a part. */
#include "tests/t.h"
#include "src/document/trust.h"

static char draft[] = "the draft says this";
static char text[] = "the model says that";

static struct piece part(char *d, char *t)
{
    return (struct piece){ .finish = FINISH_STOP,
                           .draft = d,
                           .text = t,
                           .n_output = 20,
                           .n_accepted = 19,
                           .mean_logprob = -0.5 };
}

static void expect(struct piece p, enum region_kind kind, double tau, const char *want,
                   enum galley_page_status status)
{
    const struct region_plan plan = {
        .readable = true, .why = "", .tau = tau, .doubt_logprob = -4
    };
    const struct verdict v = trust_piece(&p, kind, &plan);
    T_STR(v.text, want);
    T_EQ(v.status, status);
    T_OK((v.reason[0] == '\0') == (status == GALLEY_PAGE_OK));
}

static void a_finished_text_stands(void)
{
    expect(part(draft, text), REGION_PARAGRAPH, 1, text, GALLEY_PAGE_OK);
    expect(part(draft, text), REGION_PARAGRAPH, 0.01, text, GALLEY_PAGE_OK);
    expect(part(NULL, text), REGION_PARAGRAPH, 1, text, GALLEY_PAGE_OK);
}

/* A limit that keeps a part from the model says nothing against the page. */
static void a_limit_leaves_the_draft(void)
{
    char why[] = "prompt needs 300 tokens and one to write, has 64";
    struct piece p = {
        .finish = FINISH_FAILED, .status = GALLEY_ELIMIT, .draft = draft, .error = why
    };
    expect(p, REGION_PARAGRAPH, 0.01, draft, GALLEY_PAGE_UNVERIFIED);
    expect(p, REGION_PARAGRAPH, 1, draft, GALLEY_PAGE_UNVERIFIED);
    const struct region_plan plan = { .readable = true, .why = "", .tau = 1 };
    T_STR(trust_piece(&p, REGION_PARAGRAPH, &plan).reason, why);
    p.draft = NULL;
    expect(p, REGION_PARAGRAPH, 1, "", GALLEY_PAGE_UNVERIFIED);
    p.status = GALLEY_EMODEL;
    expect(p, REGION_PARAGRAPH, 1, "", GALLEY_PAGE_CORRUPT);
}

static void broken_characters_are_not_believed(void)
{
    char broken[] = "36\xef\xbf\xbd";
    expect(part(draft, broken), REGION_PARAGRAPH, 0.01, draft, GALLEY_PAGE_LOW_CONFIDENCE);
    expect(part(draft, broken), REGION_PARAGRAPH, 1, broken, GALLEY_PAGE_OK); /* exact is exact */
    expect(part(broken, broken), REGION_PARAGRAPH, 0.01, broken, GALLEY_PAGE_OK);
}

static void a_table_keeps_its_shape(void)
{
    char two[] = "| a | b |\n|---|---|\n| 1 | 2 |", other[] = "| a | b |\n|---|---|\n| 1 | 3 |";
    char three[] = "| a | b |\n|---|---|\n| 1 | 2 | 3 |", again[] =
                                                              "| a | b |\n|---|---|\n"
                                                              "| a | b |\n|---|---|\n| 1 | 2 |";
    char bar[] = "| a | b |\n|---|---|\n| 1 \\| 1 | 2 |",
         ragged[] = "| a | b |\n|---|---|\n1 | 2 |";
    expect(part(two, other), REGION_TABLE, 0.01, other, GALLEY_PAGE_OK);
    expect(part(two, bar), REGION_TABLE, 0.01, bar, GALLEY_PAGE_OK);
    expect(part(two, three), REGION_TABLE, 0.01, two, GALLEY_PAGE_LOW_CONFIDENCE);
    expect(part(two, again), REGION_TABLE, 0.01, two, GALLEY_PAGE_LOW_CONFIDENCE);
    expect(part(two, ragged), REGION_TABLE, 0.01, two, GALLEY_PAGE_LOW_CONFIDENCE);
    expect(part(two, three), REGION_TABLE, 1, three, GALLEY_PAGE_OK);
    expect(part(ragged, three), REGION_TABLE, 0.01, three, GALLEY_PAGE_OK); /* no shape to keep */
}

static void a_derailed_text_is_not_believed(void)
{
    struct piece p = part(draft, text);
    p.n_accepted = 9;
    expect(p, REGION_PARAGRAPH, 0.01, text, GALLEY_PAGE_OK); /* sure of its changes */
    p.mean_logprob = -2;
    expect(p, REGION_PARAGRAPH, 0.01, draft, GALLEY_PAGE_LOW_CONFIDENCE);
    expect(p, REGION_PARAGRAPH, 1, text, GALLEY_PAGE_OK);
    p.n_output = 11;
    expect(p, REGION_PARAGRAPH, 0.01, text, GALLEY_PAGE_OK); /* too short to say */
}

static void a_text_the_model_does_not_see_is_doubted(void)
{
    struct piece p = part(draft, text);
    p.mean_logprob = -4.1;
    expect(p, REGION_PARAGRAPH, 0.01, text, GALLEY_PAGE_LOW_CONFIDENCE);
    p.n_output = 3;
    expect(p, REGION_PARAGRAPH, 0.01, text, GALLEY_PAGE_OK);
}

static const struct t_case cases[] = {
    { "a_finished_text_stands", a_finished_text_stands },
    { "a_limit_leaves_the_draft", a_limit_leaves_the_draft },
    { "broken_characters_are_not_believed", broken_characters_are_not_believed },
    { "a_table_keeps_its_shape", a_table_keeps_its_shape },
    { "a_derailed_text_is_not_believed", a_derailed_text_is_not_believed },
    { "a_text_the_model_does_not_see_is_doubted", a_text_the_model_does_not_see_is_doubted },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
