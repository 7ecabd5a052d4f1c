/* err.c - one sentence per failure. */
#include "src/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Makes msg printable: no control bytes, no UTF-8 sequence cut in half. */
static void tidy(char *msg, size_t cap)
{
    size_t n = strnlen(msg, cap);
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)msg[i] < 0x20 || msg[i] == 0x7f) {
            msg[i] = '?';
        }
    }
    if (n + 1 < cap) {
        return;
    }
    while (n > 0 && ((unsigned char)msg[n - 1] & 0xc0) == 0x80) {
        n--;
    }
    if (n > 0 && ((unsigned char)msg[n - 1] & 0x80)) {
        n--;
    }
    msg[n] = '\0';
}

enum galley_status galley_err_set(struct galley_err *err, enum galley_status status,
                                  const char *fmt, ...)
{
    if (!err) {
        return status;
    }
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    if (n < 0) {
        err->msg[0] = '\0';
    }
    tidy(err->msg, sizeof(err->msg));
    err->status = status;
    return status;
}

enum galley_status galley_err_prefix(struct galley_err *err, enum galley_status status,
                                     const char *fmt, ...)
{
    if (!err) {
        return status;
    }
    char old[GALLEY_ERR_MAX];
    memcpy(old, err->msg, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    if (n < 0) {
        n = 0;
    }
    if ((size_t)n < sizeof(err->msg)) {
        const size_t room = sizeof(err->msg) - (size_t)n;
        const char *what = old[0] ? old : status_text(status);
        snprintf(err->msg + n, room, ": %.*s", (int)(room > 3 ? room - 3 : 0), what);
    }
    tidy(err->msg, sizeof(err->msg));
    err->status = status;
    return status;
}

const char *status_text(enum galley_status status)
{
    switch (status) {
#define X(name, value, text) \
    case GALLEY_##name:      \
        return text;
        GALLEY_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}
