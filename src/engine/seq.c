/* seq.c - from a request to token rows. */
#include "src/engine/seq.h"

#include <assert.h>
#include <string.h>

#include "spec/given.h"
#include "src/base/mem.h"
#include "src/format/chatml.h"

#define TEXT_MAX          (4u << 20)
#define PROMPT_MAX        (1 << 20)
#define CHUNK_START_EXACT 32

struct request *request_new(const struct engine_request *r, struct galley_err *err)
{
    struct request *q = mem_new(struct request);
    if (!q) {
        galley_err_set(err, GALLEY_ENOMEM, "no memory for a request");
        return NULL;
    }
    q->limits = (struct vision_limits){ r->min_pixels, r->max_pixels };
    q->width = r->width;
    q->height = r->height;
    q->tau = r->tau == 0 ? 1 : r->tau;
    q->max_new_tokens = r->max_new_tokens;
    q->on_end = r->on_end;
    q->user = r->user;
    q->system = mem_strdup(r->system ? r->system : "");
    q->text = mem_strdup(r->text ? r->text : "");
    q->draft = r->draft ? mem_strdup(r->draft) : NULL;
    q->images = mem_many(struct image *, (size_t)r->n_images);
    if (!q->system || !q->text || (r->draft && !q->draft) || !q->images) {
        request_free(q);
        galley_err_set(err, GALLEY_ENOMEM, "no memory for a request");
        return NULL;
    }
    for (int i = 0; i < r->n_images; i++) {
        q->images[i] = image_ref(r->images[i]);
    }
    q->n_images = r->n_images;
    return q;
}

void request_free(struct request *r)
{
    if (!r) {
        return;
    }
    for (int i = 0; i < r->n_images; i++) {
        image_unref(r->images[i]);
    }
    mem_free(r->images);
    mem_free(r->system);
    mem_free(r->text);
    mem_free(r->draft);
    mem_free(r);
}

/* A growing list of prompt tokens. */
struct ids {
    int32_t *id;
    int n, cap;
};

static enum galley_status ids_add(struct ids *l, const int32_t *id, int n, struct galley_err *err)
{
    if (n > PROMPT_MAX - l->n) {
        return galley_err_set(err, GALLEY_ELIMIT, "prompt has over %d tokens", PROMPT_MAX);
    }
    if (l->n + n > l->cap) {
        const int cap = (l->n + n) * 2;
        int32_t *more = mem_resize_array(l->id, (size_t)cap, sizeof(*more));
        if (!more) {
            return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d prompt tokens", cap);
        }
        l->id = more;
        l->cap = cap;
    }
    memcpy(l->id + l->n, id, (size_t)n * sizeof(*id));
    l->n += n;
    return GALLEY_OK;
}

static enum galley_status ids_text(struct ids *l, const struct tokenizer *tok, const char *text,
                                   bool special, struct galley_err *err)
{
    int32_t *id;
    int n;
    enum galley_status rc = tokenizer_encode(tok, text, strlen(text), special, &id, &n, err);
    if (rc) {
        return rc;
    }
    rc = ids_add(l, id, n, err);
    mem_free(id);
    return rc;
}

static enum galley_status ids_image(struct ids *l, const struct vision_grid *g,
                                    const struct hf_config *cfg, struct galley_err *err)
{
    enum galley_status rc = ids_add(l, &cfg->vision_start, 1, err);
    const int n = vision_n_tokens(g, &cfg->vision);
    for (int i = 0; i < n && !rc; i++) {
        rc = ids_add(l, &cfg->image_pad, 1, err);
    }
    return rc ? rc : ids_add(l, &cfg->vision_end, 1, err);
}

/* The conversation of chatml.h; without a system message none is sent. */
static enum galley_status build_prompt(struct ids *l, const struct request *r,
                                       const struct vision_grid *grids,
                                       const struct seq_context *ctx, struct galley_err *err)
{
    enum galley_status rc = GALLEY_OK;
    if (r->system[0]) {
        rc = ids_text(l, ctx->tok, CHATML_SYSTEM, true, err);
        rc = rc ? rc : ids_text(l, ctx->tok, r->system, false, err);
        rc = rc ? rc : ids_text(l, ctx->tok, CHATML_SYSTEM_END, true, err);
    }
    rc = rc ? rc : ids_text(l, ctx->tok, CHATML_USER, true, err);
    for (int i = 0; i < r->n_images && !rc; i++) {
        rc = ids_image(l, &grids[i], ctx->cfg, err);
    }
    rc = rc ? rc : ids_text(l, ctx->tok, r->text, false, err);
    return rc ? rc : ids_text(l, ctx->tok, CHATML_ASSISTANT, true, err);
}

static enum galley_status plan_images(struct vision_grid *grids, const struct request *r,
                                      const struct hf_config *cfg, struct galley_err *err)
{
    for (int i = 0; i < r->n_images; i++) {
        const struct image *im = r->images[i];
        if (r->width > 0) {
            grids[i] = (struct vision_grid){ 1, r->height / cfg->vision.patch,
                                             r->width / cfg->vision.patch };
            continue;
        }
        const enum galley_status rc =
            vision_plan(&grids[i], im->width, im->height, cfg, &r->limits, err);
        if (rc) {
            return rc;
        }
    }
    return GALLEY_OK;
}

/* Positions, and which prompt rows are embeddings. */
static enum galley_status lay_out(struct seq *s, const struct vision_grid *grids,
                                  const struct seq_context *ctx, struct galley_err *err)
{
    const size_t n = (size_t)s->n_prompt;
    s->pos[0] = mem_array(n, 3 * sizeof(int32_t));
    s->visual_row = mem_array(n, sizeof(int32_t));
    if (!s->pos[0] || !s->visual_row) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %zu prompt positions", n);
    }
    s->pos[1] = s->pos[0] + n;
    s->pos[2] = s->pos[1] + n;
    const enum galley_status rc = mrope_positions(s->pos, &s->pos_next, s->prompt, s->n_prompt,
                                                  grids, s->req->n_images, ctx->cfg, err);
    if (rc) {
        return rc;
    }
    for (int i = 0; i < s->n_prompt; i++) {
        s->visual_row[i] = s->prompt[i] == ctx->cfg->image_pad ? s->n_visual++ : -1;
    }
    return GALLEY_OK;
}

static enum galley_status make_drafter(struct seq *s, const struct seq_context *ctx,
                                       struct galley_err *err)
{
    const struct request *r = s->req;
    int32_t *text;
    int n;
    enum galley_status rc =
        tokenizer_encode(ctx->tok, r->draft, strlen(r->draft), false, &text, &n, err);
    if (rc) {
        return rc;
    }
    s->draft = mem_array((size_t)n + 1, sizeof(int32_t));
    if (s->draft) {
        memcpy(s->draft, text, (size_t)n * sizeof(int32_t));
        s->n_draft = n;
        s->draft[s->n_draft] = ctx->cfg->eos[0];
        s->drafter = given_new(s->draft, s->n_draft + 1);
    }
    mem_free(text);
    if (!s->drafter) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a draft of %d tokens", n);
    }
    /* A relaxed rule takes nearly everything: risk much at once.  Exact starts lower, verify rows
     * after a mismatch are wasted. */
    s->chunk = s->req->tau < 1 ? SEQ_CHUNK_MAX : CHUNK_START_EXACT;
    return GALLEY_OK;
}

static enum galley_status seq_fill(struct seq *s, struct vision_grid *grids,
                                   const struct seq_context *ctx, struct galley_err *err)
{
    enum galley_status rc = plan_images(grids, s->req, ctx->cfg, err);
    struct ids prompt = { 0 };
    rc = rc ? rc : build_prompt(&prompt, s->req, grids, ctx, err);
    s->prompt = prompt.id;
    s->n_prompt = prompt.n;
    rc = rc ? rc : lay_out(s, grids, ctx, err);
    if (rc) {
        return rc;
    }
    s->max_out = s->req->max_new_tokens ? s->req->max_new_tokens : ctx->max_new_default;
    if (s->max_out > ctx->cfg->text.max_positions - s->n_prompt) {
        s->max_out = ctx->cfg->text.max_positions - s->n_prompt;
    }
    if (s->max_out < 1) {
        return galley_err_set(err, GALLEY_ELIMIT, "prompt needs %d tokens, the model has %d",
                              s->n_prompt, ctx->cfg->text.max_positions);
    }
    s->out = mem_array((size_t)s->max_out, sizeof(int32_t));
    s->step_draft = mem_array(SEQ_CHUNK_MAX, sizeof(int32_t));
    if (!s->out || !s->step_draft) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d output tokens", s->max_out);
    }
    return s->req->draft ? make_drafter(s, ctx, err) : GALLEY_OK;
}

enum galley_status seq_new(struct seq **out, struct request *req, struct vision_grid *grids,
                           const struct seq_context *ctx, struct galley_err *err)
{
    *out = mem_new(struct seq);
    if (!*out) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a sequence");
    }
    (*out)->req = req;
    return seq_fill(*out, grids, ctx, err);
}

void seq_free(struct seq *s)
{
    if (!s) {
        return;
    }
    assert(s->kv.n_blocks == 0);
    request_free(s->req);
    mem_free(s->prompt);
    mem_free(s->pos[0]);
    mem_free(s->visual_row);
    mem_free(s->embd);
    mem_free(s->out);
    mem_free(s->draft);
    mem_free(s->step_draft);
    drafter_free(s->drafter);
    mem_free(s);
}
