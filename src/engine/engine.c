/* engine.c - the engine's life and the loop of its thread. */
#include "src/engine/engine.h"

#include <assert.h>
#include <math.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/engine/core.h"

#define MAX_SEQS_DEFAULT  16
#define MAX_INBOX_DEFAULT 256
#define LIMIT_MAX         65536 /* of any limit of the configuration */
/* Vision beside passes: a second for a second, more when many wait for images and few run, and at
 * most so much at a time. */
#define ENCODE_SHARE_MAX  3.0
#define ENCODE_CREDIT_MAX 0.004
#define PUBLISH_SECONDS   0.02 /* between counts of what runs: counting blocks takes a walk */

static void *engine_thread(void *arg);

static enum galley_status check_config(const struct engine_config *cfg, struct galley_err *err)
{
    if (!cfg->model_path) {
        return galley_err_set(err, GALLEY_EUSAGE, "an engine needs a model path");
    }
    if (cfg->max_seqs < 0 || cfg->max_rows < 0 || cfg->max_inbox < 0 || cfg->context < 0 ||
        cfg->max_seqs > LIMIT_MAX || cfg->max_rows > LIMIT_MAX || cfg->max_inbox > LIMIT_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "%d sequences, %d rows, an inbox of %d: allowed 0 to %d",
                              cfg->max_seqs, cfg->max_rows, cfg->max_inbox, LIMIT_MAX);
    }
    if ((unsigned)cfg->kv_type >= KV_TYPE_COUNT) {
        return galley_err_set(err, GALLEY_EUSAGE, "there is no kind of cache %d",
                              (int)cfg->kv_type);
    }
    return GALLEY_OK;
}

enum galley_status engine_open(struct engine **out, const struct engine_config *cfg,
                               struct galley_err *err)
{
    *out = NULL;
    enum galley_status rc = check_config(cfg, err);
    if (rc) {
        return rc;
    }
    struct engine *e = mem_new(struct engine);
    if (!e) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for an engine");
    }
    mem_return_large();
    pthread_mutex_init(&e->lock, NULL);
    clock_cond_init(&e->wake);
    e->inbox_tail = &e->inbox_head;
    e->next_deadline = INFINITY;
    e->log = cfg->log;
    e->max_seqs = cfg->max_seqs ? cfg->max_seqs : MAX_SEQS_DEFAULT;
    e->max_inbox = cfg->max_inbox ? cfg->max_inbox : MAX_INBOX_DEFAULT;
    e->seqs_cap = e->max_seqs + PAUSED_MAX;
    e->live_cap = e->max_inbox + e->seqs_cap;
    e->seqs = mem_many(struct seq *, (size_t)e->seqs_cap);
    e->live = mem_many(struct request *, (size_t)e->live_cap);
    if (!e->seqs || !e->live) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "no memory for %d sequences", e->max_seqs);
    }
    rc = rc ? rc : engine_open_model(e, cfg, err);
    if (!rc) {
        atomic_store_explicit(&e->n_kv_free, e->limits.n_blocks, memory_order_relaxed);
    }
    if (!rc && pthread_create(&e->thread, NULL, engine_thread, e) != 0) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "cannot start the engine thread");
    }
    if (rc) {
        engine_close(e);
        return rc;
    }
    e->started = true;
    *out = e;
    return GALLEY_OK;
}

void engine_close(struct engine *e)
{
    if (!e) {
        return;
    }
    if (e->started) {
        pthread_mutex_lock(&e->lock);
        e->quit = true;
        pthread_cond_signal(&e->wake);
        pthread_mutex_unlock(&e->lock);
        pthread_join(e->thread, NULL);
    }
    assert(e->n_seqs == 0 && e->n_live == 0);
    engine_close_model(e);
    mem_free(e->seqs);
    mem_free(e->live);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    mem_free(e);
}

/* ---- the loop ---- */

static void publish(struct engine *e)
{
    e->published = e->now;
    int n_paused = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        n_paused += e->seqs[i]->paused;
    }
    const int n_free = kv_pool_n_free(e->kv) + (e->prefix ? prefix_n_evictable(e->prefix) : 0);
    atomic_store_explicit(&e->n_paused, n_paused, memory_order_relaxed);
    atomic_store_explicit(&e->n_running, e->n_seqs - n_paused, memory_order_relaxed);
    atomic_store_explicit(&e->n_kv_free, n_free, memory_order_relaxed);
}

/* Seconds of vision work per second of passes. */
static double encode_share(const struct engine *e)
{
    int n_ready = 0, n_blind = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        n_blind += !e->seqs[i]->paused && !seq_sees(e->seqs[i]);
        n_ready += !e->seqs[i]->paused && seq_sees(e->seqs[i]);
    }
    const double share = n_ready ? (double)n_blind / n_ready : 1;
    return share < 1 ? 1 : share > ENCODE_SHARE_MAX ? ENCODE_SHARE_MAX : share;
}

/* Vision work up to the credit; one piece at a time when nothing else is to do. */
static void encode_turn(struct engine *e, bool alone)
{
    struct pace *p = &e->pace;
    while (encode_waits(e) && (alone || p->encode_credit >= 0)) {
        const double start = clock_seconds();
        encode_step(e);
        p->encode_credit -= clock_seconds() - start;
        if (alone) {
            p->encode_credit = 0;
            return;
        }
    }
}

static void turn(struct engine *e)
{
    e->now = clock_seconds();
    inbox_reap(e);
    sched_reap(e, false);
    sched_admit(e);
    encode_turn(e, !sched_can_step(e));
    if (sched_can_step(e)) {
        const double start = clock_seconds();
        step_run(e);
        const double more = (clock_seconds() - start) * encode_share(e);
        const double credit = e->pace.encode_credit + more;
        e->pace.encode_credit = credit > ENCODE_CREDIT_MAX ? ENCODE_CREDIT_MAX : credit;
    }
    if (e->n_seqs == 0 || e->now - e->published > PUBLISH_SECONDS) {
        publish(e);
    }
}

static void *engine_thread(void *arg)
{
    struct engine *e = arg;
    while (!inbox_wait(e, sched_next_deadline(e), e->n_seqs == 0)) {
        turn(e);
    }
    e->now = clock_seconds();
    sched_reap(e, true);
    inbox_drain(e);
    publish(e);
    return NULL;
}

/* ---- asking ---- */

const struct hf_config *engine_hf_config(const struct engine *e)
{
    return &e->cp.cfg;
}

const struct card *engine_card(const struct engine *e)
{
    return &e->cp.card;
}

const char *engine_device_name(const struct engine *e)
{
    return e->dev->ops->name;
}

int engine_context(const struct engine *e)
{
    return e->limits.context;
}

enum kv_type engine_kv_type(const struct engine *e)
{
    return kv_pool_shape(e->kv)->type;
}

static uint64_t read_count(const _Atomic uint64_t *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

struct engine_totals engine_totals(const struct engine *e)
{
    return (struct engine_totals){
        .n_passes = read_count(&e->n_passes),
        .n_rows = read_count(&e->n_rows),
        .n_prompt_tokens = read_count(&e->n_prompt),
        .n_cached_tokens = read_count(&e->n_cached),
        .n_output_tokens = read_count(&e->n_output),
        .n_drafted = read_count(&e->n_drafted),
        .n_accepted = read_count(&e->n_accepted),
        .n_preemptions = read_count(&e->n_preempted),
        .n_images = read_count(&e->n_images),
        .n_images_cached = read_count(&e->n_images_cached),
        .n_running = atomic_load_explicit(&e->n_running, memory_order_relaxed),
        .n_waiting = atomic_load_explicit(&e->n_inbox, memory_order_relaxed) +
                     atomic_load_explicit(&e->n_paused, memory_order_relaxed),
        .n_kv_blocks = e->limits.n_blocks,
        .n_kv_free = atomic_load_explicit(&e->n_kv_free, memory_order_relaxed),
        .vision = e->vcache ? vcache_stats(e->vcache) : (struct vcache_stats){ 0 },
    };
}
