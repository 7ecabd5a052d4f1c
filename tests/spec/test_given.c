/* test_given.c - following a text, and finding it again. */
#include "spec/given.h"
#include "src/base/mem.h"
#include "tests/t.h"

#define N 200

/* Distinct tokens, so that every place is unique. */
static void count_up(int32_t *t, int n)
{
    for (int i = 0; i < n; i++) {
        t[i] = 100 + i;
    }
}

/* Lets a target write `want` with the drafter guessing; returns the number of steps.  This is the
 * engine's loop in miniature: accept while equal, then the target's own token. */
static int simulate(struct drafter *d, const int32_t *want, int n, int room)
{
    int32_t guess[N];
    int done = 0, steps = 0;
    while (done < n) {
        const int k = d->ops->propose(d, want, done, guess, room);
        T_OK(k >= 0 && k <= room);
        int taken = 0;
        while (taken < k && done + taken < n && guess[taken] == want[done + taken]) {
            taken++;
        }
        done += taken;
        if ((taken < k || k == 0) && done < n) {
            done++;
        }
        d->ops->observe(d, want, done, taken, k);
        steps++;
    }
    return steps;
}

static void follows_a_true_text(void)
{
    int32_t text[N];
    count_up(text, N);
    struct drafter *d = given_new(text, N);
    T_EQ(simulate(d, text, N, 50), 4);
    drafter_free(d);
}

static void recovers_from_a_substitution(void)
{
    int32_t text[N], want[N];
    count_up(text, N);
    count_up(want, N);
    want[100] = 7;
    struct drafter *d = given_new(text, N);
    /* 0..99 and the mismatch; a blind stretch that is right; then the rest. */
    T_OK(simulate(d, want, N, N) <= 4);
    drafter_free(d);
}

static void recovers_from_an_insertion_and_a_deletion(void)
{
    int32_t text[N], want[N];
    count_up(text, N);
    for (int i = 0; i < N; i++) {
        want[i] = i < 50 ? 100 + i : i < 53 ? 1 : 100 + i - 3; /* three tokens more */
    }
    struct drafter *d = given_new(text, N);
    T_OK(simulate(d, want, N, N) <= 8);
    drafter_free(d);
    for (int i = 0; i < N - 10; i++) {
        want[i] = i < 50 ? 100 + i : 100 + i + 10; /* ten tokens less */
    }
    d = given_new(text, N);
    T_OK(simulate(d, want, N - 10, N) <= 3);
    drafter_free(d);
}

/* Farther ahead than one-token anchors look: only the window of two tokens and more finds it. */
static void recovers_far_from_where_it_was_left(void)
{
    int32_t text[N], want[N];
    count_up(text, N);
    for (int i = 0; i < N - 70; i++) {
        want[i] = i < 50 ? text[i] : text[i + 70];
    }
    struct drafter *d = given_new(text, N);
    T_OK(simulate(d, want, N - 70, N) <= 6);
    drafter_free(d);
}

/* Where the tail stands in several places, the one nearest to where the text was left wins. */
static void prefers_the_near_place(void)
{
    int32_t text[60];
    for (int i = 0; i < 60; i++) {
        text[i] = i % 20; /* three equal paragraphs */
    }
    text[20] = 500;
    text[40] = 600;
    int32_t want[60];
    memcpy(want, text, sizeof(want));
    want[22] = 99; /* an error in the second paragraph */
    struct drafter *d = given_new(text, 60);
    T_OK(simulate(d, want, 60, 60) <= 4);
    drafter_free(d);
}

static void a_wrong_text_is_harmless(void)
{
    int32_t text[N], want[N];
    count_up(text, N);
    for (int i = 0; i < N; i++) {
        want[i] = 5000 + i;
    }
    struct drafter *d = given_new(text, N);
    T_EQ(simulate(d, want, N, 64), N);
    int32_t guess[N];
    T_EQ(d->ops->propose(d, want, N, guess, 64), 0); /* and it has fallen silent */
    drafter_free(d);
}

static void an_empty_text_is_silent(void)
{
    int32_t guess[4];
    struct drafter *d = given_new(NULL, 0);
    T_EQ(d->ops->propose(d, guess, 0, guess, 4), 0);
    drafter_free(d);
    drafter_free(NULL);
}

static void memory_may_fail(void)
{
    const int32_t text[2] = { 1, 2 };
    for (long n = 1; n <= 2; n++) {
        mem_fail_at(n);
        T_OK(!given_new(text, 2));
    }
    mem_fail_at(0);
}

static const struct t_case cases[] = {
    { "follows_a_true_text", follows_a_true_text },
    { "recovers_from_a_substitution", recovers_from_a_substitution },
    { "recovers_from_an_insertion_and_a_deletion", recovers_from_an_insertion_and_a_deletion },
    { "recovers_far_from_where_it_was_left", recovers_far_from_where_it_was_left },
    { "prefers_the_near_place", prefers_the_near_place },
    { "a_wrong_text_is_harmless", a_wrong_text_is_harmless },
    { "an_empty_text_is_silent", an_empty_text_is_silent },
    { "memory_may_fail", memory_may_fail },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
