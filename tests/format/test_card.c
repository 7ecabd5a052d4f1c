/* test_card.c - galley.json: every key, defaults, refusals. */
#include "src/base/mem.h"
#include "src/format/card.h"
#include "tests/format/folder.h"

static const char full[] =
    "{\"about\":\"test\",\"prompt_region\":\"R\",\"prompt_table\":\"T\","
    "\"system\":\"\",\"text_height\":24.5,\"heading_height\":40,\"max_lines\":8,"
    "\"max_visual_tokens\":256,\"inline_markup\":false,"
    "\"min_pixels\":3136,\"max_pixels\":200704,\"tau_text\":1e-8,\"tau_ocr\":0.25,"
    "\"scripts\":[\"latin\",\"hangul\",\"other\"],\"kinds\":[\"heading\",\"page_number\"],"
    "\"max_new_tokens\":400}";

static void every_key(void)
{
    struct card c;
    struct galley_err err = { 0 };
    T_EQ(card_parse(&c, "card", full, strlen(full), &err), GALLEY_OK);
    T_STR(c.prompt_region, "R");
    T_STR(c.prompt_table, "T");
    T_STR(c.system, "");
    T_NEAR(c.text_height, 24.5, 0);
    T_NEAR(c.heading_height, 40, 0);
    T_EQ(c.max_lines, 8);
    T_EQ(c.max_visual_tokens, 256);
    T_OK(!c.inline_markup);
    T_EQ(c.min_pixels, 3136);
    T_EQ(c.max_pixels, 200704);
    T_NEAR(c.tau_text, 1e-8, 0);
    T_NEAR(c.tau_ocr, 0.25, 0);
    T_EQ(c.scripts, CARD_LATIN | CARD_HANGUL | CARD_OTHER);
    T_EQ(c.kinds, 1u << 0 | 1u << 11);
    T_EQ(c.max_new_tokens, 400);
}

static void defaults_stay(void)
{
    struct card c, d;
    struct galley_err err = { 0 };
    card_default(&d);
    T_EQ(card_parse(&c, "card", "{\"max_lines\":3}", 15, &err), GALLEY_OK);
    T_EQ(c.max_lines, 3);
    d.max_lines = 3;
    T_OK(strcmp(c.prompt_region, d.prompt_region) == 0 && c.prompt_region[0]);
    T_EQ(c.scripts, CARD_ALL_SCRIPTS);
    T_EQ(c.kinds, CARD_ALL_KINDS);
    T_NEAR(c.tau_text, 1, 0); /* exact without a card */
    T_NEAR(c.tau_ocr, 1, 0);
    T_OK(c.inline_markup);
}

static void refuses_by_name(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "{\"promt_region\":\"x\"}", "unknown key \"promt_region\"" },
        { "{\"max_lines\":1,\"max_lines\":2}", "\"max_lines\" is there twice" },
        { "{\"max_lines\":\"8\"}", "\"max_lines\" is not a number" },
        { "{\"max_lines\":-1}", "\"max_lines\" is -1" },
        { "{\"text_height\":1e9}", "\"text_height\" is 1e+09" },
        { "{\"tau_text\":1.5}", "\"tau_text\" is 1.5" },
        { "{\"inline_markup\":1}", "\"inline_markup\" is not true or false" },
        { "{\"system\":7}", "\"system\" is not a string" },
        { "{\"system\":\"\xff\"}", "\"system\" is not UTF-8" },
        { "{\"scripts\":\"latin\"}", "\"scripts\" is not a list" },
        { "{\"scripts\":[]}", "\"scripts\" is not a list" },
        { "{\"scripts\":[\"klingon\"]}", "\"scripts\" holds unknown \"klingon\"" },
        { "{\"kinds\":[\"heading\",3]}", "\"kinds\" holds unknown" },
        { "{\"min_pixels\":9,\"max_pixels\":8}", "min_pixels 9 is over max_pixels 8" },
        { "[]", "not a JSON object" },
        { "{", "not valid JSON" },
        { "", "not valid JSON" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct card c;
        struct galley_err err = { 0 };
        const enum galley_status rc =
            card_parse(&c, "m/galley.json", rows[i].text, strlen(rows[i].text), &err);
        if (rc != GALLEY_EMODEL || err.status != rc || !strstr(err.msg, rows[i].says) ||
            !strstr(err.msg, "m/galley.json")) {
            T_FAIL("row %zu says: %s", i, err.msg);
        }
    }
}

static void long_prompts(void)
{
    char text[CARD_TEXT_MAX + 64];
    struct card c;
    struct galley_err err = { 0 };
    for (int n = CARD_TEXT_MAX - 1; n <= CARD_TEXT_MAX; n++) {
        int at = snprintf(text, sizeof(text), "{\"system\":\"");
        memset(text + at, 'a', (size_t)n);
        memcpy(text + at + n, "\"}", 3);
        const enum galley_status rc = card_parse(&c, "card", text, strlen(text), &err);
        T_EQ(rc, n < CARD_TEXT_MAX ? GALLEY_OK : GALLEY_EMODEL);
    }
    T_OK(strstr(err.msg, "2048 bytes, limit 2047"));
}

static void directories(void)
{
    struct card c;
    struct galley_err err = { 0 };
    bool found = true;
    T_EQ(card_read(&c, "/nonexistent", &found, &err), GALLEY_OK);
    T_OK(!found);
    struct folder f;
    folder_open(&f);
    folder_text(&f, "galley.json", full);
    T_EQ(card_read(&c, f.path, &found, &err), GALLEY_OK);
    T_OK(found);
    T_EQ(c.max_lines, 8);
    mem_fail_at(0);
    T_EQ(card_read(&c, f.path, &found, &err), GALLEY_OK);
    const long n = mem_count();
    T_EQ(n, 2);
    for (long i = 1; i <= n; i++) {
        mem_fail_at(i);
        const enum galley_status rc = card_read(&c, f.path, &found, &err);
        mem_fail_at(0);
        T_EQ(rc, GALLEY_ENOMEM);
    }
    folder_close(&f);
}

static void built_in_model(void)
{
    struct card c;
    struct galley_err err = { 0 };
    bool found;
    if (card_read(&c, "models/galley-tiny", &found, &err)) {
        T_FAIL("%s", err.msg);
    }
    T_OK(found && c.tau_text < 1);
}

static const struct t_case cases[] = {
    { "every_key", every_key },
    { "defaults_stay", defaults_stay },
    { "refuses_by_name", refuses_by_name },
    { "long_prompts", long_prompts },
    { "directories", directories },
    { "built_in_model", built_in_model },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
