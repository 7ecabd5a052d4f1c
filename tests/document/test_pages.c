/* test_pages.c - page selections and scripts. */
#include "src/base/mem.h"
#include "src/document/pages.h"
#include "src/document/script.h"
#include "src/format/card.h"
#include "tests/t.h"

static void expect(const char *text, int n_pages, const char *want)
{
    int *list, n;
    struct galley_err err = { 0 };
    char got[256] = "";
    if (pages_select(&list, &n, text, n_pages, &err)) {
        T_FAIL("\"%s\": %s", text, err.msg);
    }
    for (int i = 0; i < n; i++) {
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%d ", list[i] + 1);
    }
    mem_free(list);
    T_STR(got, want);
}

static void expect_refusal(const char *text, const char *part)
{
    int *list, n;
    struct galley_err err = { 0 };
    if (pages_select(&list, &n, text, 10, &err) != GALLEY_EUSAGE || !strstr(err.msg, part)) {
        T_FAIL("\"%s\" gave \"%s\"", text, err.msg);
    }
    T_OK(!list);
}

static void selections(void)
{
    expect(NULL, 3, "1 2 3 ");
    expect("1-3,7", 10, "1 2 3 7 ");
    expect("7,1-3, 2-4", 10, "1 2 3 4 7 ");
    expect("9-", 10, "9 10 ");
    expect("-2", 10, "1 2 ");
    expect(" 5 ", 10, "5 ");
    expect(NULL, 0, "");
}

static void refusals(void)
{
    expect_refusal("11", "page 11, but there are 10");
    expect_refusal("3-99999999999999999999", "there are 10");
    expect_refusal("0", "no page");
    expect_refusal("3-2", "no page");
    expect_refusal("", "no page");
    expect_refusal("1,", "no page");
    expect_refusal("a", "no page");
    expect_refusal("1x", "unexpected");
    expect_refusal("-", "no page");
}

static void scripts(void)
{
    T_EQ(script_bits("Clara Benn\xc3\xa9, 42 %"), CARD_LATIN);
    T_EQ(script_bits("\xed\x95\x9c\xea\xb8\x80 text"), CARD_HANGUL | CARD_LATIN);
    T_EQ(script_bits("\xe6\xbc\xa2\xe5\xad\x97"), CARD_HAN);
    T_EQ(script_bits("12.5 % (3)"), 0);
    T_EQ(script_bits(""), 0);
    T_EQ(script_bits("\xd9\x85\xd8\xb1"), CARD_ARABIC);
    /* One Greek letter in a long Latin text is a symbol, not a script. */
    T_EQ(
        script_bits("a coefficient of friction, written \xce\xbc, is a plain number of the pair of "
                    "surfaces that touch"),
        CARD_LATIN);
}

static const struct t_case cases[] = {
    { "selections", selections },
    { "refusals", refusals },
    { "scripts", scripts },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
