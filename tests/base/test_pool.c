/* test_pool.c - base: parallel loops.  Run under TSan as well. */
#include <stdatomic.h>
#include <time.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/base/pool.h"
#include "tests/t.h"

#define N_MAX 2000

struct tally {
    int n_threads;
    int times[N_MAX]; /* plain ints: an index belongs to one thread */
    long sum[8];      /* by thread */
    _Atomic int bad_thread;
};

static void count(void *arg, int i, int i_thread)
{
    struct tally *t = arg;
    if (i_thread < 0 || i_thread >= t->n_threads) {
        atomic_store(&t->bad_thread, 1);
        return;
    }
    t->times[i]++;
    t->sum[i_thread] += i;
}

static void each_index_once(void)
{
    for (int n_threads = 1; n_threads <= 8; n_threads++) {
        struct pool *p;
        struct galley_err err = { 0 };
        T_EQ(pool_open(&p, n_threads, &err), GALLEY_OK);
        T_EQ(pool_n_threads(p), n_threads);
        for (int n = 0; n <= N_MAX; n = n < 20 ? n + 1 : n * 3 + 1) {
            struct tally t = { .n_threads = n_threads };
            pool_run(p, count, &t, n);
            long sum = 0;
            for (int k = 0; k < 8; k++) {
                sum += t.sum[k];
            }
            T_EQ(atomic_load(&t.bad_thread), 0);
            T_EQ(sum, (long)n * (n - 1) / 2);
            for (int i = 0; i < N_MAX; i++) {
                T_EQ(t.times[i], i < n);
            }
        }
        pool_close(p);
    }
}

/* As a decode step does: many loops, each reading what the one before wrote. */
struct chain {
    long a[16], b[16];
};

static void forward(void *arg, int i, int i_thread)
{
    struct chain *c = arg;
    (void)i_thread;
    c->b[i] = c->a[i] + c->a[(i + 1) % 16];
}

static void back(void *arg, int i, int i_thread)
{
    struct chain *c = arg;
    (void)i_thread;
    c->a[i] = (c->b[i] + c->b[(i + 5) % 16]) % 1000003;
}

static void many_short_loops(void)
{
    struct chain want = { 0 };
    want.a[3] = 1;
    for (int k = 0; k < 3000; k++) {
        for (int i = 0; i < 16; i++) {
            forward(&want, i, 0);
        }
        for (int i = 0; i < 16; i++) {
            back(&want, i, 0);
        }
    }
    for (int n_threads = 2; n_threads <= 8; n_threads += 3) {
        struct pool *p;
        struct galley_err err = { 0 };
        T_EQ(pool_open(&p, n_threads, &err), GALLEY_OK);
        struct chain c = { 0 };
        c.a[3] = 1;
        for (int k = 0; k < 3000; k++) {
            pool_run(p, forward, &c, 16);
            pool_run(p, back, &c, 16);
        }
        T_OK(memcmp(&c, &want, sizeof(c)) == 0);
        pool_close(p);
    }
}

static void pause_us(double us)
{
    const struct timespec t = { 0, (long)(1e3 * us) };
    nanosleep(&t, NULL);
}

/* Some indices take long, so that whoever waits falls asleep; some take nothing. */
struct uneven {
    int slow;
    int value[8];
};

static void uneven_piece(void *arg, int i, int i_thread)
{
    struct uneven *u = arg;
    (void)i_thread;
    if (i == u->slow) {
        pause_us(300.0);
    }
    u->value[i]++;
}

/* Loops with gaps in between, some short of the spin and some beyond: workers are found awake,
 * falling asleep and asleep, and so is the caller. */
static void sleepers_wake_up(void)
{
    for (int n_threads = 2; n_threads <= 6; n_threads += 2) {
        struct pool *p;
        struct galley_err err = { 0 };
        struct uneven u = { .slow = -1 };
        T_EQ(pool_open(&p, n_threads, &err), GALLEY_OK);
        for (int k = 0; k < 200; k++) {
            u.slow = k % 3 == 0 ? k % 8 : -1;
            pool_run(p, uneven_piece, &u, 8);
            for (int i = 0; i < 8; i++) {
                T_EQ(u.value[i], k + 1);
            }
            if (k % 4 == 1) {
                pause_us(k % 5 * 30.0);
            }
        }
        pool_close(p);
    }
}

static double cpu_seconds(void)
{
    struct timespec t;
    T_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void idle_burns_nothing(void)
{
    struct pool *p;
    struct galley_err err = { 0 };
    struct uneven u = { .slow = -1 };
    T_EQ(pool_open(&p, 2, &err), GALLEY_OK);
    pool_run(p, uneven_piece, &u, 8);
    const double cpu = cpu_seconds(), start = clock_seconds();
    pause_us(200e3);
    const double used = cpu_seconds() - cpu, went_by = clock_seconds() - start;
    T_OK(used < 0.1 * went_by); /* a spinning worker would use all of it */
    pool_close(p);
}

static void opens_and_closes(void)
{
    struct galley_err err = { 0 };
    struct pool *p;
    for (int k = 0; k < 50; k++) { /* closed before the workers woke up */
        T_EQ(pool_open(&p, 4, &err), GALLEY_OK);
        pool_close(p);
    }
    pool_close(NULL);
    T_EQ(pool_open(&p, 0, &err), GALLEY_OK);
    T_EQ(pool_n_threads(p), pool_n_cpus());
    pool_close(p);
    T_EQ(pool_open(&p, -1, &err), GALLEY_EUSAGE);
    T_OK(p == NULL && strstr(err.msg, "-1"));
    T_EQ(pool_open(&p, 100000, &err), GALLEY_EUSAGE);
    T_OK(p == NULL && strstr(err.msg, "100000"));
    for (long k = 1; k <= 2; k++) {
        mem_fail_at(k);
        T_EQ(pool_open(&p, 3, &err), GALLEY_ENOMEM);
        T_OK(p == NULL);
    }
    mem_fail_at(0);
}

static const struct t_case cases[] = {
    { "each_index_once", each_index_once },   { "many_short_loops", many_short_loops },
    { "sleepers_wake_up", sleepers_wake_up }, { "idle_burns_nothing", idle_burns_nothing },
    { "opens_and_closes", opens_and_closes },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
