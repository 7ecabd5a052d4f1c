/* pass.c - which rows the next pass computes.
 *
 * First one row for every sequence that decodes, then drafts, then prompts, each in the order of
 * the sequences.  Decoding never waits for a prompt: while somebody decodes, prompts get as many
 * rows as keep the pass short.  A prompt always gets on: some rows are kept from the drafts. */
#include <assert.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/core.h"
#include "src/engine/planner.h"

/* A pass with prompt rows beside decoding ones: about as long as this many passes without, or
 * this many seconds. */
#define PREFILL_PASSES  2.0
#define PREFILL_SECONDS 0.05
#define PREFILL_SHARE   8 /* at least one row in so many of the budget */

enum galley_status pass_init(struct engine *e, const struct plan *p, struct galley_err *err)
{
    struct step_buffers *b = &e->step;
    const size_t n_vocab = (size_t)model_n_vocab(e->model);
    b->max_rows = p->max_rows;
    b->max_want = p->max_want;
    /* Every running sequence must be able to get its next token. */
    assert(b->max_rows >= e->max_seqs && b->max_want >= e->max_seqs);
    const size_t rows = (size_t)b->max_rows;
    int32_t **arrays[] = { &b->token, &b->pos[0], &b->pos[1], &b->pos[2],
                           &b->seq,   &b->n_keys, &b->slot,   &b->want };
    bool ok = true;
    for (size_t i = 0; i < COUNT(arrays); i++) {
        *arrays[i] = mem_array(rows, sizeof(int32_t));
        ok = ok && *arrays[i];
    }
    b->embd = mem_array(rows, sizeof(*b->embd));
    b->block_table = mem_array((size_t)e->seqs_cap, sizeof(*b->block_table));
    b->top = mem_array((size_t)b->max_want, sizeof(*b->top));
    b->logprob = mem_array(SEQ_CHUNK_MAX + 1, sizeof(*b->logprob));
    b->top_logprob = mem_array((SEQ_CHUNK_MAX + 1) * TOP_LOGPROBS_MAX, sizeof(*b->top_logprob));
    b->logits = e->dev->ops->alloc(e->dev, (size_t)b->max_want * n_vocab * sizeof(float));
    if (!ok || !b->embd || !b->block_table || !b->top || !b->logprob || !b->top_logprob ||
        !b->logits) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for steps of %d rows", b->max_rows);
    }
    return GALLEY_OK;
}

void pass_deinit(struct engine *e)
{
    struct step_buffers *b = &e->step;
    int32_t *arrays[] = { b->token, b->pos[0], b->pos[1], b->pos[2],
                          b->seq,   b->n_keys, b->slot,   b->want };
    for (size_t i = 0; i < COUNT(arrays); i++) {
        mem_free(arrays[i]);
    }
    mem_free(b->embd);
    mem_free(b->block_table);
    mem_free(b->top);
    mem_free(b->logprob);
    mem_free(b->top_logprob);
    if (b->logits) {
        e->dev->ops->free(e->dev, b->logits);
    }
    *b = (struct step_buffers){ 0 };
}

/* ---- planning ---- */

/* What is left of the pass. */
struct room {
    int rows, want;
};

static bool is_live(const struct seq *s)
{
    return !s->paused && !s->ended && seq_sees(s);
}

static int rows_to_do(const struct seq *s)
{
    return seq_length(s) - s->n_kv;
}

/* Asks the drafter for at most `most` tokens; guesses outside the vocabulary end the chain. */
static int propose(struct engine *e, struct seq *s, int most)
{
    most = min_int(most, s->req->max_out - s->n_out);
    most = min_int(most, s->chunk);
    if (!s->drafter || most <= 0) {
        return 0;
    }
    const int n = s->drafter->ops->propose(s->drafter, s->out, s->n_out, s->step_draft, most);
    assert(n >= 0 && n <= most);
    const int n_vocab = model_n_vocab(e->model);
    for (int i = 0; i < n; i++) {
        if (s->step_draft[i] < 0 || s->step_draft[i] >= n_vocab) {
            return i;
        }
    }
    return n;
}

/* Guesses behind a sequence's own rows.  The row of a token judges the token after it, so the last
 * guess needs no row.  Guesses never cost anybody else a block. */
static void plan_draft(struct engine *e, struct seq *s, struct room *left)
{
    const int n = propose(e, s, min_int(left->rows, left->want) + 1);
    const int rows = n > 0 ? n - 1 : 0;
    if (n == 0 || (rows > 0 && !sched_grow(e, s, seq_length(s) + rows, false))) {
        return;
    }
    s->step_n_draft = n;
    left->rows -= rows;
    left->want -= rows;
}

/* Every decoding sequence's own row.  Best first: whoever must give blocks up comes later. */
static int plan_decoding(struct engine *e, struct room *left)
{
    int n = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        struct seq *s = e->seqs[i];
        if (!is_live(s) || rows_to_do(s) > 1) {
            continue;
        }
        if (!sched_grow(e, s, seq_length(s), true)) {
            sched_pause(e, s);
            continue;
        }
        s->step_rows = 1;
        s->step_complete = true;
        left->rows--;
        left->want--;
        n++;
    }
    return n;
}

/* Another sequence's prompt in this pass computes the very block s comes to: next time it is in the
 * cache. */
static bool has_twin(const struct engine *e, const struct seq *s)
{
    const int k = s->n_kv / KV_BLOCK;
    const struct prompt *p = &s->req->prompt;
    if (!e->prefix || k >= p->n_keys || (k + 1) * KV_BLOCK >= seq_length(s)) {
        return false;
    }
    for (int i = 0; i < e->n_seqs && e->seqs[i] != s; i++) {
        const struct seq *t = e->seqs[i];
        const struct prompt *o = &t->req->prompt;
        if (t->step_rows > 0 && k < o->n_keys && t->n_kv / KV_BLOCK <= k &&
            t->n_kv + t->step_rows > k * KV_BLOCK &&
            memcmp(&o->key[k], &p->key[k], sizeof(p->key[k])) == 0) {
            return true;
        }
    }
    return false;
}

/* Rows prompts may have in this pass. */
static int prefill_budget(const struct engine *e, int n_decoding, int rows)
{
    if (n_decoding == 0 || e->pace.row_seconds <= 0) {
        return rows;
    }
    double seconds = PREFILL_PASSES * e->pace.pass_seconds;
    seconds = seconds < PREFILL_SECONDS ? PREFILL_SECONDS : seconds;
    const double n = seconds / e->pace.row_seconds;
    const int least = 1 + e->step.max_rows / PREFILL_SHARE / 4;
    return n >= rows ? rows : min_int(rows, (int)n > least ? (int)n : least);
}

static void plan_prefill(struct engine *e, struct seq *s, struct room *left, int *budget)
{
    sched_share(e, s);
    if (s->paused || has_twin(e, s)) {
        return;
    }
    const int todo = rows_to_do(s);
    s->step_rows = min_int(todo, min_int(*budget, left->rows));
    s->step_complete = s->step_rows == todo;
    *budget -= s->step_rows;
    left->rows -= s->step_rows;
    if (s->step_complete) {
        left->want--;
    }
}

static int n_prefilling(const struct engine *e, int *n_rows)
{
    int n = 0;
    *n_rows = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        if (is_live(e->seqs[i]) && rows_to_do(e->seqs[i]) > 1) {
            n++;
            *n_rows += rows_to_do(e->seqs[i]);
        }
    }
    return n;
}

bool pass_plan(struct engine *e)
{
    const struct step_buffers *b = &e->step;
    struct room left = { b->max_rows, b->max_want };
    for (int i = 0; i < e->n_seqs; i++) {
        struct seq *s = e->seqs[i];
        s->step_rows = 0;
        s->step_complete = false;
        s->step_n_draft = 0;
        s->step_first_want = -1;
    }
    const int n_decoding = plan_decoding(e, &left);
    int todo;
    const int n_prompts = n_prefilling(e, &todo);
    const int kept = min_int(todo, 1 + b->max_rows / PREFILL_SHARE);
    struct room drafts = { left.rows - min_int(kept, left.rows), left.want - n_prompts };
    for (int i = 0; i < e->n_seqs && n_decoding > 0; i++) {
        if (e->seqs[i]->step_rows > 0) {
            const struct room before = drafts;
            plan_draft(e, e->seqs[i], &drafts);
            left.rows -= before.rows - drafts.rows;
            left.want -= before.want - drafts.want;
        }
    }
    int budget = prefill_budget(e, n_decoding, left.rows), spare_want = n_prompts;
    for (int i = 0; i < e->n_seqs && n_prompts > 0; i++) {
        struct seq *s = e->seqs[i];
        if (s->step_rows > 0 || !is_live(s) || rows_to_do(s) <= 1) {
            continue;
        }
        spare_want--; /* this one's own */
        if (budget > 0 && left.rows > 0) {
            plan_prefill(e, s, &left, &budget);
        }
        if (s->step_complete) {
            struct room own = { min_int(left.rows, budget), left.want - spare_want };
            const struct room before = own;
            plan_draft(e, s, &own);
            left.rows -= before.rows - own.rows;
            left.want -= before.want - own.want;
            budget -= before.rows - own.rows;
        }
    }
    return left.rows < b->max_rows;
}

/* ---- filling ---- */

static void add_row(struct engine *e, const struct seq *s, int i_seq, int i, int32_t token,
                    const float *embd)
{
    struct step_buffers *b = &e->step;
    const struct prompt *p = &s->req->prompt;
    const int r = b->n_rows++;
    assert(r < b->max_rows);
    b->token[r] = token;
    b->embd[r] = embd;
    for (int a = 0; a < 3; a++) {
        b->pos[a][r] = i < p->n ? p->pos[a][i] : p->pos_next + (i - p->n);
    }
    b->seq[r] = i_seq;
    b->n_keys[r] = i + 1;
    b->slot[r] = kv_seq_slot(&s->kv, i);
}

static void want_last(struct step_buffers *b)
{
    assert(b->n_want < b->max_want);
    b->want[b->n_want++] = b->n_rows - 1;
}

static void add_seq(struct engine *e, struct seq *s, int i_seq)
{
    struct step_buffers *b = &e->step;
    const struct prompt *p = &s->req->prompt;
    const size_t hidden = (size_t)model_hidden(e->model);
    b->block_table[i_seq] = s->kv.blocks;
    int k = 0; /* the image a row may belong to */
    for (int i = s->n_kv; i < s->n_kv + s->step_rows; i++) {
        while (k < p->n_images && i >= p->image[k].at + p->image[k].n_rows) {
            k++;
        }
        const bool visual = k < p->n_images && i >= p->image[k].at;
        add_row(e, s, i_seq, i, seq_token(s, i),
                visual ? s->image[k].embed->data + (size_t)(i - p->image[k].at) * hidden : NULL);
    }
    if (s->step_complete) {
        s->step_first_want = b->n_want;
        want_last(b);
        for (int i = 0; i + 1 < s->step_n_draft; i++) {
            add_row(e, s, i_seq, seq_length(s) + i, s->step_draft[i], NULL);
            want_last(b);
        }
    }
}

void pass_build(struct engine *e, int from, int to)
{
    e->step.n_rows = 0;
    e->step.n_want = 0;
    for (int i = from; i < to; i++) {
        if (e->seqs[i]->step_rows > 0) {
            add_seq(e, e->seqs[i], i);
        }
    }
}
