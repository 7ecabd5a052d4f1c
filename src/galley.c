/* galley.c - the public API, thinly over engine and document. */
#include "src/galley.h"

#include "src/base/err.h"
#include "src/base/mem.h"
#include "src/document/document.h"
#include "src/document/render.h"

struct galley_engine {
    struct engine *engine;
    galley_log_fn *log;
    void *log_user;
};

/* base/log's callback to the public one: the levels are the same numbers. */
static void forward_log(void *user, enum log_level level, const char *event, const char *text)
{
    const struct galley_engine *e = user;
    e->log(e->log_user, (int)level, event, text);
}

static struct log log_of(struct galley_engine *e)
{
    return (struct log){ .fn = e && e->log ? forward_log : NULL, .user = e };
}

enum galley_status galley_engine_open(struct galley_engine **out,
                                      const struct galley_engine_config *cfg,
                                      struct galley_err *err)
{
    *out = NULL;
    struct galley_engine *e = mem_new(struct galley_engine);
    if (!e) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for an engine");
    }
    e->log = cfg->log;
    e->log_user = cfg->log_user;
    const struct engine_config inner = {
        .model_path = cfg->model_path,
        .isa = cfg->cpu,
        .n_threads = cfg->threads,
        .max_seqs = cfg->max_seqs,
        .kv_bytes = cfg->kv_bytes,
        .log = log_of(e),
    };
    const enum galley_status rc = engine_open(&e->engine, &inner, err);
    if (rc) {
        mem_free(e);
        return rc;
    }
    *out = e;
    return GALLEY_OK;
}

void galley_engine_close(struct galley_engine *e)
{
    if (e) {
        engine_close(e->engine);
        mem_free(e);
    }
}

const char *galley_engine_device(const struct galley_engine *e)
{
    return engine_device_name(e->engine);
}

enum galley_status galley_convert(struct galley_engine *e, const struct galley_source *source,
                                  const struct galley_convert_options *options,
                                  const struct galley_convert_events *events,
                                  struct galley_stats *stats, struct galley_err *err)
{
    static const struct galley_convert_options no_options = { 0 };
    static const struct galley_convert_events no_events = { 0 };
    struct galley_stats unused;
    const struct log log = log_of(e);
    if (options && !(options->accept >= 0 && options->accept <= 1)) {
        return galley_err_set(err, GALLEY_EUSAGE, "accept is %g, allowed 0 to 1", options->accept);
    }
    return document_convert(e ? e->engine : NULL, source, options ? options : &no_options,
                            events ? events : &no_events, &log, stats ? stats : &unused, err);
}

char *galley_render_begin(enum galley_format format, const struct galley_source *source,
                          int n_document_pages)
{
    return render_begin(format, source, n_document_pages);
}

char *galley_render_page(enum galley_format format, const struct galley_page *page, int index,
                         bool page_break)
{
    return render_page(format, page, index, page_break);
}

char *galley_render_end(enum galley_format format, const struct galley_stats *stats)
{
    return render_end(format, stats);
}

char *galley_render_stats(const struct galley_stats *stats)
{
    return render_stats(stats);
}

void galley_free(void *p)
{
    mem_free(p);
}

const char *galley_page_status_name(enum galley_page_status s)
{
    return page_status_text(s);
}

const char *galley_status_name_of(enum galley_status s)
{
    return galley_status_text(s);
}

const char *galley_version(void)
{
    return GALLEY_VERSION;
}
