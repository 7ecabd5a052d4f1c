/* tok_golden.h - golden ids for the tokenizer's tests: a line is "plain|special HEX id id ...". */
#ifndef GALLEY_TESTS_FORMAT_TOK_GOLDEN_H
#define GALLEY_TESTS_FORMAT_TOK_GOLDEN_H

#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/format/tokenizer.h"
#include "tests/t.h"

static inline int encode_ok(const struct tokenizer *t, const char *s, size_t n, bool special,
                            int32_t **ids)
{
    struct galley_err err = { 0 };
    int n_ids;
    if (tokenizer_encode(t, s, n, special, ids, &n_ids, &err)) {
        T_FAIL("%s", err.msg);
    }
    return n_ids;
}

static inline char *read_ok(const char *path, size_t *n)
{
    char *text;
    struct galley_err err = { 0 };
    if (file_read(path, (size_t)64 << 20, &text, n, &err)) {
        T_FAIL("%s", err.msg);
    }
    return text;
}

static inline size_t unhex(const char *hex, size_t n, char *out)
{
    if (hex[0] == '-') {
        return 0;
    }
    for (size_t i = 0; i + 1 < n; i += 2) {
        const char two[3] = { hex[i], hex[i + 1], '\0' };
        out[i / 2] = (char)strtoul(two, NULL, 16);
    }
    return n / 2;
}

/* 0 when the line's ids are what the tokenizer gives, else the 1-based id that is not. */
static inline int check_line(const struct tokenizer *t, const char *line, char *scratch)
{
    const bool special = strncmp(line, "special ", 8) == 0;
    const char *hex = strchr(line, ' ') + 1;
    const char *p = strchr(hex, ' ');
    const size_t n = unhex(hex, (size_t)(p - hex), scratch);
    int32_t *ids;
    const int n_ids = encode_ok(t, scratch, n, special, &ids);
    int bad = 0, i = 0;
    while (*p == ' ' && p[1] >= '0' && p[1] <= '9') {
        char *end;
        const long want = strtol(p + 1, &end, 10);
        if (!bad && (i >= n_ids || ids[i] != want)) {
            bad = i + 1;
        }
        p = end;
        i++;
    }
    mem_free(ids);
    return bad ? bad : i != n_ids ? n_ids + 1 : 0;
}

static inline void check_golden_lines(const struct tokenizer *t, const char *golden, int at_least)
{
    size_t n;
    char *text = read_ok(golden, &n);
    char scratch[4096];
    int line_no = 0;
    for (char *line = text; *line; line_no++) {
        char *end = strchr(line, '\n');
        *end = '\0';
        const int bad = check_line(t, line, scratch);
        if (bad) {
            T_FAIL("%s:%d: id %d differs: %.200s", golden, line_no + 1, bad - 1, line);
        }
        line = end + 1;
    }
    T_OK(line_no >= at_least);
    mem_free(text);
}

#endif
