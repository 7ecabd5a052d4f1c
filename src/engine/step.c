/* step.c - one pass: run the planned rows, decide tokens, commit or rewind.
 *
 * A token is a function of its row's logits and, when it is drawn, of seed and output position, so
 * a guess is accepted exactly when plain decoding would have written it there. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/engine/core.h"
#include "src/engine/guard.h"
#include "src/engine/verify.h"

#define PACE_WEIGHT 0.2 /* of the newest measurement */

static bool is_eos(const struct engine *e, int32_t token)
{
    for (int i = 0; i < e->n_eos; i++) {
        if (e->eos[i] == token) {
            return true;
        }
    }
    return false;
}

static const float *row_logits(const struct engine *e, const struct seq *s, int i)
{
    return e->step.logits + (size_t)(s->step_first_want + i) * (size_t)model_n_vocab(e->model);
}

/* Leading rows of the sequence without NaN or infinity (damaged weights, an overflow): by others
 * no guess can be judged, for every comparison with NaN would accept. */
static int n_sound(const struct engine *e, const struct seq *s)
{
    const int n = s->step_n_draft > 0 ? s->step_n_draft : 1;
    int i = 0;
    while (i < n && isfinite(e->step.top[s->step_first_want + i].log_sum)) {
        i++;
    }
    return i;
}

/* How many of the n guesses stand; *own: the target's token behind them when not all do. */
static int judge(struct engine *e, const struct seq *s, int n, int32_t *own)
{
    const struct request *q = s->req;
    const struct logit_top *top = e->step.top + s->step_first_want;
    if (sample_is_greedy(&q->sampling)) {
        const int taken = verify_chain(top, row_logits(e, s, 0), model_n_vocab(e->model),
                                       s->step_draft, n, q->tau);
        *own = top[taken < n ? taken : 0].id;
        return taken;
    }
    for (int i = 0; i < n || i == 0; i++) {
        *own = sample_token(e->sampler, &q->sampling, row_logits(e, s, i), s->seen, s->step_draft,
                            i, (uint64_t)(s->n_out + i));
        if (i == n || *own != s->step_draft[i]) {
            return i;
        }
    }
    return n;
}

/* Draft length for the next step: long while the text goes along, short after a mismatch. */
static void adapt_chunk(struct seq *s, int n_accepted)
{
    s->chunk = n_accepted == s->step_n_draft ? s->chunk * 2 : n_accepted + SEQ_CHUNK_MIN;
    s->chunk = min_int(s->chunk, SEQ_CHUNK_MAX);
}

/* Appends a token that row i of the step decided. */
static void append(struct engine *e, struct seq *s, int i, int i_new, int32_t token)
{
    const struct request *q = s->req;
    const float *logits = row_logits(e, s, i);
    const struct logit_top *top = &e->step.top[s->step_first_want + i];
    const float logprob = verify_logprob(top, logits, token);
    assert(s->n_out < q->max_out);
    s->out[s->n_out++] = token;
    s->sum_logprob += (double)logprob;
    if (s->seen) {
        sample_seen_add(s->seen, token);
    }
    if (q->logprobs) {
        const int n_vocab = model_n_vocab(e->model);
        struct sample_logprob *best = e->step.top_logprob + (size_t)i_new * TOP_LOGPROBS_MAX;
        if (q->n_top_logprobs > 0) {
            sample_top_logprobs(best, min_int(q->n_top_logprobs, n_vocab), logits, n_vocab,
                                top->log_sum);
        }
        e->step.logprob[i_new] = (struct engine_logprob){ token, logprob, best };
    }
}

/* Cuts a loop behind its first round; the mean log-probability stays that of all. */
static void cut_loop(struct engine *e, struct seq *s)
{
    const int n = guard_cut(s->out, s->n_out);
    s->sum_logprob *= (double)n / s->n_out;
    s->n_out = n;
    buf_cut(&s->text.utf8, 0);
    buf_cut(&s->text.raw, 0);
    for (int i = 0; i < n; i++) {
        transcript_add(&s->text, e->cp.tok, s->out[i]);
    }
}

/* True when the token just appended ends the output. */
static bool ends_here(struct engine *e, struct seq *s, enum finish *finish)
{
    const struct request *q = s->req;
    const size_t before = s->text.utf8.n;
    transcript_add(&s->text, e->cp.tok, s->out[s->n_out - 1]);
    const size_t stop = transcript_find_stop(&s->text, before, q->stop, q->n_stop, q->stop_max);
    if (stop < s->text.utf8.n) {
        buf_cut(&s->text.utf8, stop);
        buf_cut(&s->text.raw, 0);
        *finish = FINISH_STOP_STRING;
        return true;
    }
    if (s->n_out == q->max_out) {
        *finish = FINISH_LENGTH;
        return true;
    }
    if (!q->allow_loops && guard_repeats(s->out, s->n_out, s->draft, q->n_draft)) {
        *finish = FINISH_REPETITION;
        return true;
    }
    return false;
}

/* Takes the accepted guesses and the target's own token; true when the text has ended.  n: guesses
 * that can be judged. */
static bool commit(struct engine *e, struct seq *s, int n, enum finish *finish)
{
    int32_t own;
    const int taken = judge(e, s, n, &own);
    const int before = s->n_out, length = seq_length(s);
    /* All guesses taken: the last of them has no row yet and is the next root. */
    const int n_decided = taken < n || n == 0 ? taken + 1 : taken;
    bool ended = false;
    for (int i = 0; i < n_decided && !ended; i++) {
        const int32_t token = i < taken ? s->step_draft[i] : own;
        if (!s->req->ignore_eos && is_eos(e, token)) {
            *finish = FINISH_STOP;
            ended = true;
        } else {
            append(e, s, i, s->n_out - before, token);
            ended = ends_here(e, s, finish);
        }
    }
    const int n_new = s->n_out - before;
    s->n_steps++;
    s->n_drafted += s->step_n_draft;
    s->n_accepted += taken;
    count_add(&e->n_drafted, s->step_n_draft);
    count_add(&e->n_accepted, taken);
    if (n_new > 0 && s->first_token == 0) {
        s->first_token = clock_seconds();
    }
    if (ended && *finish == FINISH_REPETITION) {
        cut_loop(e, s);
    }
    emit_chunk(e, s, min_int(n_new, s->n_out > before ? s->n_out - before : 0), false);
    if (ended) {
        const int rows = s->step_n_draft > 0 ? s->step_n_draft - 1 : 0;
        s->n_kv = min_int(length + min_int(taken, rows), seq_length(s));
        return true;
    }
    if (s->drafter) {
        s->drafter->ops->observe(s->drafter, s->out, s->n_out, taken, n);
        adapt_chunk(s, taken);
    }
    /* The last token has no keys yet; rejected guesses go. */
    s->n_kv = seq_length(s) - 1;
    const bool shrunk = kv_seq_resize(e->kv, &s->kv, s->n_kv);
    assert(shrunk);
    (void)shrunk;
    return false;
}

/* What a pass means for one of its sequences. */
static void settle(struct engine *e, struct seq *s)
{
    s->n_kv += s->step_rows;
    sched_remember(e, s);
    if (s->n_kv >= s->req->prompt.n) {
        encode_release(e, s); /* the images are in the cache now */
    }
    if (s->step_first_want < 0) {
        return;
    }
    const int sound = n_sound(e, s);
    enum finish finish = FINISH_STOP;
    if (sound == 0) {
        sched_end(e, s, FINISH_FAILED, GALLEY_EMODEL, "the model's logits are not finite numbers");
    } else if (commit(e, s, min_int(s->step_n_draft, sound), &finish)) {
        sched_end(e, s, finish, GALLEY_OK, "");
    }
}

/* Charges a pass to its sequences by rows. */
static void share_time(struct seq *s, double seconds_per_row)
{
    const int draft_rows = s->step_complete && s->step_n_draft > 0 ? s->step_n_draft - 1 : 0;
    if (s->step_rows > 1 || s->n_out == 0) {
        s->prefill_seconds += seconds_per_row * s->step_rows;
        s->decode_seconds += seconds_per_row * draft_rows;
    } else {
        s->decode_seconds += seconds_per_row * (s->step_rows + draft_rows);
    }
}

static enum galley_status forward(struct engine *e, struct galley_err *err)
{
    struct step_buffers *b = &e->step;
    const struct model_batch batch = {
        .n_rows = b->n_rows,
        .token = b->token,
        .embd = b->embd,
        .pos = { b->pos[0], b->pos[1], b->pos[2] },
        .seq = b->seq,
        .n_keys = b->n_keys,
        .slot = b->slot,
        .block_table = b->block_table,
        .want = b->want,
        .n_want = b->n_want,
        .logits = b->logits,
    };
    const enum galley_status rc = model_forward(e->model, e->kv, &batch, err);
    if (rc) {
        return rc;
    }
    if (b->n_want) {
        const int n_vocab = model_n_vocab(e->model);
        e->dev->ops->top1(e->dev, b->top, b->logits, (size_t)n_vocab, b->n_want, n_vocab);
    }
    count_add(&e->n_passes, 1);
    count_add(&e->n_rows, b->n_rows);
    return GALLEY_OK;
}

/* The planned rows of e->seqs[from..to) in one pass. */
static enum galley_status run_range(struct engine *e, int from, int to, struct galley_err *err)
{
    const double start = clock_seconds();
    pass_build(e, from, to);
    const enum galley_status rc = forward(e, err);
    if (rc) {
        return rc;
    }
    const double per_row = (clock_seconds() - start) / (e->step.n_rows ? e->step.n_rows : 1);
    for (int i = from; i < to; i++) {
        struct seq *s = e->seqs[i];
        if (s->step_rows > 0) {
            share_time(s, per_row);
            settle(e, s);
        }
    }
    return GALLEY_OK;
}

static void keep_pace(struct engine *e, double seconds, int n_prefill)
{
    struct pace *p = &e->pace;
    if (n_prefill == 0) {
        p->pass_seconds += (p->pass_seconds > 0 ? PACE_WEIGHT : 1) * (seconds - p->pass_seconds);
    } else if (seconds > p->pass_seconds) {
        const double per_row = (seconds - p->pass_seconds) / n_prefill;
        p->row_seconds += (p->row_seconds > 0 ? PACE_WEIGHT : 1) * (per_row - p->row_seconds);
    }
}

static bool takes_part(const struct seq *s)
{
    return s->step_rows > 0 && !s->ended;
}

/* A failed pass says nothing about one sequence: each that took part is tried alone, and fails
 * alone. */
static void run_singly(struct engine *e, const struct galley_err *first)
{
    int n = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        n += takes_part(e->seqs[i]);
    }
    log_line(&e->log, LOG_WARN, "engine.step", "%d sequences: %s", n, first->msg);
    for (int i = 0; i < e->n_seqs; i++) {
        struct seq *s = e->seqs[i];
        struct galley_err err = *first;
        if (takes_part(s) && (n == 1 || run_range(e, i, i + 1, &err) != GALLEY_OK)) {
            sched_end(e, s, FINISH_FAILED, err.status, err.msg);
        }
    }
}

void step_run(struct engine *e)
{
    const double start = clock_seconds();
    if (!pass_plan(e)) {
        return;
    }
    int n_prefill = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        n_prefill += e->seqs[i]->step_rows > 1 ? e->seqs[i]->step_rows : 0;
    }
    struct galley_err err = { 0 };
    if (run_range(e, 0, e->n_seqs, &err) != GALLEY_OK) {
        run_singly(e, &err);
    }
    keep_pace(e, clock_seconds() - start, n_prefill);
    sched_sweep(e);
}
