/* trust.c - verdicts on parts. */
#include "src/document/trust.h"

#include <string.h>

/* Fewer tokens say too little about a whole part. */
#define JUDGED_TOKENS 4
/* A part derails when less than this share of it came from the draft and its tokens are this
 * improbable to the model that wrote them.  Found on scans read by galley-tiny: mended texts keep
 * over 90 % of the draft at -0.3 to -1.0, derailed ones half of it at -2 and below. */
#define DERAILED_SHARE   0.8
#define DERAILED_LOGPROB (-1.5)
#define DERAILED_TOKENS  12

static bool is_empty(const char *s)
{
    return !s || s[strspn(s, " \n")] == '\0';
}

static bool has_replacement(const char *s)
{
    return strstr(s, "\xef\xbf\xbd") != NULL;
}

/* Cells of a GFM row: unescaped bars less one. */
static int row_cells(const char *row, size_t n)
{
    int bars = 0;
    for (size_t i = 0; i < n; i++) {
        bars += row[i] == '|' && (i == 0 || row[i - 1] != '\\');
    }
    return bars - 1;
}

/* The width all rows have; -1 when they differ or a row is no row. */
static int table_columns(const char *s)
{
    int columns = 0;
    while (*s) {
        const size_t n = strcspn(s, "\n");
        const int cells = row_cells(s, n);
        if (n > 0 && (s[0] != '|' || (columns > 0 && cells != columns))) {
            return -1;
        }
        columns = n > 0 ? cells : columns;
        s += n + (s[n] == '\n');
    }
    return columns;
}

/* The delimiter row stands once: a second header inside means that the model began anew. */
static int count_delimiters(const char *s)
{
    int n = 0;
    for (; (s = strstr(s, "|---")) != NULL; s += strcspn(s, "\n")) {
        n++;
    }
    return n;
}

static bool other_table(const char *text, const char *draft)
{
    const int columns = table_columns(draft);
    return columns > 0 &&
           (table_columns(text) != columns || count_delimiters(text) != count_delimiters(draft));
}

static bool derailed(const struct piece *p)
{
    return p->n_output >= DERAILED_TOKENS && p->n_accepted < DERAILED_SHARE * p->n_output &&
           p->mean_logprob < DERAILED_LOGPROB;
}

/* Why the finished text of a relaxed rule is not believed; NULL when it is. */
static const char *distrust(const struct piece *p, enum region_kind kind)
{
    if (has_replacement(p->text) && !has_replacement(p->draft)) {
        return "the model wrote broken characters; the draft was kept";
    }
    if (kind == REGION_TABLE && other_table(p->text, p->draft)) {
        return "the model's table has another shape than the draft; the draft was kept";
    }
    if (derailed(p)) {
        return "the model left the draft for words it does not believe in; the draft was kept";
    }
    return NULL;
}

static struct verdict failed(const struct piece *p, enum galley_page_status status,
                             const char *with_draft, const char *without)
{
    const bool kept = p->draft && p->draft[0];
    return (struct verdict){ kept      ? p->draft
                             : p->text ? p->text
                                       : "",
                             status, kept ? with_draft : without };
}

static struct verdict finished(const struct piece *p, enum region_kind kind,
                               const struct region_plan *plan)
{
    struct verdict v = { p->text, GALLEY_PAGE_OK, "" };
    if (!p->draft || !p->draft[0] || plan->tau >= 1) {
        return v;
    }
    const char *why = distrust(p, kind);
    if (why) {
        v = (struct verdict){ p->draft, GALLEY_PAGE_LOW_CONFIDENCE, why };
    } else if (p->n_output >= JUDGED_TOKENS && p->mean_logprob < plan->doubt_logprob &&
               plan->doubt_logprob < 0) {
        /* Token by token a small tau would swallow a text that stands elsewhere; over a whole part
         * the difference is plain (docs/verification.md). */
        v.status = GALLEY_PAGE_LOW_CONFIDENCE;
        v.reason = "the model does not see this text in the picture";
    }
    return v;
}

struct verdict trust_piece(const struct piece *p, enum region_kind kind,
                           const struct region_plan *plan)
{
    switch (p->finish) {
    case FINISH_REPETITION:
        return failed(p, GALLEY_PAGE_REPETITION, "the model fell into a loop; the draft was kept",
                      "the model fell into a loop; the text ends after its first round");
    case FINISH_LENGTH:
        return failed(p, GALLEY_PAGE_TRUNCATED,
                      "the model reached its token limit; the draft was kept",
                      "the model reached its token limit");
    case FINISH_FAILED: {
        /* What a limit keeps from the model is as good as what its card does. */
        const char *why = p->error ? p->error : "the model failed";
        const bool limit = p->status == GALLEY_ELIMIT;
        return failed(p, limit ? GALLEY_PAGE_UNVERIFIED : GALLEY_PAGE_CORRUPT, why, why);
    }
    case FINISH_CANCELLED:
        return failed(p, GALLEY_PAGE_CANCELLED, "cancelled", "cancelled");
    case FINISH_DEADLINE:
        return failed(p, GALLEY_PAGE_TIMEOUT, "the model took too long; the draft was kept",
                      "the model took too long");
    case FINISH_STOP:
    case FINISH_STOP_STRING:
        break;
    }
    if (is_empty(p->text)) {
        return failed(p, GALLEY_PAGE_LOW_CONFIDENCE, "the model wrote nothing; the draft was kept",
                      "the model wrote nothing");
    }
    return finished(p, kind, plan);
}
