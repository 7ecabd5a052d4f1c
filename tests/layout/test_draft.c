/* test_draft.c - what is written: headings, joins, emphasis, escapes, notes, code, lists. */
#include "tests/t.h"
#include "tests/layout/page_builder.h"

#define EXPECT(b, want)                                         \
    do {                                                        \
        char *md = builder_markdown(b);                         \
        const bool same = strcmp(md, (want)) == 0;              \
        if (!same) {                                            \
            fprintf(stderr, "got:\n%s\nwant:\n%s\n", md, want); \
        }                                                       \
        mem_free(md);                                           \
        T_OK(same);                                             \
    } while (0)

/* Two lines of a paragraph; the first ends at the right edge, the second is what comes next. */
static void expect_join(const char *first, const char *second, const char *want)
{
    struct builder b = builder_new(595, 842);
    const float y = builder_para(&b, 60, 100, 400, 10, true, builder_prose);
    const float w = builder_width(first, 10);
    builder_line(&b, 460 - w, y, 10, first); /* ends exactly at the edge */
    builder_line(&b, 60, y + 12.5f, 10, second);
    char *md = builder_markdown(&b);
    const bool found = strstr(md, want) != NULL;
    if (!found) {
        fprintf(stderr, "got:\n%s\nwant: %s\n", md, want);
    }
    mem_free(md);
    T_OK(found);
}

static void case_hyphens(void)
{
    static const char *const pairs[][3] = {
        { "the story of its his-", "tory is long", "its history is" },
        { "a dose of Vita-", "B and others", "of Vita-B and" },
        { "it was in COVID-", "19 times that", "in COVID-19 times" },
        { "he is a self-", "made man of sorts", "a self-made man" },
        { "the state-of-the-", "art machine of", "the state-of-the-art machine" },
        { "zwischen Haupt-", "und Nebensatz steht", "Haupt- und Nebensatz" },
        { "the years 1990-", "1995 were good", "1990-1995 were" },
        { "see https://example.org/a/", "b/c.html for more", "https://example.org/a/b/c.html" },
        { "soft hy\xc2\xad", "phens vanish too", "hyphens vanish" },
        { "a word \xe2\x80\x93", "and a dash in it", "word \xe2\x80\x93 and" },
    };
    for (size_t i = 0; i < COUNT(pairs); i++) {
        expect_join(pairs[i][0], pairs[i][1], pairs[i][2]);
    }
}

static void case_scripts_without_spaces(void)
{
    /* Chinese: no space at the join; Korean: inside a word when the lexicon knows it. */
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 100, 10,
                 "\xe6\x88\x91\xe4\xbb\xac\xe5\x9c\xa8\xe6\x9c\xba\xe5\x99\xa8\xe6\x97\x81\xe8\xaf"
                 "\xbb\xe6\xa0\xa1\xe6\xa0\xb7\xe7\x9a\x84");
    builder_line(&b, 60, 113, 10, "\xe6\x97\xb6\xe5\x80\x99\xe4\xb8\x8d\xe8\xaf\xb4\xe8\xaf\x9d");
    EXPECT(&b,
           "\xe6\x88\x91\xe4\xbb\xac\xe5\x9c\xa8\xe6\x9c\xba\xe5\x99\xa8\xe6\x97\x81\xe8\xaf"
           "\xbb\xe6\xa0\xa1\xe6\xa0\xb7\xe7\x9a\x84\xe6\x97\xb6\xe5\x80\x99\xe4\xb8\x8d\xe8\xaf"
           "\xb4\xe8\xaf\x9d");
}

static void case_emphasis_and_links(void)
{
    struct builder b = builder_new(595, 842);
    float x = builder_put(&b, 60, 100, 10, "This is ");
    b.flags = RUN_BOLD;
    x = builder_put(&b, x, 100, 10, "very bold");
    b.flags = 0;
    x = builder_put(&b, x, 100, 10, ", that ");
    b.flags = RUN_ITALIC;
    x = builder_put(&b, x, 100, 10, "slanted");
    b.flags = 0;
    x = builder_put(&b, x, 100, 10, " and ");
    const float from = x;
    x = builder_put(&b, x, 100, 10, "our forms");
    builder_link(&b, from, 90, x, 103, "https://example.org/a b");
    builder_line(&b, x, 100, 10, ", see there.");
    EXPECT(&b, "This is **very bold**, that *slanted* and "
               "[our forms](https://example.org/a%20b), see there.");
}

static void case_escapes_only_where_they_act(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 100, 10, "3. a_b and *star* and 2 * 3 and _under_ and a<b and `x` a|b.");
    EXPECT(&b, "3\\. a_b and \\*star\\* and 2 * 3 and \\_under\\_ and a\\<b and \\`x\\` a|b.");
    b = builder_new(595, 842);
    builder_line(&b, 60, 100, 10, "# no heading at all but text that goes on for a while here");
    EXPECT(&b, "\\# no heading at all but text that goes on for a while here");
}

static void case_plain_has_no_markup(void)
{
    struct builder b = builder_new(595, 842);
    float x = builder_put(&b, 60, 100, 10, "Some ");
    b.flags = RUN_BOLD;
    x = builder_put(&b, x, 100, 10, "bold");
    b.flags = 0;
    builder_line(&b, x, 100, 10, " and *star* text.");
    struct page_layout *out = builder_layout(&b);
    char *plain = mem_strdup(out->regions[0].draft.plain);
    page_layout_free(out);
    page_free(b.page);
    const bool same = strcmp(plain, "Some bold and *star* text.") == 0;
    mem_free(plain);
    T_OK(same);
}

static void case_lines_carry_their_bytes(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 300, 10, true, builder_prose);
    struct page_layout *out = builder_layout(&b);
    const struct region *r = &out->regions[0];
    const int n = r->n_lines, size = (int)strlen(r->draft.plain);
    bool good = n > 3 && r->lines[0].plain_from == 0 && r->lines[n - 1].plain_to == size;
    for (int i = 0; i + 1 < n; i++) {
        good = good && r->lines[i].plain_to + 1 == r->lines[i + 1].plain_from &&
               r->draft.plain[r->lines[i].plain_to] == ' ' &&
               r->lines[i].box.y1 < r->lines[i + 1].box.y1;
    }
    page_layout_free(out);
    page_free(b.page);
    T_OK(good);
}

static void case_headings_by_size_and_weight(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 80, 20, "The Title");
    builder_line(&b, 60, 115, 14, "1 First section");
    builder_para(&b, 60, 140, 460, 10, true, builder_prose);
    b.flags = RUN_BOLD;
    builder_line(&b, 60, 205, 10, "A small bold heading");
    b.flags = 0;
    builder_para(&b, 60, 222, 460, 10, true, builder_prose);
    builder_line(&b, 60, 290, 14, "2 Second section that is rather long and so needs a");
    builder_line(&b, 60, 307, 14, "second line of its own");
    builder_para(&b, 60, 330, 460, 10, true, builder_prose);
    char want[2000];
    snprintf(want, sizeof(want),
             "# The Title\n\n## 1 First section\n\n%s\n\n### A small bold heading\n\n%s\n\n"
             "## 2 Second section that is rather long and so needs a second line of its own\n\n%s",
             builder_prose, builder_prose, builder_prose);
    EXPECT(&b, want);
}

static void case_bold_words_are_no_heading(void)
{
    struct builder b = builder_new(595, 842);
    b.flags = RUN_BOLD;
    const float x = builder_put(&b, 60, 100, 10, "Abstract.");
    b.flags = 0;
    builder_line(&b, x + 3, 100, 10, "We read proofs, and this is what we found.");
    EXPECT(&b, "**Abstract.** We read proofs, and this is what we found.");
}

static void case_nested_lists(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 460, 10, true, builder_prose);
    const float y = 170;
    builder_line(&b, 70, y, 10, "\xe2\x80\xa2 first item");
    builder_line(&b, 90, y + 13, 10, "\xe2\x80\x93 inner item that is");
    builder_line(&b, 100, y + 26, 10, "wrapped here");
    builder_line(&b, 70, y + 39, 10, "\xe2\x80\xa2 second item");
    builder_line(&b, 60, y + 70, 10, "4. fourth");
    builder_line(&b, 80, y + 83, 10, "\xe2\x80\xa2 inside");
    builder_line(&b, 60, y + 96, 10, "5. fifth");
    char want[1200];
    snprintf(want, sizeof(want),
             "%s\n\n- first item\n  - inner item that is wrapped here\n- second item\n\n"
             "4. fourth\n   - inside\n5. fifth",
             builder_prose);
    EXPECT(&b, want);
}

static void case_number_alone_is_no_list(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 100, 10, "7. January was cold");
    EXPECT(&b, "7\\. January was cold");
}

static void case_labels_stay(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 100, 10, "(a) the first of them");
    builder_line(&b, 60, 113, 10, "(b) the second of them");
    EXPECT(&b, "- (a) the first of them\n- (b) the second of them");
}

static void case_code_keeps_its_shape(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 460, 10, true, builder_prose);
    b.flags = RUN_MONO;
    builder_line(&b, 80, 180, 10, "int main(void)");
    builder_line(&b, 80, 192, 10, "{");
    builder_line(&b, 100, 204, 10, "return *p - 1;");
    builder_line(&b, 80, 228, 10, "}");
    b.flags = 0;
    char want[1000];
    snprintf(want, sizeof(want), "%s\n\n```\nint main(void)\n{\n    return *p - 1;\n\n}\n```",
             builder_prose);
    EXPECT(&b, want);
}

static void case_footnote_and_its_mark(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 460, 10, true, builder_prose);
    float x = builder_put(&b, 60, 170, 10, "They printed it again.");
    x = builder_put(&b, x, 166, 6.5f, "1");
    builder_line(&b, x + 3, 170, 10, "At their expense in H");
    builder_rule(&b, 60, 740, 180, 740.5f);
    x = builder_put(&b, 60, 751, 5.5f, "1");
    builder_line(&b, x + 2, 754, 8, "The customer kept both of the versions.");
    char want[1000];
    snprintf(want, sizeof(want),
             "%s\n\nThey printed it again.[^1] At their expense in H\n\n"
             "[^1]: The customer kept both of the versions.",
             builder_prose);
    EXPECT(&b, want);
}

static void case_ligatures_and_private_bullets(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 100, 10, "\xef\x82\xb7 the \xef\xac\x81rst \xef\xac\x83 word");
    builder_line(&b, 60, 113, 10, "\xef\x82\xb7 the second");
    EXPECT(&b, "- the first ffi word\n- the second");
}

static void case_shadow_text_counts_once(void)
{
    struct builder b = builder_new(595, 842);
    builder_line(&b, 60, 100, 10, "Shadowed words");
    builder_line(&b, 60.4f, 100.2f, 10, "Shadowed words");
    EXPECT(&b, "Shadowed words");
}

static const struct t_case cases[] = {
    { "hyphens", case_hyphens },
    { "scripts_without_spaces", case_scripts_without_spaces },
    { "emphasis_and_links", case_emphasis_and_links },
    { "escapes_only_where_they_act", case_escapes_only_where_they_act },
    { "plain_has_no_markup", case_plain_has_no_markup },
    { "lines_carry_their_bytes", case_lines_carry_their_bytes },
    { "headings_by_size_and_weight", case_headings_by_size_and_weight },
    { "bold_words_are_no_heading", case_bold_words_are_no_heading },
    { "nested_lists", case_nested_lists },
    { "number_alone_is_no_list", case_number_alone_is_no_list },
    { "labels_stay", case_labels_stay },
    { "code_keeps_its_shape", case_code_keeps_its_shape },
    { "footnote_and_its_mark", case_footnote_and_its_mark },
    { "ligatures_and_private_bullets", case_ligatures_and_private_bullets },
    { "shadow_text_counts_once", case_shadow_text_counts_once },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
