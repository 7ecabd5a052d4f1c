/* clock.c - monotonic time. */
#include "src/base/clock.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#define NANO 1000000000L

double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void clock_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);
    rc = rc ? rc : pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    rc = rc ? rc : pthread_cond_init(c, &attr);
    assert(rc == 0);
    (void)rc;
    pthread_condattr_destroy(&attr);
}

bool clock_wait(pthread_cond_t *c, pthread_mutex_t *m, double seconds)
{
    assert(seconds >= 0 && seconds <= 1e9);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const time_t whole = (time_t)seconds;
    until.tv_sec += whole;
    until.tv_nsec += (long)((seconds - (double)whole) * NANO);
    if (until.tv_nsec >= NANO) {
        until.tv_nsec -= NANO;
        until.tv_sec++;
    }
    return pthread_cond_timedwait(c, m, &until) != ETIMEDOUT;
}
