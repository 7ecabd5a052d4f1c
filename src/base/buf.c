/* buf.c - bounded byte buffer. */
#include "src/base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"

void buf_init(struct buf *b, size_t max)
{
    assert(max < SIZE_MAX); /* room for the terminator */
    *b = (struct buf){ .max = max };
}

void buf_deinit(struct buf *b)
{
    mem_free(b->data);
    *b = (struct buf){ .max = b->max };
}

/* Room for n more bytes and the terminator. */
static bool reserve(struct buf *b, size_t n)
{
    if (b->failed || n > b->max || b->n > b->max - n) {
        b->failed = true;
        return false;
    }
    const size_t need = b->n + n + 1;
    if (need <= b->cap) {
        return true;
    }
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need) {
        cap = cap > b->max / 2 ? b->max + 1 : cap * 2;
    }
    char *p = mem_resize_array(b->data, cap, 1);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->data = p;
    b->cap = cap;
    return true;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
    if (!reserve(b, n)) {
        return;
    }
    if (n) {
        memcpy(b->data + b->n, bytes, n);
    }
    b->n += n;
    b->data[b->n] = '\0';
}

void buf_add_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_add_cp(struct buf *b, unsigned cp)
{
    char bytes[4];
    const int n = utf8_encode(cp, bytes);
    buf_add(b, bytes, (size_t)n);
}

void buf_add_utf8(struct buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n && !b->failed;) {
        uint32_t cp;
        i += (size_t)utf8_decode(s + i, n - i, &cp);
        buf_add_cp(b, cp);
    }
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !reserve(b, (size_t)n)) {
        b->failed = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(b->data + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void buf_cut(struct buf *b, size_t n)
{
    assert(n <= b->n);
    b->n = n;
    if (b->data) {
        b->data[n] = '\0';
    }
}

bool buf_ok(const struct buf *b)
{
    return !b->failed;
}

char *buf_take(struct buf *b)
{
    if (!reserve(b, 0)) {
        buf_deinit(b);
        return NULL;
    }
    b->data[b->n] = '\0';
    char *s = b->data;
    *b = (struct buf){ .max = b->max };
    return s;
}
