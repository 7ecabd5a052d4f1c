/* given.c - replaying a text, and finding the place again after a mismatch. */
#include "spec/given.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "src/base/compiler.h"
#include "src/base/mem.h"

#define WINDOW_MAX 10
#define WINDOW_MIN 2
/* One token says little: it counts only near the place where the text was left, and only a
 * short stretch is risked on it. */
#define ANCHOR_BACK   6
#define ANCHOR_AHEAD  24
#define ANCHOR_LENGTH 8
#define BLIND_LENGTH  4
#define BLIND_ROUNDS  6

struct given {
    struct drafter base;
    int32_t *text;
    int n;
    int cursor;      /* next text index expected */
    int lost_at;     /* text index of the mismatch, -1 while in step */
    int lost_length; /* output length when it happened */
    int proposed_at; /* text index where the last proposal started */
};

/* Do the last w tokens of the output stand in the text just before index j? */
static int matches(const struct given *g, const int32_t *history, int n_history, int j, int w)
{
    return j >= w && memcmp(g->text + j - w, history + n_history - w, (size_t)w * 4) == 0;
}

static int distance(int a, int b)
{
    return a > b ? a - b : b - a;
}

/* The index after the best place where the output's tail stands in the text, or -1. */
static int find_window(const struct given *g, const int32_t *history, int n_history, int expected)
{
    for (int w = WINDOW_MAX; w >= WINDOW_MIN; w--) {
        if (w > n_history) {
            continue;
        }
        int best = -1;
        for (int j = w; j <= g->n; j++) {
            if (matches(g, history, n_history, j, w) &&
                (best < 0 || distance(j, expected) < distance(best, expected))) {
                best = j;
            }
        }
        if (best >= 0) {
            return best;
        }
    }
    return -1;
}

static int find_anchor(const struct given *g, int32_t last, int expected)
{
    const int lo = expected > ANCHOR_BACK ? expected - ANCHOR_BACK : 1;
    const int hi = expected + ANCHOR_AHEAD < g->n ? expected + ANCHOR_AHEAD : g->n;
    int best = -1;
    for (int j = lo; j <= hi; j++) {
        if (g->text[j - 1] == last &&
            (best < 0 || distance(j, expected) < distance(best, expected))) {
            best = j;
        }
    }
    return best;
}

static int copy_from(struct given *g, int at, int32_t *out, int max_tokens)
{
    assert(at >= 0 && at <= g->n);
    int n = g->n - at;
    if (n > max_tokens) {
        n = max_tokens;
    }
    if (n <= 0) {
        return 0;
    }
    memcpy(out, g->text + at, (size_t)n * sizeof(*out));
    g->proposed_at = at;
    return n;
}

static int given_propose(struct drafter *d, const int32_t *history, int n_history, int32_t *out,
                         int max_tokens)
{
    struct given *g = (struct given *)d;
    g->proposed_at = g->cursor;
    if (n_history == 0 || g->lost_at < 0) {
        return copy_from(g, g->cursor, out, max_tokens);
    }
    const int since = n_history - g->lost_length; /* tokens written since the mismatch */
    const int expected = min_int(g->lost_at + since, g->n);
    const int at = find_window(g, history, n_history, expected);
    if (at >= 0) {
        return copy_from(g, at, out, max_tokens);
    }
    const int anchor = find_anchor(g, history[n_history - 1], expected);
    if (anchor >= 0) {
        return copy_from(g, anchor, out, min_int(max_tokens, ANCHOR_LENGTH));
    }
    if (since <= BLIND_ROUNDS) {
        return copy_from(g, expected, out, min_int(max_tokens, BLIND_LENGTH));
    }
    return 0;
}

static void given_observe(struct drafter *d, const int32_t *history, int n_history, int n_accepted,
                          int n_proposed)
{
    struct given *g = (struct given *)d;
    assert(n_accepted <= n_proposed);
    assert(n_history >= 1);
    const int at = g->proposed_at + n_accepted;
    if (n_proposed > 0 && n_accepted == n_proposed) {
        g->cursor = at;
        g->lost_at = -1;
        return;
    }
    const bool believed = n_proposed > 0 && n_accepted > 0;
    if (at < g->n && g->text[at] == history[n_history - 1] && (g->lost_at < 0 || believed)) {
        g->cursor = at + 1; /* the target's own token goes along with the text */
        g->lost_at = -1;
    } else if (g->lost_at < 0 || believed) {
        g->cursor = at;
        g->lost_at = at;
        g->lost_length = n_history - 1;
    }
}

static void given_free(struct drafter *d)
{
    struct given *g = (struct given *)d;
    mem_free(g->text);
    mem_free(g);
}

static const struct drafter_ops given_ops = {
    .name = "given",
    .propose = given_propose,
    .observe = given_observe,
    .free = given_free,
};

struct drafter *given_new(const int32_t *tokens, int n)
{
    assert(n >= 0);
    struct given *g = mem_new(struct given);
    if (!g) {
        return NULL;
    }
    g->base.ops = &given_ops;
    g->lost_at = -1;
    g->n = n;
    g->text = mem_array((size_t)n, sizeof(*g->text));
    if (!g->text) {
        mem_free(g);
        return NULL;
    }
    if (n > 0) {
        memcpy(g->text, tokens, (size_t)n * sizeof(*tokens));
    }
    return &g->base;
}
