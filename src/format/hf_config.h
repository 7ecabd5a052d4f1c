/* hf_config.h - what a checkpoint says about its model, in Hugging Face's terms.
 *
 * From a directory: config.json (flat, or the newer text_config / rope_parameters layout),
 * preprocessor_config.json or processor_config.json, and generation_config.json; gguf_config.h
 * fills the same struct from GGUF metadata; Galley's own card galley.json is card.h's.  Plain
 * values, nothing owned.
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

/* Numbers above these are taken for damage; products of those that meet fit 64 bits. */
#define HF_WIDTH_MAX   65536 /* of a row, a head; a window in pixels */
#define HF_FFN_MAX     (1 << 20)
#define HF_LAYERS_MAX  1024
#define HF_HEADS_MAX   1024
#define HF_VOCAB_MAX   (1 << 22)
#define HF_CONTEXT_MAX (1 << 24)
#define HF_THETA_MAX   1e12

enum hf_family {
    HF_QWEN2_VL,
    HF_QWEN2_5_VL,
    HF_QWEN2,
    HF_QWEN3,
    HF_LLAMA, /* 2 and 3 */
    HF_GEMMA3,
    HF_FAMILY_COUNT
};

enum hf_rope_kind {
    HF_ROPE_PLAIN,
    HF_ROPE_LINEAR, /* every frequency divided by factor */
    HF_ROPE_LLAMA3 /* low frequencies divided by factor, with a ramp (factor, low, high, context) */
};

struct hf_rope {
    enum hf_rope_kind kind;
    double theta;
    double factor, low, high; /* HF_ROPE_LLAMA3: low_freq_factor, high_freq_factor */
    int original_context;
};

/* Zero means "not there" in everything optional, so that a family's row sets what it needs. */
struct hf_text_config {
    int hidden, n_layers, n_head, n_kv_head, head_dim, intermediate, n_vocab;
    int max_positions;
    double rms_eps;
    struct hf_rope rope;       /* of all layers, or of those that see everything */
    int mrope_section[3];      /* pairs per axis t, h, w; sums to head_dim / 2; all 0: positions are
                                  one number */
    bool rope_pairs;           /* pairs are (2i, 2i + 1): GGUF files of llama's family */
    struct hf_rope rope_local; /* of sliding layers, when window > 0 */
    int window;                /* keys a sliding layer sees; 0: no layer slides */
    int window_pattern;        /* every n-th layer (n - 1, 2n - 1, ...) sees everything */
    bool qkv_bias, o_bias, mlp_bias;
    bool qk_norm;       /* RMSNorm of each q and k head before rotation */
    bool norm_plus_one; /* norm weights are stored less 1 (Gemma's safetensors) */
    double embed_scale; /* 0: 1 */
    double query_scale; /* on q . k; 0: 1 / sqrt(head_dim) */
    double attn_softcap, final_softcap;
    bool gelu; /* the gate is GELU's tanh form instead of SiLU */
    bool tied; /* lm_head is the embedding table */
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
    bool has_vision; /* else vision and pre are zero, and no image token means anything */
    struct hf_vision_config vision;
    struct hf_preprocess pre;
    int32_t eos[HF_EOS_MAX];
    int n_eos;
    int32_t vision_start, vision_end, image_pad, video_pad; /* GGUF: -1 where it has none */
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
