/* inbox.c - requests that wait: a bounded list, any thread in, the engine thread out.
 *
 * Only the engine thread takes requests out, so a request it has looked at stays while the lock is
 * open.  Final events are delivered without the lock: they may submit. */
#include <assert.h>
#include <math.h>

#include "src/base/clock.h"
#include "src/engine/core.h"

#define SLEEP_MAX 3600.0

static bool promise_place(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    const int n = atomic_load_explicit(&e->n_inbox, memory_order_relaxed) + e->n_promised;
    const bool room = n < e->max_inbox && e->n_live + e->n_promised < e->live_cap && !e->quit;
    e->n_promised += room;
    pthread_mutex_unlock(&e->lock);
    return room;
}

static request_id enqueue(struct engine *e, struct request *q)
{
    pthread_mutex_lock(&e->lock);
    e->n_promised--;
    q->id = ++e->next_id;
    const request_id id = q->id; /* q may end as soon as the lock is open */
    *e->inbox_tail = q;
    e->inbox_tail = &q->next;
    atomic_fetch_add_explicit(&e->n_inbox, 1, memory_order_relaxed);
    assert(e->n_live < e->live_cap);
    e->live[e->n_live++] = q;
    e->look = e->look || q->rc != GALLEY_OK;
    e->next_deadline = q->deadline < e->next_deadline ? q->deadline : e->next_deadline;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    return id;
}

enum galley_status engine_submit(struct engine *e, const struct engine_request *r, request_id *id,
                                 struct galley_err *err)
{
    *id = 0;
    if (!promise_place(e)) {
        return galley_err_set(err, GALLEY_ELIMIT, "queue is full: %d requests wait", e->max_inbox);
    }
    const struct prompt_context ctx = {
        .cp = &e->cp,
        .max_pixels = e->max_pixels,
        .cache = e->prefix,
        .vision_hash = e->vision_hash,
        .vcache = e->vcache,
        .hidden = model_hidden(e->model),
    };
    struct request *q;
    const enum galley_status rc = request_new(&q, r, &ctx, &e->limits, err);
    if (rc) {
        pthread_mutex_lock(&e->lock);
        e->n_promised--;
        pthread_mutex_unlock(&e->lock);
        return rc;
    }
    *id = enqueue(e, q);
    return GALLEY_OK;
}

void engine_cancel(struct engine *e, request_id id)
{
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < e->n_live; i++) {
        if (e->live[i]->id == id) {
            atomic_store_explicit(&e->live[i]->cancelled, true, memory_order_relaxed);
            e->look = true;
            pthread_cond_signal(&e->wake);
            break;
        }
    }
    pthread_mutex_unlock(&e->lock);
}

void live_forget(struct engine *e, const struct request *q)
{
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < e->n_live; i++) {
        if (e->live[i] == q) {
            e->live[i] = e->live[--e->n_live];
            break;
        }
    }
    pthread_mutex_unlock(&e->lock);
}

struct request *inbox_best(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    struct request *best = e->inbox_head;
    for (struct request *q = best; q; q = q->next) {
        best = request_before(q, best, e->now) ? q : best;
    }
    pthread_mutex_unlock(&e->lock);
    return best;
}

/* Under the lock: takes *at out of the list. */
static struct request *unlink_at(struct engine *e, struct request **at)
{
    struct request *q = *at;
    *at = q->next;
    if (e->inbox_tail == &q->next) {
        e->inbox_tail = at;
    }
    q->next = NULL;
    atomic_fetch_sub_explicit(&e->n_inbox, 1, memory_order_relaxed);
    return q;
}

void inbox_remove(struct engine *e, struct request *q)
{
    pthread_mutex_lock(&e->lock);
    struct request **at = &e->inbox_head;
    while (*at != q) {
        at = &(*at)->next;
        assert(*at);
    }
    unlink_at(e, at);
    pthread_mutex_unlock(&e->lock);
}

static void end_all(struct engine *e, struct request *list, bool closing)
{
    while (list) {
        struct request *q = list;
        list = q->next;
        live_forget(e, q);
        if (closing) {
            emit_refusal(q, FINISH_CANCELLED, GALLEY_ECANCELLED, "engine closed");
        } else if (atomic_load_explicit(&q->cancelled, memory_order_relaxed)) {
            emit_refusal(q, FINISH_CANCELLED, GALLEY_ECANCELLED, "cancelled");
        } else if (q->rc) {
            emit_refusal(q, FINISH_FAILED, q->rc, q->err.msg);
        } else {
            emit_refusal(q, FINISH_DEADLINE, GALLEY_ETIMEOUT, "its time was up before it began");
        }
        request_free(q);
    }
}

void inbox_reap(struct engine *e)
{
    struct request *ended = NULL, **tail = &ended;
    pthread_mutex_lock(&e->lock);
    if (e->look || e->now >= e->next_deadline) {
        e->look = false;
        e->next_deadline = INFINITY;
        for (struct request **at = &e->inbox_head; *at;) {
            struct request *q = *at;
            if (q->rc || q->deadline <= e->now ||
                atomic_load_explicit(&q->cancelled, memory_order_relaxed)) {
                *tail = unlink_at(e, at);
                tail = &q->next;
                continue;
            }
            e->next_deadline = q->deadline < e->next_deadline ? q->deadline : e->next_deadline;
            at = &q->next;
        }
    }
    pthread_mutex_unlock(&e->lock);
    end_all(e, ended, false);
}

void inbox_drain(struct engine *e)
{
    for (;;) { /* a final event may submit, until it hears that the engine closes */
        pthread_mutex_lock(&e->lock);
        struct request *list = e->inbox_head;
        e->inbox_head = NULL;
        e->inbox_tail = &e->inbox_head;
        atomic_store_explicit(&e->n_inbox, 0, memory_order_relaxed);
        pthread_mutex_unlock(&e->lock);
        if (!list) {
            return;
        }
        end_all(e, list, true);
    }
}

bool inbox_wait(struct engine *e, double until, bool sleep)
{
    pthread_mutex_lock(&e->lock);
    while (sleep && !e->inbox_head && !e->quit && !e->look) {
        const double left = until - clock_seconds();
        if (left <= 0) {
            break;
        }
        clock_wait(&e->wake, &e->lock, left < SLEEP_MAX ? left : SLEEP_MAX);
    }
    const bool quit = e->quit;
    pthread_mutex_unlock(&e->lock);
    return quit;
}
