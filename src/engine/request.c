/* request.c - checking and copying what a caller hands over. */
#include "src/engine/request.h"

#include <math.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"

#define STOP_MAX       64
#define STOP_BYTES_MAX 1024
#define DEADLINE_MAX   1e9 /* seconds */

static enum galley_status check_stop(const struct engine_request *r, struct galley_err *err)
{
    if (r->n_stop < 0 || r->n_stop > STOP_MAX || (r->n_stop > 0 && !r->stop)) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d stop strings%s, allowed 0 to %d", r->n_stop,
                              r->n_stop > 0 && !r->stop ? " and no list of them" : "", STOP_MAX);
    }
    for (int i = 0; i < r->n_stop; i++) {
        const size_t n = r->stop[i] ? strlen(r->stop[i]) : 0;
        if (n < 1 || n > STOP_BYTES_MAX) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "stop string %d has %zu bytes, allowed 1 to %d", i + 1, n,
                                  STOP_BYTES_MAX);
        }
    }
    return GALLEY_OK;
}

/* What a caller may get wrong; NaN fails every comparison. */
static enum galley_status check(const struct engine_request *r, struct galley_err *err)
{
    if (!r->on_end) {
        return galley_err_set(err, GALLEY_EUSAGE, "a request needs on_end");
    }
    if (r->max_new_tokens < 0 || !(r->tau >= 0 && r->tau <= 1)) {
        return galley_err_set(err, GALLEY_EUSAGE, "max_new_tokens is %d, tau %g", r->max_new_tokens,
                              r->tau);
    }
    if (r->n_top_logprobs < 0 || r->n_top_logprobs > TOP_LOGPROBS_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "n_top_logprobs is %d, allowed 0 to %d",
                              r->n_top_logprobs, TOP_LOGPROBS_MAX);
    }
    if (r->priority < -PRIORITY_MAX || r->priority > PRIORITY_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "priority is %d, allowed %d to %d", r->priority,
                              -PRIORITY_MAX, PRIORITY_MAX);
    }
    if (!(r->deadline_seconds >= 0 && r->deadline_seconds <= DEADLINE_MAX)) {
        return galley_err_set(err, GALLEY_EUSAGE, "deadline_seconds is %g, allowed 0 to %g",
                              r->deadline_seconds, DEADLINE_MAX);
    }
    enum galley_status rc = sample_check(&r->sampling, err);
    if (!rc && r->tau > 0 && r->tau < 1 && !sample_is_greedy(&r->sampling)) {
        rc = galley_err_set(err, GALLEY_EUSAGE,
                            "tau %g relaxes greedy decoding only, but temperature is %g", r->tau,
                            r->sampling.temperature);
    }
    return rc ? rc : check_stop(r, err);
}

static struct request *copy_plain(const struct engine_request *r)
{
    struct request *q = mem_new(struct request);
    if (!q) {
        return NULL;
    }
    q->sampling = r->sampling;
    q->tau = r->tau == 0 ? 1 : r->tau;
    q->ignore_eos = r->ignore_eos;
    q->allow_loops = r->allow_loops || r->ignore_eos;
    q->logprobs = r->logprobs || r->n_top_logprobs > 0;
    q->n_top_logprobs = r->n_top_logprobs;
    q->priority = r->priority;
    q->submitted = clock_seconds();
    q->deadline = r->deadline_seconds > 0 ? q->submitted + r->deadline_seconds : INFINITY;
    q->on_chunk = r->on_chunk;
    q->on_end = r->on_end;
    q->user = r->user;
    q->stop = mem_many(char *, (size_t)r->n_stop);
    if (!q->stop) {
        request_free(q);
        return NULL;
    }
    for (; q->n_stop < r->n_stop; q->n_stop++) {
        const size_t n = strlen(r->stop[q->n_stop]);
        q->stop[q->n_stop] = mem_strndup(r->stop[q->n_stop], n);
        q->stop_max = n > q->stop_max ? n : q->stop_max;
        if (!q->stop[q->n_stop]) {
            request_free(q);
            return NULL;
        }
    }
    return q;
}

static enum galley_status fit(struct request *q, int asked, const struct request_limits *l,
                              struct galley_err *err)
{
    const int n = q->prompt.n;
    const int64_t pool = (int64_t)l->n_blocks * KV_BLOCK;
    if (n >= l->context) {
        return galley_err_set(err, GALLEY_ELIMIT,
                              "prompt needs %d tokens and one to write, has %d: %s", n, l->context,
                              q->prompt.n_visual > n / 2 ? "use a longer context or smaller images"
                                                         : "use a longer context");
    }
    const int room = l->context - n;
    q->max_out = asked ? asked : l->max_new_default;
    q->max_out = q->max_out > room ? room : q->max_out;
    /* Without a wish of its own it writes as far as the pool goes. */
    if (!asked && q->max_out > pool - n && pool > n) {
        q->max_out = (int)(pool - n);
    }
    if ((int64_t)n + q->max_out > pool) {
        return galley_err_set(err, GALLEY_ELIMIT,
                              "request needs %lld tokens of KV, the pool has %lld: use a larger "
                              "KV cache or ask for less",
                              (long long)n + q->max_out, (long long)pool);
    }
    for (int i = 0; i < n; i++) {
        if (q->prompt.token[i] < 0 || q->prompt.token[i] >= l->n_vocab) {
            return galley_err_set(err, GALLEY_EINPUT,
                                  "token %d is outside the vocabulary of %d tokens",
                                  q->prompt.token[i], l->n_vocab);
        }
    }
    return GALLEY_OK;
}

enum galley_status request_new(struct request **out, const struct engine_request *r,
                               const struct prompt_context *ctx,
                               const struct request_limits *limits, struct galley_err *err)
{
    *out = NULL;
    struct galley_err why = { 0 };
    enum galley_status rc = check(r, &why);
    struct request *q = rc ? NULL : copy_plain(r);
    if (!rc && !q) {
        rc = galley_err_set(&why, GALLEY_ENOMEM, "no memory for a request");
    }
    rc = rc ? rc : prompt_build(&q->prompt, r, ctx, &why);
    rc = rc ? rc : fit(q, r->max_new_tokens, limits, &why);
    if (!rc && r->draft) {
        rc = tokenizer_encode(ctx->cp->tok, r->draft, strlen(r->draft), false, &q->draft,
                              &q->n_draft, &why);
    }
    if (rc == GALLEY_EUSAGE || rc == GALLEY_ENOMEM) {
        request_free(q);
        return galley_err_set(err, rc, "%s", why.msg);
    }
    q->rc = rc;
    q->err = why;
    *out = q;
    return GALLEY_OK;
}

void request_free(struct request *q)
{
    if (!q) {
        return;
    }
    prompt_deinit(&q->prompt);
    for (int i = 0; q->stop && i < q->n_stop; i++) {
        mem_free(q->stop[i]);
    }
    mem_free(q->stop);
    mem_free(q->draft);
    mem_free(q);
}

static double effective(const struct request *q, double now)
{
    const double p = q->priority + (now - q->submitted);
    return p > PRIORITY_MAX ? PRIORITY_MAX : p;
}

bool request_before(const struct request *a, const struct request *b, double now)
{
    const double pa = effective(a, now), pb = effective(b, now);
    return pa != pb ? pa > pb : a->id < b->id;
}

bool request_displaces(const struct request *a, const struct request *b, double now)
{
    return a->priority > b->priority && request_before(a, b, now);
}
