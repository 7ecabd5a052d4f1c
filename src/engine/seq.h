/* seq.h - a request that has a place among the running ones.  Engine thread only.
 *
 * Token i of prompt + output has logical index i (its KV slot); its M-RoPE position is
 * prompt.pos[.][i], and pos_next + k for output token k.  Rows n_kv .. length - 1 are still to be
 * computed; when that is one row it decodes, when it is more it prefills, be it a new prompt or,
 * after a preemption, prompt and output together. */
#ifndef GALLEY_ENGINE_SEQ_H
#define GALLEY_ENGINE_SEQ_H

#include "spec/drafter.h"
#include "src/engine/request.h"
#include "src/engine/transcript.h"
#include "src/model/kv.h"
#include "vision/vcache.h"

/* Draft tokens one sequence may put into one step. */
#define SEQ_CHUNK_MAX 128
#define SEQ_CHUNK_MIN 4 /* more than was taken last time, after a mismatch */

struct encoding;

struct seq_image {
    struct vembed *embed;     /* a reference; NULL: not (or no longer) here */
    struct encoding *awaited; /* it is being encoded */
};

struct seq {
    struct request *req; /* owned */
    struct kv_seq kv;
    int n_kv;                /* leading tokens whose keys and values are written */
    int n_known;             /* leading blocks of the prompt the prefix cache knows */
    bool paused;             /* waits for KV blocks: holds none */
    bool ended;              /* its final event is delivered */
    struct seq_image *image; /* [prompt.n_images] */
    int32_t *out;            /* [max_out] output tokens; the last one has no KV yet */
    int n_out;
    struct sample_seen *seen; /* NULL without a repetition penalty */
    struct drafter *drafter;
    int32_t *draft; /* [n_draft + 1] the given draft and its end, for drafter and guard */
    int chunk;      /* draft tokens to risk in the next step */
    struct transcript text;
    double sum_logprob;
    int n_cached, n_images_cached, n_preempted, n_steps, n_drafted, n_accepted;
    double seated, first_token; /* clock_seconds; 0: not yet */
    double encode_seconds, prefill_seconds, decode_seconds;
    /* This step's rows: set by pass_plan, read by pass_build and step.c. */
    int step_rows;       /* rows n_kv .. n_kv + step_rows - 1 of prompt and output */
    bool step_complete;  /* these reach the end: the last one's logits are wanted */
    int step_n_draft;    /* guesses; they need one row less */
    int step_first_want; /* index among wanted rows; -1: none */
    int32_t *step_draft; /* [SEQ_CHUNK_MAX] */
};

/* Makes a paused sequence.  Takes the request only on success. */
GALLEY_MUST_USE enum galley_status seq_new(struct seq **out, struct request *req, int n_vocab,
                                           int32_t eos, struct galley_err *err);
/* KV and images must have been given back. */
void seq_free(struct seq *s);

static inline int seq_length(const struct seq *s)
{
    return s->req->prompt.n + s->n_out;
}

static inline int32_t seq_token(const struct seq *s, int i)
{
    const struct prompt *p = &s->req->prompt;
    return i < p->n ? p->token[i] : s->out[i - p->n];
}

/* All embeddings it needs from row n_kv on are there. */
bool seq_sees(const struct seq *s);

#endif
