/* galley.h - the public API of Galley: documents in, Markdown out.
 *
 *     struct galley_engine *e;
 *     struct galley_err err = { 0 };
 *     struct galley_engine_config cfg = { .model_path = "models/galley-tiny" };
 *     if (galley_engine_open(&e, &cfg, &err)) { puts(err.msg); exit(1); }
 *     galley_convert(e, &source, &options, &events, &stats, &err);
 *     galley_engine_close(e);
 *
 * galley_submit asks the model directly: text and images in, text out, many requests at once.
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
    const char *model_path; /* a Hugging Face model directory or a GGUF file */
    const char *cpu;        /* "auto", "ref", "avx2", "avx512"; NULL is "auto" */
    int threads;            /* 0: one per CPU */
    int max_seqs;           /* regions read at once; 0: 16 */
    uint64_t kv_bytes;      /* KV cache; 0: planned */
    galley_log_fn *log;     /* NULL: silent */
    void *log_user;
    const char *mmproj_path;      /* the vision half of a GGUF pair; NULL: found beside the model */
    int max_rows;                 /* rows of one forward pass; 0: 512 */
    int max_inbox;                /* waiting requests; 0: 256 */
    int context;                  /* most tokens of one sequence; 0: the model's limit */
    const char *kv_type;          /* "auto", "f32", "f16", "bf16", "q8", "fp8"; NULL is "auto" */
    uint64_t memory_bytes;        /* refuse to open above this; 0: what the machine has */
    uint64_t vision_cache_bytes;  /* embeddings kept in memory; 0: 256 MiB */
    const char *vision_cache_dir; /* and on disk, shared between processes; NULL: not */
    uint64_t vision_cache_disk_bytes; /* 0: 1 GiB */
    bool no_prefix_cache;
    bool exact_linear; /* quantised weights times f32 activations, not rounded ones: slower */
};

/* Opens a model.  On success *out is the caller's; on failure *out is NULL and *err, if given, says
 * why in a sentence fit for a log line. */
GALLEY_MUST_USE GALLEY_API enum galley_status
galley_engine_open(struct galley_engine **out, const struct galley_engine_config *cfg,
                   struct galley_err *err);
/* Cancels what is live, waits until its conversions have returned, frees.  Not from a callback, and
 * not while another thread is inside galley_submit or galley_cancel.  NULL is fine. */
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

/* Gives a request to the engine and returns at once; everything pointed to is copied.  on_chunk as
 * text is decided, then on_end exactly once for every accepted request.  GALLEY_ELIMIT when too
 * many wait: try again after an on_end. */
GALLEY_MUST_USE GALLEY_API enum galley_status galley_submit(struct galley_engine *e,
                                                            const struct galley_generation *g,
                                                            uint64_t *id, struct galley_err *err);
/* Takes effect within one step; on_end still comes.  Unknown ids are fine. */
GALLEY_API void galley_cancel(struct galley_engine *e, uint64_t id);
GALLEY_API struct galley_info galley_engine_info(const struct galley_engine *e);
GALLEY_API struct galley_totals galley_engine_totals(const struct galley_engine *e);
/* "stop", "length" ... */
GALLEY_API const char *galley_finish_name(enum galley_finish f);

/* What a model will take, from its headers: nothing is loaded.  GALLEY_ELIMIT with the numbers when
 * it does not fit. */
GALLEY_MUST_USE GALLEY_API enum galley_status galley_plan_make(struct galley_plan *out,
                                                               const struct galley_plan_request *r,
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
