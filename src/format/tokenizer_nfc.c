/* tokenizer_nfc.c - Unicode normalisation form C, and spaces as U+2581.
 *
 * utf8proc decomposes and composes; the canonical ordering between the two is done here,
 * because utf8proc's own exchanges neighbours one by one and a text of many combining marks
 * would take quadratic time. */
#include <assert.h>
#include <string.h>
#include <utf8proc.h>

#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/format/tokenizer_impl.h"

/* Every code point below U+0300 is NFC and stays so next to its like. */
static bool certainly_nfc(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] >= 0xcc) { /* 0xcc 0x80 is U+0300 */
            return false;
        }
    }
    return true;
}

static unsigned mark_class(int32_t cp)
{
    /* The struct's bit field is read through a local: classes are 0..254. */
    const utf8proc_property_t *p = utf8proc_get_property(cp);
    return (unsigned)p->combining_class & 255u;
}

/* Stable counting sort of one run of marks by class; spare has room for n. */
static void sort_marks(int32_t *cp, int32_t *spare, size_t n)
{
    size_t start[257] = { 0 };
    for (size_t i = 0; i < n; i++) {
        start[mark_class(cp[i]) + 1]++;
    }
    for (size_t c = 1; c <= 256; c++) {
        start[c] += start[c - 1];
    }
    for (size_t i = 0; i < n; i++) {
        spare[start[mark_class(cp[i])]++] = cp[i];
    }
    memcpy(cp, spare, n * sizeof(*cp));
}

static void order_marks(int32_t *cp, int32_t *spare, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if (mark_class(cp[i]) == 0) {
            i++;
            continue;
        }
        size_t end = i + 1;
        while (end < n && mark_class(cp[end]) != 0) {
            end++;
        }
        if (end - i > 1) {
            sort_marks(cp + i, spare, end - i);
        }
        i = end;
    }
}

/* Canonical decomposition; with cp NULL only counts. */
static size_t decompose(const char *s, size_t n, int32_t *cp, size_t cap)
{
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += (size_t)utf8_decode(s + i, n - i, &c);
        int boundary = 0;
        int32_t few[32]; /* the longest canonical decomposition has four */
        const utf8proc_ssize_t got = utf8proc_decompose_char(
            (int32_t)c, few, (utf8proc_ssize_t)COUNT(few), UTF8PROC_DECOMPOSE, &boundary);
        assert(got >= 1 && got <= (utf8proc_ssize_t)COUNT(few));
        if (cp) {
            assert(used + (size_t)got <= cap);
            memcpy(cp + used, few, (size_t)got * sizeof(*cp));
        }
        used += (size_t)got;
    }
    return used;
}

enum galley_status tok_nfc(const char *s, size_t n, char **out, size_t *out_n,
                           struct galley_err *err)
{
    *out = NULL;
    *out_n = 0;
    if (certainly_nfc(s, n)) {
        return GALLEY_OK;
    }
    const size_t n_cp = decompose(s, n, NULL, 0);
    int32_t *cp = mem_array(n_cp, 2 * sizeof(*cp));
    char *text = mem_array(n_cp + 1, 4);
    if (!cp || !text) {
        mem_free(cp);
        mem_free(text);
        return galley_err_set(err, GALLEY_ENOMEM, "no memory to normalise %zu bytes of text", n);
    }
    decompose(s, n, cp, n_cp);
    order_marks(cp, cp + n_cp, n_cp);
    const utf8proc_ssize_t left = utf8proc_normalize_utf32(
        cp, (utf8proc_ssize_t)n_cp, (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    assert(left >= 0 && (size_t)left <= n_cp);
    size_t used = 0;
    for (utf8proc_ssize_t i = 0; i < left; i++) {
        used += (size_t)utf8_encode((uint32_t)cp[i], text + used);
    }
    text[used] = '\0';
    mem_free(cp);
    *out = text;
    *out_n = used;
    return GALLEY_OK;
}

enum galley_status tok_escape(const char *s, size_t n, bool prefix, char **out, size_t *out_n,
                              struct galley_err *err)
{
    size_t n_spaces = prefix;
    for (size_t i = 0; i < n; i++) {
        n_spaces += s[i] == ' ';
    }
    *out_n = 0;
    *out = mem_array(n + 3 * n_spaces + 1, 1);
    if (!*out) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory to normalise %zu bytes of text", n);
    }
    char *to = *out;
    if (prefix) {
        memcpy(to, TOK_SPACE, 3);
        to += 3;
    }
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ') {
            memcpy(to, TOK_SPACE, 3);
            to += 3;
        } else {
            *to++ = s[i];
        }
    }
    *to = '\0';
    *out_n = (size_t)(to - *out);
    return GALLEY_OK;
}
