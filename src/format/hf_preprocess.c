/* hf_preprocess.c - preprocessor_config.json, processor_config.json, generation_config.json. */
#include <math.h>
#include <string.h>

#include "src/format/hf_json.h"

#define PIXELS_MAX (INT64_C(1) << 40)
#define TOKENS_MAX (1 << 24)
#define BICUBIC    3 /* PIL.Image.BICUBIC */

/* Qwen2VLImageProcessor's own values. */
void hf_preprocess_default(struct hf_preprocess *p)
{
    *p = (struct hf_preprocess){
        .min_pixels = 56 * 56,
        .max_pixels = 28 * 28 * 1280,
        .mean = { 0.48145466f, 0.4578275f, 0.40821073f },
        .std = { 0.26862954f, 0.26130258f, 0.27577711f },
        .rescale = 1.0f / 255.0f,
    };
}

static enum galley_status read_three(const cJSON *obj, const char *where, const char *key,
                                     double lo, float out[3], struct galley_err *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(obj, key);
    if (!list || cJSON_IsNull(list)) {
        return GALLEY_OK;
    }
    const cJSON *item = cJSON_IsArray(list) && cJSON_GetArraySize(list) == 3 ? list->child : NULL;
    for (int i = 0; i < 3; i++) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= lo && item->valuedouble <= 10)) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is not 3 numbers from %g to 10",
                                  where, key, lo);
        }
        out[i] = (float)item->valuedouble;
        item = item->next;
    }
    return GALLEY_OK;
}

/* size {shortest_edge, longest_edge} holds pixel counts in this family, whatever the names say;
 * min_pixels and max_pixels win over it. */
static enum galley_status read_pixels(struct hf_preprocess *p, const cJSON *root, const char *where,
                                      struct galley_err *err)
{
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(root, "size");
    char place[HF_WHERE_MAX];
    hf_place(place, where, "size");
    enum galley_status rc = GALLEY_OK;
    if (cJSON_IsObject(size)) {
        rc = json_get_int(size, place, "shortest_edge", false, 1, PIXELS_MAX, &p->min_pixels, err);
        rc = rc ? rc
                : json_get_int(size, place, "longest_edge", false, 1, PIXELS_MAX, &p->max_pixels,
                               err);
    } else if (size && !cJSON_IsNull(size)) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: \"size\" is not an object", where);
    }
    rc = rc ? rc
            : json_get_int(root, where, "min_pixels", false, 1, PIXELS_MAX, &p->min_pixels, err);
    rc = rc ? rc
            : json_get_int(root, where, "max_pixels", false, 1, PIXELS_MAX, &p->max_pixels, err);
    if (!rc && p->min_pixels > p->max_pixels) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: min_pixels %lld is over max_pixels %lld",
                            where, (long long)p->min_pixels, (long long)p->max_pixels);
    }
    return rc;
}

static enum galley_status check_steps(const cJSON *root, const char *where, struct galley_err *err)
{
    static const char *const steps[] = { "do_resize", "do_rescale", "do_normalize",
                                         "do_convert_rgb" };
    for (size_t i = 0; i < COUNT(steps); i++) {
        bool on = true;
        const enum galley_status rc = json_get_bool(root, where, steps[i], false, &on, err);
        if (rc) {
            return rc;
        }
        if (!on) {
            return hf_refuse(err, where, steps[i], "false", "true");
        }
    }
    int resample = BICUBIC;
    const struct hf_int key = { "resample", false, 0, 5, &resample };
    const enum galley_status rc = hf_read_ints(root, where, &key, 1, err);
    if (!rc && resample != BICUBIC) {
        return hf_refuse(err, where, "resample", "not 3", "3 (bicubic)");
    }
    return rc;
}

static enum galley_status check_kind(const cJSON *root, const char *where, struct galley_err *err)
{
    static const char *const known[] = { "Qwen2VLImageProcessor", "Qwen2VLImageProcessorFast",
                                         "Qwen2VLImageProcessorPil", "Qwen2_5_VLImageProcessor" };
    const char *kind = known[0];
    const enum galley_status rc =
        json_get_string(root, where, "image_processor_type", false, &kind, err);
    if (rc) {
        return rc;
    }
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strcmp(kind, known[i]) == 0) {
            return GALLEY_OK;
        }
    }
    return hf_refuse(err, where, "image_processor_type", kind, known[0]);
}

/* Both files name the patch geometry: they must agree. */
static enum galley_status check_geometry(const struct hf_vision_config *v, const cJSON *root,
                                         const char *where, struct galley_err *err)
{
    const struct {
        const char *key;
        int want;
    } rows[] = { { "patch_size", v->patch },
                 { "temporal_patch_size", v->temporal_patch },
                 { "merge_size", v->merge } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t is = rows[i].want;
        const enum galley_status rc =
            json_get_int(root, where, rows[i].key, false, 1, 1024, &is, err);
        if (rc) {
            return rc;
        }
        if (is != rows[i].want) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is %lld, config.json says %d",
                                  where, rows[i].key, (long long)is, rows[i].want);
        }
    }
    return GALLEY_OK;
}

static enum galley_status read_preprocess(struct hf_config *io, const cJSON *root,
                                          const char *where, struct galley_err *err)
{
    if (!cJSON_IsObject(root)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: not a JSON object", where);
    }
    double rescale = io->pre.rescale;
    enum galley_status rc = check_kind(root, where, err);
    rc = rc ? rc : check_steps(root, where, err);
    rc = rc ? rc : check_geometry(&io->vision, root, where, err);
    rc = rc ? rc : read_pixels(&io->pre, root, where, err);
    rc = rc ? rc : read_three(root, where, "image_mean", 0, io->pre.mean, err);
    rc = rc ? rc : read_three(root, where, "image_std", 1e-3, io->pre.std, err);
    rc = rc ? rc : json_get_number(root, where, "rescale_factor", false, 1e-6, 1, &rescale, err);
    io->pre.rescale = (float)rescale;
    return rc;
}

enum galley_status hf_preprocess_parse(struct hf_config *io, const char *where, const char *text,
                                       size_t n, struct galley_err *err)
{
    hf_preprocess_default(&io->pre);
    cJSON *root;
    enum galley_status rc = json_parse(&root, where, text, n, err);
    rc = rc ? rc : read_preprocess(io, root, where, err);
    cJSON_Delete(root);
    return hf_status(rc, err);
}

enum galley_status hf_processor_parse(struct hf_config *io, const char *where, const char *text,
                                      size_t n, struct galley_err *err)
{
    cJSON *root;
    enum galley_status rc = json_parse(&root, where, text, n, err);
    const cJSON *nested = cJSON_GetObjectItemCaseSensitive(root, "image_processor");
    if (!rc && cJSON_IsObject(nested)) {
        char place[HF_WHERE_MAX];
        hf_place(place, where, "image_processor");
        hf_preprocess_default(&io->pre);
        rc = read_preprocess(io, nested, place, err);
    }
    cJSON_Delete(root);
    return hf_status(rc, err);
}

static enum galley_status read_generation(struct hf_config *io, const cJSON *root,
                                          const char *where, struct galley_err *err)
{
    if (!cJSON_IsObject(root)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: not a JSON object", where);
    }
    const struct hf_int key = { "max_new_tokens", false, 1, TOKENS_MAX, &io->max_new_tokens };
    const enum galley_status rc = hf_read_ints(root, where, &key, 1, err);
    return rc ? rc : hf_read_eos(io, root, where, err);
}

enum galley_status hf_generation_parse(struct hf_config *io, const char *where, const char *text,
                                       size_t n, struct galley_err *err)
{
    cJSON *root;
    enum galley_status rc = json_parse(&root, where, text, n, err);
    rc = rc ? rc : read_generation(io, root, where, err);
    cJSON_Delete(root);
    return hf_status(rc, err);
}
