/* seq.h - one request on its way through the engine.  Engine thread only, except `cancelled`. */
#ifndef GALLEY_ENGINE_SEQ_H
#define GALLEY_ENGINE_SEQ_H

#include <stdatomic.h>

#include "spec/drafter.h"
#include "src/engine/engine.h"
#include "src/format/tokenizer.h"
#include "src/model/kv.h"
#include "vision/vision.h"

/* A request as it waits: everything copied or referenced. */
struct request {
    request_id id;
    struct request *next; /* inbox order */
    struct image **images;
    int n_images;
    struct vision_limits limits;
    int width, height; /* 0: smart_resize */
    char *system, *text, *draft;
    double tau;
    int max_new_tokens;
    engine_end_fn *on_end;
    void *user;
    _Atomic bool cancelled; /* set by any thread, relaxed: read once per step */
};

struct request *request_new(const struct engine_request *r, struct galley_err *err);
void request_free(struct request *r); /* NULL is fine */

/* A running sequence.  Token i of prompt + output has logical index i (its KV slot); its M-RoPE
 * position is pos[.][i] inside the prompt and pos_next + k for output token k. */
struct seq {
    struct request *req; /* owned */
    int32_t *prompt;     /* [n_prompt] */
    int n_prompt;
    int32_t *pos[3]; /* [n_prompt] each, one block of memory at pos[0] */
    int32_t pos_next;
    float *embd; /* [n_visual][hidden], owned */
    int n_visual;
    int32_t *visual_row; /* [n_prompt] row of embd, -1 for tokens */
    struct kv_seq kv;
    int n_reserved;  /* KV blocks promised to it */
    int n_prefilled; /* prompt rows whose k and v are in the cache */
    int32_t *out;    /* [max_out] output tokens; the last one has no KV yet */
    int n_out, max_out;
    int32_t *draft; /* [n_draft] the whole given draft, for the guard */
    int n_draft;
    struct drafter *drafter;
    int chunk; /* draft tokens to risk in the next step */
    double sum_logprob;
    int n_steps, n_drafted, n_accepted;
    double encode_seconds, prefill_seconds, decode_seconds;
    /* This step's rows: set by the batch builder, read by the verifier. */
    int step_first_want; /* index among wanted rows; -1: no logits this step */
    int step_n_draft;
    int step_prefill_rows;
    int32_t *step_draft; /* [chunk_max] */
};

/* Draft tokens one sequence may put into one step. */
#define SEQ_CHUNK_MAX 128
#define SEQ_CHUNK_MIN 4 /* more than was taken last time, after a mismatch */

/* What a sequence needs of the engine to be set up. */
struct seq_context {
    const struct hf_config *cfg;
    const struct tokenizer *tok;
    int max_new_default;
};

/* Tokenises, plans the images, lays out positions, makes the drafter.  Takes the request whatever
 * happens (seq_free frees it).  No pixels are touched yet. */
GALLEY_MUST_USE enum galley_status seq_new(struct seq **out, struct request *req,
                                           struct vision_grid *grids, const struct seq_context *ctx,
                                           struct galley_err *err);
/* The KV must have been cleared. */
void seq_free(struct seq *s);

#endif
