/* hf_config.c - config.json as a whole: the family, the vision part, the special tokens.
 *
 * Two layouts exist: the classic flat one, and the one with a text_config object; hf_text.c reads
 * the language part of both.  Missing keys of the vision part take the values transformers gives
 * them, because published checkpoints rely on that.  Of Gemma 3's models with a SigLIP tower the
 * language part alone is read: they answer text, and images are refused as for any text model. */
#include "src/format/hf_config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/device.h"
#include "src/base/json.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/format/hf_json.h"
#include "src/format/hf_text.h"

#define FILE_MAX     ((size_t)16 << 20)
#define VISION_THETA 10000.0

/* Official ids; toy vocabularies name their own. */
enum { VISION_START = 151652, VISION_END = 151653, IMAGE_PAD = 151655, VIDEO_PAD = 151656 };

/* model_type as files say it; a model whose vision part is not read counts as one without. */
static const struct {
    const char *type;
    enum hf_family family;
    bool has_vision;
} types[] = {
    { "qwen2_vl", HF_QWEN2_VL, true }, { "qwen2_5_vl", HF_QWEN2_5_VL, true },
    { "qwen2", HF_QWEN2, false },      { "qwen3", HF_QWEN3, false },
    { "llama", HF_LLAMA, false },      { "gemma3_text", HF_GEMMA3, false },
    { "gemma3", HF_GEMMA3, false },
};

static enum galley_status read_family(struct hf_config *c, const cJSON *root, const char *where,
                                      struct galley_err *err)
{
    const char *type = NULL;
    const enum galley_status rc = json_get_string(root, where, "model_type", true, &type, err);
    if (rc) {
        return rc;
    }
    snprintf(c->model_type, sizeof(c->model_type), "%s", type);
    size_t i = 0;
    while (i < COUNT(types) && strcmp(type, types[i].type) != 0) {
        i++;
    }
    if (i == COUNT(types)) {
        return hf_refuse(err, where, "model_type", type,
                         "qwen2_vl, qwen2_5_vl, qwen2, qwen3, llama, gemma3_text and gemma3");
    }
    c->family = types[i].family;
    c->has_vision = types[i].has_vision;
    const cJSON *quant = cJSON_GetObjectItemCaseSensitive(root, "quantization_config");
    if (quant && !cJSON_IsNull(quant)) {
        return hf_refuse(err, where, "quantization_config", "set",
                         "plain F32, F16 or BF16 weights");
    }
    return GALLEY_OK;
}

static enum galley_status read_fullatt(struct hf_vision_config *v, const cJSON *vision,
                                       const char *where, struct galley_err *err)
{
    static const int usual[] = { 7, 15, 23, 31 };
    const char *key = "fullatt_block_indexes";
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(vision, key);
    if (!list || cJSON_IsNull(list)) {
        for (size_t i = 0; i < COUNT(usual); i++) {
            if (usual[i] < v->depth) {
                v->fullatt[v->n_fullatt++] = usual[i];
            }
        }
        return GALLEY_OK;
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        const double x = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(x >= 0 && x < HF_LAYERS_MAX) || x != floor(x)) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "%s: \"%s\" holds something else than block numbers", where, key);
        }
        if (x >= v->depth) {
            continue; /* names no block: without effect in transformers too */
        }
        if (v->n_fullatt == HF_FULLATT_MAX) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" has more than %d entries", where,
                                  key, HF_FULLATT_MAX);
        }
        v->fullatt[v->n_fullatt++] = (int)x;
    }
    if (!cJSON_IsArray(list)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is not a list", where, key);
    }
    return GALLEY_OK;
}

/* Qwen2-VL: embed_dim is the width and hidden_size the output. */
static enum galley_status read_vision_2(struct hf_vision_config *v, const cJSON *vision,
                                        const char *where, struct galley_err *err)
{
    double ratio = 4;
    v->hidden = 1280;
    v->out_hidden = 3584;
    const struct hf_int keys[] = {
        { "embed_dim", false, 1, HF_WIDTH_MAX, &v->hidden },
        { "hidden_size", false, 1, HF_WIDTH_MAX, &v->out_hidden },
    };
    enum galley_status rc = hf_read_ints(vision, where, keys, COUNT(keys), err);
    rc = rc ? rc : json_get_number(vision, where, "mlp_ratio", false, 0.01, 64, &ratio, err);
    rc = rc ? rc : hf_want_string(vision, where, "hidden_act", "quick_gelu", err);
    v->intermediate = (int)(v->hidden * ratio); /* int(dim * mlp_ratio) there */
    if (!rc && v->intermediate < 1) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: \"mlp_ratio\" %g leaves no width", where,
                            ratio);
    }
    return rc;
}

static enum galley_status read_vision_2_5(struct hf_vision_config *v, const cJSON *vision,
                                          const char *where, struct galley_err *err)
{
    v->hidden = 3584;
    v->out_hidden = 3584;
    v->intermediate = 3420;
    v->window = 112;
    v->gated_rms = true;
    const struct hf_int keys[] = {
        { "hidden_size", false, 1, HF_WIDTH_MAX, &v->hidden },
        { "out_hidden_size", false, 1, HF_WIDTH_MAX, &v->out_hidden },
        { "intermediate_size", false, 1, HF_FFN_MAX, &v->intermediate },
        { "window_size", false, 1, HF_WIDTH_MAX, &v->window },
    };
    enum galley_status rc = hf_read_ints(vision, where, keys, COUNT(keys), err);
    rc = rc ? rc : hf_want_string(vision, where, "hidden_act", "silu", err);
    rc = rc ? rc : read_fullatt(v, vision, where, err);
    if (!rc && v->window < v->patch * v->merge) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: \"window_size\" %d is under one cell of %d",
                            where, v->window, v->patch * v->merge);
    }
    return rc;
}

/* The rotation of rows and columns is fixed: newer files spell it out. */
static enum galley_status check_vision_rope(const cJSON *vision, const char *where,
                                            struct galley_err *err)
{
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(vision, "rope_parameters");
    char place[HF_WHERE_MAX];
    hf_place(place, where, "rope_parameters");
    double theta = VISION_THETA;
    const char *kind = "axial";
    enum galley_status rc = json_get_number(rope, place, "rope_theta", false, 1, 1e12, &theta, err);
    rc = rc ? rc : json_get_string(rope, place, "rope_type", false, &kind, err);
    if (!rc && theta != VISION_THETA) {
        rc = hf_refuse(err, place, "rope_theta", "not 10000", "10000");
    }
    if (!rc && strcmp(kind, "axial") != 0 && strcmp(kind, "default") != 0) {
        rc = hf_refuse(err, place, "rope_type", kind, "axial");
    }
    return rc;
}

/* The old spelling "in_chans" is ignored by transformers, but a wrong value there is a warning
 * sign worth heeding. */
static enum galley_status read_vision(struct hf_config *c, const cJSON *vision, const char *where,
                                      struct galley_err *err)
{
    struct hf_vision_config *v = &c->vision;
    int old_channels = 3;
    *v = (struct hf_vision_config){ .depth = 32,
                                    .n_head = 16,
                                    .patch = 14,
                                    .temporal_patch = 2,
                                    .merge = 2,
                                    .in_channels = 3,
                                    .norm_eps = 1e-6 };
    const struct hf_int keys[] = {
        { "depth", false, 1, HF_LAYERS_MAX, &v->depth },
        { "num_heads", false, 1, HF_HEADS_MAX, &v->n_head },
        { "patch_size", false, 1, 256, &v->patch },
        { "temporal_patch_size", false, 1, 16, &v->temporal_patch },
        { "spatial_merge_size", false, 1, 16, &v->merge },
        { "in_channels", false, 3, 3, &v->in_channels },
        { "in_chans", false, 3, 3, &old_channels },
    };
    enum galley_status rc = hf_read_ints(vision, where, keys, COUNT(keys), err);
    rc = rc ? rc : check_vision_rope(vision, where, err);
    if (rc) {
        return rc;
    }
    rc = c->family == HF_QWEN2_VL ? read_vision_2(v, vision, where, err)
                                  : read_vision_2_5(v, vision, where, err);
    if (rc) {
        return rc;
    }
    /* Rotary embedding of rows and columns: two halves of pairs. */
    if (v->hidden % v->n_head || v->hidden / v->n_head % 4) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: width %d does not give %d heads of a multiple of 4", where,
                              v->hidden, v->n_head);
    }
    if (v->hidden / v->n_head > ATTN_HEAD_DIM_MAX) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: %d heads of size %d, limit %d", where,
                              v->n_head, v->hidden / v->n_head, ATTN_HEAD_DIM_MAX);
    }
    if (v->out_hidden != c->text.hidden) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: \"%s\" is %d, the language model's hidden_size is %d", where,
                              c->family == HF_QWEN2_VL ? "hidden_size" : "out_hidden_size",
                              v->out_hidden, c->text.hidden);
    }
    return GALLEY_OK;
}

static enum galley_status read_vision_ids(struct hf_config *c, const cJSON *root, const char *where,
                                          struct galley_err *err)
{
    const int last = c->text.n_vocab - 1;
    c->vision_start = VISION_START;
    c->vision_end = VISION_END;
    c->image_pad = IMAGE_PAD;
    c->video_pad = VIDEO_PAD;
    const struct hf_int keys[] = {
        { "vision_start_token_id", last < VISION_START, 0, last, &c->vision_start },
        { "vision_end_token_id", last < VISION_END, 0, last, &c->vision_end },
        { "image_token_id", last < IMAGE_PAD, 0, last, &c->image_pad },
        { "video_token_id", last < VIDEO_PAD, 0, last, &c->video_pad },
    };
    return hf_read_ints(root, where, keys, COUNT(keys), err);
}

static enum galley_status read_root(struct hf_config *c, const cJSON *root, const char *where,
                                    struct galley_err *err)
{
    if (!cJSON_IsObject(root)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: not a JSON object", where);
    }
    enum galley_status rc = read_family(c, root, where, err);
    if (rc) {
        return rc;
    }
    char text_place[HF_WHERE_MAX], vision_place[HF_WHERE_MAX];
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(root, "text_config");
    const cJSON *vision = cJSON_GetObjectItemCaseSensitive(root, "vision_config");
    snprintf(text_place, sizeof(text_place), "%s", where);
    if (cJSON_IsObject(text)) {
        hf_place(text_place, where, "text_config");
    } else {
        text = root;
    }
    hf_place(vision_place, where, "vision_config");
    if (c->has_vision && !cJSON_IsObject(vision)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"vision_config\" is missing", where);
    }
    rc = hf_text_read(c, root, text, text_place, err);
    if (!rc && c->has_vision) {
        rc = read_vision(c, vision, vision_place, err);
        rc = rc ? rc : read_vision_ids(c, root, where, err);
        hf_preprocess_default(&c->pre);
    }
    rc = rc ? rc : hf_read_eos(c, text, where, err);
    return rc || root == text ? rc : hf_read_eos(c, root, where, err);
}

enum galley_status hf_config_parse(struct hf_config *out, const char *where, const char *text,
                                   size_t n, struct galley_err *err)
{
    *out = (struct hf_config){ 0 };
    cJSON *root;
    enum galley_status rc = json_parse(&root, where, text, n, err);
    if (!rc) {
        rc = read_root(out, root, where, err);
    }
    cJSON_Delete(root);
    return hf_status(rc, err);
}

typedef enum galley_status parse_fn(struct hf_config *io, const char *where, const char *text,
                                    size_t n, struct galley_err *err);

/* A missing file is fine when it is optional. */
static enum galley_status read_file(struct hf_config *io, const char *dir, const char *name,
                                    bool optional, parse_fn *parse, struct galley_err *err)
{
    char *path = NULL, *text = NULL;
    size_t n;
    enum galley_status rc = hf_path(&path, dir, name, err);
    if (rc) {
        return rc;
    }
    if (!hf_exists(path)) {
        if (!optional) {
            rc = galley_err_set(
                err, GALLEY_EMODEL,
                "%s: no %s there: give a Hugging Face model directory or a GGUF file", dir, name);
        }
    } else {
        rc = file_read(path, FILE_MAX, &text, &n, err);
        rc = rc ? hf_status(rc, err) : parse(io, path, text, n, err);
    }
    mem_free(text);
    mem_free(path);
    return rc;
}

enum galley_status hf_config_read(struct hf_config *out, const char *dir, struct galley_err *err)
{
    enum galley_status rc = read_file(out, dir, "config.json", false, hf_config_parse, err);
    if (!rc && out->has_vision) {
        rc = read_file(out, dir, "preprocessor_config.json", true, hf_preprocess_parse, err);
        rc = rc ? rc : read_file(out, dir, "processor_config.json", true, hf_processor_parse, err);
    }
    rc = rc ? rc : read_file(out, dir, "generation_config.json", true, hf_generation_parse, err);
    if (!rc && out->n_eos == 0) {
        rc = galley_err_set(err, GALLEY_EMODEL,
                            "%s: neither config.json nor generation_config.json has "
                            "\"eos_token_id\"",
                            dir);
    }
    return rc;
}
