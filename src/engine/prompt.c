/* prompt.c - building prompts.
 *
 * Text between two special tokens is tokenised in one go, frame and content together, because that
 * is what a tokenizer sees when the template has been rendered; only the frame's own special tokens
 * are parsed, so what a user writes cannot forge them. */
#include "src/engine/prompt.h"

#include <string.h>

#include "src/base/buf.h"
#include "src/base/mem.h"

#define TEXT_MAX   (16u << 20) /* bytes of one run of text */
#define PROMPT_MAX (1 << 20)   /* tokens */
#define SIDE_MAX   16384       /* pixels, of a size asked for */

/* A stretch of the run: frames are trusted, contents are not unless the prompt is raw. */
struct piece {
    size_t end; /* in run; it begins where the one before ends */
    bool trusted;
};

struct builder {
    struct prompt *p;
    const struct prompt_context *ctx;
    bool raw; /* special tokens are parsed everywhere */
    int cap;  /* of p->token */
    struct buf run;
    struct piece *piece; /* [n_pieces] of run; room for all that a request can bring */
    int n_pieces;
};

static enum galley_status add_ids(struct builder *b, const int32_t *id, int n,
                                  struct galley_err *err)
{
    struct prompt *p = b->p;
    if (n == 0) { /* there may be no list, neither of these nor of those so far */
        return GALLEY_OK;
    }
    if (n > PROMPT_MAX - p->n) {
        return galley_err_set(err, GALLEY_ELIMIT, "prompt has over %d tokens", PROMPT_MAX);
    }
    if (p->n + n > b->cap) {
        const int cap = (p->n + n) * 2;
        int32_t *more = mem_resize_array(p->token, (size_t)cap, sizeof(*more));
        if (!more) {
            return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d prompt tokens", cap);
        }
        p->token = more;
        b->cap = cap;
    }
    memcpy(p->token + p->n, id, (size_t)n * sizeof(*id));
    p->n += n;
    return GALLEY_OK;
}

static enum galley_status flush_run(struct builder *b, struct galley_err *err)
{
    if (b->run.n == 0) {
        return GALLEY_OK;
    }
    struct tokenizer_part *parts = mem_many(struct tokenizer_part, (size_t)b->n_pieces);
    if (!parts) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d pieces of a prompt",
                              b->n_pieces);
    }
    size_t at = 0;
    for (int i = 0; i < b->n_pieces; at = b->piece[i++].end) {
        parts[i] =
            (struct tokenizer_part){ b->run.data + at, b->piece[i].end - at, b->piece[i].trusted };
    }
    int32_t *id = NULL;
    int n = 0;
    enum galley_status rc =
        tokenizer_encode_parts(b->ctx->cp->tok, parts, b->n_pieces, &id, &n, err);
    rc = rc ? rc : add_ids(b, id, n, err);
    mem_free(id);
    mem_free(parts);
    buf_cut(&b->run, 0);
    b->n_pieces = 0;
    return rc;
}

static enum galley_status add_text(struct builder *b, const char *text, size_t n, bool trusted,
                                   struct galley_err *err)
{
    if (n > TEXT_MAX - b->run.n) {
        return galley_err_set(err, GALLEY_ELIMIT, "a text of the prompt has over %u bytes",
                              TEXT_MAX);
    }
    buf_add(&b->run, text, n);
    if (!buf_ok(&b->run)) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a text of %zu bytes", n);
    }
    b->piece[b->n_pieces++] = (struct piece){ b->run.n, trusted };
    return GALLEY_OK;
}

/* ---- images ---- */

static enum galley_status plan_image(struct vision_grid *g, const struct engine_part *part,
                                     const struct prompt_context *ctx, struct galley_err *err)
{
    const struct hf_vision_config *v = &ctx->cp->cfg.vision;
    const int cell = v->patch * v->merge;
    if (part->min_pixels < 0 || part->max_pixels < 0) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "min_pixels is %lld, max_pixels %lld: neither may be negative",
                              (long long)part->min_pixels, (long long)part->max_pixels);
    }
    if (part->width < 0 || part->height < 0 || (part->width > 0) != (part->height > 0) ||
        part->width % cell || part->height % cell || part->width > SIDE_MAX ||
        part->height > SIDE_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "image size %dx%d: sides must be multiples of %d up to %d",
                              part->width, part->height, cell, SIDE_MAX);
    }
    *g = (struct vision_grid){ 1, part->height / v->patch, part->width / v->patch };
    if (part->width == 0) {
        const struct vision_limits limits = { part->min_pixels, part->max_pixels };
        const enum galley_status rc =
            vision_plan(g, part->image->width, part->image->height, &ctx->cp->cfg, &limits, err);
        if (rc) {
            return rc;
        }
    }
    const int64_t pixels = (int64_t)g->h * v->patch * ((int64_t)g->w * v->patch);
    if (pixels > ctx->max_pixels) {
        return galley_err_set(err, GALLEY_ELIMIT, "image needs %.1f Mpixel, limit %.1f",
                              (double)pixels / 1e6, (double)ctx->max_pixels / 1e6);
    }
    return GALLEY_OK;
}

static enum galley_status add_image(struct builder *b, const struct engine_part *part,
                                    struct galley_err *err)
{
    const struct hf_config *cfg = &b->ctx->cp->cfg;
    if (!cfg->has_vision) {
        return galley_err_set(err, GALLEY_EUSAGE, "the model does not take images");
    }
    struct prompt_image *im = &b->p->image[b->p->n_images];
    enum galley_status rc = plan_image(&im->grid, part, b->ctx, err);
    rc = rc ? rc : flush_run(b, err);
    rc = rc ? rc : add_ids(b, &cfg->vision_start, 1, err);
    if (rc) {
        return rc;
    }
    im->image = image_ref(part->image);
    im->at = b->p->n;
    im->n_rows = vision_n_tokens(&im->grid, &cfg->vision);
    b->p->n_images++;
    b->p->n_visual += im->n_rows;
    for (int i = 0; i < im->n_rows && !rc; i++) {
        rc = add_ids(b, &cfg->image_pad, 1, err);
    }
    vcache_key(im->key, b->ctx->vision_hash, part->image, &im->grid);
    vcache_warm(b->ctx->vcache, im->key, im->n_rows, b->ctx->hidden);
    return rc ? rc : add_ids(b, &cfg->vision_end, 1, err);
}

/* ---- messages ---- */

static enum galley_status add_tokens(struct builder *b, const struct engine_part *part,
                                     struct galley_err *err)
{
    if (part->n_tokens < 0) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d tokens", part->n_tokens);
    }
    const enum galley_status rc = flush_run(b, err);
    return rc ? rc : add_ids(b, part->tokens, part->n_tokens, err);
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The part's text without what is blank at the content's ends.  *blank_so_far: nothing but blanks
 * has come yet; until: the last part with something in it. */
static const char *trimmed(const struct engine_message *m, int i, int until, bool *blank_so_far,
                           size_t *n)
{
    const char *s = m->parts[i].text ? m->parts[i].text : "";
    while (*blank_so_far && is_blank(*s)) {
        s++;
    }
    *n = i > until ? 0 : strlen(s);
    while (i == until && *n > 0 && is_blank(s[*n - 1])) {
        (*n)--;
    }
    *blank_so_far = *blank_so_far && *n == 0;
    return s;
}

static int last_solid_part(const struct engine_message *m)
{
    int i = m->n_parts - 1;
    while (i >= 0 && !m->parts[i].image && !m->parts[i].tokens) {
        const char *s = m->parts[i].text ? m->parts[i].text : "";
        while (is_blank(*s)) {
            s++;
        }
        if (*s) {
            break;
        }
        i--;
    }
    return i;
}

static bool is_text_only(const struct engine_message *m)
{
    for (int k = 0; k < m->n_parts; k++) {
        if (m->parts[k].image || m->parts[k].tokens) {
            return false;
        }
    }
    return true;
}

/* A message of nothing but text, cut as its template cuts contents. */
static enum galley_status add_spoken(struct builder *b, const struct engine_message *m,
                                     const struct chat_segment *seg, struct galley_err *err)
{
    struct buf all;
    buf_init(&all, TEXT_MAX);
    for (int k = 0; k < m->n_parts; k++) {
        buf_add_str(&all, m->parts[k].text ? m->parts[k].text : "");
    }
    enum galley_status rc = GALLEY_OK;
    if (!buf_ok(&all)) {
        rc = galley_err_set(err, GALLEY_ELIMIT, "a message has over %u bytes", TEXT_MAX);
    } else if (all.n > 0) {
        size_t n;
        const char *s = chat_content(seg, all.data, all.n, &n);
        rc = add_text(b, s, n, false, err);
    }
    buf_deinit(&all);
    return rc;
}

static enum galley_status add_content(struct builder *b, const struct engine_request *r, int i,
                                      bool trim, struct galley_err *err)
{
    const struct engine_message *m = &r->messages[i];
    const int until = trim ? last_solid_part(m) : m->n_parts;
    bool blank_so_far = trim;
    for (int k = 0; k < m->n_parts; k++) {
        const struct engine_part *part = &m->parts[k];
        enum galley_status rc;
        if (part->image) {
            blank_so_far = false;
            rc = add_image(b, part, err);
        } else if (part->tokens) {
            blank_so_far = false;
            rc = add_tokens(b, part, err);
        } else {
            size_t n;
            const char *s = trimmed(m, k, until, &blank_so_far, &n);
            rc = add_text(b, s, n, b->raw, err);
        }
        if (rc) {
            return galley_err_prefix(err, rc, "message %d, part %d", i + 1, k + 1);
        }
    }
    return GALLEY_OK;
}

static enum galley_status add_chat(struct builder *b, const struct engine_request *r,
                                   struct galley_err *err)
{
    const size_t n = (size_t)r->n_messages;
    struct chat_segment *seg = mem_many(struct chat_segment, 4 * n + 4);
    enum chat_role *roles = mem_many(enum chat_role, n);
    enum galley_status rc = GALLEY_OK;
    if (!seg || !roles) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "no memory for %zu messages", n);
    }
    for (size_t i = 0; i < n && !rc; i++) {
        roles[i] = r->messages[i].role;
    }
    int n_seg = 0;
    rc = rc ? rc
            : chat_frame(seg, &n_seg, &b->ctx->cp->chat, roles, r->n_messages, r->thinking, err);
    for (int i = 0; i < n_seg && !rc; i++) {
        const struct engine_message *m = &r->messages[seg[i].i_message < 0 ? 0 : seg[i].i_message];
        if (seg[i].i_message < 0) {
            rc = add_text(b, seg[i].text, strlen(seg[i].text), true, err);
        } else if (is_text_only(m)) {
            rc = add_spoken(b, m, &seg[i], err);
        } else {
            rc = add_content(b, r, seg[i].i_message, seg[i].trim, err);
        }
    }
    mem_free(seg);
    mem_free(roles);
    return rc;
}

/* The token that begins every prompt stands once, also when the text brings its own. */
static void drop_second_bos(struct prompt *p, int32_t bos)
{
    if (bos >= 0 && p->n > 1 && p->token[1] == bos) {
        p->n--;
        memmove(p->token, p->token + 1, (size_t)p->n * sizeof(*p->token));
        for (int i = 0; i < p->n_images; i++) {
            p->image[i].at--;
        }
    }
}

/* Frames and parts of a request at most. */
static size_t pieces_of(const struct engine_request *r)
{
    size_t n = 4 * (size_t)r->n_messages + 4;
    for (int i = 0; i < r->n_messages; i++) {
        n += (size_t)r->messages[i].n_parts;
    }
    return n;
}

static enum galley_status add_all(struct builder *b, const struct engine_request *r,
                                  struct galley_err *err)
{
    const struct engine_message *first = &r->messages[0];
    const bool as_is = r->raw && first->n_parts > 0 && first->parts[0].tokens;
    const int32_t bos = as_is ? -1 : tokenizer_bos(b->ctx->cp->tok);
    enum galley_status rc = bos >= 0 ? add_ids(b, &bos, 1, err) : GALLEY_OK;
    if (!rc) {
        rc = r->raw ? add_content(b, r, 0, false, err) : add_chat(b, r, err);
    }
    rc = rc ? rc : flush_run(b, err);
    if (!rc) {
        drop_second_bos(b->p, bos);
        if (b->p->n == 0) {
            rc = galley_err_set(err, GALLEY_EUSAGE, "the prompt is empty");
        }
    }
    return rc;
}

/* ---- positions and keys ---- */

static enum galley_status lay_out(struct prompt *p, const struct prompt_context *ctx,
                                  struct galley_err *err)
{
    const size_t n = (size_t)p->n;
    p->pos[0] = mem_array(n, 3 * sizeof(int32_t));
    struct vision_grid *grids = mem_many(struct vision_grid, (size_t)p->n_images);
    if (!p->pos[0] || !grids) {
        mem_free(grids);
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %zu prompt positions", n);
    }
    p->pos[1] = p->pos[0] + n;
    p->pos[2] = p->pos[1] + n;
    enum galley_status rc = GALLEY_OK;
    if (p->n_images == 0) {
        for (int i = 0; i < p->n; i++) {
            p->pos[0][i] = p->pos[1][i] = p->pos[2][i] = i;
        }
        p->pos_next = p->n;
    } else {
        for (int i = 0; i < p->n_images; i++) {
            grids[i] = p->image[i].grid;
        }
        rc = mrope_positions(p->pos, &p->pos_next, p->token, p->n, grids, p->n_images,
                             &ctx->cp->cfg, err);
    }
    mem_free(grids);
    return rc;
}

struct prefix_key *prompt_keys(const struct prompt *p, const int32_t *out, int n_out,
                               const struct prefix_cache *cache)
{
    const int n = p->n + n_out;
    struct prefix_row *row = mem_many(struct prefix_row, (size_t)n);
    struct prefix_key *key = mem_array((size_t)(n / KV_BLOCK), sizeof(*key));
    if (!row || !key) {
        mem_free(row);
        mem_free(key);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        row[i].token = i < p->n ? p->token[i] : out[i - p->n];
        for (int a = 0; a < 3; a++) {
            row[i].pos[a] = i < p->n ? p->pos[a][i] : p->pos_next + (i - p->n);
        }
    }
    for (int k = 0; k < p->n_images; k++) {
        for (int i = 0; i < p->image[k].n_rows; i++) {
            row[p->image[k].at + i].image = p->image[k].key;
            row[p->image[k].at + i].i_row = i;
        }
    }
    prefix_keys(cache, key, row, n);
    mem_free(row);
    return key;
}

static int count_images(const struct engine_request *r)
{
    int n = 0;
    for (int i = 0; i < r->n_messages; i++) {
        for (int k = 0; k < r->messages[i].n_parts; k++) {
            n += r->messages[i].parts[k].image != NULL;
        }
    }
    return n;
}

enum galley_status prompt_build(struct prompt *out, const struct engine_request *r,
                                const struct prompt_context *ctx, struct galley_err *err)
{
    *out = (struct prompt){ 0 };
    const int n_images = count_images(r);
    if (r->n_messages < 1 || r->n_messages > CHAT_MESSAGES_MAX || (r->raw && r->n_messages > 1)) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d messages, allowed 1 to %d", r->n_messages,
                              r->raw ? 1 : CHAT_MESSAGES_MAX);
    }
    if (n_images > PROMPT_IMAGES_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d images, allowed %d", n_images,
                              PROMPT_IMAGES_MAX);
    }
    out->image = mem_many(struct prompt_image, (size_t)n_images);
    if (!out->image) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d images", n_images);
    }
    struct builder b = { .p = out, .ctx = ctx, .raw = r->raw };
    buf_init(&b.run, TEXT_MAX);
    b.piece = mem_array(pieces_of(r), sizeof(*b.piece));
    enum galley_status rc =
        b.piece ? add_all(&b, r, err)
                : galley_err_set(err, GALLEY_ENOMEM, "no memory for the pieces of a prompt");
    mem_free(b.piece);
    buf_deinit(&b.run);
    out->skip_space = !r->raw && tokenizer_adds_space(ctx->cp->tok);
    rc = rc ? rc : lay_out(out, ctx, err);
    if (!rc && ctx->cache) {
        out->key = prompt_keys(out, NULL, 0, ctx->cache);
        out->n_keys = out->n / KV_BLOCK;
        rc = out->key ? rc : galley_err_set(err, GALLEY_ENOMEM, "no memory for a prompt's keys");
    }
    return rc;
}

void prompt_deinit(struct prompt *p)
{
    for (int i = 0; i < p->n_images; i++) {
        image_unref(p->image[i].image);
    }
    mem_free(p->image);
    mem_free(p->token);
    mem_free(p->pos[0]);
    mem_free(p->key);
    *p = (struct prompt){ 0 };
}
