/* tokenizer_split.c - the pre-tokenizer's pattern, from Oniguruma's dialect to PCRE2.
 *
 * Hugging Face compiles these patterns with Oniguruma.  Syntax that means the same in PCRE2 is
 * copied, \s and \S are spelled out (PCRE2 counts U+180E as a space), and everything whose
 * meaning differs or is in doubt is refused: a wrong split gives wrong ids without a word. */
#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/format/tokenizer_impl.h"

/* Unicode White_Space. */
#define SPACES                                                                         \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
    "\\x{202f}\\x{205f}\\x{3000}"

/* Bounds on one search, so that neither pattern nor text can hold a thread for long. */
#define MATCH_LIMIT    50000000u
#define HEAP_LIMIT_KIB (256u << 10)

struct translation {
    const char *p; /* what is left of the pattern */
    struct buf out;
    bool in_class, class_empty;
};

/* Takes n pattern characters over as they are. */
static void keep(struct translation *tr, size_t n)
{
    buf_add(&tr->out, tr->p, n);
    tr->p += n;
    tr->class_empty = false;
}

/* Each step returns false at syntax it does not know. */
static bool step_escape(struct translation *tr)
{
    const char e = tr->p[1];
    if (e == 's') {
        buf_add_str(&tr->out, tr->in_class ? SPACES : "[" SPACES "]");
    } else if (e == 'S' && !tr->in_class) {
        buf_add_str(&tr->out, "[^" SPACES "]");
    } else if ((e == 'p' || e == 'P' || e == 'x') && tr->p[2] == '{') {
        const char *end = strchr(tr->p, '}');
        if (!end) {
            return false;
        }
        keep(tr, (size_t)(end - tr->p) + 1);
        return true;
    } else if (e != '\0' && strchr("rntfdD!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", e)) {
        keep(tr, 2);
        return true;
    } else {
        return false;
    }
    tr->p += 2;
    tr->class_empty = false;
    return true;
}

static bool step_class(struct translation *tr)
{
    if (tr->p[0] == '[' || (tr->p[0] == '&' && tr->p[1] == '&')) {
        return false; /* Oniguruma nests and intersects classes, PCRE2 does not */
    }
    if (tr->p[0] == ']') {
        if (tr->class_empty) {
            return false;
        }
        tr->in_class = false;
    }
    keep(tr, 1);
    return true;
}

static bool step_group(struct translation *tr)
{
    static const char *const known[] = { "?:", "?=", "?!", "?>", "?<=", "?<!", "?i:" };
    if (tr->p[1] != '?' && tr->p[1] != '*') {
        keep(tr, 1);
        return true;
    }
    for (size_t i = 0; i < COUNT(known); i++) {
        const size_t n = strlen(known[i]);
        if (strncmp(tr->p + 1, known[i], n) == 0) {
            keep(tr, n + 1);
            return true;
        }
    }
    return false;
}

static bool step(struct translation *tr)
{
    if (tr->p[0] == '\\') {
        return step_escape(tr);
    }
    if (tr->in_class) {
        return step_class(tr);
    }
    switch (tr->p[0]) {
    case '[':
        keep(tr, tr->p[1] == '^' ? 2 : 1);
        tr->in_class = tr->class_empty = true;
        return true;
    case '(':
        return step_group(tr);
    case '{':
        if (tr->p[1] == ',') {
            return false; /* {,n}: a repeat there, text here */
        }
        break;
    case '}':
        if (tr->p[1] == '+') {
            return false; /* {n}+: repeated there, possessive here */
        }
        break;
    default:
        break;
    }
    keep(tr, 1);
    return true;
}

static enum galley_status translate(char **out, const char *where, const char *pattern,
                                    struct galley_err *err)
{
    *out = NULL;
    if (strlen(pattern) > TOK_PATTERN_MAX) {
        return galley_err_set(err, GALLEY_ELIMIT, "%s: split pattern has %zu bytes, limit %d",
                              where, strlen(pattern), TOK_PATTERN_MAX);
    }
    struct translation tr = { .p = pattern };
    buf_init(&tr.out, (size_t)TOK_PATTERN_MAX * 64);
    while (*tr.p) {
        if (!step(&tr)) {
            buf_deinit(&tr.out);
            return galley_err_set(err, GALLEY_EUNSUP,
                                  "%s: split pattern has syntax that is not supported at byte %zu: "
                                  "%.16s",
                                  where, (size_t)(tr.p - pattern), tr.p);
        }
    }
    buf_add(&tr.out, "", 0);
    const bool ok = buf_ok(&tr.out);
    *out = buf_take(&tr.out);
    buf_deinit(&tr.out);
    if (!ok || !*out) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for the split pattern", where);
    }
    return GALLEY_OK;
}

static void *heap_alloc(size_t n, void *data)
{
    (void)data;
    return mem_alloc(n);
}

static void heap_free(void *p, void *data)
{
    (void)data;
    mem_free(p);
}

static enum galley_status compile(struct tokenizer *t, const char *where, const char *pattern,
                                  pcre2_compile_context *ctx, struct galley_err *err)
{
    pcre2_set_newline(ctx, PCRE2_NEWLINE_LF);
    int code;
    PCRE2_SIZE at;
    /* MULTILINE because ^ and $ always are line anchors in Oniguruma's Ruby syntax. */
    pcre2_code *split = pcre2_compile(
        (PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, ctx);
    if (!split) {
        PCRE2_UCHAR why[128] = "";
        pcre2_get_error_message(code, why, sizeof(why));
        return galley_err_set(err, code == PCRE2_ERROR_HEAP_FAILED ? GALLEY_ENOMEM : GALLEY_EINPUT,
                              "%s: split pattern does not compile: %s", where, (const char *)why);
    }
    /* Without JIT (or where memory may not be made executable) the interpreter does the work. */
    (void)pcre2_jit_compile(split, PCRE2_JIT_COMPLETE);
    t->split[t->n_splits++] = split;
    return GALLEY_OK;
}

enum galley_status tok_split_compile(struct tokenizer *t, const char *where, const char *pattern,
                                     struct galley_err *err)
{
    char *translated;
    assert(t->n_splits < TOK_SPLITS_MAX);
    enum galley_status rc = translate(&translated, where, pattern, err);
    if (rc) {
        return rc;
    }
    if (!t->heap) {
        t->heap = pcre2_general_context_create(heap_alloc, heap_free, NULL);
        t->limits = t->heap ? pcre2_match_context_create(t->heap) : NULL;
    }
    pcre2_compile_context *ctx = t->heap ? pcre2_compile_context_create(t->heap) : NULL;
    if (!t->limits || !ctx) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for the split pattern", where);
    } else {
        pcre2_set_match_limit(t->limits, MATCH_LIMIT);
        pcre2_set_heap_limit(t->limits, HEAP_LIMIT_KIB);
        rc = compile(t, where, translated, ctx, err);
    }
    pcre2_compile_context_free(ctx);
    mem_free(translated);
    return rc;
}

void tok_split_free(struct tokenizer *t)
{
    for (int i = 0; i < t->n_splits; i++) {
        pcre2_code_free(t->split[i]);
    }
    pcre2_match_context_free(t->limits);
    pcre2_general_context_free(t->heap);
}
