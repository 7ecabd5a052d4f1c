/* step.c - one pass: gather rows of all sequences, run the model, verify, commit or rewind. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/engine/core.h"
#include "src/engine/guard.h"
#include "src/engine/verify.h"

#define LOGIT_BYTES_MAX (64u << 20)
#define WANT_MIN        16

enum galley_status step_init(struct engine *e, int max_rows, struct galley_err *err)
{
    struct step_buffers *b = &e->step;
    const size_t n_vocab = (size_t)model_n_vocab(e->model);
    size_t want = LOGIT_BYTES_MAX / (n_vocab * sizeof(float));
    want = want < WANT_MIN ? WANT_MIN : want;
    /* Every running sequence must be able to get its next token. */
    want = want < (size_t)e->max_seqs ? (size_t)e->max_seqs : want;
    b->max_rows = max_rows < e->max_seqs ? e->max_seqs : max_rows;
    b->max_want = want > (size_t)b->max_rows ? b->max_rows : (int)want;
    const size_t rows = (size_t)b->max_rows;
    int32_t **arrays[] = { &b->token, &b->pos[0], &b->pos[1], &b->pos[2],
                           &b->seq,   &b->n_keys, &b->slot,   &b->want };
    bool ok = true;
    for (size_t i = 0; i < COUNT(arrays); i++) {
        *arrays[i] = mem_array(rows, sizeof(int32_t));
        ok = ok && *arrays[i];
    }
    b->embd = mem_array(rows, sizeof(*b->embd));
    b->block_table = mem_array((size_t)e->max_seqs, sizeof(*b->block_table));
    b->top = mem_array((size_t)b->max_want, sizeof(*b->top));
    b->logits = e->dev->ops->alloc(e->dev, (size_t)b->max_want * n_vocab * sizeof(float));
    if (!ok || !b->embd || !b->block_table || !b->top || !b->logits) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for steps of %d rows", b->max_rows);
    }
    return GALLEY_OK;
}

void step_deinit(struct engine *e)
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
    if (b->logits) {
        e->dev->ops->free(e->dev, b->logits);
    }
    *b = (struct step_buffers){ 0 };
}

/* The batch under construction. */
struct fill {
    int n_rows, n_want;
    int spare_rows, spare_want; /* kept free for sequences that come after */
};

static void add_row(struct engine *e, struct fill *f, const struct seq *s, int i_seq, int index,
                    int32_t token, const float *embd, const int32_t pos[3], bool wanted)
{
    struct step_buffers *b = &e->step;
    const int r = f->n_rows++;
    assert(r < b->max_rows);
    b->token[r] = token;
    b->embd[r] = embd;
    for (int a = 0; a < 3; a++) {
        b->pos[a][r] = pos[a];
    }
    b->seq[r] = i_seq;
    b->n_keys[r] = index + 1;
    b->slot[r] = kv_seq_slot(&s->kv, index);
    if (wanted) {
        assert(f->n_want < b->max_want);
        b->want[f->n_want++] = r;
    }
}

static void add_prompt_rows(struct engine *e, struct fill *f, struct seq *s, int i_seq, int n)
{
    const size_t hidden = (size_t)model_hidden(e->model);
    for (int k = 0; k < n; k++) {
        const int i = s->n_prefilled + k;
        const int32_t pos[3] = { s->pos[0][i], s->pos[1][i], s->pos[2][i] };
        const int v = s->visual_row[i];
        add_row(e, f, s, i_seq, i, s->prompt[i], v < 0 ? NULL : s->embd + (size_t)v * hidden, pos,
                i == s->n_prompt - 1);
    }
    s->step_prefill_rows = n;
}

static void add_output_row(struct engine *e, struct fill *f, struct seq *s, int i_seq, int k,
                           int32_t token)
{
    const int32_t p = s->pos_next + k;
    const int32_t pos[3] = { p, p, p };
    add_row(e, f, s, i_seq, s->n_prompt + k, token, NULL, pos, true);
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Asks the drafter for at most `room` tokens; guesses outside the vocabulary end the chain. */
static int propose(struct engine *e, struct seq *s, int room)
{
    if (!s->drafter || room <= 0) {
        return 0;
    }
    room = min_int(room, s->max_out - s->n_out);
    room = min_int(room, s->chunk);
    if (room <= 0) {
        return 0;
    }
    const int n = s->drafter->ops->propose(s->drafter, s->out, s->n_out, s->step_draft, room);
    assert(n >= 0 && n <= room);
    const int n_vocab = model_n_vocab(e->model);
    for (int i = 0; i < n; i++) {
        if (s->step_draft[i] < 0 || s->step_draft[i] >= n_vocab) {
            return i;
        }
    }
    return n;
}

/* Puts the sequence's rows into the batch: prompt rows as far as the budget goes, then, when the
 * prompt is complete, the draft; or the last output token and the draft.  The row of a token judges
 * the token after it, so the last draft token needs no row of its own. */
static bool fill_seq(struct engine *e, struct fill *f, struct seq *s, int i_seq)
{
    const struct step_buffers *b = &e->step;
    const int rows = b->max_rows - f->n_rows - f->spare_rows;
    const int want = b->max_want - f->n_want - f->spare_want;
    s->step_first_want = -1;
    s->step_n_draft = 0;
    s->step_prefill_rows = 0;
    const int todo = s->n_prompt - s->n_prefilled;
    if (rows <= 0 || want <= 0) {
        return true;
    }
    const int n_base = todo > 0 ? min_int(todo, rows) : 1;
    const bool complete = todo <= n_base;
    int n_draft = 0;
    if (complete) {
        n_draft = propose(e, s, min_int(rows - n_base, want - 1) + 1);
    }
    const int n_draft_rows = n_draft > 0 ? n_draft - 1 : 0;
    const int length = (todo > 0 ? s->n_prefilled + n_base : s->n_prompt + s->n_out) + n_draft_rows;
    if (!kv_seq_resize(e->kv, &s->kv, length)) {
        return false; /* cannot happen: blocks were reserved */
    }
    b->block_table[i_seq] = s->kv.blocks;
    s->step_first_want = complete ? f->n_want : -1;
    if (todo > 0) {
        add_prompt_rows(e, f, s, i_seq, n_base);
    } else {
        add_output_row(e, f, s, i_seq, s->n_out - 1, s->out[s->n_out - 1]);
    }
    for (int i = 0; i < n_draft_rows; i++) {
        add_output_row(e, f, s, i_seq, s->n_out + i, s->step_draft[i]);
    }
    s->step_n_draft = n_draft;
    return true;
}

static bool is_eos(const struct engine *e, int32_t token)
{
    for (int i = 0; i < e->cfg.n_eos; i++) {
        if (e->cfg.eos[i] == token) {
            return true;
        }
    }
    return false;
}

/* Draft length for the next step: long while the text goes along, short after a mismatch. */
static void adapt_chunk(struct seq *s, int n_accepted)
{
    if (n_accepted == s->step_n_draft) {
        s->chunk = min_int(s->chunk * 2, SEQ_CHUNK_MAX);
    } else {
        const int next = n_accepted + SEQ_CHUNK_MIN;
        s->chunk = min_int(next, SEQ_CHUNK_MAX);
    }
}

/* Takes the accepted guesses and the target's own token; true when the text has ended. */
static bool commit(struct engine *e, struct seq *s, enum finish *finish)
{
    const struct step_buffers *b = &e->step;
    const int n_vocab = model_n_vocab(e->model);
    const struct logit_top *top = b->top + s->step_first_want;
    const float *logits = b->logits + (size_t)s->step_first_want * (size_t)n_vocab;
    const int n = s->step_n_draft;
    const int taken = verify_chain(top, logits, n_vocab, s->step_draft, n, s->req->tau);
    s->n_steps++;
    s->n_drafted += n;
    s->n_accepted += taken;
    /* All guesses taken: the last of them has no row yet and is the next root. */
    const int n_new = taken < n || n == 0 ? taken + 1 : taken;
    for (int i = 0; i < n_new; i++) {
        const int32_t token = i < taken ? s->step_draft[i] : top[i].id;
        if (is_eos(e, token)) {
            *finish = FINISH_STOP;
            return true;
        }
        assert(s->n_out < s->max_out);
        s->out[s->n_out++] = token;
        s->sum_logprob +=
            (double)verify_logprob(&top[i], logits + (size_t)i * (size_t)n_vocab, token);
        if (s->n_out == s->max_out) {
            *finish = FINISH_LENGTH;
            return true;
        }
        if (guard_repeats(s->out, s->n_out, s->draft, s->n_draft)) {
            s->n_out = guard_cut(s->out, s->n_out);
            *finish = FINISH_REPETITION;
            return true;
        }
    }
    if (s->drafter) {
        s->drafter->ops->observe(s->drafter, s->out, s->n_out, taken, n);
        adapt_chunk(s, taken);
    }
    /* The last token has no keys yet; rejected guesses go. */
    const bool shrunk = kv_seq_resize(e->kv, &s->kv, s->n_prompt + s->n_out - 1);
    assert(shrunk);
    (void)shrunk;
    return false;
}

/* False when a row of the sequence holds NaN or infinity (damaged weights, an overflow): no guess
 * can be judged by it, and every comparison with NaN would accept. */
static bool is_sound(const struct engine *e, const struct seq *s)
{
    const int n = s->step_n_draft > 0 ? s->step_n_draft : 1;
    for (int i = 0; i < n; i++) {
        if (!isfinite(e->step.top[s->step_first_want + i].log_sum)) {
            return false;
        }
    }
    return true;
}

/* Charges the pass to its sequences by rows. */
static void share_time(struct seq *s, double seconds_per_row)
{
    const int draft_rows = s->step_n_draft > 0 ? s->step_n_draft - 1 : 0;
    const int decode_rows = s->step_first_want < 0 ? 0 : draft_rows + !s->step_prefill_rows;
    s->prefill_seconds += seconds_per_row * s->step_prefill_rows;
    s->decode_seconds += seconds_per_row * decode_rows;
}

static enum galley_status forward(struct engine *e, const struct fill *f, struct galley_err *err)
{
    struct step_buffers *b = &e->step;
    const struct model_batch batch = {
        .n_rows = f->n_rows,
        .token = b->token,
        .embd = b->embd,
        .pos = { b->pos[0], b->pos[1], b->pos[2] },
        .seq = b->seq,
        .n_keys = b->n_keys,
        .slot = b->slot,
        .block_table = b->block_table,
        .want = b->want,
        .n_want = f->n_want,
        .logits = b->logits,
    };
    const enum galley_status rc = model_forward(e->model, e->kv, &batch, err);
    if (rc) {
        return rc;
    }
    if (f->n_want) {
        const int n_vocab = model_n_vocab(e->model);
        e->dev->ops->top1(e->dev, b->top, b->logits, (size_t)n_vocab, f->n_want, n_vocab);
    }
    atomic_fetch_add_explicit(&e->n_passes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->n_rows, (uint64_t)f->n_rows, memory_order_relaxed);
    return GALLEY_OK;
}

enum galley_status step_run(struct engine *e, struct galley_err *err)
{
    const double start = clock_seconds();
    const int n = e->n_seqs;
    assert(n > 0);
    struct fill f = { .spare_rows = n, .spare_want = n };
    for (int k = 0; k < n; k++) {
        struct seq *s = e->seqs[k];
        f.spare_rows--; /* this one's own place */
        f.spare_want--;
        if (!fill_seq(e, &f, s, k)) {
            return galley_err_set(err, GALLEY_EINTERNAL, "KV blocks were promised but are gone");
        }
    }
    const enum galley_status rc = forward(e, &f, err);
    if (rc) {
        return rc;
    }
    const double per_row = (clock_seconds() - start) / (f.n_rows ? f.n_rows : 1);
    for (int i = n - 1; i >= 0; i--) { /* backwards: ending one moves those behind it up */
        struct seq *s = e->seqs[i];
        share_time(s, per_row);
        s->n_prefilled += s->step_prefill_rows;
        enum finish finish;
        if (s->step_first_want < 0) {
            continue;
        }
        if (!is_sound(e, s)) {
            engine_end_seq(e, s, FINISH_FAILED, GALLEY_EMODEL,
                           "the model's logits are not finite numbers");
        } else if (commit(e, s, &finish)) {
            engine_end_seq(e, s, finish, GALLEY_OK, "");
        }
    }
    return GALLEY_OK;
}
