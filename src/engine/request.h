/* request.h - a request as it waits: everything copied, referenced, tokenised and hashed. */
#ifndef GALLEY_ENGINE_REQUEST_H
#define GALLEY_ENGINE_REQUEST_H

#include <stdatomic.h>

#include "src/engine/prompt.h"

struct request {
    request_id id;
    struct request *next; /* inbox order */
    struct prompt prompt;
    int32_t *draft; /* [n_draft] the given draft, without an end; NULL: plain decoding */
    int n_draft;
    char **stop; /* [n_stop] */
    int n_stop;
    size_t stop_max; /* bytes of the longest */
    struct sample_params sampling;
    double tau; /* in (0, 1] */
    bool ignore_eos, allow_loops, logprobs;
    int n_top_logprobs;
    int max_out; /* what it may write, resolved */
    int priority;
    double submitted, deadline; /* clock_seconds; deadline: INFINITY for none */
    engine_chunk_fn *on_chunk;
    engine_end_fn *on_end;
    void *user;
    /* Not OK: it was accepted, but what it holds cannot be served. */
    enum galley_status rc;
    struct galley_err err;
    _Atomic bool cancelled; /* set by any thread, relaxed: read once per step */
};

struct request_limits {
    int context;  /* tokens of one sequence */
    int n_blocks; /* of the KV pool */
    int max_new_default;
    int n_vocab;
};

/* Checks, copies and builds the prompt.  GALLEY_EUSAGE and GALLEY_ENOMEM: *out is NULL.  Anything
 * else wrong is kept in (*out)->rc for its final event. */
GALLEY_MUST_USE enum galley_status request_new(struct request **out, const struct engine_request *r,
                                               const struct prompt_context *ctx,
                                               const struct request_limits *limits,
                                               struct galley_err *err);
void request_free(struct request *q); /* NULL is fine */

/* Whether a goes before b: by priority with what waiting has added, then by age.  A total order. */
bool request_before(const struct request *a, const struct request *b, double now);
/* Whether waiting a may take running b's place or blocks: it came with the better priority, and
 * waiting has not put b before it.  So equals never do, no two requests take from each other in
 * turn, and b is safe from those who come when it is as many seconds old as their priority is
 * better. */
bool request_displaces(const struct request *a, const struct request *b, double now);

#define PRIORITY_MAX     100
#define TOP_LOGPROBS_MAX 20

#endif
