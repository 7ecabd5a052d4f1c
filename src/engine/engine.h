/* engine.h - many requests through one model, in ragged batches.
 *
 * One engine thread owns the device, the KV pool and every sequence.  Other threads submit
 * requests into a bounded inbox and get one final event per request, on the engine thread.  Greedy
 * decoding; a given draft is verified many tokens per forward pass. */
#ifndef GALLEY_ENGINE_ENGINE_H
#define GALLEY_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/base/image.h"
#include "src/base/log.h"
#include "src/format/card.h"
#include "src/format/hf_config.h"

struct engine;
typedef uint64_t request_id; /* 0 is never a live request */

struct engine_config {
    const char *model_path;
    const char *isa;   /* device_open_cpu's; NULL: best */
    int n_threads;     /* 0: one per CPU */
    int max_seqs;      /* sequences running together; 0: 16 */
    int max_rows;      /* rows of one forward pass; 0: 512 */
    int max_inbox;     /* waiting requests; 0: 256 */
    uint64_t kv_bytes; /* 0: what max_seqs sequences of 1,024 tokens need */
    struct log log;
};

enum finish {
    FINISH_STOP,       /* the model ended its text */
    FINISH_LENGTH,     /* max_new_tokens */
    FINISH_REPETITION, /* guard.h saw a loop; text is cut after its first round */
    FINISH_CANCELLED,
    FINISH_FAILED /* result.status and .error say why */
};

struct engine_result {
    request_id id;
    enum finish finish;
    enum galley_status status;
    const char *error; /* "" unless failed */
    const char *text;  /* UTF-8, malformed bytes replaced; lent for the call */
    size_t n_text;
    int n_prompt, n_visual, n_output;
    int n_steps;               /* forward passes that gave it tokens */
    int n_drafted, n_accepted; /* tokens proposed, tokens taken */
    double mean_logprob;       /* over output tokens; 0 when there are none */
    double encode_seconds, prefill_seconds, decode_seconds; /* its share of each pass, by rows */
};

/* Called once per request, on the engine thread: must not block, must not call the engine except
 * engine_submit and engine_cancel. */
typedef void engine_end_fn(void *user, const struct engine_result *r);

struct engine_request {
    struct image *const *images; /* references are taken */
    int n_images;
    int64_t min_pixels, max_pixels; /* 0: the model's */
    int width, height; /* resize every image to exactly this many pixels, multiples of patch *
                          merge; 0: smart_resize decides */
    const char *system, *text; /* copied; system NULL or "": none */
    const char *draft;         /* copied; NULL: plain decoding */
    double tau;                /* 0 or 1: exact */
    int max_new_tokens;        /* 0: the model's default */
    engine_end_fn *on_end;
    void *user;
};

/* Opens the model directory and starts the engine thread. */
GALLEY_MUST_USE enum galley_status engine_open(struct engine **out, const struct engine_config *cfg,
                                               struct galley_err *err);
/* Cancels what is live, delivers every final event, joins, frees.  NULL is fine. */
void engine_close(struct engine *e);

/* GALLEY_ELIMIT when the inbox is full (try again after an event); GALLEY_EUSAGE on a request
 * that cannot be. Every accepted request gets exactly one final event. */
GALLEY_MUST_USE enum galley_status engine_submit(struct engine *e, const struct engine_request *r,
                                                 request_id *id, struct galley_err *err);
void engine_cancel(struct engine *e, request_id id); /* unknown ids are fine */

const struct hf_config *engine_hf_config(const struct engine *e);
const struct card *engine_card(const struct engine *e);
const char *engine_device_name(const struct engine *e);

/* Totals since opening, any thread. */
struct engine_totals {
    uint64_t n_passes; /* forward passes of the language model */
    uint64_t n_rows;
};
struct engine_totals engine_totals(const struct engine *e);

#endif
