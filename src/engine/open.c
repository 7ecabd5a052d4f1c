/* open.c - from a path to a model that runs: files, device, caches, memory. */
#include <pthread.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/core.h"
#include "src/engine/planner.h"

#define MAX_NEW_DEFAULT      4096
#define VISION_CACHE_DEFAULT (256u << 20)
#define MAX_PIXELS           12845056 /* Qwen2-VL's own limit: 16,384 visual tokens */

static void add_eos(struct engine *e, const int32_t *id, int n)
{
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int k = 0; k < e->n_eos; k++) {
            known = known || e->eos[k] == id[i];
        }
        if (!known && e->n_eos < EOS_MAX) {
            e->eos[e->n_eos++] = id[i];
        }
    }
}

/* Pixels of the largest image a request may ask for by limits of its own: what the plan's memory
 * leaves room for (a job's workspace grows with the pixels), within reason. */
static int64_t largest_image(const struct plan *p, uint64_t memory)
{
    if (p->max_pixels <= 0 || p->vision_job_bytes == 0) {
        return 0;
    }
    const uint64_t others = p->total_bytes - p->vision_job_bytes;
    const double left = memory > others ? (double)(memory - others) : 0;
    const double fits = left / ((double)p->vision_job_bytes / (double)p->max_pixels);
    const int64_t most = fits < MAX_PIXELS ? (int64_t)fits : MAX_PIXELS;
    return most > p->max_pixels ? most : p->max_pixels;
}

/* All sizes at once, from headers: what does not fit is refused before anything is read. */
static enum galley_status plan_memory(struct engine *e, struct plan *p, enum kv_type *kv_type,
                                      const struct engine_config *cfg, struct galley_err *err)
{
    *kv_type = cfg->kv_auto ? plan_kv_auto(&e->cp) : cfg->kv_type;
    const struct plan_request r = {
        .context = cfg->context,
        .max_seqs = e->max_seqs,
        .max_rows = cfg->max_rows,
        .kv_type = *kv_type,
        .kv_bytes = cfg->kv_bytes,
        .memory_bytes = cfg->memory_bytes,
        .n_threads = cfg->n_threads,
        .exact = cfg->exact_linear,
    };
    const enum galley_status rc = plan_make(p, &e->cp, &r, err);
    if (rc) {
        return rc;
    }
    const struct card *card = &e->cp.card;
    e->limits = (struct request_limits){
        .context = p->context,
        .n_blocks = p->n_blocks,
        .n_vocab = e->cp.cfg.text.n_vocab,
        .max_new_default = card->max_new_tokens       ? card->max_new_tokens
                           : e->cp.cfg.max_new_tokens ? e->cp.cfg.max_new_tokens
                                                      : MAX_NEW_DEFAULT,
    };
    e->max_pixels = largest_image(p, cfg->memory_bytes ? cfg->memory_bytes : plan_machine_bytes());
    return GALLEY_OK;
}

/* Where the keys of blocks begin: the model, how its products are made, how its keys and values are
 * stored.  The pool is this model's alone today; a key says so all the same. */
static void root_make(uint8_t root[HASH_BYTES], const struct model *m, enum kv_type type,
                      bool exact)
{
    struct hash h;
    model_hash(m, root);
    hash_init(&h);
    hash_add(&h, root, HASH_BYTES);
    hash_add_int(&h, (int64_t)type);
    hash_add_int(&h, exact);
    hash_finish(&h, root);
}

static enum galley_status open_kv(struct engine *e, enum kv_type type,
                                  const struct engine_config *cfg, struct galley_err *err)
{
    const struct kv_shape shape = model_kv_shape(e->model, type);
    const int n_blocks = e->limits.n_blocks;
    const enum galley_status rc = kv_pool_open(&e->kv, e->dev, &shape, n_blocks, err);
    if (rc) {
        return rc;
    }
    e->found = mem_array((size_t)n_blocks, sizeof(*e->found));
    e->sampler = sampler_new(model_n_vocab(e->model));
    if (!e->found || !e->sampler) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a list of %d blocks", n_blocks);
    }
    uint8_t root[HASH_BYTES];
    root_make(root, e->model, type, cfg->exact_linear);
    return cfg->no_prefix_cache ? GALLEY_OK : prefix_open(&e->prefix, e->kv, root, err);
}

static enum galley_status open_vision_cache(struct engine *e, const struct engine_config *cfg,
                                            struct galley_err *err)
{
    if (!e->vit) {
        return GALLEY_OK;
    }
    const struct vcache_config cache = {
        .memory_bytes = cfg->vision_cache_bytes ? cfg->vision_cache_bytes : VISION_CACHE_DEFAULT,
        .dir = cfg->vision_cache_dir,
        .disk_bytes = cfg->vision_cache_disk_bytes,
        .log = cfg->log,
    };
    e->vision_hash[0] ^= cfg->exact_linear; /* other embeddings, maybe on the same disk */
    return vcache_open(&e->vcache, &cache, err);
}

/* Reading every byte once more for its name would cost a tenth of opening and more: only keys that
 * go to disk, where other models' are, are worth it. */
static enum galley_status open_tower(struct engine *e, const struct engine_config *cfg,
                                     struct weights *w, struct galley_err *err)
{
    const enum galley_status rc =
        cfg->vision_cache_dir ? vit_hash_whole(e->vision_hash, &e->cp.cfg, w, cfg->n_threads, err)
                              : vit_hash(e->vision_hash, &e->cp.cfg, w, err);
    return rc ? rc : vit_open(&e->vit, e->dev, &e->cp.cfg, w, err);
}

static enum galley_status open_weights(struct engine *e, const struct engine_config *cfg,
                                       struct galley_err *err)
{
    struct checkpoint *c = &e->cp;
    enum galley_status rc = device_open_cpu(&e->dev, cfg->isa, cfg->n_threads, err);
    if (!rc) {
        e->dev->ops->set_exact(e->dev, cfg->exact_linear);
    }
    rc = rc ? rc : model_open(&e->model, e->dev, &c->cfg, c->weights, err);
    if (!rc && c->cfg.has_vision) {
        rc = open_tower(e, cfg, c->vision ? c->vision : c->weights, err);
    }
    if (!rc) {
        rc = weights_check_all_used(c->weights, model_ignored_tensors(e->model), err);
    }
    if (!rc && c->vision && c->vision != c->weights) {
        rc = weights_check_all_used(c->vision, NULL, err);
    }
    return rc;
}

struct words_job {
    struct checkpoint *c;
    const char *path;
    enum galley_status rc;
    struct galley_err err;
};

static void *words_open(void *arg)
{
    struct words_job *j = arg;
    j->rc = checkpoint_open_words(j->c, j->path, &j->err);
    return NULL;
}

/* The vocabulary's tables take one thread 30 ms for 150,000 tokens: made while the pool packs, they
 * delay the first token by half of that on two CPUs. */
static enum galley_status open_weights_and_words(struct engine *e, const struct engine_config *cfg,
                                                 struct galley_err *err)
{
    struct words_job j = { .c = &e->cp, .path = cfg->model_path };
    pthread_t thread;
    const bool beside = pthread_create(&thread, NULL, words_open, &j) == 0;
    const enum galley_status rc = open_weights(e, cfg, err);
    if (beside) {
        pthread_join(thread, NULL);
    } else {
        words_open(&j);
    }
    if (j.rc) { /* of two errors the one that was always told first */
        if (err) {
            *err = j.err;
        }
        return j.rc;
    }
    if (!rc) {
        int n;
        const int32_t *more = tokenizer_eos(e->cp.tok, &n);
        add_eos(e, e->cp.cfg.eos, e->cp.cfg.n_eos);
        add_eos(e, more, n);
    }
    return rc;
}

/* A failure's code is GALLEY_EMODEL unless memory or a limit is to blame, so that the CLI can say
 * "model missing or bad". */
enum galley_status engine_open_model(struct engine *e, const struct engine_config *cfg,
                                     struct galley_err *err)
{
    struct plan p = { 0 };
    enum kv_type kv_type = cfg->kv_type;
    enum galley_status rc =
        checkpoint_open(&e->cp, cfg->model_path, cfg->mmproj_path, CHECKPOINT_CONFIG, err);
    rc = rc ? rc : plan_memory(e, &p, &kv_type, cfg, err);
    rc = rc ? rc : open_weights_and_words(e, cfg, err);
    if (rc == GALLEY_EINPUT || rc == GALLEY_EIO) {
        rc = GALLEY_EMODEL;
        if (err) {
            err->status = rc;
        }
    }
    checkpoint_close_files(&e->cp); /* all is packed: who cuts or replaces one changes nothing */
    rc = rc ? rc : open_vision_cache(e, cfg, err); /* its directory is no model */
    rc = rc ? rc : open_kv(e, kv_type, cfg, err);
    if (!rc) {
        log_line(&e->log, LOG_INFO, "engine.model",
                 "language=%lluMB vision=%lluMB kv=%s blocks=%d context=%d card=%s",
                 (unsigned long long)(model_weight_bytes(e->model) >> 20),
                 (unsigned long long)(e->vit ? vit_weight_bytes(e->vit) >> 20 : 0),
                 kv_type_name(kv_type), p.n_blocks, p.context, e->cp.has_card ? "yes" : "no");
    }
    return rc ? rc : pass_init(e, &p, err);
}

void engine_close_model(struct engine *e)
{
    if (e->dev) {
        pass_deinit(e);
    }
    prefix_close(e->prefix);
    if (e->kv) {
        kv_check_lists(e->kv, NULL, 0); /* everything has come back */
    }
    kv_pool_close(e->kv);
    vcache_close(e->vcache);
    vit_close(e->vit);
    sampler_free(e->sampler);
    model_close(e->model);
    mem_free(e->found);
    checkpoint_close(&e->cp);
    device_close(e->dev);
}
