/* clock.h - monotonic time in seconds, and timed waits that a set clock cannot stretch. */
#ifndef GALLEY_BASE_CLOCK_H
#define GALLEY_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>

double clock_seconds(void);

/* A condition for clock_wait; pthread_cond_destroy ends it.  Asserts that there are resources, as
 * Linux always has. */
void clock_cond_init(pthread_cond_t *c);
/* pthread_cond_timedwait for at most so many seconds from now (0 to 1e9); false when they are over.
 * Wakes early as every condition may. */
bool clock_wait(pthread_cond_t *c, pthread_mutex_t *m, double seconds);

#endif
