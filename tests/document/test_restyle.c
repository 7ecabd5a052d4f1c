/* test_restyle.c - markup follows its words. */
#include "src/base/mem.h"
#include "src/document/restyle.h"
#include "tests/t.h"

static void expect(const char *plain, const char *markdown, const char *verified, const char *want)
{
    char *got = restyle(plain, markdown, verified);
    T_STR(got, want);
    mem_free(got);
}

static void unchanged_words_give_the_draft(void)
{
    expect("a bold word", "a **bold** word", "a bold word", "a **bold** word");
    expect("", "", "", "");
}

static void changed_words_keep_the_markup_around_them(void)
{
    expect("a bold word here", "a **bold** word here", "a bald word here", "a **bald** word here");
    expect("one two three four", "one **two three** four", "one two thee four",
           "one **two thee** four");
    expect("see the site now", "see [the site](http://x.y) now", "see the sight now",
           "see [the sight](http://x.y) now");
    expect("a b c", "*a* b c", "a b", "*a* b");
}

static void words_come_and_go(void)
{
    expect("keep this mark", "keep **this** mark", "keep it and this mark",
           "keep it and **this** mark");
    expect("gone bold stays", "gone **bold** stays", "bold stays", "**bold** stays");
}

static void fences_stay(void)
{
    expect("x = 1\ny = 2", "```\nx = 1\ny = 2\n```", "x = 1\ny = 3", "```\nx = 1\ny = 3\n```");
}

static void forms_that_do_not_align_give_the_words(void)
{
    expect("abc", "xyz", "abd", "abd");
}

static void memory_may_fail(void)
{
    for (long n = 1; n < 8; n++) {
        mem_fail_at(n);
        char *got = restyle("a b", "a **b**", "a c");
        mem_fail_at(0);
        /* Without memory for the table of words the markup is lost, never the words. */
        T_OK(got == NULL || strcmp(got, "a **c**") == 0 || strcmp(got, "a c") == 0);
        mem_free(got);
    }
}

static const struct t_case cases[] = {
    { "unchanged_words_give_the_draft", unchanged_words_give_the_draft },
    { "changed_words_keep_the_markup_around_them", changed_words_keep_the_markup_around_them },
    { "words_come_and_go", words_come_and_go },
    { "fences_stay", fences_stay },
    { "forms_that_do_not_align_give_the_words", forms_that_do_not_align_give_the_words },
    { "memory_may_fail", memory_may_fail },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
