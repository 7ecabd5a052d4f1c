/* test_json.c - base: JSON from strangers: limits of the parser, sentences of the getters. */
#include "src/base/json.h"
#include "src/base/mem.h"
#include "tests/t.h"

static enum galley_status parse(cJSON **o, const char *text, struct galley_err *err)
{
    return json_parse(o, "x.json", text, strlen(text), err);
}

static void refuses(const char *text)
{
    struct galley_err err = { 0 };
    cJSON *o;
    if (parse(&o, text, &err) != GALLEY_EINPUT || o) {
        T_FAIL("accepted: %.60s", text);
    }
    T_OK(strncmp(err.msg, "x.json: ", 8) == 0);
}

static void bad_json_is_refused(void)
{
    static const char *const bad[] = {
        "",          " ",           "{",    "[1,",   "{\"a\":}", "{\"a\" 1}",  "{a:1}",
        "[1 2]",     "\"open",      "\"\\", "tru",   "[1,]",     "{\"a\":1,}", "nul",
        "\"\\u12\"", "{\"a\":1} x", "[1]]", "{} {}", "\xff",     "]",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        refuses(bad[i]);
    }
    static const char *const good[] = {
        "{}", " [1, 2] \n", "\"\"", "null", "1e5", "\"[[[[\\\"[[\""
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct galley_err err = { 0 };
        cJSON *o;
        T_EQ(parse(&o, good[i], &err), GALLEY_OK);
        cJSON_Delete(o);
    }
}

/* The length counts, not a terminator. */
static void reads_no_further_than_n(void)
{
    struct galley_err err = { 0 };
    cJSON *o;
    char *text = malloc(3);
    memcpy(text, "[12", 3);
    T_EQ(json_parse(&o, "x.json", text, 3, &err), GALLEY_EINPUT);
    T_EQ(json_parse(&o, "x.json", text, 0, &err), GALLEY_EINPUT);
    memcpy(text, "[1]", 3);
    T_EQ(json_parse(&o, "x.json", text, 3, &err), GALLEY_OK);
    cJSON_Delete(o);
    free(text);
}

static void depth_is_bounded(void)
{
    char text[4096];
    for (int depth = 60; depth < 1500; depth += depth < 70 ? 1 : 500) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        struct galley_err err = { 0 };
        cJSON *o;
        T_EQ(parse(&o, text, &err), depth <= 64 ? GALLEY_OK : GALLEY_EINPUT);
        T_OK(depth <= 64 || strstr(err.msg, "64"));
        cJSON_Delete(o);
    }
}

struct fixture {
    cJSON *o;
    struct galley_err err;
};

static void open_fixture(struct fixture *f)
{
    f->err = (struct galley_err){ 0 };
    T_EQ(parse(
             &f->o,
             "{\"n\":7,\"big\":1e300,\"half\":0.5,\"s\":\"text\",\"t\":true,\"f\":false,\"z\":null,"
             "\"two53\":9007199254740992,\"two63\":9223372036854775808,\"neg\":-3,\"N\":8}",
             &f->err),
         GALLEY_OK);
}

static void ints_are_checked(void)
{
    struct fixture f;
    open_fixture(&f);
    int64_t v = -1;
    T_EQ(json_get_int(f.o, "x", "n", true, 0, 10, &v, &f.err), GALLEY_OK);
    T_EQ(v, 7); /* "N" is another key */
    T_EQ(json_get_int(f.o, "x", "n", true, 7, 7, &v, &f.err), GALLEY_OK);
    T_EQ(json_get_int(f.o, "x", "neg", true, -3, 0, &v, &f.err), GALLEY_OK);
    T_EQ(v, -3);
    T_EQ(json_get_int(f.o, "x", "two53", true, 0, INT64_MAX, &v, &f.err), GALLEY_OK);
    T_EQ(v, 9007199254740992);
    v = 5;
    T_EQ(json_get_int(f.o, "x", "absent", false, 0, 10, &v, &f.err), GALLEY_OK);
    T_EQ(json_get_int(f.o, "x", "z", false, 0, 10, &v, &f.err), GALLEY_OK);
    T_EQ(v, 5);
    T_EQ(json_get_int(f.o, "x", "absent", true, 0, 10, &v, &f.err), GALLEY_EINPUT);
    T_STR(f.err.msg, "x: \"absent\" is missing");
    T_EQ(json_get_int(f.o, "x", "z", true, 0, 10, &v, &f.err), GALLEY_EINPUT);
    static const char *const bad[] = { "half", "s", "t", "big", "two63", "neg" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        T_EQ(json_get_int(f.o, "x", bad[i], false, 0, INT64_MAX, &v, &f.err), GALLEY_EINPUT);
        T_OK(strstr(f.err.msg, bad[i]) != NULL);
        T_EQ(v, 5);
    }
    T_EQ(json_get_int(f.o, "x", "n", false, 8, 10, &v, &f.err), GALLEY_EINPUT);
    T_STR(f.err.msg, "x: \"n\" is 7, allowed 8 to 10");
    cJSON_Delete(f.o);
}

static void other_types_are_checked(void)
{
    struct fixture f;
    open_fixture(&f);
    double d = 0;
    bool b = false;
    const char *s = NULL;
    T_EQ(json_get_number(f.o, "x", "half", true, 0, 1, &d, &f.err), GALLEY_OK);
    T_NEAR(d, 0.5, 0);
    T_EQ(json_get_number(f.o, "x", "big", true, 0, 1, &d, &f.err), GALLEY_EINPUT);
    T_EQ(json_get_number(f.o, "x", "s", true, 0, 1, &d, &f.err), GALLEY_EINPUT);
    T_EQ(json_get_bool(f.o, "x", "t", true, &b, &f.err), GALLEY_OK);
    T_OK(b);
    T_EQ(json_get_bool(f.o, "x", "f", true, &b, &f.err), GALLEY_OK);
    T_OK(!b);
    T_EQ(json_get_bool(f.o, "x", "n", true, &b, &f.err), GALLEY_EINPUT);
    T_STR(f.err.msg, "x: \"n\" is not true or false");
    T_EQ(json_get_string(f.o, "x", "s", true, &s, &f.err), GALLEY_OK);
    T_STR(s, "text");
    T_EQ(json_get_string(f.o, "x", "n", false, &s, &f.err), GALLEY_EINPUT);
    T_STR(f.err.msg, "x: \"n\" is not a string");
    T_EQ(json_get_string(f.o, "x", "absent", false, &s, &f.err), GALLEY_OK);
    T_STR(s, "text");
    cJSON_Delete(f.o);
    /* Not an object at all: every key is missing. */
    T_EQ(parse(&f.o, "[1]", &f.err), GALLEY_OK);
    T_EQ(json_get_number(f.o, "x", "n", true, 0, 1, &d, &f.err), GALLEY_EINPUT);
    cJSON_Delete(f.o);
}

static void files_are_bounded(void)
{
    struct galley_err err = { 0 };
    cJSON *o;
    T_EQ(json_read(&o, "models/galley-tiny/galley.json", 1 << 20, &err), GALLEY_OK);
    cJSON_Delete(o);
    T_EQ(json_read(&o, "models/galley-tiny/galley.json", 10, &err), GALLEY_ELIMIT);
    T_OK(o == NULL);
    T_EQ(json_read(&o, "models/galley-tiny/none.json", 10, &err), GALLEY_EIO);
    T_EQ(json_read(&o, "samples/invoice.pdf", 1 << 20, &err), GALLEY_EINPUT);
    mem_fail_at(1);
    T_EQ(json_read(&o, "models/galley-tiny/galley.json", 1 << 20, &err), GALLEY_ENOMEM);
    mem_fail_at(0);
    T_OK(o == NULL);
}

static const struct t_case cases[] = {
    { "bad_json_is_refused", bad_json_is_refused },
    { "reads_no_further_than_n", reads_no_further_than_n },
    { "depth_is_bounded", depth_is_bounded },
    { "ints_are_checked", ints_are_checked },
    { "other_types_are_checked", other_types_are_checked },
    { "files_are_bounded", files_are_bounded },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
