/* test_render.c - output formats. */
#include <cjson/cJSON.h>

#include "src/base/mem.h"
#include "src/document/html_table.h"
#include "src/document/render.h"
#include "tests/t.h"

static const struct galley_source source = { "a<b>.pdf", "abc", 3 };

static struct galley_page page_of(int number, const char *markdown)
{
    return (struct galley_page){ .number = number, .reason = "", .markdown = markdown };
}

static char *whole(enum galley_format format, const char *markdown, bool page_break)
{
    const struct galley_stats stats = { .n_pages = 2 };
    const struct galley_page one = page_of(1, markdown), two = page_of(2, "second");
    char *part[] = { render_begin(format, &source, 2), render_page(format, &one, 0, page_break),
                     render_page(format, &two, 1, page_break), render_end(format, &stats) };
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t i = 0; i < COUNT(part); i++) {
        T_OK(part[i]);
        buf_add_str(&b, part[i]);
        mem_free(part[i]);
    }
    return buf_take(&b);
}

static void expect(enum galley_format format, const char *markdown, bool page_break,
                   const char *want)
{
    char *got = whole(format, markdown, page_break);
    T_STR(got, want);
    mem_free(got);
}

static void expect_part(enum galley_format format, const char *markdown, const char *part,
                        bool there)
{
    char *got = whole(format, markdown, false);
    if ((strstr(got, part) != NULL) != there) {
        T_FAIL("\"%s\" is %s in %s", part, there ? "not" : "found", got);
    }
    mem_free(got);
}

static void markdown_pages_are_joined(void)
{
    expect(GALLEY_FORMAT_MD, "first", false, "first\n\nsecond\n");
    expect(GALLEY_FORMAT_MD, "first", true,
           "<!-- page 1 -->\n\nfirst\n\n<!-- page 2 -->\n\nsecond\n");
}

static void text_has_no_markup(void)
{
    expect_part(GALLEY_FORMAT_TEXT, "# A **bold** title", "A bold title", true);
    expect_part(GALLEY_FORMAT_TEXT, "<table><tr><td>a&amp;b</td><td>c</td></tr></table>",
                "a&b\tc\n", true);
}

static void html_is_safe(void)
{
    expect_part(GALLEY_FORMAT_HTML, "| a | b |\n|---|---|\n| 1 | 2 |", "<td>1</td>", true);
    expect_part(GALLEY_FORMAT_HTML, "x", "a&lt;b&gt;.pdf", true);
    expect_part(GALLEY_FORMAT_HTML, "<script>alert(1)</script>", "<script", false);
    expect_part(GALLEY_FORMAT_HTML, "<table><tr><td onclick=\"x\">1</td></tr></table>", "onclick",
                false);
    expect_part(GALLEY_FORMAT_HTML, "[x](javascript:alert(1))", "javascript:", false);
    expect_part(GALLEY_FORMAT_HTML, "<table>\n<tr><td rowspan=\"2\">1</td></tr>\n</table>\n\nafter",
                "<td rowspan=\"2\">1</td>", true);
}

static void json_is_json(void)
{
    char *got = whole(GALLEY_FORMAT_JSON, "say \"yes\"\n\x01", false);
    cJSON *o = cJSON_Parse(got);
    T_OK(o);
    const cJSON *src = cJSON_GetObjectItem(o, "source");
    T_STR(cJSON_GetObjectItem(src, "sha256")->valuestring,
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); /* FIPS 180-4 */
    const cJSON *pages = cJSON_GetObjectItem(o, "pages");
    T_EQ(cJSON_GetArraySize(pages), 2);
    const cJSON *one = cJSON_GetArrayItem(pages, 0);
    T_STR(cJSON_GetObjectItem(one, "markdown")->valuestring, "say \"yes\"\n\x01");
    T_STR(cJSON_GetObjectItem(one, "status")->valuestring, "ok");
    T_EQ(cJSON_GetObjectItem(cJSON_GetObjectItem(o, "stats"), "pages")->valueint, 2);
    cJSON_Delete(o);
    mem_free(got);
}

/* A file's name is any bytes. */
static void names_become_utf8(void)
{
    static const struct galley_source odd = { "a\xff\xc3.pdf", "abc", 3 };
    char *got = render_begin(GALLEY_FORMAT_JSON, &odd, 1);
    T_OK(got && strstr(got, "\"a\xef\xbf\xbd\xef\xbf\xbd.pdf\""));
    mem_free(got);
    got = render_begin(GALLEY_FORMAT_HTML, &odd, 1);
    T_OK(got && strstr(got, "<title>a\xef\xbf\xbd\xef\xbf\xbd.pdf</title>"));
    mem_free(got);
}

static void odd_tables_are_no_tables(void)
{
    T_OK(!html_table_find("<table>"));
    T_OK(!html_table_find("text <table></table>"));
    T_OK(!html_table_find("<table><tr><td><a href=\"x\">y</a></td></tr></table>"));
    T_OK(!html_table_find("<table><td rowspan=\"99999\"></td></table>"));
    const char *t = "<table></table>x";
    T_OK(html_table_find(t) == t);
    T_STR(html_table_end(t), "x");
}

static const struct t_case cases[] = {
    { "markdown_pages_are_joined", markdown_pages_are_joined },
    { "text_has_no_markup", text_has_no_markup },
    { "html_is_safe", html_is_safe },
    { "json_is_json", json_is_json },
    { "names_become_utf8", names_become_utf8 },
    { "odd_tables_are_no_tables", odd_tables_are_no_tables },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
