/* quantize_keys.c - metadata of the files that quantize writes.
 *
 * From a GGUF file: what it says, but for the keys that the new types make untrue.  From a
 * directory: struct hf_config under ggml's names (gguf-py's constants, llama-arch, clip-impl). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/format/quantize_impl.h"

#define QUANTIZATION_VERSION 2
#define KEY_TEXT             128 /* longer than any key written here */

static bool is_replaced(const char *key)
{
    static const char *const keys[] = { "general.file_type", "general.quantization_version",
                                        "general.alignment", "clip.vision.feed_forward_length" };
    for (size_t i = 0; i < COUNT(keys); i++) {
        if (strcmp(key, keys[i]) == 0) {
            return true;
        }
    }
    return strncmp(key, "split.", 6) == 0;
}

/* Width of the tower's feed-forward as it will be in the file; 0: there is none. */
static int64_t tower_width(const struct quantize_list *l)
{
    const struct quantize_tensor *t = quantize_lookup(l, "v.blk.0.ffn_down.weight");
    return t ? t->shape[1] : 0;
}

static void copy_keys(struct gguf_writer *w, const struct quantize_source *s)
{
    for (int i = 0; i < gguf_n_keys(s->gguf); i++) {
        const struct gguf_value *v;
        const char *key = gguf_key_at(s->gguf, i, &v);
        if (!is_replaced(key)) {
            gguf_write_key(w, key, v);
        }
    }
    const struct gguf_value *width = gguf_lookup(s->gguf, "clip.vision.feed_forward_length");
    if (width && width->type != GGUF_STRING && width->n == 1) {
        /* Old files call the first matrix ffn_down: then there was nothing to pad. */
        const struct quantize_tensor *t = quantize_lookup(&s->text, "v.blk.0.ffn_down.weight");
        const bool padded = t && t->shape[1] != t->src_cols;
        gguf_write_u32(w, "clip.vision.feed_forward_length",
                       (uint32_t)(padded ? t->shape[1] : gguf_int(width, 0)));
    }
}

/* The last part of a path, without slashes at its end. */
static void write_name(struct gguf_writer *w, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    size_t at = n;
    while (at > 0 && path[at - 1] != '/') {
        at--;
    }
    char name[256];
    snprintf(name, sizeof(name), "%.*s", (int)(n - at), path + at);
    gguf_write_string(w, "general.name", name);
}

static const char *architecture(enum hf_family family)
{
    switch (family) {
    case HF_QWEN2_VL:
    case HF_QWEN2_5_VL:
        return "qwen2vl";
    case HF_QWEN2:
        return "qwen2";
    case HF_QWEN3:
        return "qwen3";
    case HF_GEMMA3:
        return "gemma3";
    default:
        assert(family == HF_LLAMA);
        return "llama";
    }
}

static void text_u32(struct gguf_writer *w, const char *arch, const char *key, int v)
{
    char full[KEY_TEXT];
    snprintf(full, sizeof(full), "%s.%s", arch, key);
    gguf_write_u32(w, full, (uint32_t)v);
}

static void text_f32(struct gguf_writer *w, const char *arch, const char *key, double v)
{
    char full[KEY_TEXT];
    snprintf(full, sizeof(full), "%s.%s", arch, key);
    gguf_write_f32(w, full, (float)v);
}

static void write_rope(struct gguf_writer *w, const char *arch, const struct hf_text_config *t)
{
    char key[KEY_TEXT];
    text_f32(w, arch, "rope.freq_base", t->rope.theta);
    text_u32(w, arch, "rope.dimension_count", t->head_dim);
    if (t->rope.kind == HF_ROPE_LINEAR) {
        snprintf(key, sizeof(key), "%s.rope.scaling.type", arch);
        gguf_write_string(w, key, "linear");
        text_f32(w, arch, "rope.scaling.factor", t->rope.factor);
    }
    if (t->mrope_section[0] + t->mrope_section[1] + t->mrope_section[2] > 0) {
        const int32_t sections[4] = { t->mrope_section[0], t->mrope_section[1], t->mrope_section[2],
                                      0 };
        const struct gguf_value v = {
            .type = GGUF_I32, .is_array = true, .n = 4, .data = (const uint8_t *)sections
        };
        snprintf(key, sizeof(key), "%s.rope.dimension_sections", arch);
        gguf_write_key(w, key, &v);
    }
}

/* Gemma 3: the window, and how often a layer has none. */
static void write_windowed(struct gguf_writer *w, const char *arch, const struct hf_text_config *t)
{
    text_u32(w, arch, "attention.sliding_window", t->window);
    text_u32(w, arch, "attention.sliding_window_pattern", t->window_pattern);
    text_f32(w, arch, "rope.freq_base_swa", t->rope_local.theta);
    if (t->final_softcap != 0) {
        text_f32(w, arch, "final_logit_softcapping", t->final_softcap);
    }
}

static void write_text(struct gguf_writer *w, const struct hf_config *c)
{
    const struct hf_text_config *t = &c->text;
    const char *arch = architecture(c->family);
    gguf_write_string(w, "general.architecture", arch);
    gguf_write_string(w, "general.type", "model");
    text_u32(w, arch, "block_count", t->n_layers);
    text_u32(w, arch, "context_length", t->max_positions);
    text_u32(w, arch, "embedding_length", t->hidden);
    text_u32(w, arch, "feed_forward_length", t->intermediate);
    text_u32(w, arch, "attention.head_count", t->n_head);
    text_u32(w, arch, "attention.head_count_kv", t->n_kv_head);
    text_u32(w, arch, "attention.key_length", t->head_dim);
    text_u32(w, arch, "attention.value_length", t->head_dim);
    text_f32(w, arch, "attention.layer_norm_rms_epsilon", t->rms_eps);
    text_u32(w, arch, "vocab_size", t->n_vocab);
    write_rope(w, arch, t);
    if (c->family == HF_GEMMA3) {
        write_windowed(w, arch, t);
    }
}

static void write_three(struct gguf_writer *w, const char *key, const float x[3])
{
    const struct gguf_value v = {
        .type = GGUF_F32, .is_array = true, .n = 3, .data = (const uint8_t *)x
    };
    gguf_write_key(w, key, &v);
}

/* Every n-th block attends in full: n; 0 when it is less regular than that. */
static int full_pattern(const struct hf_vision_config *v)
{
    const int n = v->n_fullatt > 0 ? v->fullatt[0] + 1 : 0;
    for (int i = 0; n > 0 && i < v->n_fullatt; i++) {
        if (v->fullatt[i] != (i + 1) * n - 1) {
            return 0;
        }
    }
    return n > 0 && v->depth / n == v->n_fullatt ? n : 0;
}

static void write_windows(struct gguf_writer *w, const struct hf_vision_config *v)
{
    const int pattern = full_pattern(v);
    gguf_write_u32(w, "clip.vision.window_size", (uint32_t)v->window);
    if (pattern > 0) {
        gguf_write_u32(w, "clip.vision.n_wa_pattern", (uint32_t)pattern);
        return;
    }
    int32_t blocks[HF_FULLATT_MAX];
    for (int i = 0; i < v->n_fullatt; i++) {
        blocks[i] = v->fullatt[i];
    }
    const struct gguf_value list = { .type = GGUF_I32,
                                     .is_array = true,
                                     .n = (uint64_t)v->n_fullatt,
                                     .data = (const uint8_t *)blocks };
    gguf_write_key(w, "clip.vision.wa_layer_indexes", &list);
}

static void write_vision(struct gguf_writer *w, const struct quantize_source *s)
{
    const struct hf_vision_config *v = &s->cfg.vision;
    const struct hf_preprocess *p = &s->cfg.pre;
    const int64_t width = tower_width(&s->vision);
    gguf_write_string(w, "general.architecture", "clip");
    gguf_write_string(w, "general.type", "mmproj");
    gguf_write_bool(w, "clip.has_vision_encoder", true);
    gguf_write_string(w, "clip.projector_type",
                      v->gated_rms ? "qwen2.5vl_merger" : "qwen2vl_merger");
    /* Neither: quick GELU. */
    gguf_write_bool(w, "clip.use_silu", v->gated_rms);
    gguf_write_bool(w, "clip.use_gelu", false);
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        { "embedding_length", v->hidden },
        { "feed_forward_length", width > 0 ? width : v->intermediate },
        { "block_count", v->depth },
        { "projection_dim", v->out_hidden },
        { "attention.head_count", v->n_head },
        { "patch_size", v->patch },
        { "spatial_merge_size", v->merge },
        { "image_size", 40 * v->patch }, /* nominal: pictures keep their own size */
        { "image_min_pixels", p->min_pixels },
        { "image_max_pixels", p->max_pixels },
    };
    for (size_t i = 0; i < COUNT(numbers); i++) {
        text_u32(w, "clip.vision", numbers[i].key, (int)numbers[i].value);
    }
    gguf_write_f32(w, "clip.vision.attention.layer_norm_epsilon", (float)v->norm_eps);
    write_three(w, "clip.vision.image_mean", p->mean);
    write_three(w, "clip.vision.image_std", p->std);
    if (v->gated_rms && v->window > 0) {
        write_windows(w, v);
    }
}

enum galley_status quantize_keys(struct gguf_writer *w, const struct quantize_source *s,
                                 bool vision, const struct quantize_mix *m, struct galley_err *err)
{
    enum galley_status rc = GALLEY_OK;
    if (s->gguf) {
        copy_keys(w, s);
    } else if (vision) {
        write_vision(w, s);
        write_name(w, s->path);
    } else {
        write_text(w, &s->cfg);
        write_name(w, s->path);
        rc = quantize_vocab(w, s->path, &s->cfg, err);
    }
    gguf_write_u32(w, "general.file_type", quantize_file_type(m));
    gguf_write_u32(w, "general.quantization_version", QUANTIZATION_VERSION);
    return rc;
}
