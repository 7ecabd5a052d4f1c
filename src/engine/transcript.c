/* transcript.c - whole characters, stop strings. */
#include "src/engine/transcript.h"

#include <string.h>

#include "src/base/utf8.h"

#define TEXT_BYTES_MAX (64u << 20)

void transcript_init(struct transcript *t, bool skip_space)
{
    t->skip_space = skip_space;
    buf_init(&t->raw, TEXT_BYTES_MAX);
    buf_init(&t->utf8, 2 * TEXT_BYTES_MAX);
    t->n_shown = 0;
}

void transcript_deinit(struct transcript *t)
{
    buf_deinit(&t->raw);
    buf_deinit(&t->utf8);
}

/* Bytes at the end of s[0..n) that more bytes could make a character of. */
static size_t unfinished(const char *s, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        const unsigned char c = (unsigned char)s[n - k];
        if ((c & 0xc0) == 0x80) {
            continue;
        }
        const size_t whole = c >= 0xf0 && c <= 0xf4   ? 4
                             : c >= 0xe0 && c <= 0xef ? 3
                             : c >= 0xc2 && c <= 0xdf ? 2
                                                      : 1;
        uint32_t cp;
        /* Only what is the beginning of a valid sequence counts as one maximal subpart. */
        return whole > k && (size_t)utf8_decode(s + n - k, k, &cp) == k ? k : 0;
    }
    return 0;
}

void transcript_add(struct transcript *t, const struct tokenizer *tok, int32_t id)
{
    tokenizer_decode(tok, id, false, &t->raw);
    const size_t n = t->raw.n, keep = n ? unfinished(t->raw.data, n) : 0;
    if (n == keep) {
        return;
    }
    const size_t skip = t->skip_space && t->raw.data[0] == ' ' ? 1 : 0;
    t->skip_space = false;
    buf_add_utf8(&t->utf8, t->raw.data + skip, n - keep - skip);
    memmove(t->raw.data, t->raw.data + n - keep, keep);
    buf_cut(&t->raw, keep);
}

void transcript_finish(struct transcript *t)
{
    if (t->raw.n) {
        buf_add_utf8(&t->utf8, t->raw.data, t->raw.n);
        buf_cut(&t->raw, 0);
    }
}

bool transcript_ok(const struct transcript *t)
{
    return buf_ok(&t->raw) && buf_ok(&t->utf8);
}

size_t transcript_find_stop(const struct transcript *t, size_t from, char *const *stop, int n_stop,
                            size_t stop_max)
{
    size_t best = t->utf8.n;
    if (n_stop == 0 || t->utf8.n == 0) {
        return best;
    }
    const size_t start = from + 1 > stop_max ? from + 1 - stop_max : 0;
    for (int i = 0; i < n_stop; i++) {
        const char *at = memmem(t->utf8.data + start, t->utf8.n - start, stop[i], strlen(stop[i]));
        if (at && (size_t)(at - t->utf8.data) < best) {
            best = (size_t)(at - t->utf8.data);
        }
    }
    return best;
}

/* The longest end of s[0..n) that is a beginning of stop, not the whole of it. */
static size_t overlap(const char *s, size_t n, const char *stop)
{
    size_t k = strlen(stop) - 1;
    k = k > n ? n : k;
    while (k > 0 && memcmp(s + n - k, stop, k) != 0) {
        k--;
    }
    return k;
}

size_t transcript_showable(const struct transcript *t, char *const *stop, int n_stop,
                           size_t stop_max)
{
    const size_t n = t->utf8.n, from = n > stop_max ? n - stop_max : 0;
    size_t held = 0;
    for (int i = 0; i < n_stop && n > 0; i++) {
        const size_t k = overlap(t->utf8.data + from, n - from, stop[i]);
        held = k > held ? k : held;
    }
    /* A stop string may begin inside a character (malformed ones): show whole ones only. */
    size_t show = n - held;
    while (show > 0 && show < n && ((unsigned char)t->utf8.data[show] & 0xc0) == 0x80) {
        show--;
    }
    return show;
}
