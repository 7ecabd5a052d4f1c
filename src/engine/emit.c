/* emit.c - what callers hear. */
#include <assert.h>

#include "src/base/clock.h"
#include "src/engine/core.h"

void emit_chunk(struct engine *e, struct seq *s, int n_new, bool final)
{
    const struct request *q = s->req;
    struct transcript *t = &s->text;
    if (!q->on_chunk) {
        return;
    }
    const size_t until =
        final ? t->utf8.n : transcript_showable(t, q->stop, q->n_stop, q->stop_max);
    const size_t n_text = until > t->n_shown ? until - t->n_shown : 0;
    if (n_text == 0 && n_new == 0) {
        return;
    }
    assert(n_new <= s->n_out && n_new <= SEQ_CHUNK_MAX + 1);
    const struct engine_chunk c = {
        .id = q->id,
        .text = n_text ? t->utf8.data + t->n_shown : "",
        .n_text = n_text,
        .tokens = s->out + s->n_out - n_new,
        .n_tokens = n_new,
        .logprobs = q->logprobs && n_new > 0 ? e->step.logprob : NULL,
    };
    t->n_shown += n_text;
    q->on_chunk(q->user, &c);
}

static void fill_times(struct engine_result *r, const struct request *q, const struct seq *s)
{
    const double now = clock_seconds();
    r->total_seconds = now - q->submitted;
    r->queue_seconds = (s && s->seated > 0 ? s->seated : now) - q->submitted;
    if (s && s->first_token > 0) {
        r->first_token_seconds = s->first_token - q->submitted;
    }
}

void emit_refusal(struct request *q, enum finish finish, enum galley_status status,
                  const char *error)
{
    struct engine_result r = {
        .id = q->id,
        .finish = finish,
        .status = status,
        .error = error,
        .text = "",
        .n_prompt = q->prompt.n,
        .n_visual = q->prompt.n_visual,
    };
    fill_times(&r, q, NULL);
    q->on_end(q->user, &r);
}

void emit_end(struct engine *e, struct seq *s, enum finish finish, enum galley_status status,
              const char *error)
{
    const struct request *q = s->req;
    transcript_finish(&s->text);
    if (!transcript_ok(&s->text)) {
        finish = FINISH_FAILED;
        status = GALLEY_ENOMEM;
        error = "no memory for the text";
        buf_deinit(&s->text.utf8);
        s->text.n_shown = 0;
    }
    emit_chunk(e, s, 0, true);
    struct engine_result r = {
        .id = q->id,
        .finish = finish,
        .status = status,
        .error = error,
        .text = s->text.utf8.n ? s->text.utf8.data : "",
        .n_text = s->text.utf8.n,
        .n_prompt = q->prompt.n,
        .n_visual = q->prompt.n_visual,
        .n_output = s->n_out,
        .n_cached = s->n_cached,
        .n_images_cached = s->n_images_cached,
        .n_preempted = s->n_preempted,
        .n_steps = s->n_steps,
        .n_drafted = s->n_drafted,
        .n_accepted = s->n_accepted,
        .mean_logprob = s->n_out ? s->sum_logprob / s->n_out : 0,
        .encode_seconds = s->encode_seconds,
        .prefill_seconds = s->prefill_seconds,
        .decode_seconds = s->decode_seconds,
    };
    fill_times(&r, q, s);
    q->on_end(q->user, &r);
}
