/* core.h - the engine's inside, shared by engine.c (life, threads, inbox) and step.c (one pass).
 *
 * Fields are grouped by who may touch them. */
#ifndef GALLEY_ENGINE_CORE_H
#define GALLEY_ENGINE_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/engine/engine.h"
#include "src/engine/seq.h"
#include "src/model/model.h"

/* Arrays for one ragged batch, allocated once. */
struct step_buffers {
    int max_rows, max_want;
    int32_t *token, *pos[3], *seq, *n_keys, *slot, *want;
    const float **embd;
    const int32_t **block_table; /* [max_seqs] */
    float *logits;               /* [max_want][n_vocab] */
    struct logit_top *top;       /* [max_want] */
};

struct engine {
    /* fixed after open: any thread */
    struct hf_config cfg;
    struct card card;
    struct log log;
    int max_seqs, max_inbox;
    struct tokenizer *tok;
    struct device *dev;
    struct weights *weights;
    struct model *model;
    struct vit *vit;
    /* engine thread only */
    struct kv_pool *kv;
    int n_reserved;    /* KV blocks promised to running sequences */
    struct seq **seqs; /* [n_seqs] running, oldest first: what came first ends first */
    int n_seqs;
    struct step_buffers step;
    float *patches; /* pixel values of one admission */
    size_t n_patches_cap;
    /* any thread, under lock */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct request *inbox_head, **inbox_tail;
    struct request **live; /* [n_live] accepted and not yet ended, for cancel */
    int n_inbox, n_live, live_cap;
    request_id next_id;
    bool quit;
    bool started;
    pthread_t thread;
    /* any thread: relaxed counters, only exported */
    _Atomic uint64_t n_passes, n_rows;
};

/* Step buffers for the engine's limits. */
GALLEY_MUST_USE enum galley_status step_init(struct engine *e, int max_rows,
                                             struct galley_err *err);
void step_deinit(struct engine *e);

/* Runs one forward pass over the running sequences.  Sequences that ended are returned through
 * end_seq (which removes them from e->seqs). */
GALLEY_MUST_USE enum galley_status step_run(struct engine *e, struct galley_err *err);

/* Delivers the final event of a running sequence, gives back its KV and frees it. */
void engine_end_seq(struct engine *e, struct seq *s, enum finish finish, enum galley_status status,
                    const char *error);

#endif
