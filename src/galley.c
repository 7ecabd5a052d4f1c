/* galley.c - the public API, thinly over engine and document. */
#include "src/galley.h"

#include <assert.h>

#include "src/base/err.h"
#include "src/base/mem.h"
#include "src/document/document.h"
#include "src/document/render.h"
#include "src/handle.h"

#define DPI_MIN 1
#define DPI_MAX 10000 /* pdf_page's */

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
    struct engine_config inner = {
        .model_path = cfg->model_path,
        .mmproj_path = cfg->mmproj_path,
        .isa = cfg->cpu,
        .n_threads = cfg->threads,
        .max_seqs = cfg->max_seqs,
        .max_rows = cfg->max_rows,
        .max_inbox = cfg->max_inbox,
        .context = cfg->context,
        .exact_linear = cfg->exact_linear,
        .kv_bytes = cfg->kv_bytes,
        .memory_bytes = cfg->memory_bytes,
        .vision_cache_bytes = cfg->vision_cache_bytes,
        .vision_cache_dir = cfg->vision_cache_dir,
        .vision_cache_disk_bytes = cfg->vision_cache_disk_bytes,
        .no_prefix_cache = cfg->no_prefix_cache,
        .log = log_of(e),
    };
    enum galley_status rc = handle_kv_type(&inner.kv_type, &inner.kv_auto, cfg->kv_type, err);
    rc = rc ? rc : engine_open(&e->engine, &inner, err);
    if (rc) {
        mem_free(e);
        return rc;
    }
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->left, NULL);
    *out = e;
    return GALLEY_OK;
}

void galley_engine_close(struct galley_engine *e)
{
    if (!e) {
        return;
    }
    atomic_store(&e->closing, true);
    pthread_mutex_lock(&e->lock);
    while (e->n_conversions > 0) {
        pthread_cond_wait(&e->left, &e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    engine_close(e->engine);
    pthread_cond_destroy(&e->left);
    pthread_mutex_destroy(&e->lock);
    mem_free(e);
}

const char *galley_engine_device(const struct galley_engine *e)
{
    return engine_device_name(e->engine);
}

/* What a caller may get wrong; NaN fails every comparison. */
static enum galley_status check_options(const struct galley_convert_options *o,
                                        struct galley_err *err)
{
    if (!(o->accept >= 0 && o->accept <= 1)) {
        return galley_err_set(err, GALLEY_EUSAGE, "accept is %g, allowed 0 to 1", o->accept);
    }
    if (!(o->dpi == 0 || (o->dpi >= DPI_MIN && o->dpi <= DPI_MAX))) {
        return galley_err_set(err, GALLEY_EUSAGE, "dpi is %g, allowed %d to %d", o->dpi, DPI_MIN,
                              DPI_MAX);
    }
    if (o->min_pixels < 0 || o->max_pixels < 0 ||
        (o->max_pixels > 0 && o->min_pixels > o->max_pixels)) {
        return galley_err_set(err, GALLEY_EUSAGE, "min_pixels is %lld, max_pixels %lld",
                              (long long)o->min_pixels, (long long)o->max_pixels);
    }
    if (o->max_new_tokens < 0 || !(o->page_seconds >= 0) || !(o->ocr_seconds >= 0)) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "max_new_tokens is %d, page_seconds %g, ocr_seconds %g: none may be "
                              "negative",
                              o->max_new_tokens, o->page_seconds, o->ocr_seconds);
    }
    if ((unsigned)o->draft > GALLEY_DRAFT_OCR) {
        return galley_err_set(err, GALLEY_EUSAGE, "there is no kind of draft %d", (int)o->draft);
    }
    return GALLEY_OK;
}

/* The caller's events, with the engine's closing as one more reason to stop. */
struct watch {
    const struct galley_convert_events *events;
    const struct galley_engine *engine; /* or NULL */
};

static void watch_page(void *user, const struct galley_page *page)
{
    const struct watch *w = user;
    if (w->events->on_page) {
        w->events->on_page(w->events->user, page);
    }
}

static void watch_progress(void *user, const struct galley_progress *p)
{
    const struct watch *w = user;
    if (w->events->on_progress) {
        w->events->on_progress(w->events->user, p);
    }
}

static bool watch_stop(void *user)
{
    const struct watch *w = user;
    return (w->engine && atomic_load(&w->engine->closing)) ||
           (w->events->should_stop && w->events->should_stop(w->events->user));
}

static void count_conversion(struct galley_engine *e, int change)
{
    if (e) {
        pthread_mutex_lock(&e->lock);
        e->n_conversions += change;
        pthread_cond_signal(&e->left);
        pthread_mutex_unlock(&e->lock);
    }
}

enum galley_status galley_convert(struct galley_engine *e, const struct galley_source *source,
                                  const struct galley_convert_options *options,
                                  const struct galley_convert_events *events,
                                  struct galley_stats *stats, struct galley_err *err)
{
    static const struct galley_convert_options no_options = { 0 };
    static const struct galley_convert_events no_events = { 0 };
    struct galley_stats unused;
    assert(source && (source->bytes || source->n_bytes == 0));
    stats = stats ? stats : &unused;
    *stats = (struct galley_stats){ 0 };
    options = options ? options : &no_options;
    enum galley_status rc = check_options(options, err);
    if (!rc && e && !galley_engine_info(e).has_vision) {
        rc = galley_err_set(err, GALLEY_EMODEL, "the model has no vision tower to read pages with");
    }
    if (rc) {
        return rc;
    }
    struct watch watch = { events ? events : &no_events, e };
    const struct galley_convert_events watched = {
        .user = &watch,
        .on_page = watch_page,
        .on_progress = watch_progress,
        .should_stop = watch_stop,
    };
    const struct log log = log_of(e);
    count_conversion(e, 1);
    rc = document_convert(e ? e->engine : NULL, source, options, &watched, &log, stats, err);
    count_conversion(e, -1);
    return rc;
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

const char *galley_status_text(enum galley_status s)
{
    return status_text(s);
}

const char *galley_version(void)
{
    return GALLEY_VERSION;
}
