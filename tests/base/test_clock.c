/* test_clock.c - base: timed waits. */
#include "src/base/clock.h"
#include "tests/t.h"

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

static void gate_init(struct gate *g)
{
    g->open = false;
    pthread_mutex_init(&g->lock, NULL);
    clock_cond_init(&g->changed);
}

static void gate_deinit(struct gate *g)
{
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

/* Waits until the time is over or the gate is open, as callers do. */
static bool gate_wait(struct gate *g, double seconds)
{
    bool in_time = true;
    pthread_mutex_lock(&g->lock);
    while (!g->open && in_time) {
        in_time = clock_wait(&g->changed, &g->lock, seconds);
    }
    pthread_mutex_unlock(&g->lock);
    return in_time;
}

static void *gate_open(void *arg)
{
    struct gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void wait_ends_when_the_time_is_over(void)
{
    static const double seconds[] = { 0, 0.03, 0.9999, 1.01 };
    struct gate g;
    gate_init(&g);
    for (size_t i = 0; i < COUNT(seconds); i++) {
        const double start = clock_seconds();
        T_OK(!gate_wait(&g, seconds[i]));
        const double took = clock_seconds() - start;
        T_OK(took >= seconds[i] - 1e-6 && took < seconds[i] + 10);
    }
    gate_deinit(&g);
}

static void wait_ends_when_woken(void)
{
    struct gate g;
    pthread_t opener;
    gate_init(&g);
    const double start = clock_seconds();
    T_EQ(pthread_create(&opener, NULL, gate_open, &g), 0);
    T_OK(gate_wait(&g, 1000));
    T_OK(clock_seconds() - start < 500);
    pthread_join(opener, NULL);
    gate_deinit(&g);
}

static const struct t_case cases[] = {
    { "wait_ends_when_the_time_is_over", wait_ends_when_the_time_is_over },
    { "wait_ends_when_woken", wait_ends_when_woken },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
