/* sched.c - who runs, and with which KV blocks.
 *
 * One total order rules (request_before): the best waiting request gets the next place and nobody
 * overtakes it; when blocks are short, cached prefixes go first, then the last in the order loses
 * its blocks and computes them again later.  So the first in the order always gets on, and no
 * request takes more than the pool has (request.c refused it).  Who waits with a better priority
 * does not wait for an end: it stops the last of those it displaces (request_displaces).
 *
 * A sequence takes the blocks of its whole prompt when it is seated, and one more at a time as it
 * writes. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/engine/core.h"

/* ---- ending ---- */

/* What it wrote may begin the next turn's prompt: worth its place while there is plenty. */
static void remember_output(struct engine *e, struct seq *s)
{
    const struct prompt *p = &s->req->prompt;
    const int n_valid = s->n_kv < seq_length(s) ? s->n_kv : seq_length(s);
    const int n = n_valid / KV_BLOCK;
    if (!e->prefix || n <= p->n_keys || kv_pool_n_free(e->kv) < e->limits.n_blocks / 2) {
        return;
    }
    struct prefix_key *keys = prompt_keys(p, s->out, s->n_out, e->prefix);
    for (int i = p->n_keys; keys && i < n; i++) {
        prefix_add(e->prefix, keys, i, s->kv.blocks[i]);
    }
    mem_free(keys);
}

static void give_back(struct engine *e, struct seq *s)
{
    encode_release(e, s);
    kv_seq_clear(e->kv, &s->kv);
}

void sched_end(struct engine *e, struct seq *s, enum finish finish, enum galley_status status,
               const char *error)
{
    assert(!s->ended);
    s->ended = true;
    if (status == GALLEY_OK) {
        remember_output(e, s);
    }
    give_back(e, s);
    live_forget(e, s->req);
    count_add(&e->n_output, s->n_out);
    emit_end(e, s, finish, status, error);
}

void sched_sweep(struct engine *e)
{
    int n = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        struct seq *s = e->seqs[i];
        if (s->ended) {
            seq_free(s);
        } else {
            e->seqs[n++] = s;
        }
    }
    e->n_seqs = n;
}

void sched_reap(struct engine *e, bool all)
{
    for (int i = 0; i < e->n_seqs; i++) {
        struct seq *s = e->seqs[i];
        if (all || atomic_load_explicit(&s->req->cancelled, memory_order_relaxed)) {
            sched_end(e, s, FINISH_CANCELLED, GALLEY_ECANCELLED,
                      all ? "engine closed" : "cancelled");
        } else if (s->req->deadline <= e->now) {
            sched_end(e, s, FINISH_DEADLINE, GALLEY_ETIMEOUT, "its time was up");
        }
    }
    sched_sweep(e);
}

double sched_next_deadline(const struct engine *e)
{
    double next = INFINITY;
    for (int i = 0; i < e->n_seqs; i++) {
        next = e->seqs[i]->req->deadline < next ? e->seqs[i]->req->deadline : next;
    }
    return next;
}

bool sched_can_step(const struct engine *e)
{
    for (int i = 0; i < e->n_seqs; i++) {
        if (!e->seqs[i]->paused && seq_sees(e->seqs[i])) {
            return true;
        }
    }
    return false;
}

/* ---- the prefix cache ---- */

/* Blocks of the prompt that may come from the cache: the last token's logits are needed, so it is
 * computed in any case. */
static int n_shareable(const struct seq *s)
{
    const int n = (seq_length(s) - 1) / KV_BLOCK;
    return n < s->req->prompt.n_keys ? n : s->req->prompt.n_keys;
}

/* Replaces the list by what the cache knows when that is further than n_kv; the tokens gained.
 * Without memory for the list it ends up empty. */
static int take_shared(struct engine *e, struct seq *s)
{
    const int n_keys = e->prefix ? n_shareable(s) : 0, before = s->n_kv;
    if (n_keys <= before / KV_BLOCK) {
        return 0;
    }
    const int n = prefix_find(e->prefix, s->req->prompt.key, n_keys, e->found);
    if (n <= before / KV_BLOCK) {
        return 0;
    }
    kv_seq_clear(e->kv, &s->kv);
    s->n_known = kv_seq_share(e->kv, &s->kv, e->found, n * KV_BLOCK) ? n : 0;
    s->n_kv = s->n_known * KV_BLOCK;
    return s->n_kv - before;
}

/* What it computed itself before a preemption is not news. */
static void count_cached(struct engine *e, struct seq *s, int gained)
{
    if (gained > 0 && s->n_preempted == 0) {
        s->n_cached += gained;
        count_add(&e->n_cached, gained);
    }
}

void sched_share(struct engine *e, struct seq *s)
{
    const int gained = take_shared(e, s);
    /* The list was cut to what is shared; it gave back at least what it takes now. */
    if (gained < 0 || (s->kv.n_tokens < seq_length(s) && !sched_grow(e, s, seq_length(s), false))) {
        sched_pause(e, s);
        return;
    }
    count_cached(e, s, gained);
}

void sched_remember(struct engine *e, struct seq *s)
{
    const struct prompt *p = &s->req->prompt;
    const int n = s->n_kv / KV_BLOCK < p->n_keys ? s->n_kv / KV_BLOCK : p->n_keys;
    for (; e->prefix && s->n_known < n; s->n_known++) {
        prefix_add(e->prefix, p->key, s->n_known, s->kv.blocks[s->n_known]);
    }
}

/* ---- blocks ---- */

void sched_pause(struct engine *e, struct seq *s)
{
    assert(!s->paused && !s->ended);
    kv_seq_clear(e->kv, &s->kv);
    s->n_kv = 0;
    s->n_known = 0;
    s->paused = true;
    s->step_rows = 0;
    s->step_n_draft = 0;
    s->step_complete = false;
    s->n_preempted++;
    count_add(&e->n_preempted, 1);
}

/* The last in the order behind s that holds blocks. */
static struct seq *victim_of(const struct engine *e, const struct seq *s)
{
    for (int i = e->n_seqs - 1; i >= 0 && e->seqs[i] != s; i--) {
        if (!e->seqs[i]->ended && e->seqs[i]->kv.n_blocks > 0) {
            return e->seqs[i];
        }
    }
    return NULL;
}

static void preempt(struct engine *e, struct seq *victim, const struct seq *s)
{
    log_line(&e->log, LOG_DEBUG, "sched.preempt", "request=%llu tokens=%d for=%llu",
             (unsigned long long)victim->req->id, victim->kv.n_tokens,
             (unsigned long long)s->req->id);
    sched_pause(e, victim);
}

bool sched_grow(struct engine *e, struct seq *s, int n_tokens, bool may_preempt)
{
    while (!kv_seq_resize(e->kv, &s->kv, n_tokens)) {
        const int missing = blocks_for(n_tokens) - s->kv.n_blocks - kv_pool_n_free(e->kv);
        if (missing <= 0) {
            return false; /* no memory for the list */
        }
        if (e->prefix && prefix_evict(e->prefix, missing) > 0) {
            continue;
        }
        struct seq *victim = may_preempt ? victim_of(e, s) : NULL;
        if (!victim) {
            return false;
        }
        preempt(e, victim, s);
    }
    return true;
}

static int n_seated(const struct engine *e)
{
    int n = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        n += !e->seqs[i]->paused;
    }
    return n;
}

/* Blocks that come free or can be evicted when s stops: nobody else holds them. */
static int n_own_blocks(const struct engine *e, const struct seq *s)
{
    int n = 0;
    for (int i = 0; i < s->kv.n_blocks; i++) {
        const int32_t b = s->kv.blocks[i];
        n += kv_block_refs(e->kv, b) == 1 + (e->prefix && prefix_holds(e->prefix, b));
    }
    return n;
}

static bool can_displace(const struct engine *e, const struct request *q, const struct seq *s)
{
    return !s->paused && !s->ended && request_displaces(q, s->req, e->now);
}

/* A place is free, or somebody sits in it whom q displaces. */
static bool has_place(const struct engine *e, const struct request *q)
{
    bool found = n_seated(e) < e->max_seqs;
    for (int i = 0; i < e->n_seqs && !found; i++) {
        found = can_displace(e, q, e->seqs[i]);
    }
    return found;
}

/* A place and n_blocks for s, beside a block more for each of the others, so that the next one that
 * grows does not throw somebody out at once.  Stops those that s displaces, the last in the order
 * first, when that helps; false, with nobody stopped, when it does not. */
static bool make_room(struct engine *e, struct seq *s, int n_blocks)
{
    int others = n_seated(e);
    int n_free = kv_pool_n_free(e->kv), at = e->n_seqs;
    if (others > 0 && e->prefix && n_free < n_blocks + others) {
        n_free += prefix_n_evictable(e->prefix);
    }
    while (others == e->max_seqs || (others > 0 && n_free < n_blocks + others)) {
        do {
            if (--at < 0) {
                return false;
            }
        } while (!can_displace(e, s->req, e->seqs[at]));
        n_free += n_own_blocks(e, e->seqs[at]);
        others--;
    }
    for (int i = e->n_seqs - 1; i >= at; i--) {
        if (can_displace(e, s->req, e->seqs[i])) {
            preempt(e, e->seqs[i], s);
        }
    }
    return true;
}

/* Gives a paused sequence a place and its blocks; false: they are not to be had yet. */
static bool seat(struct engine *e, struct seq *s)
{
    if (!has_place(e, s->req)) {
        return false;
    }
    const int length = seq_length(s);
    const int gained = take_shared(e, s);
    const int need = blocks_for(length + 1) - s->kv.n_blocks;
    if (!make_room(e, s, need) || !sched_grow(e, s, length, false)) {
        kv_seq_clear(e->kv, &s->kv);
        s->n_kv = 0;
        s->n_known = 0;
        return false;
    }
    count_cached(e, s, gained);
    s->paused = false;
    if (s->seated == 0) {
        s->seated = e->now;
        count_add(&e->n_prompt, s->req->prompt.n);
        count_add(&e->n_images, s->req->prompt.n_images);
    }
    struct galley_err err = { 0 };
    const enum galley_status rc = encode_order(e, s, &err);
    if (rc) {
        sched_end(e, s, FINISH_FAILED, rc, err.msg);
    }
    return true;
}

/* ---- places ---- */

static void sort_seqs(struct engine *e)
{
    for (int i = 1; i < e->n_seqs; i++) {
        struct seq *s = e->seqs[i];
        int k = i;
        for (; k > 0 && request_before(s->req, e->seqs[k - 1]->req, e->now); k--) {
            e->seqs[k] = e->seqs[k - 1];
        }
        e->seqs[k] = s;
    }
}

static struct seq *best_paused(const struct engine *e)
{
    for (int i = 0; i < e->n_seqs; i++) {
        if (e->seqs[i]->paused && !e->seqs[i]->ended) {
            return e->seqs[i];
        }
    }
    return NULL;
}

/* Takes in the best waiting request when there is a place for it and nobody who stopped goes
 * before it. */
static bool take_in(struct engine *e)
{
    struct request *q = e->n_seqs < e->seqs_cap ? inbox_best(e) : NULL;
    const struct seq *p = best_paused(e);
    if (!q || (p && !request_before(q, p->req, e->now)) || !has_place(e, q)) {
        return false;
    }
    inbox_remove(e, q);
    struct galley_err err = { 0 };
    struct seq *s;
    const enum galley_status rc =
        q->rc ? q->rc
              : seq_new(&s, q, model_n_vocab(e->model), e->n_eos > 0 ? e->eos[0] : -1, &err);
    if (rc) {
        live_forget(e, q);
        emit_refusal(q, FINISH_FAILED, rc, q->rc ? q->err.msg : err.msg);
        request_free(q);
        return true;
    }
    e->seqs[e->n_seqs++] = s;
    sort_seqs(e);
    return true;
}

void sched_admit(struct engine *e)
{
    sort_seqs(e);
    for (;;) {
        const bool changed = take_in(e);
        struct seq *s = best_paused(e);
        if (!s) {
            if (!changed) {
                return;
            }
        } else if (seat(e, s)) {
            sched_sweep(e); /* it may have failed at once */
        } else if (n_seated(e) > 0) {
            return; /* nobody overtakes it */
        } else {    /* alone it fits: there was no memory even for the list */
            sched_end(e, s, FINISH_FAILED, GALLEY_ENOMEM, "no memory for a list of KV blocks");
            sched_sweep(e);
        }
    }
}
