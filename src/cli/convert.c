/* convert.c - galley convert: documents to Markdown. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/figures.h"
#include "src/cli/input.h"
#include "src/cli/options.h"
#include "src/cli/outfile.h"
#include "src/cli/progress.h"

/* One run of the command. */
struct run {
    struct cli_options opt;
    struct galley_engine *engine;
    struct progress progress;
    const struct outfile *file;
    const struct galley_source *source;
    struct writer writer;
    int n_pages, n_bad_pages;
    bool figures_ok;
    bool begun; /* the output's head is written: not before something could be read */
};

static bool is_failure(enum galley_page_status s)
{
    return s == GALLEY_PAGE_CORRUPT || s == GALLEY_PAGE_TIMEOUT || s == GALLEY_PAGE_ENCRYPTED ||
           s == GALLEY_PAGE_CANCELLED;
}

/* With --draft none a refused region's text is missing: that is a failure too. */
static bool lost_text(const struct run *r, const struct galley_page *p)
{
    bool lost = is_failure(p->status);
    for (int i = 0; r->opt.convert.draft == GALLEY_DRAFT_NONE && i < p->n_regions; i++) {
        lost = lost || p->regions[i].status == GALLEY_PAGE_UNVERIFIED;
    }
    return lost;
}

static void begin_output(struct run *r, int n_document_pages)
{
    if (!r->begun) {
        writer_add(&r->writer, galley_render_begin(r->opt.format, r->source, n_document_pages));
        r->begun = true;
    }
}

static void on_page(void *user, const struct galley_page *p)
{
    struct run *r = user;
    begin_output(r, p->n_document_pages);
    writer_add(&r->writer, galley_render_page(r->opt.format, p, r->n_pages, r->opt.page_break));
    r->n_pages++;
    r->n_bad_pages += lost_text(r, p);
    if (r->opt.figures && !figures_write(p, r->opt.figures, r->opt.convert.figure_prefix)) {
        r->figures_ok = false;
    }
    const bool worth_a_line = p->status != GALLEY_PAGE_OK && p->status != GALLEY_PAGE_BLANK;
    if ((worth_a_line && !r->opt.quiet) || lost_text(r, p) || r->opt.verbose) {
        progress_clear(&r->progress);
        complain("%s: page %d: %s%s%s", r->file->input, p->number,
                 galley_page_status_name(p->status), p->reason[0] ? ": " : "", p->reason);
    }
}

static void on_progress(void *user, const struct galley_progress *g)
{
    struct run *r = user;
    progress_draw(&r->progress, g);
}

/* A reader that went away, or a full disk, ends the conversion too: nobody will see the rest. */
static bool should_stop(void *user)
{
    const struct run *r = user;
    return interrupted() || r->writer.failed;
}

static int write_stats(const struct run *r, const struct galley_stats *stats)
{
    struct writer w;
    char *text = galley_render_stats(stats);
    const char *path = strcmp(r->opt.stats, "-") == 0 ? NULL : r->opt.stats;
    if (!writer_open(&w, path)) {
        mem_free(text);
        return EXIT_INTERNAL;
    }
    writer_add(&w, text);
    return writer_close(&w) ? EXIT_OK : EXIT_INTERNAL;
}

static int finish(struct run *r, enum galley_status rc, const struct galley_err *err,
                  const struct galley_stats *stats)
{
    progress_clear(&r->progress);
    if (rc && !(rc == GALLEY_ECANCELLED && r->writer.failed)) {
        complain("%s", err->msg);
    }
    begin_output(r, 0);
    writer_add(&r->writer, galley_render_end(r->opt.format, stats));
    int code = exit_code_of(rc);
    if (!writer_close(&r->writer)) {
        code = EXIT_INTERNAL;
    }
    if (r->opt.stats && code != EXIT_INTERNAL) {
        const int stats_code = write_stats(r, stats);
        code = code ? code : stats_code;
    }
    if (code == EXIT_OK && !r->figures_ok) {
        code = EXIT_INTERNAL;
    }
    return code == EXIT_OK && r->n_bad_pages > 0 ? EXIT_PARTIAL : code;
}

/* An input that cannot be read leaves no output file behind. */
static bool leaves_file(enum galley_status rc, const struct run *r)
{
    return rc == GALLEY_OK || r->n_pages > 0;
}

static int convert_bytes(struct run *r, const char *bytes, size_t n)
{
    const struct galley_source src = { .name = r->file->input, .bytes = bytes, .n_bytes = n };
    const struct galley_convert_events events = {
        .user = r, .on_page = on_page, .on_progress = on_progress, .should_stop = should_stop
    };
    struct galley_stats stats = { 0 };
    struct galley_err err = { 0 };
    r->n_pages = 0;
    r->n_bad_pages = 0;
    r->figures_ok = true;
    r->begun = false;
    r->source = &src;
    if (!writer_open(&r->writer, r->file->path)) {
        return EXIT_INTERNAL;
    }
    const enum galley_status rc =
        galley_convert(r->engine, &src, &r->opt.convert, &events, &stats, &err);
    if (!leaves_file(rc, r)) {
        progress_clear(&r->progress);
        complain("%s", err.msg);
        writer_abandon(&r->writer);
        return exit_code_of(rc);
    }
    return finish(r, rc, &err, &stats);
}

static int convert_one(struct run *r, const struct outfile *file)
{
    r->file = file;
    r->progress.name = file->input;
    char *bytes;
    size_t n;
    struct galley_err err = { 0 };
    const enum galley_status rc = input_read(file->input, &bytes, &n, &err);
    if (rc) {
        progress_clear(&r->progress);
        complain("%s", err.msg);
        return exit_code_of(rc);
    }
    const int code = convert_bytes(r, bytes, n);
    mem_free(bytes);
    return code;
}

/* One input: its own code.  Several: 0, or 7 when some failed, unless interrupted. */
static int convert_all(struct run *r, const struct outfile *files, int n)
{
    int n_failed = 0, code = EXIT_OK;
    char prefix[32]; /* several inputs share one --figures directory */
    if (n > 1) {
        r->opt.convert.figure_prefix = prefix;
    }
    for (int i = 0; i < n; i++) {
        r->progress.i_file = i;
        snprintf(prefix, sizeof(prefix), "figure-%d", i + 1);
        code = convert_one(r, &files[i]);
        if (code == EXIT_INTERRUPTED) {
            return code;
        }
        n_failed += code != EXIT_OK;
    }
    return n == 1 ? code : n_failed ? EXIT_PARTIAL : EXIT_OK;
}

int cli_convert(int argc, char **argv)
{
    struct run r = { 0 };
    int first;
    const int code = options_parse(&r.opt, "convert", argc, argv, &first);
    if (code) {
        return code;
    }
    const int n = argc - first;
    if (n < 1) {
        return usage_error("convert", "no input file");
    }
    if (n > 1 && r.opt.stats) {
        return usage_error("convert", "--stats works with one input");
    }
    struct outfile *files = mem_many(struct outfile, (size_t)n);
    if (!files) {
        complain("no memory for %d inputs", n);
        return EXIT_LIMIT;
    }
    catch_signals();
    progress_init(&r.progress, r.opt.quiet, n);
    int rc = outfiles_plan(files, argv + first, n, &r.opt);
    if (!rc && r.opt.figures && !make_dirs(r.opt.figures)) {
        rc = EXIT_INTERNAL;
    }
    rc = rc ? rc : engine_for_cli(&r.engine, &r.opt);
    rc = rc ? rc : convert_all(&r, files, n);
    galley_engine_close(r.engine);
    outfiles_free(files, n);
    mem_free(files);
    return rc;
}
