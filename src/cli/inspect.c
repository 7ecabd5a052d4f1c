/* inspect.c - galley inspect: what is in a model directory, what is on a page. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/mem.h"
#include "src/base/path.h"
#include "src/cli/cli.h"
#include "src/cli/figures.h"
#include "src/cli/input.h"
#include "src/cli/inspect_model.h"
#include "src/cli/inspect_plan.h"
#include "src/cli/options.h"
#include "src/format/gguf.h"

/* ---- documents ---- */

struct look {
    const struct cli_options *opt;
    const struct galley_source *source;
    int n_pages;
    bool ok;
};

/* OUT.png for the first page, OUT-pN.png for the others. */
static void picture_path(char *out, size_t size, const char *path, int index, int number)
{
    const char *dot = strrchr(path, '.');
    const char *slash = strrchr(path, '/');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - path) : strlen(path);
    if (index == 0) {
        snprintf(out, size, "%s", path);
    } else {
        snprintf(out, size, "%.*s-p%d%s", (int)stem, path, number, path + stem);
    }
}

static void print_page(const struct galley_page *p)
{
    printf("page %d: %s%s%s, %.0f x %.0f pt, %d regions%s\n", p->number,
           galley_page_status_name(p->status), p->reason[0] ? ": " : "", p->reason,
           (double)p->width, (double)p->height, p->n_regions, p->used_ocr ? ", read by OCR" : "");
    for (int i = 0; i < p->n_regions; i++) {
        const struct galley_region *r = &p->regions[i];
        printf("\n  %d  %s", i + 1, r->kind);
        if (r->level) {
            printf(" %d", r->level);
        }
        printf("  [%.1f %.1f %.1f %.1f]  draft: %s, score %.2f\n", (double)r->box.x0,
               (double)r->box.y0, (double)r->box.x1, (double)r->box.y1, r->draft_source,
               (double)r->draft_score);
        for (const char *s = r->draft; *s;) {
            const size_t n = strcspn(s, "\n");
            printf("     | %.*s\n", (int)n, s);
            s += n + (s[n] == '\n');
        }
    }
    putchar('\n');
}

/* The head of the JSON: not before something could be read. */
static void print_head(const struct look *l, int n_document_pages)
{
    char *head = galley_render_begin(GALLEY_FORMAT_JSON, l->source, n_document_pages);
    fputs(head ? head : "", stdout);
    galley_free(head);
}

static void look_at_page(void *user, const struct galley_page *p)
{
    struct look *l = user;
    if (l->opt->json) {
        if (l->n_pages == 0) {
            print_head(l, p->n_document_pages);
        }
        char *text = galley_render_page(GALLEY_FORMAT_JSON, p, l->n_pages, false);
        fputs(text ? text : "", stdout);
        galley_free(text);
    } else {
        print_page(p);
    }
    if (l->opt->regions && p->rgb) {
        char path[4096];
        picture_path(path, sizeof(path), l->opt->regions, l->n_pages, p->number);
        l->ok = regions_write(p, path) && l->ok;
    }
    l->n_pages++;
}

static int inspect_document(const char *name, const struct cli_options *opt)
{
    char *bytes;
    size_t n;
    struct galley_err err = { 0 };
    enum galley_status rc = input_read(name, &bytes, &n, &err);
    if (rc) {
        complain("%s", err.msg);
        return exit_code_of(rc);
    }
    const struct galley_source src = { name, bytes, n };
    struct look look = { opt, &src, 0, true };
    const struct galley_convert_events events = { .user = &look, .on_page = look_at_page };
    struct galley_stats stats = { 0 };
    rc = galley_convert(NULL, &src, &opt->convert, &events, &stats, &err);
    if (rc) {
        complain("%s", err.msg);
    }
    if (opt->json && !rc) {
        char *tail = galley_render_end(GALLEY_FORMAT_JSON, &stats);
        fputs(tail ? tail : "", stdout);
        galley_free(tail);
    }
    mem_free(bytes);
    return rc ? exit_code_of(rc) : look.ok ? EXIT_OK : EXIT_INTERNAL;
}

/* By name as well, so that what is missing, empty or no file is a model's failure. */
static bool is_gguf(const char *name)
{
    const size_t n = strlen(name);
    return (n > 5 && strcasecmp(name + n - 5, ".gguf") == 0) || gguf_is_file(name);
}

int cli_inspect(int argc, char **argv)
{
    struct cli_options opt;
    int first;
    const int code = options_parse(&opt, "inspect", argc, argv, &first);
    if (code) {
        return code;
    }
    if (argc - first != 1) {
        return usage_error("inspect", "one file or model directory is needed, not %d",
                           argc - first);
    }
    const char *name = argv[first];
    if (opt.plan) {
        const struct galley_plan_request r = {
            .model_path = name,
            .mmproj_path = opt.mmproj,
            .kv_type = opt.kv,
            .context = opt.context,
            .max_seqs = opt.max_seqs,
            .max_rows = opt.max_rows,
            .memory_bytes = opt.memory_bytes,
            .max_pixels = opt.convert.max_pixels,
            .measure = true,
            .cpu = getenv("GALLEY_CPU"),
            .threads = opt.threads,
            .exact_linear = opt.exact_linear,
        };
        return inspect_plan(&r, opt.json);
    }
    if (opt.context || opt.max_seqs || opt.max_rows || opt.memory_bytes || opt.kv || opt.mmproj ||
        opt.exact_linear) {
        return usage_error(
            "inspect",
            "--ctx, --seqs, --rows, --kv, --linear, --mmproj and --memory go with --plan");
    }
    if (path_is_dir(name)) {
        if (opt.regions) {
            return usage_error("inspect", "%s is a directory: --regions is for documents", name);
        }
        return inspect_model(name, opt.json);
    }
    if (is_gguf(name)) {
        return opt.regions
                   ? usage_error("inspect", "%s is a model: --regions is for documents", name)
                   : inspect_model(name, opt.json);
    }
    return inspect_document(name, &opt);
}
