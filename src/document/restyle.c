/* restyle.c - markup follows its words.
 *
 * markdown is seen as plain's bytes with extra bytes in the gaps between them.  Words of plain and
 * verified are matched by a longest common subsequence; a matched word brings the gaps before and
 * inside it along, and the gaps of words that went are written where they stood. */
#include "src/document/restyle.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/mem.h"

#define WORDS_MAX 4000 /* the table of the LCS takes 2 WORDS_MAX^2 bytes at worst: 32 MB */
#define TEXT_MAX  (16u << 20)

struct word {
    int from, to; /* bytes */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

static int split_words(const char *s, struct word *out, int max)
{
    int n = 0;
    for (int i = 0; s[i];) {
        if (is_blank(s[i])) {
            i++;
            continue;
        }
        if (n == max) {
            return -1;
        }
        out[n].from = i;
        while (s[i] && !is_blank(s[i])) {
            i++;
        }
        out[n++].to = i;
    }
    return n;
}

/* at[k]: the index in markdown of plain's byte k, at[n]: the end of markdown.  False when plain is
 * not a subsequence. */
static bool align(const char *plain, const char *markdown, int *at)
{
    int j = 0;
    int k = 0;
    for (; plain[k]; k++) {
        while (markdown[j] && markdown[j] != plain[k]) {
            j++;
        }
        if (!markdown[j]) {
            return false;
        }
        at[k] = j++;
    }
    at[k] = (int)strlen(markdown);
    return true;
}

static bool same_word(const char *a, struct word x, const char *b, struct word y)
{
    return x.to - x.from == y.to - y.from &&
           memcmp(a + x.from, b + y.from, (size_t)(x.to - x.from)) == 0;
}

/* match[j]: the word of plain that word j of verified is, or -1. */
static bool match_words(const char *plain, const struct word *a, int n, const char *verified,
                        const struct word *b, int m, int *match)
{
    const size_t row = (size_t)m + 1;
    uint16_t *len = mem_zero_array((size_t)n + 1, row * sizeof(*len));
    if (!len) {
        return false;
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = m - 1; j >= 0; j--) {
            uint16_t *cell = &len[(size_t)i * row + (size_t)j];
            const uint16_t down = cell[row], right = cell[1];
            *cell = same_word(plain, a[i], verified, b[j]) ? (uint16_t)(cell[row + 1] + 1)
                    : down > right                         ? down
                                                           : right;
        }
    }
    int i = 0;
    for (int j = 0; j < m;) {
        match[j] = -1;
        if (i < n && same_word(plain, a[i], verified, b[j])) {
            match[j++] = i++;
        } else if (i < n &&
                   len[(size_t)(i + 1) * row + (size_t)j] >= len[(size_t)i * row + (size_t)j + 1]) {
            i++;
        } else {
            j++;
        }
    }
    mem_free(len);
    return true;
}

struct weave {
    struct buf out;
    const char *markdown;
    const int *at;
};

/* Extra bytes of markdown that stand just before plain's byte k. */
static void add_gap(struct weave *w, int k)
{
    const int from = k == 0 ? 0 : w->at[k - 1] + 1;
    assert(from <= w->at[k]);
    buf_add(&w->out, w->markdown + from, (size_t)(w->at[k] - from));
}

/* The gaps of plain's bytes [from, to): markup of words that went. */
static void add_gaps(struct weave *w, int from, int to)
{
    for (int k = from; k < to; k++) {
        add_gap(w, k);
    }
}

/* What the words changed to: blanks and words of verified from `copied` to `to`, inside the opening
 * and closing markup of plain's words [from, to_word) that they replace. */
static void weave_changed(struct weave *w, const struct word *a, int from, int to_word, int *seen,
                          const char *verified, int copied, const struct word *first, int to)
{
    buf_add(&w->out, verified + copied, (size_t)(first->from - copied));
    if (from < to_word) {
        add_gaps(w, *seen, a[from].from + 1);
        *seen = a[from].from + 1;
    }
    buf_add(&w->out, verified + first->from, (size_t)(to - first->from));
    if (from < to_word) {
        add_gaps(w, *seen, a[to_word - 1].to + 1);
        *seen = a[to_word - 1].to + 1;
    }
}

static void weave_same(struct weave *w, const char *plain, struct word x, int *seen)
{
    add_gaps(w, *seen, x.from);
    for (int k = x.from; k < x.to; k++) {
        add_gap(w, k);
        buf_add_char(&w->out, plain[k]);
    }
    add_gap(w, x.to); /* closing marks stick to the word they follow */
    *seen = x.to + 1;
}

static void weave_words(struct weave *w, const char *plain, const struct word *a, int n,
                        const char *verified, const struct word *b, const int *match, int m)
{
    int seen = 0;   /* bytes of plain whose gaps are written */
    int copied = 0; /* bytes of verified that are written */
    int next = 0;   /* word of plain after the last matched one */
    for (int j = 0; j < m;) {
        int k = j;
        while (k < m && match[k] < 0) {
            k++;
        }
        const int to = k < m ? match[k] : n;
        if (k > j) {
            weave_changed(w, a, next, to, &seen, verified, copied, &b[j], b[k - 1].to);
            copied = b[k - 1].to;
        }
        if (k < m) {
            buf_add(&w->out, verified + copied, (size_t)(b[k].from - copied));
            weave_same(w, plain, a[match[k]], &seen);
            copied = b[k].to;
            next = match[k] + 1;
            k++;
        }
        j = k;
    }
    add_gaps(w, seen, (int)strlen(plain) + 1);
    buf_add_str(&w->out, verified + copied);
}

static char *weave(const char *plain, const char *markdown, const char *verified, const int *at,
                   struct word *a, struct word *b, int *match)
{
    const int n = split_words(plain, a, WORDS_MAX);
    const int m = split_words(verified, b, WORDS_MAX);
    if (n < 0 || m < 0 || !match_words(plain, a, n, verified, b, m, match)) {
        return mem_strdup(verified);
    }
    struct weave w = { .markdown = markdown, .at = at };
    buf_init(&w.out, TEXT_MAX);
    weave_words(&w, plain, a, n, verified, b, match, m);
    return buf_take(&w.out);
}

char *restyle(const char *plain, const char *markdown, const char *verified)
{
    if (strcmp(plain, verified) == 0) {
        return mem_strdup(markdown);
    }
    const size_t n = strlen(plain);
    if (n > TEXT_MAX || strcmp(plain, markdown) == 0) {
        return mem_strdup(verified);
    }
    int *at = mem_array(n + 1, sizeof(*at));
    struct word *words = mem_many(struct word, 2 * (size_t)WORDS_MAX);
    int *match = mem_array(WORDS_MAX, sizeof(*match));
    char *out = NULL;
    if (at && words && match) {
        out = align(plain, markdown, at)
                  ? weave(plain, markdown, verified, at, words, words + WORDS_MAX, match)
                  : mem_strdup(verified);
    }
    mem_free(at);
    mem_free(words);
    mem_free(match);
    return out;
}
