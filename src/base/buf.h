/* buf.h - a growing byte buffer born with a maximum.
 *
 * Errors stick: after the first failure every append is a no-op and buf_ok is
 * false, so a writer checks once at the end.  data is always NUL-terminated
 * when n > 0 or after buf_take. */
#ifndef GALLEY_BASE_BUF_H
#define GALLEY_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"

struct buf {
    char *data; /* owned; NULL while empty */
    size_t n, cap, max;
    bool failed; /* out of memory or over max */
};

void buf_init(struct buf *b, size_t max);
void buf_deinit(struct buf *b);
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
/* One Unicode scalar value as UTF-8; invalid ones become U+FFFD. */
void buf_add_cp(struct buf *b, unsigned cp);
/* A text that should be UTF-8: each malformed part of it becomes U+FFFD. */
void buf_add_utf8(struct buf *b, const char *s, size_t n);
void buf_addf(struct buf *b, const char *fmt, ...) GALLEY_PRINTF(2, 3);
/* Cuts back to n bytes (n <= b->n). */
void buf_cut(struct buf *b, size_t n);
bool buf_ok(const struct buf *b);
/* Hands the bytes over as a NUL-terminated heap string (mem_free) and leaves
 * the buffer empty; NULL when the buffer has failed. */
char *buf_take(struct buf *b);

#endif
