/* clock.h - monotonic time in seconds. */
#ifndef GALLEY_BASE_CLOCK_H
#define GALLEY_BASE_CLOCK_H

double clock_seconds(void);

#endif
