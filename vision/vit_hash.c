/* vit_hash.c - the identity of a vision tower, for cache keys: number by number, the same on every
 * build. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/format/tensor_hash.h"
#include "vision/vit_impl.h"

#define VIT_ARITHMETIC 2 /* raise it when the same weights begin to give other bits */

static void add_config(struct hash *h, const struct hf_config *cfg)
{
    const struct hf_vision_config *c = &cfg->vision;
    const struct hf_preprocess *pre = &cfg->pre;
    const int ints[] = { VIT_ARITHMETIC,  c->hidden,      c->depth,  c->n_head,
                         c->intermediate, c->out_hidden,  c->patch,  c->temporal_patch,
                         c->merge,        c->in_channels, c->window, c->n_fullatt,
                         c->gated_rms };
    for (size_t i = 0; i < COUNT(ints); i++) {
        hash_add_int(h, ints[i]);
    }
    for (int i = 0; i < c->n_fullatt; i++) {
        hash_add_int(h, c->fullatt[i]);
    }
    hash_add_number(h, c->norm_eps);
    for (int i = 0; i < 3; i++) {
        hash_add_number(h, (double)pre->mean[i]);
        hash_add_number(h, (double)pre->std[i]);
    }
    hash_add_number(h, (double)pre->rescale);
}

/* The tower's tensors: their names begin with scope. */
struct scope {
    char name[32];
    size_t n;
};

static struct scope scope_of(const struct weights *w)
{
    struct scope s;
    s.n = (size_t)snprintf(s.name, sizeof(s.name), "%svisual.", vit_prefix(w));
    return s;
}

/* The i-th tensor's name in the tower; NULL when it is not one of the tower's. */
static const char *name_in(const struct scope *s, const struct weights *w, int i)
{
    const char *name = weights_name_at(w, i);
    return strncmp(name, s->name, s->n) == 0 ? name + s->n : NULL;
}

enum galley_status vit_hash(unsigned char out[HASH_BYTES], const struct hf_config *cfg,
                            const struct weights *w, struct galley_err *err)
{
    const struct scope s = scope_of(w);
    struct hash h;
    hash_init(&h);
    add_config(&h, cfg);
    for (int i = 0; i < weights_count(w); i++) {
        const char *name = name_in(&s, w, i);
        if (name && !tensor_hash(&h, name, weights_tensor_at(w, i))) {
            return weights_cut(w, weights_name_at(w, i), err);
        }
    }
    hash_finish(&h, out);
    return GALLEY_OK;
}

/* ---- every byte ---- */

struct digests {
    const struct weights *w;
    struct scope scope;
    unsigned char (
        *of)[HASH_BYTES]; /* [weights_count(w)] zero for those that are not the tower's */
    atomic_int cut;       /* a tensor that could not be read, plus 1; 0: none */
};

static void digest_one(void *arg, int i, int i_thread)
{
    (void)i_thread;
    struct digests *d = arg;
    const char *name = name_in(&d->scope, d->w, i);
    if (name && !tensor_digest(d->of[i], name, weights_tensor_at(d->w, i))) {
        atomic_store(&d->cut, i + 1);
    }
}

enum galley_status vit_hash_whole(unsigned char out[HASH_BYTES], const struct hf_config *cfg,
                                  const struct weights *w, int n_threads, struct galley_err *err)
{
    const int n = weights_count(w);
    struct pool *pool;
    const enum galley_status rc = pool_open(&pool, n_threads, err);
    if (rc) {
        return rc;
    }
    struct digests d = { .w = w, .scope = scope_of(w) };
    d.of = mem_zero_array((size_t)n, sizeof(*d.of));
    if (!d.of) {
        pool_close(pool);
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: digests of %d tensors", n);
    }
    pool_run(pool, digest_one, &d, n);
    pool_close(pool);
    const int cut = atomic_load(&d.cut);
    if (cut) {
        mem_free(d.of);
        return weights_cut(w, weights_name_at(w, cut - 1), err);
    }
    struct hash h;
    hash_init(&h);
    add_config(&h, cfg);
    hash_add(&h, d.of, (size_t)n * sizeof(*d.of));
    hash_finish(&h, out);
    mem_free(d.of);
    return GALLEY_OK;
}
