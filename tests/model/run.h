/* run.h - prompts with images run through a checkpoint, in any cut and company. */
#ifndef GALLEY_TESTS_MODEL_RUN_H
#define GALLEY_TESTS_MODEL_RUN_H

#include "tests/toy_checkpoint.h"

#define PROMPT_MAX 512 /* tokens, generated ones included */
#define PIECES_MAX 8

struct prompt {
    int n;
    int32_t ids[PROMPT_MAX], pos[3][PROMPT_MAX], next;
    const float *embd[PROMPT_MAX]; /* image rows, into embeds */
    float *embeds;                 /* owned */
};

/* Rows from .. from + n - 1 of a prompt, appended to its sequence. */
struct piece {
    const struct prompt *prompt;
    struct kv_seq *seq;
    int from, n;
    float *logits; /* [prompt][n_vocab], every row's at its index */
};

static inline struct kv_pool *pool_for(const struct toy_checkpoint *c, int n_blocks)
{
    const struct kv_shape shape = model_kv_shape(c->model, KV_F32);
    struct galley_err err = { 0 };
    struct kv_pool *p = NULL;
    if (kv_pool_open(&p, c->dev, &shape, n_blocks, &err)) {
        T_FAIL("%s", err.msg);
    }
    return p;
}

/* ids[0..n) and the pictures encoded. */
static inline void prompt_init(struct prompt *q, const struct toy_checkpoint *c, const int32_t *ids,
                               int n, const struct patches *p)
{
    struct galley_err err = { 0 };
    *q = (struct prompt){ .n = n };
    T_OK(n <= PROMPT_MAX);
    memcpy(q->ids, ids, (size_t)n * sizeof(*ids));
    int32_t *const pos[3] = { q->pos[0], q->pos[1], q->pos[2] };
    if (mrope_positions(pos, &q->next, ids, n, p->grid, p->n, &c->cfg, &err)) {
        T_FAIL("%s", err.msg);
    }
    q->embeds = p->n ? patches_encode(c, p) : NULL;
    int at = 0;
    for (int i = 0; i < n; i++) {
        if (c->cfg.has_vision && ids[i] == c->cfg.image_pad) {
            q->embd[i] = q->embeds + (size_t)at++ * (size_t)c->cfg.vision.out_hidden;
        }
    }
    T_EQ(at, p->n_tokens);
}

/* A generated token goes on by one on all axes. */
static inline void prompt_push(struct prompt *q, int32_t id)
{
    T_OK(q->n < PROMPT_MAX);
    q->ids[q->n] = id;
    q->pos[0][q->n] = q->pos[1][q->n] = q->pos[2][q->n] = q->next++;
    q->n++;
}

static inline void prompt_deinit(struct prompt *q)
{
    mem_free(q->embeds);
}

/* One step over all pieces; logits of every row, or with `last` of each piece's last row. */
static inline void pieces_run(const struct toy_checkpoint *c, struct kv_pool *kv,
                              const struct piece *piece, int n_pieces, bool last)
{
    static int32_t token[PIECES_MAX * PROMPT_MAX], pos[3][PIECES_MAX * PROMPT_MAX];
    static int32_t seq[PIECES_MAX * PROMPT_MAX], n_keys[PIECES_MAX * PROMPT_MAX];
    static int32_t slot[PIECES_MAX * PROMPT_MAX], want[PIECES_MAX * PROMPT_MAX];
    static const float *embd[PIECES_MAX * PROMPT_MAX];
    static float *place[PIECES_MAX * PROMPT_MAX];
    const int32_t *tables[PIECES_MAX];
    const size_t n_vocab = (size_t)model_n_vocab(c->model);
    int rows = 0, n_want = 0;
    for (int i = 0; i < n_pieces; i++) {
        const struct piece *p = &piece[i];
        T_EQ(p->seq->n_tokens, p->from);
        T_OK(kv_seq_resize(kv, p->seq, p->from + p->n));
        tables[i] = p->seq->blocks;
        for (int k = p->from; k < p->from + p->n; k++, rows++) {
            token[rows] = p->prompt->ids[k];
            embd[rows] = p->prompt->embd[k];
            for (int a = 0; a < 3; a++) {
                pos[a][rows] = p->prompt->pos[a][k];
            }
            seq[rows] = i;
            n_keys[rows] = k + 1;
            slot[rows] = kv_seq_slot(p->seq, k);
            if (!last || k == p->from + p->n - 1) {
                place[n_want] = p->logits + (size_t)k * n_vocab;
                want[n_want++] = rows;
            }
        }
    }
    float *logits = mem_many(float, (size_t)n_want *n_vocab);
    T_OK(logits);
    const struct model_batch b = { .n_rows = rows,
                                   .token = token,
                                   .embd = embd,
                                   .pos = { pos[0], pos[1], pos[2] },
                                   .seq = seq,
                                   .n_keys = n_keys,
                                   .slot = slot,
                                   .block_table = tables,
                                   .want = want,
                                   .n_want = n_want,
                                   .logits = logits };
    struct galley_err err = { 0 };
    if (model_forward(c->model, kv, &b, &err)) {
        T_FAIL("%s", err.msg);
    }
    for (int i = 0; i < n_want; i++) {
        memcpy(place[i], logits + (size_t)i * n_vocab, n_vocab * sizeof(float));
    }
    mem_free(logits);
    kv_check(kv);
}

#endif
