/* engine.h - many requests through one model, in ragged batches.
 *
 * One engine thread owns the device, the KV pool and every sequence.  Other threads submit requests
 * into a bounded inbox and get events on the engine thread: tokens as they are decided, then one
 * final event per accepted request, whatever happens.  One step is one ragged batch: one row per
 * running sequence first, then drafts, then prefill chunks, up to a budget of rows; vision encoding
 * advances block by block between steps.  What a request answers depends on the request alone, bit
 * for bit: not on its company, not on chunking, preemption, caches or drafts. */
#ifndef GALLEY_ENGINE_ENGINE_H
#define GALLEY_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device.h"
#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/base/image.h"
#include "src/base/log.h"
#include "src/format/card.h"
#include "src/format/chat.h"
#include "src/format/hf_config.h"
#include "src/model/sample.h"
#include "vision/vcache.h"

struct engine;
typedef uint64_t request_id; /* 0 is never a live request */

struct engine_config {
    const char *model_path;       /* as checkpoint_open */
    const char *mmproj_path;      /* NULL: found beside the model */
    const char *isa;              /* device_open_cpu's; NULL: best */
    int n_threads;                /* 0: one per CPU */
    int max_seqs;                 /* sequences running together; 0: 16 */
    int max_rows;                 /* rows of one forward pass; 0: 512 */
    int max_inbox;                /* waiting requests; 0: 256 */
    int context;                  /* most tokens of one sequence; 0: the model's own limit */
    enum kv_type kv_type;         /* KV_F32 is the default of zero: see kv_auto */
    bool kv_auto;                 /* f16 for quantised checkpoints, else f32 */
    bool exact_linear;            /* quantised weights times f32 rows (device.h, set_exact) */
    uint64_t kv_bytes;            /* 0: planned */
    uint64_t memory_bytes;        /* refuse to open above this; 0: what the machine has */
    uint64_t vision_cache_bytes;  /* in memory; 0: 256 MiB */
    const char *vision_cache_dir; /* NULL: no disk cache */
    uint64_t vision_cache_disk_bytes;
    bool no_prefix_cache;
    struct log log;
};

enum finish {
    FINISH_STOP,        /* the model ended its text */
    FINISH_STOP_STRING, /* one of the request's stop strings appeared; it is not part of the text */
    FINISH_LENGTH,      /* max_new_tokens, or the context is full */
    FINISH_REPETITION,  /* guard.h saw a loop; text is cut after its first round */
    FINISH_DEADLINE,    /* the request's time was up; the text is what there is */
    FINISH_CANCELLED,
    FINISH_FAILED /* result.status and .error say why */
};

/* One decided token, when logprobs are asked for. */
struct engine_logprob {
    int32_t id;
    float logprob;
    const struct sample_logprob *top; /* [n_top] of the request, lent for the call */
};

/* A stretch of text as it is decided: whole UTF-8 characters only, lent for the call.  Stop strings
 * never appear, not even in part: text that could begin one waits. */
struct engine_chunk {
    request_id id;
    const char *text;
    size_t n_text;
    const int32_t *tokens; /* decided since the last chunk; their text may come later */
    int n_tokens;
    const struct engine_logprob *logprobs; /* [n_tokens], NULL when not asked for */
};

struct engine_result {
    request_id id;
    enum finish finish;
    enum galley_status status;
    const char *error; /* "" unless failed */
    const char *text;  /* all of it; UTF-8, malformed bytes replaced; lent for the call */
    size_t n_text;
    int n_prompt, n_visual, n_output;
    int n_cached;               /* prompt tokens whose keys and values were there already */
    int n_images_cached;        /* images whose embeddings were */
    int n_preempted;            /* times it lost its blocks and was computed again */
    int n_steps;                /* forward passes that gave it tokens */
    int n_drafted, n_accepted;  /* tokens proposed, tokens taken */
    double mean_logprob;        /* over output tokens; 0 when there are none */
    double queue_seconds;       /* submit to admission */
    double first_token_seconds; /* submit to the first decided token; 0: none came */
    double total_seconds;       /* submit to this event */
    double encode_seconds, prefill_seconds, decode_seconds; /* its share of each pass, by rows */
};

/* On the engine thread: must not block, must not call the engine except engine_submit and
 * engine_cancel. */
typedef void engine_chunk_fn(void *user, const struct engine_chunk *c);
typedef void engine_end_fn(void *user, const struct engine_result *r);

/* A piece of a message: an image when `image` is not NULL, else token ids when `tokens` is not,
 * else a text. */
struct engine_part {
    const char *text;
    const int32_t *tokens; /* [n_tokens] as they are: for those who tokenise themselves */
    int n_tokens;
    struct image *image;            /* a reference is taken */
    int64_t min_pixels, max_pixels; /* 0: the model's */
    int width, height; /* resize to exactly this many pixels, multiples of patch * merge; 0:
                          smart_resize decides */
};

struct engine_message {
    enum chat_role role;
    const struct engine_part *parts;
    int n_parts;
};

/* Everything pointed to is copied or referenced; zero is a default everywhere. */
struct engine_request {
    const struct engine_message *messages;
    int n_messages;
    bool raw;      /* one message: its parts are the prompt itself, no chat frame; special tokens in
                      its text are parsed; the model's beginning-of-text token goes first unless the
                      first part is token ids */
    bool thinking; /* for templates that have the switch */
    const char *draft; /* NULL: plain decoding */
    double tau;        /* 0 or 1: lossless; below 1 only with temperature 0 */
    struct sample_params sampling;
    const char *const *stop; /* [n_stop] strings that end the text */
    int n_stop;
    bool ignore_eos;           /* benchmarks: goes on to max_new_tokens, loops or not */
    bool allow_loops;          /* a text that repeats itself is no reason to end it (guard.h) */
    bool logprobs;             /* engine_chunk.logprobs */
    int n_top_logprobs;        /* 0..20 */
    int max_new_tokens;        /* 0: the model's default */
    int priority;              /* -100..100, higher first, also before what runs with a lower one;
                                  every second raises it by 1, at most to 100, so that nothing
                                  waits for ever (docs/engine.md) */
    double deadline_seconds;   /* from submission; 0: none */
    engine_chunk_fn *on_chunk; /* NULL: only the end */
    engine_end_fn *on_end;
    void *user;
};

/* Opens the model and starts the engine thread.  What does not fit is refused before anything is
 * allocated, with the numbers (planner.h). */
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
int engine_context(const struct engine *e); /* most tokens of one sequence */
enum kv_type engine_kv_type(const struct engine *e);

/* Totals since opening, any thread. */
struct engine_totals {
    uint64_t n_passes; /* forward passes of the language model */
    uint64_t n_rows;
    uint64_t n_prompt_tokens, n_cached_tokens, n_output_tokens;
    uint64_t n_drafted, n_accepted;
    uint64_t n_preemptions;
    uint64_t n_images, n_images_cached;
    int n_running, n_waiting;
    int n_kv_blocks, n_kv_free; /* blocks only the prefix cache holds count as free */
    struct vcache_stats vision; /* zero for a text model */
};
struct engine_totals engine_totals(const struct engine *e);

#endif
