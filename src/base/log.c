/* log.c - formatting for the log callback. */
#include "src/base/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_line(const struct log *l, enum log_level level, const char *event, const char *fmt, ...)
{
    if (!l || !l->fn || level < l->min_level) {
        return;
    }
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    l->fn(l->user, level, event, text);
}
