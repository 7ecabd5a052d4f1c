/* render.c - output formats.
 *
 * HTML and text go through cmark-gfm in its safe mode: raw HTML in a document's text never reaches
 * the output, except tables of ours that consist of table tags only (html_table.c). */
#include "src/document/render.h"

#include <cjson/cJSON.h>
#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/compiler.h"
#include "src/base/hash.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/document/document.h"
#include "src/document/html_table.h"

#define OUTPUT_MAX ((size_t)256 << 20)

/* A copy with U+FFFD for what is no UTF-8; NULL when memory is short. */
static char *clean_utf8(const char *s, size_t n)
{
    struct buf b;
    buf_init(&b, OUTPUT_MAX);
    buf_add_utf8(&b, s, n);
    return buf_take(&b);
}

/* ---- JSON ---- */

/* Numbers as people write them: four digits after the point are plenty for pt and seconds. */
static void add_number(cJSON *o, const char *key, double v)
{
    cJSON_AddNumberToObject(o, key, isfinite(v) ? round(v * 1e4) / 1e4 : 0);
}

static void add_count(cJSON *o, const char *key, int64_t v)
{
    cJSON_AddNumberToObject(o, key, (double)v);
}

/* JSON is UTF-8; a file's name need not be. */
static void add_string(cJSON *o, const char *key, const char *s)
{
    const size_t n = s ? strlen(s) : 0;
    if (n == 0 || utf8_valid(s, n)) {
        cJSON_AddStringToObject(o, key, n ? s : "");
        return;
    }
    char *clean = clean_utf8(s, n);
    cJSON_AddStringToObject(o, key, clean ? clean : "");
    mem_free(clean);
}

static cJSON *box_json(const struct galley_box *b)
{
    const double v[4] = { round(b->x0 * 100) / 100, round(b->y0 * 100) / 100,
                          round(b->x1 * 100) / 100, round(b->y1 * 100) / 100 };
    return cJSON_CreateDoubleArray(v, 4);
}

static cJSON *region_json(const struct galley_region *r)
{
    cJSON *o = cJSON_CreateObject();
    add_string(o, "kind", r->kind);
    add_count(o, "level", r->level);
    cJSON_AddItemToObject(o, "box", box_json(&r->box));
    add_string(o, "markdown", r->markdown);
    add_string(o, "status", page_status_text(r->status));
    if (r->reason[0]) {
        add_string(o, "reason", r->reason);
    }
    cJSON *draft = cJSON_AddObjectToObject(o, "draft");
    add_string(draft, "source", r->draft_source);
    add_number(draft, "score", (double)r->draft_score);
    add_string(draft, "markdown", r->draft);
    cJSON *accept = cJSON_AddObjectToObject(o, "accept");
    add_string(accept, "rule", r->rule);
    if (strcmp(r->rule, "tau") == 0) {
        cJSON_AddNumberToObject(accept, "tau", r->tau);
    }
    add_count(accept, "drafted", r->n_drafted);
    add_count(accept, "accepted", r->n_accepted);
    add_count(accept, "output_tokens", r->n_output);
    add_count(accept, "target_steps", r->n_steps);
    add_number(o, "logprob", r->logprob);
    return o;
}

static cJSON *page_json(const struct galley_page *p)
{
    cJSON *o = cJSON_CreateObject();
    add_count(o, "page", p->number);
    add_string(o, "status", page_status_text(p->status));
    if (p->reason[0]) {
        add_string(o, "reason", p->reason);
    }
    const double size[2] = { round((double)p->width * 100) / 100,
                             round((double)p->height * 100) / 100 };
    cJSON_AddItemToObject(o, "size", cJSON_CreateDoubleArray(size, 2));
    cJSON_AddBoolToObject(o, "ocr", p->used_ocr);
    add_string(o, "markdown", p->markdown);
    cJSON *regions = cJSON_AddArrayToObject(o, "regions");
    for (int i = 0; i < p->n_regions; i++) {
        cJSON_AddItemToArray(regions, region_json(&p->regions[i]));
    }
    return o;
}

static cJSON *stats_json(const struct galley_stats *s)
{
    cJSON *o = cJSON_CreateObject();
    add_count(o, "pages", s->n_pages);
    add_count(o, "regions", s->n_regions);
    add_count(o, "regions_verified", s->n_verified);
    add_count(o, "visual_tokens", s->n_visual);
    add_count(o, "prompt_tokens", s->n_prompt);
    add_count(o, "output_tokens", s->n_output);
    add_count(o, "target_steps", s->n_steps);
    add_count(o, "forward_passes", s->n_passes);
    add_count(o, "drafted", s->n_drafted);
    add_count(o, "accepted", s->n_accepted);
    add_number(o, "accept_length", s->accept_length);
    add_count(o, "peak_rss_bytes", s->peak_rss_bytes);
    cJSON *t = cJSON_AddObjectToObject(o, "seconds");
    add_number(t, "parse", s->parse_seconds);
    add_number(t, "render", s->render_seconds);
    add_number(t, "layout", s->layout_seconds);
    add_number(t, "ocr", s->ocr_seconds);
    add_number(t, "encode", s->encode_seconds);
    add_number(t, "prefill", s->prefill_seconds);
    add_number(t, "decode", s->decode_seconds);
    add_number(t, "first_page", s->first_page_seconds);
    add_number(t, "total", s->total_seconds);
    return o;
}

/* Prints and deletes the tree; cJSON's own allocator becomes ours through a copy. */
static char *print_json(cJSON *o, const char *before, const char *after)
{
    char *text = o ? cJSON_Print(o) : NULL;
    cJSON_Delete(o);
    if (!text) {
        return NULL;
    }
    struct buf b;
    buf_init(&b, OUTPUT_MAX);
    buf_addf(&b, "%s%s%s", before, text, after);
    cJSON_free(text);
    return buf_take(&b);
}

static char *json_begin(const struct galley_source *src, int n_pages)
{
    char sha[HASH_HEX_BYTES];
    hash_sha256_hex(src->bytes, src->n_bytes, sha);
    cJSON *o = cJSON_CreateObject();
    add_string(o, "name", src->name ? src->name : "-");
    add_string(o, "sha256", sha);
    add_count(o, "bytes", (int64_t)src->n_bytes);
    add_count(o, "pages", n_pages);
    return print_json(o, "{\"source\": ", ",\n\"pages\": [\n");
}

/* ---- HTML and text through cmark-gfm ---- */

static pthread_once_t cmark_once = PTHREAD_ONCE_INIT;

static void register_extensions(void)
{
    cmark_gfm_core_extensions_ensure_registered();
}

static cmark_node *parse_markdown(const char *text, size_t n, cmark_parser **parser)
{
    static const char *const names[] = { "table", "strikethrough", "tasklist" };
    pthread_once(&cmark_once, register_extensions);
    *parser = cmark_parser_new(CMARK_OPT_DEFAULT | CMARK_OPT_FOOTNOTES);
    for (size_t i = 0; i < COUNT(names); i++) {
        cmark_syntax_extension *ext = cmark_find_syntax_extension(names[i]);
        if (ext) {
            cmark_parser_attach_syntax_extension(*parser, ext);
        }
    }
    cmark_parser_feed(*parser, text, n);
    return cmark_parser_finish(*parser);
}

static void add_rendered(struct buf *b, const char *text, size_t n, bool html)
{
    cmark_parser *parser;
    cmark_node *doc = parse_markdown(text, n, &parser);
    char *out = html ? cmark_render_html(doc, CMARK_OPT_DEFAULT | CMARK_OPT_FOOTNOTES,
                                         cmark_parser_get_syntax_extensions(parser))
                     : cmark_render_plaintext(doc, CMARK_OPT_DEFAULT | CMARK_OPT_FOOTNOTES, 0);
    if (out) {
        buf_add_str(b, out);
    } else {
        b->failed = true;
    }
    free(out);
    cmark_node_free(doc);
    cmark_parser_free(parser);
}

/* Markdown with our own HTML tables in it: those are copied (HTML) or flattened (text). */
static void add_markdown(struct buf *b, const char *text, bool html)
{
    const char *from = text;
    for (;;) {
        const char *table = html_table_find(from);
        const char *end = table ? html_table_end(table) : NULL;
        if (!table) {
            add_rendered(b, from, strlen(from), html);
            return;
        }
        if (table > from) {
            add_rendered(b, from, (size_t)(table - from), html);
        }
        if (html) {
            buf_add(b, table, (size_t)(end - table));
            buf_add_char(b, '\n');
        } else {
            html_table_to_text(b, table, (size_t)(end - table));
        }
        from = end;
    }
}

static void add_escaped(struct buf *b, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '&':
            buf_add_str(b, "&amp;");
            break;
        case '<':
            buf_add_str(b, "&lt;");
            break;
        case '>':
            buf_add_str(b, "&gt;");
            break;
        case '"':
            buf_add_str(b, "&quot;");
            break;
        default:
            buf_add_char(b, *s);
        }
    }
}

static char *html_begin(const struct galley_source *src)
{
    struct buf b;
    buf_init(&b, OUTPUT_MAX);
    buf_add_str(&b, "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>");
    const char *name = src->name ? src->name : "document";
    char *clean = clean_utf8(name, strlen(name));
    add_escaped(&b, clean ? clean : "document");
    mem_free(clean);
    buf_add_str(&b,
                "</title>\n<style>\nbody { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; "
                "font: 1rem/1.55 Georgia, serif; color: #222; }\n"
                "h1, h2, h3, h4 { line-height: 1.2; }\n"
                "table { border-collapse: collapse; margin: 1rem 0; }\n"
                "td, th { border: 1px solid #bbb; padding: .25rem .6rem; }\n"
                "pre { background: #f6f6f4; padding: .8rem; overflow-x: auto; }\n"
                "img { max-width: 100%; }\n"
                "section + section { border-top: 1px solid #ddd; margin-top: 2rem; }\n"
                "</style>\n</head>\n<body>\n");
    return buf_take(&b);
}

static char *html_page(const struct galley_page *p)
{
    struct buf b;
    buf_init(&b, OUTPUT_MAX);
    buf_addf(&b, "<section id=\"page-%d\" data-status=\"%s\">\n", p->number,
             page_status_text(p->status));
    add_markdown(&b, p->markdown, true);
    buf_add_str(&b, "</section>\n");
    return buf_take(&b);
}

/* ---- the four formats ---- */

char *render_begin(enum galley_format format, const struct galley_source *src, int n_pages)
{
    switch (format) {
    case GALLEY_FORMAT_JSON:
        return json_begin(src, n_pages);
    case GALLEY_FORMAT_HTML:
        return html_begin(src);
    default:
        return mem_strdup("");
    }
}

/* Pages of running text are separated by a blank line; an empty page leaves no trace. */
static char *plain_page(const struct galley_page *p, int index, bool page_break, bool text)
{
    struct buf b;
    buf_init(&b, OUTPUT_MAX);
    if (page_break && !text) {
        buf_addf(&b, "%s<!-- page %d -->\n", index > 0 ? "\n" : "", p->number);
    } else if (page_break && index > 0) {
        buf_add_char(&b, '\f');
    }
    if (p->markdown[0] == '\0') {
        return buf_take(&b);
    }
    if (index > 0 || (page_break && !text)) {
        buf_add_char(&b, '\n');
    }
    if (text) {
        add_markdown(&b, p->markdown, false);
    } else {
        buf_addf(&b, "%s\n", p->markdown);
    }
    return buf_take(&b);
}

char *render_page(enum galley_format format, const struct galley_page *page, int index,
                  bool page_break)
{
    switch (format) {
    case GALLEY_FORMAT_JSON:
        return print_json(page_json(page), index > 0 ? ",\n" : "", "");
    case GALLEY_FORMAT_HTML:
        return html_page(page);
    case GALLEY_FORMAT_TEXT:
        return plain_page(page, index, page_break, true);
    default:
        return plain_page(page, index, page_break, false);
    }
}

char *render_end(enum galley_format format, const struct galley_stats *stats)
{
    switch (format) {
    case GALLEY_FORMAT_JSON:
        return print_json(stats_json(stats), "\n],\n\"stats\": ", "}\n");
    case GALLEY_FORMAT_HTML:
        return mem_strdup("</body>\n</html>\n");
    default:
        return mem_strdup("");
    }
}

char *render_stats(const struct galley_stats *stats)
{
    return print_json(stats_json(stats), "", "\n");
}
