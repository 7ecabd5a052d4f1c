/* join.c - line joins: hyphens, scripts without spaces, Korean. */
#include "layout/join.h"

#include <string.h>

#include "src/base/cp.h"

#define TAIL_MAX 48

/* Characters of the line's last (or first) space-delimited word. */
static int32_t tail_read(const struct flow *f, const struct line *l, uint32_t *out)
{
    int32_t from = l->n_words - 1, n = 0;
    while (from > 0 && !f->words[l->word0 + from].space) {
        from--;
    }
    for (int32_t i = from < 0 ? 0 : from; i < l->n_words; i++) {
        const struct word *w = &f->words[l->word0 + i];
        for (int32_t k = 0; k < w->n_chars && n < TAIL_MAX; k++) {
            out[n++] = f->chars[w->char0 + k].cp;
        }
    }
    return n;
}

static int32_t head_read(const struct flow *f, const struct line *l, uint32_t *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < l->n_words; i++) {
        const struct word *w = &f->words[l->word0 + i];
        if (i > 0 && w->space) {
            break;
        }
        for (int32_t k = 0; k < w->n_chars && n < TAIL_MAX; k++) {
            out[n++] = f->chars[w->char0 + k].cp;
        }
    }
    return n;
}

static bool cps_equal(const uint32_t *cps, int32_t n, const char *ascii)
{
    if ((size_t)n != strlen(ascii)) {
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        if ((cps[i] | 32) != (uint8_t)ascii[i]) {
            return false;
        }
    }
    return true;
}

static bool cps_have(const uint32_t *cps, int32_t n, const char *ascii)
{
    const int32_t m = (int32_t)strlen(ascii);
    for (int32_t i = 0; i + m <= n; i++) {
        if (cps_equal(cps + i, m, ascii)) {
            return true;
        }
    }
    return false;
}

static bool is_address(const uint32_t *cps, int32_t n)
{
    return cps_have(cps, n, "://") || cps_have(cps, n, "www.");
}

static bool in_lexicon(const struct history *h, const uint32_t *a, int32_t na, const uint32_t *b,
                       int32_t nb)
{
    uint32_t cps[2 * TAIL_MAX];
    while (na > 0 && !cp_is_letter(a[0])) {
        a++;
        na--;
    }
    while (nb > 0 && !cp_is_letter(b[nb - 1])) {
        nb--;
    }
    memcpy(cps, a, sizeof(*a) * (size_t)na);
    memcpy(cps + na, b, sizeof(*b) * (size_t)nb);
    return h && lexicon_has(h, text_hash(cps, (size_t)(na + nb), true));
}

static enum join join_hyphen(const struct history *h, const uint32_t *a, int32_t na,
                             const uint32_t *b, int32_t nb)
{
    static const char *const prefixes[] = { "self-", "ex-", "non-", "well-", "so-", "vice-" };
    static const char *const ellipsis[] = { "und", "oder", "bzw", "bzw.", "sowie", "or", "and" };
    const uint32_t hyphen = a[na - 1];
    if (na < 2 || !cp_is_letter(a[na - 2])) {
        return cp_is_digit(na < 2 ? 0 : a[na - 2]) ? JOIN_NONE : JOIN_SPACE;
    }
    if (hyphen == 0x2011 || !cp_is_lower(b[0])) {
        return JOIN_NONE;
    }
    for (size_t i = 0; i < sizeof(ellipsis) / sizeof(*ellipsis); i++) {
        if (cps_equal(b, nb, ellipsis[i])) {
            return JOIN_SPACE;
        }
    }
    if (hyphen == 0xad || in_lexicon(h, a, na - 1, b, nb)) {
        return JOIN_DROP;
    }
    if (in_lexicon(h, a, na, b, nb)) {
        return JOIN_NONE; /* the compound stands elsewhere with its hyphen */
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        if (cps_equal(a, na, prefixes[i])) {
            return JOIN_NONE;
        }
    }
    /* A second hyphen inside means a chain such as state-of-the-art. */
    for (int32_t i = 1; i < na - 1; i++) {
        if (a[i] == '-') {
            return JOIN_NONE;
        }
    }
    return JOIN_DROP;
}

static bool is_particle(uint32_t cp)
{
    static const uint32_t list[] = { 0xc740, 0xb294, 0xc774, 0xac00, 0xc744, 0xb97c,
                                     0xc758, 0xc5d0, 0xb85c, 0xc640, 0xacfc, 0xb3c4 };
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        if (list[i] == cp) {
            return true;
        }
    }
    return false;
}

/* Korean breaks lines between words or inside them. */
static enum join join_hangul(const struct history *h, const struct line *l, const uint32_t *a,
                             int32_t na, const uint32_t *b, int32_t nb, float room)
{
    if (room > 1.05f * l->size) {
        return JOIN_SPACE; /* one more syllable would have fitted: the break is between words */
    }
    if (in_lexicon(h, a, na, b, nb)) {
        return JOIN_NONE;
    }
    if (in_lexicon(h, a, na, b, 0) || in_lexicon(h, a, 0, b, nb)) {
        return JOIN_SPACE;
    }
    if (nb >= 1 && is_particle(b[0]) && (nb == 1 || !cp_is_hangul(b[1]))) {
        return JOIN_NONE;
    }
    if (na > 1 && is_particle(a[na - 1])) {
        return JOIN_SPACE;
    }
    return nb > 1 ? JOIN_SPACE : JOIN_NONE;
}

enum join lines_join(const struct flow *f, const struct history *h, const struct line *a,
                     const struct line *b, float room)
{
    uint32_t tail[TAIL_MAX], head[TAIL_MAX];
    const int32_t na = tail_read(f, a, tail), nb = head_read(f, b, head);
    if (na == 0 || nb == 0) {
        return JOIN_SPACE;
    }
    const uint32_t last = line_last_cp(f, a), first = head[0];
    if (na == TAIL_MAX) {
        return JOIN_SPACE;
    }
    if (is_address(tail, na) &&
        (last == '/' || last == '-' || last == '_' || last == '?' || last == '&' || last == '=' ||
         last == '.') &&
        (cp_is_lower(first) || cp_is_digit(first))) {
        return last == '.' && room > 2 * a->size ? JOIN_SPACE : JOIN_NONE;
    }
    if (cp_is_hyphen(last)) {
        return join_hyphen(h, tail, na, head, nb);
    }
    if (last == 0x2014 && na > 1) {
        return JOIN_NONE;
    }
    if (last == 0x2013 && na > 1 && cp_is_digit(tail[na - 2]) && cp_is_digit(first)) {
        return JOIN_NONE;
    }
    if (cp_is_wide(last) || cp_is_wide(first)) {
        const bool other = cp_is_hangul(last) || cp_is_hangul(first);
        return other ? JOIN_SPACE : JOIN_NONE;
    }
    if (cp_is_hangul(last) && cp_is_hangul(first)) {
        return join_hangul(h, a, tail, na, head, nb, room);
    }
    if (cp_is_unspaced(last) && cp_is_unspaced(first)) {
        return JOIN_NONE;
    }
    return JOIN_SPACE;
}
