/* planner.c - see planner.h. */
#include "src/engine/planner.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "src/base/cgroup.h"
#include "src/base/pool.h"
#include "src/model/desc.h"
#include "src/model/model.h"
#include "vision/vision.h"

#define SEQS_DEFAULT 16
#define ROWS_DEFAULT 512
#define LOGIT_BYTES  (64ull << 20)
#define WANT_MIN     16
#define COLUMNS      32 /* packed matrices are padded to so many columns (gemm.h, qgemm.h) */
/* Everything small: tokenizer, names, thread stacks, allocator slack. */
#define FIXED_BYTES (48ull << 20)
#define CONTEXT_MAX (1 << 24)
#define LIMIT_MAX   65536               /* sequences, rows */
#define PIXELS_MAX  INT64_C(1000000000) /* of one image */

/* Rows of one step that may have logits: 64 MiB of them, but 16 at least and one per sequence. */
static int max_want(int n_vocab, int max_rows, int max_seqs)
{
    uint64_t want = LOGIT_BYTES / ((uint64_t)n_vocab * sizeof(float));
    want = want < WANT_MIN ? WANT_MIN : want;
    want = want < (uint64_t)max_seqs ? (uint64_t)max_seqs : want;
    return want > (uint64_t)max_rows ? max_rows : (int)want;
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool is_vision(const char *name)
{
    return starts_with(name, "visual.") || starts_with(name, "model.visual.");
}

static bool ends_with(const char *s, const char *tail)
{
    const size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

/* A tensor as the device keeps it: matrices padded, vectors as f32. */
static uint64_t packed_bytes(const struct tensor *t)
{
    uint64_t n_in = 1;
    for (int i = 1; i < t->n_dim; i++) {
        n_in *= (uint64_t)t->shape[i];
    }
    const uint64_t n_out = t->n_dim > 0 ? (uint64_t)t->shape[0] : 1;
    if (t->n_dim < 2) {
        return n_out * sizeof(float);
    }
    return (n_out + COLUMNS - 1) / COLUMNS * COLUMNS * dtype_row_bytes(t->dtype, n_in);
}

struct sums {
    uint64_t language, vision, table;
    int widest[DTYPE_COUNT]; /* inputs of a matrix of each type */
    double flops;            /* multiply-adds of the language model's matrices, twice */
};

/* Rows for the widest matrix of a type are quantised into one buffer. */
static void note_width(struct sums *s, const struct tensor *t, bool unused)
{
    int64_t n_in = 1;
    for (int i = 1; i < t->n_dim; i++) {
        if (t->shape[i] < 1 || t->shape[i] > INT32_MAX / n_in) {
            return; /* binding will say so */
        }
        n_in *= t->shape[i];
    }
    if (t->n_dim >= 2 && !unused && n_in > s->widest[t->dtype]) {
        s->widest[t->dtype] = (int)n_in;
    }
}

static void add_tensor(struct sums *s, const struct checkpoint *c, const char *name,
                       const struct tensor *t)
{
    if ((size_t)t->dtype >= DTYPE_COUNT) {
        return; /* a type nobody can read: binding will say so */
    }
    const uint64_t bytes = packed_bytes(t);
    const bool embed = ends_with(name, "embed_tokens.weight");
    const bool table = embed && (!c->cfg.text.tied || weights_has(c->weights, "lm_head.weight"));
    note_width(s, t, table || (is_vision(name) && !c->cfg.has_vision));
    if (is_vision(name)) {
        s->vision += bytes;
        return;
    }
    const double products = t->n_dim == 2 ? 2.0 * (double)t->shape[0] * (double)t->shape[1] : 0;
    s->language += bytes;
    if (table) {
        s->table += bytes; /* a step reads a few rows of it */
        return;
    }
    s->flops += products;
}

static void add_weights(struct sums *s, const struct checkpoint *c, const struct weights *w)
{
    for (int i = 0; i < weights_count(w); i++) {
        add_tensor(s, c, weights_name_at(w, i), weights_tensor_at(w, i));
    }
}

/* The largest picture's patch grid: a square of max_pixels. */
static struct vision_grid largest_grid(const struct hf_config *cfg, int64_t max_pixels)
{
    const int cell = cfg->vision.patch * cfg->vision.merge;
    int side = (int)sqrt((double)max_pixels) / cell * cell;
    side = side < cell ? cell : side;
    return (struct vision_grid){ 1, side / cfg->vision.patch, side / cfg->vision.patch };
}

static uint64_t step_bytes(const struct plan *p, const struct model_desc *d)
{
    const uint64_t want = (uint64_t)p->max_want;
    return model_step_bytes(d, p->max_rows, p->max_want) +
           want * (uint64_t)d->n_vocab * sizeof(float);
}

/* Most tokens of KV that `bytes` can hold, in whole blocks. */
static uint64_t tokens_in(uint64_t bytes, uint64_t token_bytes)
{
    return bytes / (token_bytes * KV_BLOCK) * KV_BLOCK;
}

static double gb(uint64_t bytes)
{
    return (double)bytes / 1e9;
}

static enum galley_status too_big(const struct plan *p, uint64_t kv, uint64_t memory,
                                  struct galley_err *err)
{
    return galley_err_set(
        err, GALLEY_ELIMIT,
        "weights need %.2f GB, one step %.2f, vision %.2f, KV of one sequence of %d tokens %.2f: "
        "%.2f GB in all, there are %.2f; use a smaller context, a smaller KV type or a smaller "
        "model",
        gb(p->language_bytes + p->vision_bytes), gb(p->step_bytes), gb(p->vision_job_bytes),
        p->context, gb(kv), gb(p->total_bytes + kv), gb(memory));
}

/* Shares the memory that is left out to sequences; total_bytes holds all but KV on entry. */
static enum galley_status plan_kv(struct plan *p, const struct plan_request *r, uint64_t memory,
                                  struct galley_err *err)
{
    const uint64_t left = memory > p->total_bytes ? memory - p->total_bytes : 0;
    const uint64_t tokens = tokens_in(left, p->kv_token_bytes);
    const uint64_t one = ((uint64_t)p->context + KV_BLOCK - 1) / KV_BLOCK * KV_BLOCK;
    if (tokens < one) {
        return too_big(p, one * p->kv_token_bytes, memory, err);
    }
    p->fit_seqs = (int)(tokens / one > 65536 ? 65536 : tokens / one);
    const uint64_t each = tokens / (uint64_t)p->max_seqs / KV_BLOCK * KV_BLOCK;
    p->fit_context = each > (uint64_t)p->model_context ? p->model_context : (int)each;
    const uint64_t all = one * (uint64_t)p->max_seqs;
    uint64_t n = r->kv_bytes ? tokens_in(r->kv_bytes, p->kv_token_bytes) : all;
    if (r->kv_bytes && n < KV_BLOCK) {
        return galley_err_set(err, GALLEY_ELIMIT, "a KV cache of %llu bytes holds no block: %llu",
                              (unsigned long long)r->kv_bytes,
                              (unsigned long long)(p->kv_token_bytes * KV_BLOCK));
    }
    if (n > tokens) {
        n = tokens; /* sequences will share: preemption copes */
    }
    p->n_blocks = (int)(n / KV_BLOCK > INT32_MAX / KV_BLOCK ? INT32_MAX / KV_BLOCK : n / KV_BLOCK);
    p->kv_bytes = (uint64_t)p->n_blocks * KV_BLOCK * p->kv_token_bytes;
    p->total_bytes += p->kv_bytes;
    return GALLEY_OK;
}

/* Returns what the device needs beside them. */
static uint64_t plan_weights(struct plan *p, const struct checkpoint *c, int n_threads, bool exact)
{
    static const int none[DTYPE_COUNT];
    struct sums s = { 0 };
    add_weights(&s, c, c->weights);
    if (c->vision && c->vision != c->weights) {
        add_weights(&s, c, c->vision);
    }
    p->language_bytes = s.language;
    p->vision_bytes = c->cfg.has_vision ? s.vision : 0;
    p->flops_per_row = s.flops;
    p->bytes_per_step = (double)(s.language - s.table);
    p->quantised = weights_are_quantised(c->weights);
    return device_cpu_bytes(n_threads, exact ? none : s.widest);
}

enum kv_type plan_kv_auto(const struct checkpoint *c)
{
    return weights_are_quantised(c->weights) ? KV_F16 : KV_F32;
}

uint64_t plan_machine_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
    struct cgroup group;
    cgroup_read(&group);
    if (group.memory_bytes > 0 && (bytes == 0 || group.memory_bytes < bytes)) {
        bytes = group.memory_bytes;
    }
    return bytes / 10 * 9;
}

/* Beyond these the sums would no longer be sure to fit their types. */
static enum galley_status check_request(const struct plan_request *r, struct galley_err *err)
{
    if (r->n_threads < 0 || r->n_threads > POOL_THREADS_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d threads asked for, limit %d", r->n_threads,
                              POOL_THREADS_MAX);
    }
    if (r->context < 0 || r->max_seqs < 0 || r->max_rows < 0 || r->max_seqs > LIMIT_MAX ||
        r->max_rows > LIMIT_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "a context of %d, %d sequences, %d rows: none may be negative, nor "
                              "the last two over %d",
                              r->context, r->max_seqs, r->max_rows, LIMIT_MAX);
    }
    if (r->max_pixels < 0 || r->max_pixels > PIXELS_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "max_pixels is %lld, allowed 0 to %lld",
                              (long long)r->max_pixels, (long long)PIXELS_MAX);
    }
    return GALLEY_OK;
}

enum galley_status plan_make(struct plan *out, const struct checkpoint *c,
                             const struct plan_request *r, struct galley_err *err)
{
    *out = (struct plan){ 0 };
    const struct hf_text_config *t = &c->cfg.text;
    struct model_desc d;
    enum galley_status rc = check_request(r, err);
    rc = rc ? rc : model_desc_init(&d, &c->cfg, err);
    if (rc) {
        return rc;
    }
    const uint64_t memory = r->memory_bytes ? r->memory_bytes : plan_machine_bytes();
    out->max_seqs = r->max_seqs ? r->max_seqs : SEQS_DEFAULT;
    out->max_rows = r->max_rows ? r->max_rows : ROWS_DEFAULT;
    out->max_rows = out->max_rows < out->max_seqs ? out->max_seqs : out->max_rows;
    out->max_want = max_want(t->n_vocab, out->max_rows, out->max_seqs);
    const uint64_t device_bytes = plan_weights(out, c, r->n_threads, r->exact);
    const struct kv_shape shape = { t->n_layers, t->n_kv_head, t->head_dim, r->kv_type };
    out->kv_token_bytes = kv_block_bytes(&shape) / KV_BLOCK;
    out->step_bytes = step_bytes(out, &d) + device_bytes;
    model_desc_deinit(&d);
    if (c->cfg.has_vision) {
        const int64_t card = c->card.max_pixels ? c->card.max_pixels : c->cfg.pre.max_pixels;
        out->max_pixels = r->max_pixels ? r->max_pixels : card;
        const struct vision_grid g = largest_grid(&c->cfg, out->max_pixels);
        out->vision_job_bytes = vit_job_bytes(&c->cfg.vision, &g, 1);
    }
    out->total_bytes = FIXED_BYTES + out->language_bytes + out->vision_bytes + out->step_bytes +
                       out->vision_job_bytes;
    out->model_context = t->max_positions < CONTEXT_MAX ? t->max_positions : CONTEXT_MAX;
    out->context = r->context && r->context < out->model_context ? r->context : out->model_context;
    if (!r->context) { /* what fits, not what the model could do */
        const uint64_t left = memory > out->total_bytes ? memory - out->total_bytes : 0;
        const uint64_t fits = tokens_in(left, out->kv_token_bytes);
        if (fits >= KV_BLOCK && fits < (uint64_t)out->context) {
            out->context = (int)fits;
        }
    }
    return plan_kv(out, r, memory, err);
}
