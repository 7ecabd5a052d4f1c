/* core.h - the engine's inside, shared by its files.
 *
 * engine.c: life and the thread's loop; open.c: the model; inbox.c: what waits; sched.c: who runs,
 * with which KV blocks; encode.c: images; pass.c: rows of one pass; step.c: the pass and what it
 * decides; emit.c: events.  Fields are grouped by who may touch them. */
#ifndef GALLEY_ENGINE_CORE_H
#define GALLEY_ENGINE_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/engine/seq.h"
#include "src/model/model.h"

/* Arrays for one ragged batch, allocated once. */
struct step_buffers {
    int max_rows, max_want;
    int n_rows, n_want; /* of the batch under construction */
    int32_t *token, *pos[3], *seq, *n_keys, *slot, *want;
    const float **embd;
    const int32_t **block_table;        /* [seqs_cap] */
    float *logits;                      /* [max_want][n_vocab] */
    struct logit_top *top;              /* [max_want] */
    struct engine_logprob *logprob;     /* [SEQ_CHUNK_MAX + 1] of one sequence's chunk */
    struct sample_logprob *top_logprob; /* [SEQ_CHUNK_MAX + 1][TOP_LOGPROBS_MAX] */
};

#define EOS_MAX 24

/* Sequences without a place; beyond that nobody is stopped for a better one. */
#define PAUSED_MAX 256

/* Images that are encoded together: each is made patches, then all go through the tower block by
 * block. */
#define ENCODE_IMAGES_MAX 32
struct encode_job {
    struct encoding *part[ENCODE_IMAGES_MAX];
    int n_parts;              /* 0: there is no job */
    int n_ready;              /* parts whose patches are there */
    struct vision_prep *prep; /* of part n_ready; NULL: not begun */
    struct vit_job *job;      /* NULL: not all are ready */
    float *patches;
    size_t at;  /* where part n_ready's begin */
    float *out; /* of one image: its own memory; of several: to be shared out */
    bool out_is_shared;
};

/* Measured, to bound what others must wait for. */
struct pace {
    double pass_seconds;  /* of a pass without prefill */
    double row_seconds;   /* of a prefill row */
    double encode_credit; /* seconds vision may take before the next pass */
};

struct engine {
    /* fixed after open: any thread */
    struct checkpoint cp;
    struct log log;
    int max_seqs, max_inbox;
    int seqs_cap; /* max_seqs that run and those that stopped for others */
    struct request_limits limits;
    int32_t eos[EOS_MAX]; /* the configuration's, then what the tokenizer's files add */
    int n_eos;
    int64_t max_pixels;
    struct device *dev;
    struct model *model;
    struct vit *vit;             /* NULL: a text model */
    struct prefix_cache *prefix; /* NULL: off; prefix_keys from any thread */
    struct vcache *vcache;       /* NULL: a text model */
    uint8_t vision_hash[HASH_BYTES];
    /* engine thread only */
    struct kv_pool *kv;
    struct sampler *sampler;
    struct seq **seqs; /* [n_seqs] running and paused, best first (request_before); at most
                          max_seqs are not paused */
    int n_seqs;
    int32_t *found; /* [limits.n_blocks] room for a look into the prefix cache */
    double now;     /* of this turn */
    double published;
    struct encode_job encode;
    struct pace pace;
    struct step_buffers step;
    /* any thread, under lock */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct request *inbox_head, **inbox_tail;
    struct request **live; /* [n_live] accepted and not yet ended, for cancel */
    int n_live, live_cap;
    int n_promised; /* places in the inbox given to requests being built */
    request_id next_id;
    bool look;            /* something in the inbox may have to end: cancelled, or unfit */
    double next_deadline; /* of what is in the inbox, or earlier */
    bool quit;
    bool started;
    pthread_t thread;
    /* any thread: relaxed counters, only exported */
    _Atomic int n_inbox, n_running, n_paused, n_kv_free;
    _Atomic uint64_t n_passes, n_rows, n_prompt, n_cached, n_output, n_drafted, n_accepted,
        n_preempted, n_images, n_images_cached;
};

static inline void count_add(_Atomic uint64_t *c, int64_t n)
{
    atomic_fetch_add_explicit(c, (uint64_t)n, memory_order_relaxed);
}

static inline int blocks_for(int n_tokens)
{
    return (n_tokens + KV_BLOCK - 1) / KV_BLOCK;
}

/* open.c */
GALLEY_MUST_USE enum galley_status
engine_open_model(struct engine *e, const struct engine_config *cfg, struct galley_err *err);
void engine_close_model(struct engine *e);

/* inbox.c.  What follows is the engine thread's. */
struct request *inbox_best(struct engine *e); /* lends; NULL: empty */
void inbox_remove(struct engine *e, struct request *q);
/* Ends requests that were cancelled, are late or cannot be served. */
void inbox_reap(struct engine *e);
void inbox_drain(struct engine *e); /* all of them: the engine closes */
/* Sleeps until there may be something to do, at most to `until` (clock_seconds).  True: quit. */
bool inbox_wait(struct engine *e, double until, bool sleep);
void live_forget(struct engine *e, const struct request *q);

/* emit.c */
/* The step's n_new tokens (out[n_out - n_new ..]) and what text may be shown. */
void emit_chunk(struct engine *e, struct seq *s, int n_new, bool final);
/* The final event of a request that never ran. */
void emit_refusal(struct request *q, enum finish finish, enum galley_status status,
                  const char *error);
/* The final event of a sequence. */
void emit_end(struct engine *e, struct seq *s, enum finish finish, enum galley_status status,
              const char *error);

/* sched.c */
void sched_reap(struct engine *e, bool all);
void sched_admit(struct engine *e);
/* KV for n_tokens; evicts, and with `preempt` pauses whoever comes after s. */
bool sched_grow(struct engine *e, struct seq *s, int n_tokens, bool preempt);
void sched_pause(struct engine *e, struct seq *s);
/* Moves a prefill ahead when another sequence has computed its next blocks meanwhile. */
void sched_share(struct engine *e, struct seq *s);
/* Blocks that are written now and can serve others. */
void sched_remember(struct engine *e, struct seq *s);
/* Delivers the final event of a sequence and gives back what it holds; sched_sweep removes it. */
void sched_end(struct engine *e, struct seq *s, enum finish finish, enum galley_status status,
               const char *error);
void sched_sweep(struct engine *e);
bool sched_can_step(const struct engine *e); /* there is a row to compute */
double sched_next_deadline(const struct engine *e);

/* encode.c */
/* Finds or orders the embeddings s needs from row n_kv on. */
GALLEY_MUST_USE enum galley_status encode_order(struct engine *e, struct seq *s,
                                                struct galley_err *err);
void encode_release(struct engine *e, struct seq *s); /* all it holds or awaits */
bool encode_waits(const struct engine *e);            /* there is an image to encode */
void encode_step(struct engine *e);                   /* one piece of work */

/* pass.c */
struct plan;
GALLEY_MUST_USE enum galley_status pass_init(struct engine *e, const struct plan *p,
                                             struct galley_err *err);
void pass_deinit(struct engine *e);
/* Chooses every sequence's rows for the next pass; false: there are none. */
bool pass_plan(struct engine *e);
/* Fills the buffers with the planned rows of e->seqs[from..to). */
void pass_build(struct engine *e, int from, int to);

/* step.c: one forward pass over what runs. */
void step_run(struct engine *e);

#endif
