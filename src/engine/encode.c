/* encode.c - images to embeddings, in pieces between forward passes.
 *
 * An image that several sequences need is encoded once, for all of them.  Small images are put
 * together into one job, so that the tower's weights are read once for many; attention never
 * crosses images and rows do not depend on their company, so the bits are those of an image alone.
 * A job nobody waits for any more is dropped at once. */
#include <assert.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/engine/core.h"

#define JOB_PATCHES 1024 /* of images that share a job: about one slice of the tower */

/* One image on its way; lives while somebody waits for it or a job works on it. */
struct encoding {
    uint8_t key[HASH_BYTES];
    struct image *image; /* a reference */
    struct vision_grid grid;
    int n_rows;
    int n_users; /* sequences that await it */
    bool in_job;
    struct vembed *embed; /* while in a job */
};

static int n_patches(const struct vision_grid *g)
{
    return g->t * g->h * g->w;
}

static void encoding_free(struct encoding *x)
{
    image_unref(x->image);
    vembed_unref(x->embed);
    mem_free(x);
}

static struct encoding *encoding_new(const struct prompt_image *im)
{
    struct encoding *x = mem_new(struct encoding);
    if (x) {
        memcpy(x->key, im->key, HASH_BYTES);
        x->image = image_ref(im->image);
        x->grid = im->grid;
        x->n_rows = im->n_rows;
    }
    return x;
}

static struct encoding *find_encoding(const struct engine *e, const uint8_t *key)
{
    for (int i = 0; i < e->n_seqs; i++) {
        const struct seq *s = e->seqs[i];
        for (int k = 0; k < s->req->prompt.n_images; k++) {
            struct encoding *x = s->image[k].awaited;
            if (x && memcmp(x->key, key, HASH_BYTES) == 0) {
                return x;
            }
        }
    }
    return NULL;
}

static void count_cached(struct engine *e, struct seq *s)
{
    if (s->n_preempted == 0) {
        s->n_images_cached++;
        count_add(&e->n_images_cached, 1);
    }
}

enum galley_status encode_order(struct engine *e, struct seq *s, struct galley_err *err)
{
    const struct prompt *p = &s->req->prompt;
    for (int k = 0; k < p->n_images; k++) {
        const struct prompt_image *im = &p->image[k];
        struct seq_image *mine = &s->image[k];
        if (mine->embed || mine->awaited) {
            continue;
        }
        if (im->at + im->n_rows <= s->n_kv) {
            count_cached(e, s); /* even its keys and values are there */
            continue;
        }
        mine->embed = vcache_find(e->vcache, im->key, im->n_rows, model_hidden(e->model));
        struct encoding *x = mine->embed ? NULL : find_encoding(e, im->key);
        if (mine->embed || x) {
            count_cached(e, s);
        } else {
            x = encoding_new(im);
            if (!x) {
                return galley_err_set(err, GALLEY_ENOMEM, "no memory for image %d", k + 1);
            }
        }
        if (x) {
            x->n_users++;
            mine->awaited = x;
        }
    }
    return GALLEY_OK;
}

/* ---- the job ---- */

static void job_free(struct engine *e)
{
    struct encode_job *j = &e->encode;
    vit_job_free(j->job);
    vision_prep_free(j->prep);
    mem_free(j->patches);
    if (j->out_is_shared) {
        mem_free(j->out);
    }
    for (int i = 0; i < j->n_parts; i++) {
        struct encoding *x = j->part[i];
        x->in_job = false;
        vembed_unref(x->embed);
        x->embed = NULL;
        if (x->n_users == 0) {
            encoding_free(x);
        }
    }
    *j = (struct encode_job){ 0 };
}

void encode_release(struct engine *e, struct seq *s)
{
    for (int k = 0; k < s->req->prompt.n_images; k++) {
        struct seq_image *mine = &s->image[k];
        vembed_unref(mine->embed);
        mine->embed = NULL;
        struct encoding *x = mine->awaited;
        mine->awaited = NULL;
        if (x && --x->n_users == 0 && !x->in_job) {
            encoding_free(x);
        }
    }
    int n_users = 0;
    for (int i = 0; i < e->encode.n_parts; i++) {
        n_users += e->encode.part[i]->n_users;
    }
    if (e->encode.n_parts > 0 && n_users == 0) {
        job_free(e);
    }
}

static struct encoding *next_of(const struct seq *s, int max_patches)
{
    for (int k = 0; !s->ended && k < s->req->prompt.n_images; k++) {
        struct encoding *x = s->image[k].awaited;
        if (x && !x->in_job && (max_patches == 0 || n_patches(&x->grid) <= max_patches)) {
            return x;
        }
    }
    return NULL;
}

/* The first image waited for that no job works on, by the order of those who wait: of those that
 * run or of those that stopped. */
static struct encoding *next_among(const struct engine *e, bool paused, int max_patches)
{
    struct encoding *x = NULL;
    for (int i = 0; i < e->n_seqs && !x; i++) {
        x = e->seqs[i]->paused == paused ? next_of(e->seqs[i], max_patches) : NULL;
    }
    return x;
}

static struct encoding *next_waiting(const struct engine *e, int max_patches)
{
    struct encoding *x = next_among(e, false, max_patches);
    return x ? x : next_among(e, true, max_patches);
}

bool encode_waits(const struct engine *e)
{
    return e->encode.n_parts > 0 || next_waiting(e, 0) != NULL;
}

/* A running sequence waits for what the job works on. */
static bool job_is_wanted(const struct engine *e)
{
    bool wanted = false;
    for (int i = 0; i < e->n_seqs && !wanted; i++) {
        const struct seq *s = e->seqs[i];
        for (int k = 0; !s->paused && k < s->req->prompt.n_images; k++) {
            wanted = wanted || (s->image[k].awaited && s->image[k].awaited->in_job);
        }
    }
    return wanted;
}

/* Everybody who waits for x fails with it. */
static void fail_users(struct engine *e, struct encoding *x, const struct galley_err *err)
{
    bool found = true;
    while (found) { /* ending one may free x: look again from the start, not into it */
        found = false;
        for (int i = 0; i < e->n_seqs && !found; i++) {
            struct seq *s = e->seqs[i];
            for (int k = 0; !s->ended && k < s->req->prompt.n_images; k++) {
                if (s->image[k].awaited == x) {
                    sched_end(e, s, FINISH_FAILED, err->status, err->msg);
                    found = true;
                    break;
                }
            }
        }
    }
}

/* The images of the next job: the first that is waited for, and small ones to go with it. */
static int choose_parts(struct engine *e)
{
    struct encode_job *j = &e->encode;
    int total = 0;
    struct encoding *x = next_waiting(e, 0);
    while (x && j->n_parts < ENCODE_IMAGES_MAX) {
        j->part[j->n_parts++] = x;
        x->in_job = true;
        total += n_patches(&x->grid);
        x = total < JOB_PATCHES ? next_waiting(e, JOB_PATCHES - total) : NULL;
    }
    return total;
}

static enum galley_status job_memory(struct engine *e, int total, struct galley_err *err)
{
    struct encode_job *j = &e->encode;
    const size_t per_patch = vision_patch_floats(&e->cp.cfg.vision);
    const int width = model_hidden(e->model);
    size_t n_rows = 0;
    j->patches = mem_aligned((size_t)total * per_patch * sizeof(float));
    bool ok = j->patches != NULL;
    for (int i = 0; i < j->n_parts; i++) {
        j->part[i]->embed = vembed_new(j->part[i]->n_rows, width);
        ok = ok && j->part[i]->embed;
        n_rows += (size_t)j->part[i]->n_rows;
    }
    j->out_is_shared = j->n_parts > 1;
    if (ok) {
        j->out = j->out_is_shared ? mem_aligned(n_rows * (size_t)width * sizeof(float))
                                  : j->part[0]->embed->data;
    }
    return j->out ? GALLEY_OK
                  : galley_err_set(err, GALLEY_ENOMEM, "no memory for %d image patches", total);
}

/* Chooses the images of a job, and memory for them. */
static enum galley_status job_begin(struct engine *e, struct galley_err *err)
{
    return job_memory(e, choose_parts(e), err);
}

/* A piece of pixels to patches, part by part; after the last the job itself.  *bad: the image whose
 * fault a failure is; NULL: nobody's. */
static enum galley_status job_prepare(struct engine *e, struct encoding **bad,
                                      struct galley_err *err)
{
    struct encode_job *j = &e->encode;
    struct encoding *x = j->part[j->n_ready];
    enum galley_status rc = GALLEY_OK;
    *bad = x;
    if (!j->prep) {
        return vision_prep_new(&j->prep, x->image, &x->grid, &e->cp.cfg, err);
    }
    if (!vision_prep_step(j->prep, j->patches + j->at)) {
        return rc;
    }
    vision_prep_free(j->prep);
    j->prep = NULL;
    j->at += (size_t)n_patches(&x->grid) * vision_patch_floats(&e->cp.cfg.vision);
    if (++j->n_ready == j->n_parts) {
        struct vision_grid grids[ENCODE_IMAGES_MAX];
        for (int i = 0; i < j->n_parts; i++) {
            grids[i] = j->part[i]->grid;
        }
        *bad = NULL;
        rc = vit_job_new(&j->job, e->vit, j->patches, grids, j->n_parts, err);
    }
    return rc;
}

/* When nobody in particular is to blame, the first pays; the others are tried again. */
static void job_fail(struct engine *e, struct encoding *bad, const struct galley_err *err)
{
    struct encoding *blamed = bad ? bad : e->encode.part[0];
    job_free(e);
    fail_users(e, blamed, err);
    sched_sweep(e);
}

static void hand_out(struct engine *e, struct encoding *x)
{
    vcache_add(e->vcache, x->key, x->embed);
    for (int i = 0; i < e->n_seqs; i++) {
        struct seq *s = e->seqs[i];
        for (int k = 0; k < s->req->prompt.n_images; k++) {
            if (s->image[k].awaited == x) {
                s->image[k].awaited = NULL;
                s->image[k].embed = vembed_ref(x->embed);
                x->n_users--;
            }
        }
    }
    assert(x->n_users == 0);
}

static void job_finish(struct engine *e)
{
    struct encode_job *j = &e->encode;
    const size_t width = (size_t)model_hidden(e->model);
    const float *at = j->out;
    for (int i = 0; i < j->n_parts; i++) {
        struct encoding *x = j->part[i];
        const size_t n = (size_t)x->n_rows * width;
        if (j->out_is_shared) {
            memcpy(x->embed->data, at, n * sizeof(float));
            at += n;
        }
        hand_out(e, x);
    }
    job_free(e);
}

/* Charges a piece of work to those who wait for it, by images. */
static void share_time(struct engine *e, double seconds)
{
    int n = 0;
    for (int i = 0; i < e->encode.n_parts; i++) {
        n += e->encode.part[i]->n_users;
    }
    for (int i = 0; i < e->n_seqs && n > 0; i++) {
        struct seq *s = e->seqs[i];
        for (int k = 0; k < s->req->prompt.n_images; k++) {
            if (s->image[k].awaited && s->image[k].awaited->in_job) {
                s->encode_seconds += seconds / n;
            }
        }
    }
}

void encode_step(struct engine *e)
{
    const double start = clock_seconds();
    struct encode_job *j = &e->encode;
    if (j->n_parts > 0 && next_among(e, false, 0) && !job_is_wanted(e)) {
        job_free(e); /* who stopped for others begins its image again */
    }
    bool done = false;
    if (j->job) {
        done = vit_job_step(j->job, j->out);
    } else {
        struct galley_err err = { 0 };
        struct encoding *bad = NULL;
        const enum galley_status rc =
            j->n_parts == 0 ? job_begin(e, &err) : job_prepare(e, &bad, &err);
        if (rc) {
            job_fail(e, bad, &err);
            return;
        }
    }
    share_time(e, clock_seconds() - start);
    if (done) {
        job_finish(e);
    }
}
