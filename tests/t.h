/* t.h - the test harness: checks that are never compiled out and print both sides.
 *
 * A test binary is a table of cases handed to t_main:
 *     static const struct t_case cases[] = { { "name", fn }, ... };
 *     int main(int argc, char **argv) { return t_main(argc, argv, cases, COUNT(cases)); }
 * A failing check ends its case; the exit status counts failing cases, and the
 * command that repeats the first one is printed. */
#ifndef GALLEY_TESTS_T_H
#define GALLEY_TESTS_T_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/compiler.h"

struct t_case {
    const char *name;
    void (*fn)(void);
};

static jmp_buf t_jump;

#define T_FAIL(...)                                     \
    do {                                                \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                   \
        fputc('\n', stderr);                            \
        longjmp(t_jump, 1);                             \
    } while (0)

#define T_OK(cond)                       \
    do {                                 \
        if (!(cond)) {                   \
            T_FAIL("not so: %s", #cond); \
        }                                \
    } while (0)

#define T_EQ(a, b)                                                  \
    do {                                                            \
        const long long t_a = (long long)(a), t_b = (long long)(b); \
        if (t_a != t_b) {                                           \
            T_FAIL("%s is %lld, %s is %lld", #a, t_a, #b, t_b);     \
        }                                                           \
    } while (0)

#define T_STR(a, b)                                                            \
    do {                                                                       \
        const char *t_a = (a), *t_b = (b);                                     \
        if (!t_a || !t_b || strcmp(t_a, t_b) != 0) {                           \
            T_FAIL("%s is \"%s\", %s is \"%s\"", #a, t_a ? t_a : "(null)", #b, \
                   t_b ? t_b : "(null)");                                      \
        }                                                                      \
    } while (0)

#define T_NEAR(a, b, tol)                                                            \
    do {                                                                             \
        const double t_a = (a), t_b = (b), t_d = t_a > t_b ? t_a - t_b : t_b - t_a;  \
        if (!(t_d <= (tol))) {                                                       \
            T_FAIL("%s is %.9g, %s is %.9g, differ by %.3g", #a, t_a, #b, t_b, t_d); \
        }                                                                            \
    } while (0)

/* By itself, because a jump may clobber the locals of the function that calls setjmp. */
static int t_run(void (*fn)(void))
{
    if (setjmp(t_jump) != 0) {
        return 1;
    }
    fn();
    return 0;
}

/* True when the case fails.  Apart from t_main, whose locals a jump must not disturb. */
static inline int t_case_fails(const struct t_case *c)
{
    if (setjmp(t_jump) == 0) {
        c->fn();
        return 0;
    }
    fprintf(stderr, "FAILED %s\n", c->name);
    return 1;
}

static inline int t_main(int argc, char **argv, const struct t_case *cases, size_t n)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    const char *first = NULL;
    int n_failed = 0, n_run = 0;
    for (size_t i = 0; i < n; i++) {
        if (only && strcmp(only, cases[i].name) != 0) {
            continue;
        }
        n_run++;
        if (t_run(cases[i].fn) != 0) {
            fprintf(stderr, "FAILED %s\n", cases[i].name);
            n_failed++;
            first = first ? first : cases[i].name;
        }
    }
    if (n_run == 0) {
        fprintf(stderr, "no case named %s\n", only ? only : "(any)");
        return 2;
    }
    if (first) {
        fprintf(stderr, "%d of %d failed; repeat with: %s %s\n", n_failed, n_run, argv[0], first);
    }
    return n_failed ? 1 : 0;
}

#endif
