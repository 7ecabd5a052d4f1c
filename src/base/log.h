/* log.h - one line per event, to a callback.
 *
 * A library never writes to stderr by itself: without a callback lines vanish. */
#ifndef GALLEY_BASE_LOG_H
#define GALLEY_BASE_LOG_H

#include "src/base/compiler.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN };

/* Called from any thread, one complete line without newline. */
typedef void log_fn(void *user, enum log_level level, const char *event, const char *text);

struct log {
    log_fn *fn; /* NULL: silent */
    void *user;
    enum log_level min_level;
};

/* log_line(l, LOG_INFO, "kv.evict", "seq=%u pages=%u", ...); l may be NULL. */
void log_line(const struct log *l, enum log_level level, const char *event, const char *fmt, ...)
    GALLEY_PRINTF(4, 5);

#endif
