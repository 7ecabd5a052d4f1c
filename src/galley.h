/* galley.h - the public API of Galley: documents in, Markdown out.
 *
 *     struct galley_engine *e;
 *     struct galley_err err = { 0 };
 *     struct galley_engine_config cfg = { .model_path = "models/galley-tiny" };
 *     if (galley_engine_open(&e, &cfg, &err)) { puts(err.msg); exit(1); }
 *     galley_convert(e, &source, &options, &events, &stats, &err);
 *     galley_engine_close(e);
 *
 * Zero is the default of every option.  Nothing here writes to stdout or stderr, exits, or reads
 * the environment.  Functions may be called from any thread; several conversions may share an
 * engine. */
#ifndef GALLEY_H
#define GALLEY_H

#include "galley_status.h" /* beside this file, here and installed */
#include "galley_types.h"

#if defined(__GNUC__)
#define GALLEY_API      __attribute__((visibility("default")))
#define GALLEY_MUST_USE __attribute__((warn_unused_result))
#else
#define GALLEY_API
#define GALLEY_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GALLEY_VERSION "0.1.0"

struct galley_engine; /* opaque: owned by galley_engine_open / galley_engine_close */

/* One complete line without newline, from any thread.  level: 0 debug, 1 info, 2 warning. */
typedef void galley_log_fn(void *user, int level, const char *event, const char *text);

struct galley_engine_config {
    const char *model_path; /* a Hugging Face model directory */
    const char *cpu;        /* "auto", "ref", "avx2", "avx512"; NULL is "auto" */
    int threads;            /* 0: one per CPU */
    int max_seqs;           /* regions read at once; 0: 16 */
    uint64_t kv_bytes;      /* KV cache; 0: a default */
    galley_log_fn *log;     /* NULL: silent */
    void *log_user;
};

/* Opens a model.  On success *out is the caller's; on failure *out is NULL and *err, if given, says
 * why in a sentence fit for a log line. */
GALLEY_MUST_USE GALLEY_API enum galley_status
galley_engine_open(struct galley_engine **out, const struct galley_engine_config *cfg,
                   struct galley_err *err);
/* Cancels what is live, waits until its conversions have returned, frees.  Not from a callback.
 * NULL is fine. */
GALLEY_API void galley_engine_close(struct galley_engine *e);
/* "cpu-avx512" ...; lives as long as the engine. */
GALLEY_API const char *galley_engine_device(const struct galley_engine *e);

/* Converts one document on the calling thread; pages arrive in order through events->on_page.
 * e NULL: the light parser alone, nothing is verified.  options, events and stats may be NULL.
 * GALLEY_OK also when single pages failed: their status says so. */
GALLEY_MUST_USE GALLEY_API enum galley_status
galley_convert(struct galley_engine *e, const struct galley_source *source,
               const struct galley_convert_options *options,
               const struct galley_convert_events *events, struct galley_stats *stats,
               struct galley_err *err);

/* Output formats, streamed: begin, then page by page (index from 0), then end.  Strings are the
 * caller's (galley_free); NULL when memory is short. */
GALLEY_MUST_USE GALLEY_API char *galley_render_begin(enum galley_format format,
                                                     const struct galley_source *source,
                                                     int n_document_pages);
GALLEY_MUST_USE GALLEY_API char *galley_render_page(enum galley_format format,
                                                    const struct galley_page *page, int index,
                                                    bool page_break);
GALLEY_MUST_USE GALLEY_API char *galley_render_end(enum galley_format format,
                                                   const struct galley_stats *stats);
GALLEY_MUST_USE GALLEY_API char *galley_render_stats(const struct galley_stats *stats);
GALLEY_API void galley_free(void *p);

/* "ok", "low_confidence" ... */
GALLEY_API const char *galley_page_status_name(enum galley_page_status s);
/* A status code as text: "out of memory". */
GALLEY_API const char *galley_status_text(enum galley_status s);
GALLEY_API const char *galley_version(void);

#ifdef __cplusplus
}
#endif

#endif
