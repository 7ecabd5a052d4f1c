/* test_verify.c - acceptance rules and the loop guard, on hand-made numbers. */
#include <math.h>

#include "src/engine/guard.h"
#include "src/engine/verify.h"
#include "tests/t.h"

enum { V = 4 };

/* Rows whose favourites are 0, 1, 2; the runner-up (id + 1) has probability ratio exp(-1). */
static const float logits[3][V] = { { 3, 2, 0, 0 }, { 0, 3, 2, 0 }, { 0, 0, 3, 2 } };
static const struct logit_top top[3] = { { 0, 3, 3.5f }, { 1, 3, 3.5f }, { 2, 3, 3.5f } };

static void exact_takes_only_the_favourite(void)
{
    T_EQ(verify_chain(top, logits[0], V, (int32_t[]){ 0, 1, 2 }, 3, 1), 3);
    T_EQ(verify_chain(top, logits[0], V, (int32_t[]){ 0, 2, 2 }, 3, 1), 1);
    T_EQ(verify_chain(top, logits[0], V, (int32_t[]){ 1, 1, 2 }, 3, 1), 0);
    T_EQ(verify_chain(top, logits[0], V, NULL, 0, 1), 0);
}

/* Two favourites: the target takes the lower id, so the other one is a mismatch. */
static void exact_refuses_an_equal_logit(void)
{
    static const float tie[V] = { 3, 3, 0, 0 };
    static const struct logit_top first = { 0, 3, 3.75f };
    T_EQ(verify_chain(&first, tie, V, (int32_t[]){ 1 }, 1, 1), 0);
    T_EQ(verify_chain(&first, tie, V, (int32_t[]){ 1 }, 1, 0.5), 1);
}

static void tau_takes_what_is_probable_enough(void)
{
    const int32_t draft[] = { 1, 2, 0 }; /* ratios e^-1, e^-1, e^-3 */
    T_EQ(verify_chain(top, logits[0], V, draft, 3, exp(-1.01)), 2);
    T_EQ(verify_chain(top, logits[0], V, draft, 3, exp(-0.99)), 0);
    T_EQ(verify_chain(top, logits[0], V, draft, 3, exp(-3.01)), 3);
}

static void logprob_is_logit_minus_log_sum(void)
{
    T_NEAR(verify_logprob(&top[0], logits[0], 1), -1.5, 1e-6);
}

static void a_loop_is_seen_and_cut(void)
{
    int32_t out[100];
    for (int i = 0; i < 100; i++) {
        out[i] = i < 10 ? 1000 + i : i % 3; /* ten tokens of text, then 90 of a loop */
    }
    T_OK(guard_repeats(out, 100, NULL, 0));
    T_EQ(guard_cut(out, 100), 13);
    T_OK(!guard_repeats(out, 30, NULL, 0)); /* too short to be sure */
}

static void text_is_no_loop(void)
{
    int32_t out[100];
    for (int i = 0; i < 100; i++) {
        out[i] = (i * 7919) % 997;
    }
    T_OK(!guard_repeats(out, 100, NULL, 0));
    T_EQ(guard_cut(out, 100), 100);
}

/* Rows of a real table may repeat as often as they stand in the draft. */
static void what_the_draft_repeats_is_no_loop(void)
{
    int32_t out[120], draft[120];
    for (int i = 0; i < 120; i++) {
        out[i] = i % 6;
        draft[i] = i % 6;
    }
    T_OK(guard_repeats(out, 120, NULL, 0));
    T_OK(!guard_repeats(out, 120, draft, 120));
    T_OK(guard_repeats(out, 120, draft, 60)); /* twice as often is one */
}

static const struct t_case cases[] = {
    { "exact_takes_only_the_favourite", exact_takes_only_the_favourite },
    { "exact_refuses_an_equal_logit", exact_refuses_an_equal_logit },
    { "tau_takes_what_is_probable_enough", tau_takes_what_is_probable_enough },
    { "logprob_is_logit_minus_log_sum", logprob_is_logit_minus_log_sum },
    { "a_loop_is_seen_and_cut", a_loop_is_seen_and_cut },
    { "text_is_no_loop", text_is_no_loop },
    { "what_the_draft_repeats_is_no_loop", what_the_draft_repeats_is_no_loop },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
