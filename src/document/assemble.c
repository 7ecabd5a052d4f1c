/* assemble.c - from verified parts to a page's Markdown, with an honest status for each region. */
#include "src/document/assemble.h"

#include <stdio.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/cp.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/document/restyle.h"
#include "src/document/trust.h"

#define PAGE_TEXT_MAX   (64u << 20)
#define LOW_DRAFT_SCORE 0.5f
#define LOW_LOGPROB     (-1.2)

static size_t trimmed_length(const char *s)
{
    size_t n = strlen(s);
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\n')) {
        n--;
    }
    return n;
}

/* A later part of a table starts with the repeated header: skips it and its delimiter row. */
static const char *without_header(const char *text)
{
    const char *second = strchr(text, '\n');
    if (!second || strncmp(second + 1, "|--", 3) != 0) {
        return text;
    }
    const char *third = strchr(second + 1, '\n');
    return third ? third + 1 : "";
}

/* What stood between two parts in the draft: a space, a line end, or nothing inside a word. */
static void add_separator(struct buf *b, const struct region *r, const struct piece *before,
                          const struct piece *after)
{
    if (r->kind == REGION_TABLE || r->kind == REGION_CODE) {
        buf_add_char(b, '\n');
        return;
    }
    const char *plain = r->draft.plain;
    if (!plain || before->line_to < 1 || after->line_from >= r->n_lines) {
        buf_add_char(b, ' ');
        return;
    }
    int from = r->lines[before->line_to - 1].plain_to;
    int to = r->lines[after->line_from].plain_from;
    if (from < 0 || to < from || (size_t)to > strlen(plain) || (from == 0 && to == 0)) {
        buf_add_char(b, ' ');
        return;
    }
    /* Blanks may count to either line. */
    while (from > 0 && (plain[from - 1] == ' ' || plain[from - 1] == '\n')) {
        from--;
    }
    while (plain[to] == ' ' || (plain[to] == '\n' && r->kind != REGION_LIST)) {
        to++;
    }
    buf_add(b, plain + from, (size_t)(to - from));
}

static char *join_pieces(const struct region *r, const struct region_plan *plan)
{
    struct buf b;
    buf_init(&b, PAGE_TEXT_MAX);
    for (int i = 0; i < plan->n_pieces; i++) {
        const struct piece *p = &plan->pieces[i];
        const char *text = trust_piece(p, r->kind, plan).text;
        if (p->with_header) {
            text = without_header(text);
        }
        const size_t n = trimmed_length(text);
        if (n == 0) {
            continue;
        }
        if (b.n > 0) {
            add_separator(&b, r, p - 1, p);
        }
        const size_t lead =
            r->kind == REGION_LIST || r->kind == REGION_CODE ? 0 : strspn(text, " \n");
        buf_add(&b, text + lead, n - lead);
    }
    return buf_take(&b);
}

static char *fenced(const char *text)
{
    struct buf b;
    buf_init(&b, PAGE_TEXT_MAX);
    if (strncmp(text, "```", 3) == 0) {
        buf_add_str(&b, text);
    } else {
        buf_addf(&b, "```\n%s\n```", text);
    }
    return buf_take(&b);
}

/* Was the region read with a draft? */
static bool is_drafted(const struct region_plan *plan)
{
    return plan->n_pieces > 0 && plan->pieces[0].draft;
}

/* A readable region's Markdown.  With an exact rule the model's words stand as they are. */
static char *region_text(const struct region *r, const struct region_plan *plan)
{
    char *joined = join_pieces(r, plan);
    if (!joined) {
        return NULL;
    }
    char *out = NULL;
    if (is_drafted(plan) && plan->tau < 1 && r->draft.markdown) {
        out = restyle(r->draft.plain, r->draft.markdown, joined);
    } else if (r->kind == REGION_CODE && joined[0]) {
        out = fenced(joined);
    } else {
        return joined;
    }
    mem_free(joined);
    return out;
}

/* The last thing that went wrong with a region's parts, with the sentence that says so. */
static void judge(struct galley_region *g, const struct region *r, const struct region_plan *plan)
{
    g->status = GALLEY_PAGE_OK;
    g->reason = "";
    for (int i = 0; i < plan->n_pieces; i++) {
        const struct verdict v = trust_piece(&plan->pieces[i], r->kind, plan);
        if (v.status != GALLEY_PAGE_OK) {
            g->status = v.status;
            g->reason = v.reason;
        }
    }
    const bool weak = r->draft.source == DRAFT_OCR && r->draft.score < LOW_DRAFT_SCORE;
    if (g->status == GALLEY_PAGE_OK && (weak || !is_drafted(plan)) && g->logprob < LOW_LOGPROB) {
        g->status = GALLEY_PAGE_LOW_CONFIDENCE;
        g->reason = "model and recogniser are both unsure of this text";
    }
}

static void count_pieces(struct galley_region *g, const struct region_plan *plan)
{
    double sum = 0;
    for (int i = 0; i < plan->n_pieces; i++) {
        const struct piece *p = &plan->pieces[i];
        g->n_output += p->n_output;
        g->n_steps += p->n_steps;
        g->n_drafted += p->n_drafted;
        g->n_accepted += p->n_accepted;
        sum += p->mean_logprob * p->n_output;
    }
    g->logprob = g->n_output ? sum / g->n_output : 0;
}

static void fill_region(struct galley_region *g, const struct region *r,
                        const struct region_plan *plan, bool engine_used)
{
    *g = (struct galley_region){
        .kind = region_kind_name(r->kind),
        .level = r->level,
        .box = { r->box.x0, r->box.y0, r->box.x1, r->box.y1 },
        .draft = r->draft.markdown ? r->draft.markdown : "",
        .draft_source = draft_source_name(r->draft.source),
        .draft_score = r->draft.score,
        .reason = "",
        .rule = "unverified",
    };
    if (!plan->readable) {
        if (r->kind != REGION_FIGURE && engine_used) {
            g->status = GALLEY_PAGE_UNVERIFIED;
            g->reason = plan->why;
        }
        return;
    }
    if (!engine_used) {
        return;
    }
    count_pieces(g, plan);
    judge(g, r, plan);
    const bool drafted = is_drafted(plan);
    g->rule = !drafted ? "plain" : plan->tau < 1 ? "tau" : "exact";
    g->tau = drafted ? plan->tau : 1;
}

static bool is_furniture(enum region_kind k)
{
    return k == REGION_PAGE_HEADER || k == REGION_PAGE_FOOTER || k == REGION_PAGE_NUMBER;
}

/* A paragraph that goes on in another column: joined without a blank line, over a hyphen if there
 * is one. */
static void add_continuation(struct buf *b, const char *text)
{
    if (b->n > 1 && b->data[b->n - 1] == '-' && text[0] >= 'a' && text[0] <= 'z') {
        buf_cut(b, b->n - 1);
    } else if (b->n > 0) {
        uint32_t cp = 0;
        const size_t n = strlen(text);
        if (n > 0) {
            utf8_decode(text, n, &cp);
        }
        if (!cp_is_wide(cp)) {
            buf_add_char(b, ' ');
        }
    }
    buf_add_str(b, text);
}

static char *page_text(const struct page_layout *layout, char **texts,
                       const struct galley_convert_options *opt)
{
    struct buf b;
    buf_init(&b, PAGE_TEXT_MAX);
    bool open = false; /* the last paragraph written waits for its continuation */
    for (int i = 0; i < layout->n_regions; i++) {
        const struct region *r = &layout->regions[i];
        if ((is_furniture(r->kind) && !opt->keep_furniture) || texts[i][0] == '\0') {
            continue;
        }
        if (open && r->continues) {
            add_continuation(&b, texts[i]);
        } else {
            if (b.n > 0) {
                buf_add_str(&b, "\n\n");
            }
            buf_add_str(&b, texts[i]);
        }
        open = r->joins_next;
    }
    return buf_take(&b);
}

/* Refused regions leave a gap when there is no draft to show. */
static char *refused_text(const struct region *r, const struct galley_convert_options *opt)
{
    const bool hide = opt->draft == GALLEY_DRAFT_NONE && r->kind != REGION_FIGURE;
    return mem_strdup(hide || !r->draft.markdown ? "" : r->draft.markdown);
}

/* The page's status is its worst region's. */
static void judge_page(struct page_result *out)
{
    static const enum galley_page_status worst_first[] = {
        GALLEY_PAGE_CANCELLED, GALLEY_PAGE_CORRUPT,    GALLEY_PAGE_REPETITION,
        GALLEY_PAGE_TRUNCATED, GALLEY_PAGE_UNVERIFIED, GALLEY_PAGE_LOW_CONFIDENCE,
    };
    struct galley_page *p = &out->page;
    for (size_t w = 0; w < COUNT(worst_first); w++) {
        int n = 0;
        const struct galley_region *first = NULL;
        for (int i = 0; i < p->n_regions; i++) {
            if (p->regions[i].status == worst_first[w]) {
                first = first ? first : &p->regions[i];
                n++;
            }
        }
        if (n > 0) {
            p->status = worst_first[w];
            snprintf(out->reason, sizeof(out->reason), "%d of %d regions (first a %s): %s", n,
                     p->n_regions, first->kind, first->reason);
            p->reason = out->reason;
            return;
        }
    }
}

enum galley_status assemble_page(struct page_result *out, int number,
                                 const struct page_layout *layout, const struct region_plan *plans,
                                 const struct galley_convert_options *opt, bool engine_used,
                                 struct galley_err *err)
{
    *out = (struct page_result){ 0 };
    const size_t n = (size_t)layout->n_regions;
    out->page = (struct galley_page){ .number = number,
                                      .reason = "",
                                      .width = layout->width,
                                      .height = layout->height,
                                      .n_regions = (int)n,
                                      .used_ocr = layout->used_ocr,
                                      .scale = layout->scale };
    out->regions = mem_many(struct galley_region, n);
    out->texts = mem_many(char *, n);
    bool ok = out->regions && out->texts;
    for (size_t i = 0; i < n && ok; i++) {
        const struct region *r = &layout->regions[i];
        fill_region(&out->regions[i], r, &plans[i], engine_used);
        out->texts[i] = !engine_used        ? mem_strdup(r->draft.markdown ? r->draft.markdown : "")
                        : plans[i].readable ? region_text(r, &plans[i])
                                            : refused_text(r, opt);
        out->regions[i].markdown = out->texts[i];
        ok = out->texts[i] != NULL;
    }
    out->markdown = ok ? page_text(layout, out->texts, opt) : NULL;
    if (!out->markdown) {
        page_result_deinit(out);
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for page %d's text", number);
    }
    out->page.markdown = out->markdown;
    out->page.regions = out->regions;
    if (layout->bitmap) {
        out->page.rgb = layout->bitmap->rgb;
        out->page.px_width = layout->bitmap->width;
        out->page.px_height = layout->bitmap->height;
        out->page.stride = layout->bitmap->stride;
    }
    out->page.status = layout->blank ? GALLEY_PAGE_BLANK : GALLEY_PAGE_OK;
    if (layout->blank) {
        out->page.reason = "nothing to read on this page";
    } else if (n == 0) {
        out->page.status = GALLEY_PAGE_LOW_CONFIDENCE;
        out->page.reason = "there is ink on this page, but no text was found";
    } else {
        judge_page(out);
    }
    return GALLEY_OK;
}

void page_result_deinit(struct page_result *r)
{
    for (int i = 0; r->texts && i < r->page.n_regions; i++) {
        mem_free(r->texts[i]);
    }
    mem_free(r->texts);
    mem_free(r->regions);
    mem_free(r->markdown);
    *r = (struct page_result){ 0 };
}
