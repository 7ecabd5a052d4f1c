/* gguf_vision.c - the vision part: an mmproj file's metadata, and whether it fits its model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/device.h"
#include "src/format/gguf_config.h"
#include "src/format/hf_json.h"

/* What the published checkpoints' preprocessor_config.json say. */
#define PIXELS_LEAST ((int64_t)4 * 28 * 28)
#define PIXELS_MOST  ((int64_t)16384 * 28 * 28)

static enum galley_status check_projector(enum hf_family *family, const struct gguf *mm,
                                          const struct hf_config *c, struct galley_err *err)
{
    struct gguf_string arch, type = { "", 0 };
    enum galley_status rc = gguf_read_string(mm, "general.architecture", true, &arch, err);
    if (!rc && !gguf_string_is(&arch, "clip")) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: general.architecture is %.*s, an mmproj file has clip",
                              gguf_path(mm), (int)(arch.n < 60 ? arch.n : 60), arch.text);
    }
    rc = rc ? rc : gguf_read_string(mm, "clip.vision.projector_type", false, &type, err);
    rc = rc ? rc : gguf_read_string(mm, "clip.projector_type", type.n == 0, &type, err);
    if (rc) {
        return rc;
    }
    if (gguf_string_is(&type, "qwen2vl_merger")) {
        *family = HF_QWEN2_VL;
    } else if (gguf_string_is(&type, "qwen2.5vl_merger")) {
        *family = HF_QWEN2_5_VL;
    } else {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: clip.projector_type is %.*s; this build supports "
                              "qwen2vl_merger and qwen2.5vl_merger",
                              gguf_path(mm), (int)(type.n < 60 ? type.n : 60), type.text);
    }
    if (c->family != HF_QWEN2_VL && c->family != HF_QWEN2_5_VL) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: clip.projector_type %.*s does not fit a language model with "
                              "general.architecture %s",
                              gguf_path(mm), (int)(type.n < 60 ? type.n : 60), type.text,
                              c->model_type);
    }
    return GALLEY_OK;
}

struct int_row {
    const char *key;
    bool required;
    int64_t lo, hi;
    int *out;
};

static enum galley_status read_ints(const struct gguf *mm, const struct int_row *rows, size_t n,
                                    struct galley_err *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = *rows[i].out;
        const enum galley_status rc =
            gguf_read_int(mm, rows[i].key, rows[i].required, rows[i].lo, rows[i].hi, &v, err);
        if (rc) {
            return rc;
        }
        *rows[i].out = (int)v;
    }
    return GALLEY_OK;
}

static enum galley_status add_fullatt(struct hf_vision_config *v, const struct gguf *mm, int block,
                                      struct galley_err *err)
{
    if (v->n_fullatt == HF_FULLATT_MAX) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: more than %d blocks attend in full",
                              gguf_path(mm), HF_FULLATT_MAX);
    }
    v->fullatt[v->n_fullatt++] = block;
    return GALLEY_OK;
}

/* Which blocks of Qwen2.5-VL attend in full: a list, or every n-th. */
static enum galley_status read_windows(struct hf_vision_config *v, const struct gguf *mm,
                                       struct galley_err *err)
{
    static const char *const key = "clip.vision.wa_layer_indexes";
    int pattern = 0;
    v->window = 112;
    const struct gguf_value *list = gguf_lookup(mm, key);
    const struct int_row rows[] = {
        { "clip.vision.window_size", false, 1, HF_WIDTH_MAX, &v->window },
        { "clip.vision.n_wa_pattern", !list, 0, HF_LAYERS_MAX, &pattern },
    };
    enum galley_status rc = read_ints(mm, rows, COUNT(rows), err);
    if (!rc && list && (!list->is_array || list->type == GGUF_STRING)) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: key %s is no list of numbers", gguf_path(mm),
                            key);
    }
    for (int i = 0; !rc && list && (uint64_t)i < list->n; i++) {
        const int64_t block = gguf_int(list, (uint64_t)i);
        if (block >= 0 && block < v->depth) {
            rc = add_fullatt(v, mm, (int)block, err);
        }
    }
    for (int i = 0; !rc && !list && pattern > 0 && i < v->depth; i++) {
        rc = (i + 1) % pattern == 0 ? add_fullatt(v, mm, i, err) : GALLEY_OK;
    }
    if (!rc && !list && pattern == 0) {
        v->window = 0;
    }
    if (!rc && v->window > 0 && v->window < v->patch * v->merge) {
        rc = galley_err_set(err, GALLEY_EMODEL,
                            "%s: clip.vision.window_size %d is under one cell of %d", gguf_path(mm),
                            v->window, v->patch * v->merge);
    }
    return rc;
}

static enum galley_status read_tower(struct hf_vision_config *v, const struct gguf *mm,
                                     struct galley_err *err)
{
    const struct int_row rows[] = {
        { "clip.vision.embedding_length", true, 1, HF_WIDTH_MAX, &v->hidden },
        { "clip.vision.feed_forward_length", true, 1, HF_FFN_MAX, &v->intermediate },
        { "clip.vision.block_count", true, 1, HF_LAYERS_MAX, &v->depth },
        { "clip.vision.attention.head_count", true, 1, HF_HEADS_MAX, &v->n_head },
        { "clip.vision.patch_size", true, 1, 256, &v->patch },
        { "clip.vision.spatial_merge_size", false, 1, 16, &v->merge },
    };
    enum galley_status rc = read_ints(mm, rows, COUNT(rows), err);
    rc = rc ? rc
            : gguf_read_number(mm, "clip.vision.attention.layer_norm_epsilon", false, 1e-12, 1,
                               &v->norm_eps, err);
    if (rc) {
        return rc;
    }
    const int head_dim = v->hidden / v->n_head;
    if (v->hidden % v->n_head || head_dim % 4 || head_dim > ATTN_HEAD_DIM_MAX) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: width %d does not give %d heads of a multiple of 4 up to %d",
                              gguf_path(mm), v->hidden, v->n_head, ATTN_HEAD_DIM_MAX);
    }
    return v->gated_rms ? read_windows(v, mm, err) : GALLEY_OK;
}

static enum galley_status read_three(float out[3], const struct gguf *mm, const char *key,
                                     double lo, struct galley_err *err)
{
    const struct gguf_value *v = gguf_lookup(mm, key);
    if (!v) {
        return GALLEY_OK;
    }
    bool good = v->is_array && v->type != GGUF_STRING && v->n == 3;
    for (uint64_t i = 0; good && i < 3; i++) {
        const double x = gguf_number(v, i);
        good = x >= lo && x <= 10;
        out[i] = (float)x;
    }
    return good ? GALLEY_OK
                : galley_err_set(err, GALLEY_EMODEL, "%s: key %s is not 3 numbers from %g to 10",
                                 gguf_path(mm), key, lo);
}

static enum galley_status read_pixels(struct hf_preprocess *p, const struct gguf *mm,
                                      struct galley_err *err)
{
    hf_preprocess_default(p);
    p->min_pixels = PIXELS_LEAST;
    p->max_pixels = PIXELS_MOST;
    enum galley_status rc = read_three(p->mean, mm, "clip.vision.image_mean", -10, err);
    rc = rc ? rc : read_three(p->std, mm, "clip.vision.image_std", 1e-6, err);
    rc = rc ? rc
            : gguf_read_int(mm, "clip.vision.image_min_pixels", false, 1, INT64_C(1) << 40,
                            &p->min_pixels, err);
    rc = rc ? rc
            : gguf_read_int(mm, "clip.vision.image_max_pixels", false, 1, INT64_C(1) << 40,
                            &p->max_pixels, err);
    if (!rc && p->min_pixels > p->max_pixels) {
        rc = galley_err_set(err, GALLEY_EMODEL,
                            "%s: clip.vision.image_min_pixels %" PRId64
                            " is above image_max_pixels %" PRId64,
                            gguf_path(mm), p->min_pixels, p->max_pixels);
    }
    return rc;
}

/* The last layer's rows are what the language model takes as embeddings; projection_dim is not to
 * be trusted (old converters wrote 0). */
static enum galley_status check_width(struct hf_vision_config *v, const struct gguf *mm,
                                      const struct hf_config *c, struct galley_err *err)
{
    const struct gguf_tensor *last = gguf_tensor_lookup(mm, "mm.2.weight");
    if (!last || last->view.n_dim != 2) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: tensor mm.2.weight of the merger is missing",
                              gguf_path(mm));
    }
    const int64_t wide = (int64_t)v->merge * v->merge * v->hidden;
    if (last->view.shape[0] != c->text.hidden) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: makes embeddings of %" PRId64
                              " values (mm.2.weight), the language model's embedding_length is %d: "
                              "the files are not of one model",
                              gguf_path(mm), last->view.shape[0], c->text.hidden);
    }
    if (last->view.shape[1] != wide) {
        return galley_err_set(
            err, GALLEY_EMODEL,
            "%s: mm.2.weight takes %" PRId64 " values, %d x %d cells of width %d make %" PRId64,
            gguf_path(mm), last->view.shape[1], v->merge, v->merge, v->hidden, wide);
    }
    v->out_hidden = c->text.hidden;
    return GALLEY_OK;
}

static enum galley_status check_tokens(const struct hf_config *c, const struct gguf *mm,
                                       struct galley_err *err)
{
    const int32_t ids[] = { c->vision_start, c->vision_end, c->image_pad };
    static const char *const contents[] = { "<|vision_start|>", "<|vision_end|>", "<|image_pad|>" };
    for (size_t i = 0; i < COUNT(ids); i++) {
        if (ids[i] < 0) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "%s: the language model's vocabulary has no token %s for images",
                                  gguf_path(mm), contents[i]);
        }
    }
    return GALLEY_OK;
}

enum galley_status gguf_config_vision(struct hf_config *io, const struct gguf *mm,
                                      struct galley_err *err)
{
    enum hf_family family = HF_QWEN2_VL;
    struct hf_preprocess pre;
    struct hf_vision_config v = {
        .temporal_patch = 2, .merge = 2, .in_channels = 3, .norm_eps = 1e-6
    };
    enum galley_status rc = check_projector(&family, mm, io, err);
    if (rc) {
        return rc;
    }
    v.gated_rms = family == HF_QWEN2_5_VL;
    rc = read_tower(&v, mm, err);
    rc = rc ? rc : read_pixels(&pre, mm, err);
    rc = rc ? rc : check_width(&v, mm, io, err);
    rc = rc ? rc : check_tokens(io, mm, err);
    if (rc) {
        return rc;
    }
    io->family = family;
    io->vision = v;
    io->pre = pre;
    io->has_vision = true;
    return GALLEY_OK;
}
