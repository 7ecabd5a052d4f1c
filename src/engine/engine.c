/* engine.c - the engine's life: opening, the inbox, admission, ending. */
#include "src/engine/engine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/engine/core.h"
#include "src/format/chatml.h"

#define MAX_SEQS_DEFAULT   16
#define MAX_ROWS_DEFAULT   512
#define MAX_INBOX_DEFAULT  256
#define SEQ_TOKENS_DEFAULT 1024
#define MAX_NEW_DEFAULT    4096
#define TEXT_BYTES_MAX     (64u << 20)
#define LIMIT_MAX          65536 /* of any limit of the configuration */
#define IMAGES_MAX         256
#define SIDE_MAX           16384

/* ---- opening ---- */

static enum galley_status open_kv(struct engine *e, const struct engine_config *cfg,
                                  struct galley_err *err)
{
    const struct kv_shape shape = model_kv_shape(e->model, KV_F32);
    uint64_t blocks = (uint64_t)e->max_seqs * (SEQ_TOKENS_DEFAULT / KV_BLOCK);
    const uint64_t longest = ((uint64_t)e->cfg.text.max_positions + KV_BLOCK - 1) / KV_BLOCK;
    if (cfg->kv_bytes) {
        blocks = cfg->kv_bytes / kv_block_bytes(&shape);
    } else if (blocks < longest && longest * kv_block_bytes(&shape) < (1u << 30)) {
        blocks = longest;
    }
    if (blocks < 1 || blocks > INT32_MAX / KV_BLOCK) {
        return galley_err_set(err, GALLEY_ELIMIT, "KV pool of %llu bytes holds %llu blocks of %llu",
                              (unsigned long long)cfg->kv_bytes, (unsigned long long)blocks,
                              (unsigned long long)kv_block_bytes(&shape));
    }
    return kv_pool_open(&e->kv, e->dev, &shape, (int)blocks, err);
}

static enum galley_status open_tokenizer(struct engine *e, const char *dir, struct galley_err *err)
{
    char *name = path_join(dir, "tokenizer.json");
    if (!name) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a path");
    }
    enum galley_status rc = tokenizer_open(&e->tok, name, err);
    mem_free(name);
    if (!rc && tokenizer_n_vocab(e->tok) > e->cfg.text.n_vocab) {
        rc = galley_err_set(err, GALLEY_EMODEL,
                            "%s: tokenizer.json has %d tokens, the model only %d", dir,
                            tokenizer_n_vocab(e->tok), e->cfg.text.n_vocab);
    }
    return rc;
}

/* Everything below the thread: a failure's code is GALLEY_EMODEL unless memory or a limit is to
 * blame, so that the CLI can say "model missing or bad". */
static enum galley_status open_model(struct engine *e, const struct engine_config *cfg,
                                     struct galley_err *err)
{
    const char *dir = cfg->model_path;
    bool has_card = false;
    enum galley_status rc = hf_config_read(&e->cfg, dir, err);
    rc = rc ? rc : card_read(&e->card, dir, &has_card, err);
    rc = rc ? rc : open_tokenizer(e, dir, err);
    rc = rc ? rc : chatml_check(e->tok, &e->cfg, err);
    rc = rc ? rc : weights_open(&e->weights, dir, err);
    rc = rc ? rc : device_open_cpu(&e->dev, cfg->isa, cfg->n_threads, err);
    rc = rc ? rc : model_open(&e->model, e->dev, &e->cfg, e->weights, err);
    rc = rc ? rc : vit_open(&e->vit, e->dev, &e->cfg, e->weights, err);
    rc = rc ? rc : weights_check_all_used(e->weights, NULL, err);
    if (rc == GALLEY_EINPUT || rc == GALLEY_EIO) {
        rc = GALLEY_EMODEL;
        if (err) {
            err->status = rc;
        }
    }
    rc = rc ? rc : open_kv(e, cfg, err);
    if (!rc) {
        log_line(&e->log, LOG_INFO, "engine.model", "language=%lluMB vision=%lluMB card=%s",
                 (unsigned long long)(model_weight_bytes(e->model) >> 20),
                 (unsigned long long)(vit_weight_bytes(e->vit) >> 20), has_card ? "yes" : "no");
    }
    return rc ? rc : step_init(e, cfg->max_rows ? cfg->max_rows : MAX_ROWS_DEFAULT, err);
}

static void *engine_thread(void *arg);

enum galley_status engine_open(struct engine **out, const struct engine_config *cfg,
                               struct galley_err *err)
{
    *out = NULL;
    if (!cfg->model_path) {
        return galley_err_set(err, GALLEY_EUSAGE, "an engine needs a model path");
    }
    if (cfg->max_seqs < 0 || cfg->max_rows < 0 || cfg->max_inbox < 0 || cfg->max_seqs > LIMIT_MAX ||
        cfg->max_rows > LIMIT_MAX || cfg->max_inbox > LIMIT_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "%d sequences, %d rows, an inbox of %d: allowed 0 to %d",
                              cfg->max_seqs, cfg->max_rows, cfg->max_inbox, LIMIT_MAX);
    }
    struct engine *e = mem_new(struct engine);
    if (!e) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for an engine");
    }
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->wake, NULL);
    e->inbox_tail = &e->inbox_head;
    e->log = cfg->log;
    e->max_seqs = cfg->max_seqs ? cfg->max_seqs : MAX_SEQS_DEFAULT;
    e->max_inbox = cfg->max_inbox ? cfg->max_inbox : MAX_INBOX_DEFAULT;
    e->live_cap = e->max_inbox + e->max_seqs;
    e->seqs = mem_many(struct seq *, (size_t)e->max_seqs);
    e->live = mem_many(struct request *, (size_t)e->live_cap);
    enum galley_status rc = GALLEY_OK;
    if (!e->seqs || !e->live) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "no memory for %d sequences", e->max_seqs);
    }
    rc = rc ? rc : open_model(e, cfg, err);
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
    if (e->dev) {
        step_deinit(e);
    }
    kv_pool_close(e->kv);
    vit_close(e->vit);
    model_close(e->model);
    weights_close(e->weights);
    device_close(e->dev);
    tokenizer_close(e->tok);
    mem_free(e->patches);
    mem_free(e->seqs);
    mem_free(e->live);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    mem_free(e);
}

/* ---- the inbox: any thread ---- */

enum galley_status engine_submit(struct engine *e, const struct engine_request *r, request_id *id,
                                 struct galley_err *err)
{
    *id = 0;
    const int cell = e->cfg.vision.patch * e->cfg.vision.merge;
    if (r->width < 0 || r->height < 0 || (r->width > 0) != (r->height > 0) || r->width % cell ||
        r->height % cell || r->width > SIDE_MAX || r->height > SIDE_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "image size %dx%d: sides must be multiples of %d up to %d", r->width,
                              r->height, cell, SIDE_MAX);
    }
    if (!r->on_end || r->n_images < 0 || r->n_images > IMAGES_MAX || r->max_new_tokens < 0 ||
        !(r->tau >= 0 && r->tau <= 1)) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "request with %d images (limit %d), %d tokens, tau %g", r->n_images,
                              IMAGES_MAX, r->max_new_tokens, r->tau);
    }
    struct request *q = request_new(r, err);
    if (!q) {
        return GALLEY_ENOMEM;
    }
    pthread_mutex_lock(&e->lock);
    const bool room = e->n_inbox < e->max_inbox && e->n_live < e->live_cap && !e->quit;
    if (room) {
        q->id = ++e->next_id;
        *id = q->id;
        *e->inbox_tail = q;
        e->inbox_tail = &q->next;
        e->n_inbox++;
        e->live[e->n_live++] = q;
        pthread_cond_signal(&e->wake);
    }
    pthread_mutex_unlock(&e->lock);
    if (!room) {
        request_free(q);
        return galley_err_set(err, GALLEY_ELIMIT, "queue is full: %d requests wait", e->max_inbox);
    }
    return GALLEY_OK;
}

void engine_cancel(struct engine *e, request_id id)
{
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < e->n_live; i++) {
        if (e->live[i]->id == id) {
            atomic_store_explicit(&e->live[i]->cancelled, true, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&e->lock);
}

/* Takes the oldest waiting request; waits for one (or for quit) when `block`. */
static struct request *inbox_take(struct engine *e, bool block, bool *quit)
{
    pthread_mutex_lock(&e->lock);
    while (block && !e->inbox_head && !e->quit) {
        pthread_cond_wait(&e->wake, &e->lock);
    }
    struct request *q = e->inbox_head;
    if (q) {
        e->inbox_head = q->next;
        if (!e->inbox_head) {
            e->inbox_tail = &e->inbox_head;
        }
        q->next = NULL;
        e->n_inbox--;
    }
    *quit = e->quit;
    pthread_mutex_unlock(&e->lock);
    return q;
}

/* Puts a request back at the head: it does not fit yet. */
static void inbox_untake(struct engine *e, struct request *q)
{
    pthread_mutex_lock(&e->lock);
    q->next = e->inbox_head;
    e->inbox_head = q;
    if (!q->next) {
        e->inbox_tail = &q->next;
    }
    e->n_inbox++;
    pthread_mutex_unlock(&e->lock);
}

static void forget_live(struct engine *e, const struct request *q)
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

/* ---- ending ---- */

/* Output tokens as valid UTF-8. */
static void decode_text(const struct engine *e, const struct seq *s, struct buf *text)
{
    struct buf raw;
    buf_init(&raw, TEXT_BYTES_MAX);
    for (int i = 0; i < s->n_out; i++) {
        tokenizer_decode(e->tok, s->out[i], false, &raw);
    }
    buf_add_utf8(text, raw.data, raw.n);
    text->failed = text->failed || !buf_ok(&raw);
    buf_deinit(&raw);
}

static void deliver(const struct engine *e, const struct seq *s, const struct request *q,
                    enum finish finish, enum galley_status status, const char *error)
{
    struct engine_result r = {
        .id = q->id, .finish = finish, .status = status, .error = error, .text = ""
    };
    struct buf text;
    buf_init(&text, 2 * TEXT_BYTES_MAX);
    if (s) {
        decode_text(e, s, &text);
        if (!buf_ok(&text)) {
            r.finish = FINISH_FAILED;
            r.status = GALLEY_ENOMEM;
            r.error = "no memory for the text";
        } else if (text.n) {
            r.text = text.data;
            r.n_text = text.n;
        }
        r.n_prompt = s->n_prompt;
        r.n_visual = s->n_visual;
        r.n_output = s->n_out;
        r.n_steps = s->n_steps;
        r.n_drafted = s->n_drafted;
        r.n_accepted = s->n_accepted;
        r.mean_logprob = s->n_out ? s->sum_logprob / s->n_out : 0;
        r.encode_seconds = s->encode_seconds;
        r.prefill_seconds = s->prefill_seconds;
        r.decode_seconds = s->decode_seconds;
    }
    q->on_end(q->user, &r);
    buf_deinit(&text);
}

/* Ends a sequence that is not (or no longer) in e->seqs. */
static void retire(struct engine *e, struct seq *s, enum finish finish, enum galley_status status,
                   const char *error)
{
    kv_seq_clear(e->kv, &s->kv);
    e->n_reserved -= s->n_reserved;
    forget_live(e, s->req);
    deliver(e, s, s->req, finish, status, error);
    seq_free(s);
}

void engine_end_seq(struct engine *e, struct seq *s, enum finish finish, enum galley_status status,
                    const char *error)
{
    int i = 0;
    while (e->seqs[i] != s) {
        i++;
        assert(i < e->n_seqs);
    }
    e->n_seqs--;
    memmove(&e->seqs[i], &e->seqs[i + 1], (size_t)(e->n_seqs - i) * sizeof(*e->seqs));
    retire(e, s, finish, status, error);
}

/* ---- admission: engine thread ---- */

static bool reserve_patches(struct engine *e, size_t n)
{
    if (n <= e->n_patches_cap) {
        return true;
    }
    mem_free(e->patches);
    e->patches = mem_aligned(n * sizeof(float));
    e->n_patches_cap = e->patches ? n : 0;
    return e->patches != NULL;
}

/* Pixels to embeddings, all images of the request in one go. */
static enum galley_status encode_images(struct engine *e, struct seq *s,
                                        const struct vision_grid *grids, struct galley_err *err)
{
    const struct request *q = s->req;
    if (q->n_images == 0) {
        return GALLEY_OK;
    }
    const double start = clock_seconds();
    const size_t per_patch = vision_patch_floats(&e->cfg.vision);
    size_t n = 0;
    for (int i = 0; i < q->n_images; i++) {
        n += (size_t)grids[i].t * (size_t)grids[i].h * (size_t)grids[i].w;
    }
    s->embd = mem_aligned((size_t)s->n_visual * (size_t)model_hidden(e->model) * sizeof(float));
    if (!s->embd || !reserve_patches(e, n * per_patch)) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %zu image patches", n);
    }
    float *at = e->patches;
    for (int i = 0; i < q->n_images; i++) {
        const enum galley_status rc = vision_patches(at, q->images[i], &grids[i], &e->cfg, err);
        if (rc) {
            return rc;
        }
        at += (size_t)grids[i].t * (size_t)grids[i].h * (size_t)grids[i].w * per_patch;
    }
    const enum galley_status rc = vit_encode(e->vit, s->embd, e->patches, grids, q->n_images, err);
    s->encode_seconds = clock_seconds() - start;
    return rc;
}

static int blocks_for(int n_tokens)
{
    return (n_tokens + KV_BLOCK - 1) / KV_BLOCK;
}

/* False: there is no room for the sequence beside the running ones yet. */
static bool reserve_kv(struct engine *e, struct seq *s)
{
    const int need = blocks_for(s->n_prompt + s->max_out);
    const int n_total = kv_pool_n_free(e->kv);
    int held = 0;
    for (int i = 0; i < e->n_seqs; i++) {
        held += e->seqs[i]->kv.n_blocks;
    }
    if (e->n_reserved + need > n_total + held) {
        return false;
    }
    s->n_reserved = need;
    e->n_reserved += need;
    return true;
}

/* What a request that can never fit is told. */
static enum galley_status too_long(const struct engine *e, const struct seq *s,
                                   struct galley_err *err)
{
    return galley_err_set(err, GALLEY_ELIMIT, "request needs %d tokens of KV, the pool has %d",
                          s->n_prompt + s->max_out, kv_pool_n_free(e->kv) * KV_BLOCK);
}

/* Sets one request up as a running sequence.  False when it had to be put back. */
static bool admit(struct engine *e, struct request *q)
{
    struct galley_err err = { 0 };
    const struct seq_context ctx = {
        .cfg = &e->cfg,
        .tok = e->tok,
        .max_new_default = e->card.max_new_tokens  ? e->card.max_new_tokens
                           : e->cfg.max_new_tokens ? e->cfg.max_new_tokens
                                                   : MAX_NEW_DEFAULT,
    };
    struct vision_grid grids[IMAGES_MAX];
    struct seq *s;
    enum galley_status rc = seq_new(&s, q, grids, &ctx, &err);
    if (!s) { /* not even memory for the sequence: the request is still ours */
        forget_live(e, q);
        deliver(e, NULL, q, FINISH_FAILED, rc, err.msg);
        request_free(q);
        return true;
    }
    if (!rc && atomic_load_explicit(&q->cancelled, memory_order_relaxed)) {
        retire(e, s, FINISH_CANCELLED, GALLEY_ECANCELLED, "cancelled");
        return true;
    }
    if (!rc && !reserve_kv(e, s)) {
        if (e->n_seqs > 0) {
            s->req = NULL;
            seq_free(s);
            inbox_untake(e, q);
            return false;
        }
        rc = too_long(e, s, &err);
    }
    rc = rc ? rc : encode_images(e, s, grids, &err);
    if (rc) {
        retire(e, s, FINISH_FAILED, rc, err.msg);
        return true;
    }
    e->seqs[e->n_seqs++] = s;
    return true;
}

static void drop_cancelled(struct engine *e, bool all)
{
    for (int i = e->n_seqs - 1; i >= 0; i--) {
        struct seq *s = e->seqs[i];
        if (all || atomic_load_explicit(&s->req->cancelled, memory_order_relaxed)) {
            engine_end_seq(e, s, FINISH_CANCELLED, GALLEY_ECANCELLED, "cancelled");
        }
    }
}

/* Everything that waits or runs ends as cancelled. */
static void drain(struct engine *e)
{
    drop_cancelled(e, true);
    for (;;) {
        bool quit;
        struct request *q = inbox_take(e, false, &quit);
        if (!q) {
            return;
        }
        forget_live(e, q);
        deliver(e, NULL, q, FINISH_CANCELLED, GALLEY_ECANCELLED, "engine closed");
        request_free(q);
    }
}

static void *engine_thread(void *arg)
{
    struct engine *e = arg;
    int stalled_at = e->max_seqs;
    for (;;) {
        bool quit = false;
        if (e->n_seqs < stalled_at) {
            stalled_at = e->max_seqs;
        }
        while (e->n_seqs < e->max_seqs && e->n_seqs < stalled_at) {
            struct request *q = inbox_take(e, e->n_seqs == 0, &quit);
            if (quit || !q) {
                if (q) {
                    inbox_untake(e, q);
                }
                break;
            }
            if (!admit(e, q)) {
                stalled_at = e->n_seqs; /* try again when one has ended */
                break;
            }
        }
        if (quit) {
            drain(e);
            return NULL;
        }
        drop_cancelled(e, false);
        struct galley_err err = { 0 };
        if (e->n_seqs > 0 && step_run(e, &err) != GALLEY_OK) {
            /* A failed pass says nothing about one sequence: all that took part fail, aloud. */
            log_line(&e->log, LOG_WARN, "engine.step", "%s", err.msg);
            while (e->n_seqs > 0) {
                engine_end_seq(e, e->seqs[0], FINISH_FAILED, err.status, err.msg);
            }
        }
    }
}

/* ---- asking ---- */

const struct hf_config *engine_hf_config(const struct engine *e)
{
    return &e->cfg;
}

const struct card *engine_card(const struct engine *e)
{
    return &e->card;
}

const char *engine_device_name(const struct engine *e)
{
    return e->dev->ops->name;
}

struct engine_totals engine_totals(const struct engine *e)
{
    return (struct engine_totals){
        .n_passes = atomic_load_explicit(&e->n_passes, memory_order_relaxed),
        .n_rows = atomic_load_explicit(&e->n_rows, memory_order_relaxed),
    };
}
