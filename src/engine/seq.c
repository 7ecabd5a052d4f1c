/* seq.c - setting sequences up. */
#include "src/engine/seq.h"

#include <assert.h>
#include <string.h>

#include "spec/given.h"
#include "src/base/mem.h"

#define CHUNK_START_EXACT 32

static bool make_drafter(struct seq *s, int32_t eos)
{
    const struct request *q = s->req;
    s->draft = mem_array((size_t)q->n_draft + 1, sizeof(int32_t));
    if (!s->draft) {
        return false;
    }
    memcpy(s->draft, q->draft, (size_t)q->n_draft * sizeof(int32_t));
    s->draft[q->n_draft] = eos;
    s->drafter = given_new(s->draft, q->n_draft + 1);
    s->chunk = q->tau < 1 ? SEQ_CHUNK_MAX : CHUNK_START_EXACT;
    return s->drafter != NULL;
}

static bool make_seen(struct seq *s, int n_vocab)
{
    const struct prompt *p = &s->req->prompt;
    s->seen = sample_seen_new(n_vocab);
    for (int i = 0; s->seen && i < p->n; i++) {
        sample_seen_add(s->seen, p->token[i]);
    }
    return s->seen != NULL;
}

enum galley_status seq_new(struct seq **out, struct request *req, int n_vocab, int32_t eos,
                           struct galley_err *err)
{
    *out = NULL;
    struct seq *s = mem_new(struct seq);
    if (!s) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a sequence");
    }
    s->req = req;
    s->paused = true;
    transcript_init(&s->text, req->prompt.skip_space);
    const double repetition = req->sampling.repetition;
    s->out = mem_array((size_t)req->max_out, sizeof(int32_t));
    s->step_draft = mem_array(SEQ_CHUNK_MAX, sizeof(int32_t));
    s->image = mem_many(struct seq_image, (size_t)req->prompt.n_images);
    bool ok = s->out && s->step_draft && s->image;
    ok = ok && (repetition == 0 || repetition == 1 || make_seen(s, n_vocab));
    ok = ok && (!req->draft || make_drafter(s, eos));
    if (!ok) {
        s->req = NULL; /* stays the caller's */
        seq_free(s);
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a sequence of %d output tokens",
                              req->max_out);
    }
    *out = s;
    return GALLEY_OK;
}

void seq_free(struct seq *s)
{
    if (!s) {
        return;
    }
    assert(s->kv.n_blocks == 0);
    request_free(s->req);
    mem_free(s->image);
    mem_free(s->out);
    mem_free(s->draft);
    mem_free(s->step_draft);
    sample_seen_free(s->seen);
    drafter_free(s->drafter);
    transcript_deinit(&s->text);
    mem_free(s);
}

bool seq_sees(const struct seq *s)
{
    const struct prompt *p = &s->req->prompt;
    for (int i = 0; i < p->n_images; i++) {
        if (p->image[i].at + p->image[i].n_rows > s->n_kv && !s->image[i].embed) {
            return false;
        }
    }
    return true;
}
