/* generate.c - requests to the model itself: the public structs become the engine's. */
#include <assert.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/image.h"
#include "src/base/mem.h"
#include "src/document/source.h"
#include "src/engine/engine.h"
#include "src/galley.h"
#include "src/handle.h"

#define MESSAGES_MAX 1024
#define PARTS_MAX    4096

/* What the callbacks need while a request lives; freed by its last event. */
struct call {
    void (*on_chunk)(void *user, const struct galley_chunk *c);
    void (*on_end)(void *user, const struct galley_generated *g);
    void *user;
};

static_assert(sizeof(struct galley_top) == sizeof(struct sample_logprob), "handed on as they are");
static_assert(sizeof(struct galley_token) == sizeof(struct engine_logprob),
              "handed on as they are");
static_assert((int)GALLEY_FINISH_FAILED == (int)FINISH_FAILED, "the same list");
static_assert((int)GALLEY_ASSISTANT == (int)CHAT_ASSISTANT, "the same list");

static void forward_chunk(void *user, const struct engine_chunk *c)
{
    const struct call *call = user;
    const struct galley_chunk out = {
        .id = c->id,
        .text = c->text,
        .n_text = c->n_text,
        .tokens = c->tokens,
        .n_tokens = c->n_tokens,
        .logprobs = (const struct galley_token *)(const void *)c->logprobs,
    };
    call->on_chunk(call->user, &out);
}

static void forward_end(void *user, const struct engine_result *r)
{
    struct call *call = user;
    const struct galley_generated out = {
        .id = r->id,
        .finish = (enum galley_finish)r->finish,
        .status = (int)r->status,
        .error = r->error,
        .text = r->text,
        .n_text = r->n_text,
        .n_prompt = r->n_prompt,
        .n_visual = r->n_visual,
        .n_output = r->n_output,
        .n_cached = r->n_cached,
        .n_images_cached = r->n_images_cached,
        .n_preempted = r->n_preempted,
        .n_steps = r->n_steps,
        .n_drafted = r->n_drafted,
        .n_accepted = r->n_accepted,
        .mean_logprob = r->mean_logprob,
        .queue_seconds = r->queue_seconds,
        .first_token_seconds = r->first_token_seconds,
        .total_seconds = r->total_seconds,
        .encode_seconds = r->encode_seconds,
        .prefill_seconds = r->prefill_seconds,
        .decode_seconds = r->decode_seconds,
    };
    call->on_end(call->user, &out);
    mem_free(call);
}

/* The image of a part: decoded, or copied from pixels; NULL when it has none. */
static enum galley_status part_image(struct image **out, const struct galley_part *p, int i_message,
                                     int i_part, struct galley_err *err)
{
    *out = NULL;
    if (p->picture) {
        const enum galley_status rc = source_picture(out, p->picture, p->n_picture, err);
        return rc ? galley_err_prefix(err, rc, "message %d, part %d", i_message + 1, i_part + 1)
                  : rc;
    }
    if (!p->rgb) {
        return GALLEY_OK;
    }
    *out = p->width > 0 && p->height > 0 ? image_new(p->width, p->height) : NULL;
    if (!*out) {
        return galley_err_set(err, GALLEY_EINPUT, "message %d, part %d: an image of %dx%d pixels",
                              i_message + 1, i_part + 1, p->width, p->height);
    }
    for (int y = 0; y < p->height; y++) {
        memcpy((*out)->rgb + (size_t)y * (*out)->stride, p->rgb + (size_t)y * 3 * (size_t)p->width,
               3 * (size_t)p->width);
    }
    return GALLEY_OK;
}

/* Parts of all messages; counts that cannot be and lists that are not there: GALLEY_EUSAGE. */
static enum galley_status count_parts(int *n, const struct galley_generation *g,
                                      struct galley_err *err)
{
    *n = 0;
    if (!g->on_end || !g->messages || g->n_messages < 1 || g->n_messages > MESSAGES_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "a request needs on_end and 1 to %d messages, not %d", MESSAGES_MAX,
                              g->messages ? g->n_messages : 0);
    }
    for (int i = 0; i < g->n_messages; i++) {
        const struct galley_message *m = &g->messages[i];
        if (m->n_parts < 0 || m->n_parts > PARTS_MAX - *n || (m->n_parts > 0 && !m->parts)) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "message %d has %d parts%s, allowed 0 to %d in all", i + 1,
                                  m->n_parts, m->parts ? "" : " and no list of them", PARTS_MAX);
        }
        *n += m->n_parts;
    }
    return GALLEY_OK;
}

static enum galley_status fill_parts(struct engine_part *parts, struct engine_message *messages,
                                     const struct galley_generation *g, struct galley_err *err)
{
    for (int i = 0; i < g->n_messages; i++) {
        const struct galley_message *m = &g->messages[i];
        messages[i] = (struct engine_message){ (enum chat_role)m->role, parts, m->n_parts };
        for (int k = 0; k < m->n_parts; k++, parts++) {
            const struct galley_part *p = &m->parts[k];
            *parts = (struct engine_part){ .text = p->text,
                                           .tokens = p->tokens,
                                           .n_tokens = p->n_tokens,
                                           .min_pixels = p->min_pixels,
                                           .max_pixels = p->max_pixels };
            const enum galley_status rc = part_image(&parts->image, p, i, k, err);
            if (rc) {
                return rc;
            }
        }
    }
    return GALLEY_OK;
}

static enum galley_status submit(struct galley_engine *e, const struct galley_generation *g,
                                 const struct engine_message *messages, uint64_t *id,
                                 struct galley_err *err)
{
    struct call *call = mem_new(struct call);
    if (!call) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a request");
    }
    *call = (struct call){ g->on_chunk, g->on_end, g->user };
    const struct engine_request r = {
        .messages = messages,
        .n_messages = g->n_messages,
        .raw = g->raw,
        .thinking = g->thinking,
        .draft = g->draft,
        .tau = g->accept,
        .sampling = { .temperature = g->temperature,
                      .top_k = g->top_k,
                      .top_p = g->top_p,
                      .min_p = g->min_p,
                      .repetition = g->repetition_penalty,
                      .seed = g->seed },
        .stop = g->stop,
        .n_stop = g->n_stop,
        .ignore_eos = g->ignore_eos,
        .logprobs = g->logprobs,
        .n_top_logprobs = g->n_top_logprobs,
        .max_new_tokens = g->max_new_tokens,
        .priority = g->priority,
        .deadline_seconds = g->deadline_seconds,
        .on_chunk = g->on_chunk ? forward_chunk : NULL,
        .on_end = forward_end,
        .user = call,
    };
    const enum galley_status rc = engine_submit(e->engine, &r, id, err);
    if (rc) {
        mem_free(call);
    }
    return rc;
}

enum galley_status galley_submit(struct galley_engine *e, const struct galley_generation *g,
                                 uint64_t *id, struct galley_err *err)
{
    *id = 0;
    int n;
    enum galley_status rc = count_parts(&n, g, err);
    if (rc) {
        return rc;
    }
    struct engine_message *messages = mem_many(struct engine_message, (size_t)g->n_messages);
    struct engine_part *parts = mem_many(struct engine_part, (size_t)n + 1);
    if (!messages || !parts) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "no memory for %d messages", g->n_messages);
    }
    rc = rc ? rc : fill_parts(parts, messages, g, err);
    rc = rc ? rc : submit(e, g, messages, id, err);
    for (int i = 0; parts && i < n; i++) {
        image_unref(parts[i].image); /* the engine took its own reference */
    }
    mem_free(parts);
    mem_free(messages);
    return rc;
}

void galley_cancel(struct galley_engine *e, uint64_t id)
{
    engine_cancel(e->engine, id);
}

struct galley_info galley_engine_info(const struct galley_engine *e)
{
    const struct hf_config *c = engine_hf_config(e->engine);
    return (struct galley_info){
        .family = c->model_type,
        .n_vocab = c->text.n_vocab,
        .context = engine_context(e->engine),
        .has_vision = c->has_vision,
        .kv_type = kv_type_name(engine_kv_type(e->engine)),
    };
}

struct galley_totals galley_engine_totals(const struct galley_engine *e)
{
    const struct engine_totals t = engine_totals(e->engine);
    return (struct galley_totals){
        .n_passes = t.n_passes,
        .n_rows = t.n_rows,
        .n_prompt_tokens = t.n_prompt_tokens,
        .n_cached_tokens = t.n_cached_tokens,
        .n_output_tokens = t.n_output_tokens,
        .n_drafted = t.n_drafted,
        .n_accepted = t.n_accepted,
        .n_preemptions = t.n_preemptions,
        .n_images = t.n_images,
        .n_images_cached = t.n_images_cached,
        .n_running = t.n_running,
        .n_waiting = t.n_waiting,
        .n_kv_blocks = t.n_kv_blocks,
        .n_kv_free = t.n_kv_free,
        .n_vision_hits = t.vision.hits,
        .n_vision_disk_hits = t.vision.disk_hits,
        .n_vision_misses = t.vision.misses,
        .n_vision_evicted = t.vision.evicted,
        .n_vision_disk_evicted = t.vision.disk_evicted,
        .n_vision_damaged = t.vision.damaged,
        .n_vision_disk_errors = t.vision.disk_errors,
        .n_vision_unwritten = t.vision.unwritten,
        .vision_cache_bytes = t.vision.memory_bytes,
    };
}

const char *galley_finish_name(enum galley_finish f)
{
    static const char *const names[] = { "stop",     "stop_string", "length", "repetition",
                                         "deadline", "cancelled",   "failed" };
    assert((size_t)f < COUNT(names));
    return names[f];
}
