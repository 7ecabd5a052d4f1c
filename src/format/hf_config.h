/* hf_config.h - what a Hugging Face model directory says about its model.
 *
 * config.json (Qwen2-VL and Qwen2.5-VL families, both the flat layout and the newer
 * text_config / rope_parameters one), preprocessor_config.json or processor_config.json, and
 * generation_config.json; Galley's own card galley.json is card.h's.  Plain values, nothing owned.
 * Every number is range-checked, so that products of them fit 64 bits; a value we cannot honour is
 * refused by name. */
#ifndef GALLEY_FORMAT_HF_CONFIG_H
#define GALLEY_FORMAT_HF_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"

#define HF_NAME_MAX    64
#define HF_FULLATT_MAX 128
#define HF_EOS_MAX     8

enum hf_family { HF_QWEN2_VL, HF_QWEN2_5_VL };

struct hf_text_config {
    int hidden, n_layers, n_head, n_kv_head, head_dim, intermediate, n_vocab;
    int max_positions;
    double rms_eps, rope_theta;
    int mrope_section[3]; /* pairs per axis t, h, w; sums to head_dim / 2 */
    bool tied;            /* lm_head is the embedding table */
};

struct hf_vision_config {
    int hidden, depth, n_head, intermediate, out_hidden;
    int patch, temporal_patch, merge, in_channels;
    int window;                  /* pixels; 0: every block is full (Qwen2-VL) */
    int fullatt[HF_FULLATT_MAX]; /* block indexes with full attention */
    int n_fullatt;
    /* Qwen2-VL: LayerNorm, plain MLP fc1/fc2 with quick_gelu (mlp_ratio); Qwen2.5-VL:
     * RMSNorm, gated SiLU MLP. */
    bool gated_rms;
    double norm_eps; /* 1e-6 */
};

struct hf_preprocess {
    int64_t min_pixels, max_pixels;
    float mean[3], std[3];
    float rescale; /* 1/255 */
};

struct hf_config {
    enum hf_family family;
    char model_type[HF_NAME_MAX];
    struct hf_text_config text;
    struct hf_vision_config vision;
    struct hf_preprocess pre;
    int32_t eos[HF_EOS_MAX];
    int n_eos;
    int32_t vision_start, vision_end, image_pad, video_pad;
    int max_new_tokens; /* from generation_config, 0 when it names none */
};

/* Reads the files of `dir`.  preprocessor_config.json (or processor_config.json, where
 * transformers 5 puts the same) and generation_config.json may be missing (the family's defaults
 * apply); config.json may not.  GALLEY_EMODEL with the file and key named. */
GALLEY_MUST_USE enum galley_status hf_config_read(struct hf_config *out, const char *dir,
                                                  struct galley_err *err);
/* The parsers by themselves, for tests and fuzzers: text[0..n) of one file. */
GALLEY_MUST_USE enum galley_status hf_config_parse(struct hf_config *out, const char *where,
                                                   const char *text, size_t n,
                                                   struct galley_err *err);
GALLEY_MUST_USE enum galley_status hf_preprocess_parse(struct hf_config *io, const char *where,
                                                       const char *text, size_t n,
                                                       struct galley_err *err);
GALLEY_MUST_USE enum galley_status hf_generation_parse(struct hf_config *io, const char *where,
                                                       const char *text, size_t n,
                                                       struct galley_err *err);

#endif
