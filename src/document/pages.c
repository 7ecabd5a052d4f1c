/* pages.c - page selections. */
#include "src/document/pages.h"

#include <stdbool.h>

#include "src/base/mem.h"

static const char *skip_blanks(const char *s)
{
    while (*s == ' ') {
        s++;
    }
    return s;
}

/* Reads a page number; 0 when there is none. Saturates instead of overflowing. */
static const char *read_number(const char *s, int *out)
{
    int v = 0;
    while (*s >= '0' && *s <= '9') {
        v = v > 100000000 ? v : v * 10 + (*s - '0');
        s++;
    }
    *out = v;
    return s;
}

/* One part "a", "a-b", "a-" or "-b"; *s moves behind it. */
static bool read_part(const char **s, int n_pages, int *from, int *to)
{
    const char *p = skip_blanks(*s);
    const char *start = p;
    p = skip_blanks(read_number(p, from));
    const bool has_from = *from > 0;
    if (p != start && !has_from) {
        return false; /* page 0 */
    }
    *to = *from;
    if (*p == '-') {
        start = skip_blanks(p + 1);
        p = read_number(start, to);
        const bool has_to = p != start;
        if ((has_to && *to == 0) || (!has_from && !has_to)) {
            return false;
        }
        *to = has_to ? *to : n_pages;
        *from = has_from ? *from : 1;
    } else if (!has_from) {
        return false;
    }
    *s = skip_blanks(p);
    return *from <= *to;
}

static enum galley_status mark(bool *wanted, const char *text, int n_pages, struct galley_err *err)
{
    const char *s = text;
    for (;;) {
        int from, to;
        const char *part = s;
        if (!read_part(&s, n_pages, &from, &to)) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "pages \"%s\": \"%.20s\" is no page or range such as 3 or 2-5",
                                  text, part);
        }
        if (to > n_pages) {
            return galley_err_set(err, GALLEY_EUSAGE, "pages \"%s\": page %d, but there are %d",
                                  text, to, n_pages);
        }
        for (int i = from; i <= to; i++) {
            wanted[i - 1] = true;
        }
        if (*s == '\0') {
            return GALLEY_OK;
        }
        if (*s != ',') {
            return galley_err_set(err, GALLEY_EUSAGE, "pages \"%s\": unexpected \"%.20s\"", text,
                                  s);
        }
        s++;
    }
}

enum galley_status pages_select(int **out, int *n, const char *text, int n_pages,
                                struct galley_err *err)
{
    *out = NULL;
    *n = 0;
    bool *wanted = mem_many(bool, (size_t)n_pages);
    int *list = mem_array((size_t)n_pages, sizeof(*list));
    enum galley_status rc = GALLEY_OK;
    if (!wanted || !list) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "no memory for %d pages", n_pages);
    } else if (text) {
        rc = mark(wanted, text, n_pages, err);
    }
    for (int i = 0; i < n_pages && !rc; i++) {
        if (!text || wanted[i]) {
            list[(*n)++] = i;
        }
    }
    mem_free(wanted);
    if (rc) {
        mem_free(list);
        return rc;
    }
    *out = list;
    return GALLEY_OK;
}
