/* gguf_config.c - the language part of a GGUF file as struct hf_config.
 *
 * The defaults are ggml's: a missing key_length is embedding_length / head_count, a missing
 * freq_base 10000, missing head_count_kv is head_count, and a missing output.weight means that the
 * head is the embedding table. */
#include "src/format/gguf_config.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/device.h"
#include "src/format/gguf_rope.h"
#include "src/format/hf_json.h"

#define KEY_TEXT 128 /* longer than any key read here */

/* One file being read; errors stick. */
struct reader {
    const struct gguf *g;
    const char *arch;
    struct galley_err *err;
    enum galley_status rc;
};

struct arch_row {
    const char *name;
    enum hf_family family;
    void (*read)(struct reader *r, struct hf_text_config *t);
};

static void full_key(char out[KEY_TEXT], const struct reader *r, const char *key)
{
    snprintf(out, KEY_TEXT, "%s.%s", r->arch, key);
}

static void refuse(struct reader *r, const char *key, const char *is, const char *needs)
{
    r->rc = hf_refuse(r->err, gguf_path(r->g), key, is, needs);
}

static void read_int(struct reader *r, const char *key, bool required, int64_t hi, int *out)
{
    if (r->rc) {
        return;
    }
    char full[KEY_TEXT];
    int64_t v = *out;
    full_key(full, r, key);
    r->rc = gguf_read_int(r->g, full, required, 1, hi, &v, r->err);
    *out = (int)v;
}

static void read_number(struct reader *r, const char *key, bool required, double lo, double hi,
                        double *out)
{
    if (!r->rc) {
        char full[KEY_TEXT];
        full_key(full, r, key);
        r->rc = gguf_read_number(r->g, full, required, lo, hi, out, r->err);
    }
}

/* A number of each layer: one for all, or a list of equal ones. */
static void read_layered(struct reader *r, const char *key, bool required, int n_layers, int hi,
                         int *out)
{
    if (r->rc) {
        return;
    }
    char full[KEY_TEXT];
    full_key(full, r, key);
    const struct gguf_value *v = gguf_lookup(r->g, full);
    if (!v || !v->is_array) {
        read_int(r, key, required, hi, out);
        return;
    }
    if (v->type == GGUF_STRING || v->n < (uint64_t)n_layers) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                               "%s: key %s is no list of a number for each of %d layers",
                               gguf_path(r->g), full, n_layers);
        return;
    }
    const int64_t first = gguf_int(v, 0);
    for (int i = 1; i < n_layers; i++) {
        if (gguf_int(v, (uint64_t)i) != first) {
            r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                                   "%s: key %s is %" PRId64 " for layer 0 and %" PRId64
                                   " for layer %d; this build supports layers of one shape",
                                   gguf_path(r->g), full, first, gguf_int(v, (uint64_t)i), i);
            return;
        }
    }
    if (first < 1 || first > hi) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL, "%s: key %s is %" PRId64 ", outside 1 to %d",
                               gguf_path(r->g), full, first, hi);
        return;
    }
    *out = (int)first;
}

/* ---- sizes ---- */

static void read_vocab(struct reader *r, struct hf_text_config *t)
{
    const struct gguf_tensor *embed = gguf_tensor_lookup(r->g, "token_embd.weight");
    if (r->rc) {
        return;
    }
    if (!embed || embed->view.n_dim != 2) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL, "%s: no tensor token_embd.weight of rows",
                               gguf_path(r->g));
        return;
    }
    const int64_t n = embed->view.shape[0];
    if (n > HF_VOCAB_MAX) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                               "%s: token_embd.weight has %" PRId64 " rows, limit %d",
                               gguf_path(r->g), n, HF_VOCAB_MAX);
        return;
    }
    t->n_vocab = (int)n;
    t->tied = !gguf_tensor_lookup(r->g, "output.weight");
    const struct gguf_value *tokens = gguf_lookup(r->g, "tokenizer.ggml.tokens");
    if (tokens && tokens->n > (uint64_t)n) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                               "%s: tokenizer.ggml.tokens has %" PRIu64
                               " entries, token_embd.weight %" PRId64 " rows",
                               gguf_path(r->g), tokens->n, n);
    }
}

static void check_heads(struct reader *r, const struct hf_text_config *t, int value_length,
                        int rope_dims)
{
    const char *where = gguf_path(r->g);
    if (r->rc) {
        return;
    }
    if (t->n_head % t->n_kv_head) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                               "%s: attention.head_count %d is no multiple of head_count_kv %d",
                               where, t->n_head, t->n_kv_head);
    } else if (t->head_dim % 2 || t->head_dim > ATTN_HEAD_DIM_MAX) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                               "%s: %d heads of size %d, which is odd or above the limit %d", where,
                               t->n_head, t->head_dim, ATTN_HEAD_DIM_MAX);
    } else if (value_length != t->head_dim) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                               "%s: attention.value_length is %d and key_length %d; this build "
                               "supports equal ones",
                               where, value_length, t->head_dim);
    } else if (rope_dims != t->head_dim) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                               "%s: rope.dimension_count is %d of heads of %d; this build rotates "
                               "whole heads",
                               where, rope_dims, t->head_dim);
    }
}

static void read_sizes(struct reader *r, struct hf_text_config *t)
{
    read_int(r, "embedding_length", true, HF_WIDTH_MAX, &t->hidden);
    read_int(r, "block_count", true, HF_LAYERS_MAX, &t->n_layers);
    read_int(r, "context_length", true, HF_CONTEXT_MAX, &t->max_positions);
    read_layered(r, "attention.head_count", true, t->n_layers, HF_HEADS_MAX, &t->n_head);
    t->n_kv_head = t->n_head;
    read_layered(r, "attention.head_count_kv", false, t->n_layers, HF_HEADS_MAX, &t->n_kv_head);
    read_layered(r, "feed_forward_length", true, t->n_layers, HF_FFN_MAX, &t->intermediate);
    read_number(r, "attention.layer_norm_rms_epsilon", true, 1e-12, 1, &t->rms_eps);
    if (r->rc) {
        return;
    }
    t->head_dim = t->hidden / t->n_head;
    read_int(r, "attention.key_length", t->hidden % t->n_head != 0, HF_WIDTH_MAX, &t->head_dim);
    int value_length = t->head_dim, rope_dims = t->head_dim;
    read_int(r, "attention.value_length", false, HF_WIDTH_MAX, &value_length);
    read_int(r, "rope.dimension_count", false, HF_WIDTH_MAX, &rope_dims);
    check_heads(r, t, value_length, rope_dims);
    read_vocab(r, t);
}

/* Features that would silently change every value. */
static void check_features(struct reader *r)
{
    static const char *const absent[] = {
        "expert_count",        "rope.scaling.attn_factor", "rope.scaling.yarn_ext_factor",
        "attention.clamp_kqv", "residual_scale",           "logit_scale",
        "embedding_scale"
    };
    for (size_t i = 0; !r->rc && i < COUNT(absent); i++) {
        char full[KEY_TEXT];
        full_key(full, r, absent[i]);
        double v = 0;
        r->rc = gguf_read_number(r->g, full, false, -1e30, 1e30, &v, r->err);
        if (!r->rc && v != 0 && v != 1) {
            char is[32];
            snprintf(is, sizeof(is), "%g", v);
            refuse(r, full, is, "models without it");
        }
    }
}

/* ---- rotation ---- */

static void read_rope(struct reader *r, struct hf_text_config *t)
{
    char key[KEY_TEXT];
    struct gguf_string kind = { "none", 4 };
    double factor = 1, old = 1;
    t->rope.theta = 10000;
    read_number(r, "rope.freq_base", false, 1, HF_THETA_MAX, &t->rope.theta);
    read_number(r, "rope.scaling.factor", false, 1, 1e6, &factor);
    read_number(r, "rope.scale_linear", false, 1, 1e6, &old);
    full_key(key, r, "rope.scaling.type");
    r->rc = r->rc ? r->rc : gguf_read_string(r->g, key, false, &kind, r->err);
    if (r->rc) {
        return;
    }
    const bool typed = gguf_lookup(r->g, key) != NULL;
    factor = factor == 1 ? old : factor;
    if (!gguf_string_is(&kind, "none") && !gguf_string_is(&kind, "linear")) {
        char is[64];
        snprintf(is, sizeof(is), "%.*s", (int)(kind.n < 60 ? kind.n : 60), kind.text);
        refuse(r, key, is, "none and linear");
    } else if (factor != 1 && (!typed || gguf_string_is(&kind, "linear"))) {
        t->rope.kind = HF_ROPE_LINEAR;
        t->rope.factor = factor;
    }
    const struct gguf_tensor *factors = gguf_tensor_lookup(r->g, "rope_freqs.weight");
    if (!r->rc && factors) {
        r->rc = gguf_rope_factors(&t->rope, factors, t->head_dim, gguf_path(r->g), r->err);
    }
}

static void read_sections(struct reader *r, struct hf_text_config *t)
{
    char key[KEY_TEXT];
    full_key(key, r, "rope.dimension_sections");
    const struct gguf_value *v = gguf_lookup(r->g, key);
    if (r->rc) {
        return;
    }
    if (!v || !v->is_array || v->type == GGUF_STRING || v->n < 3 || v->n > 4) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL, "%s: key %s is not a list of 4 numbers",
                               gguf_path(r->g), key);
        return;
    }
    int64_t sum = 0;
    for (uint64_t i = 0; i < v->n; i++) {
        const int64_t n = gguf_int(v, i);
        if (n < 0 || n > HF_WIDTH_MAX || (i == 3 && n != 0)) {
            r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                                   "%s: entry %d of key %s is %" PRId64
                                   "; this build supports three axes",
                                   gguf_path(r->g), (int)i, key, n);
            return;
        }
        if (i < 3) {
            t->mrope_section[i] = (int)n;
        }
        sum += n;
    }
    if (sum != t->head_dim / 2) {
        r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                               "%s: key %s sums to %" PRId64 ", half a head is %d", gguf_path(r->g),
                               key, sum, t->head_dim / 2);
    }
}

/* ---- families ---- */

static void read_qwen2(struct reader *r, struct hf_text_config *t)
{
    (void)r;
    t->qkv_bias = true;
}

static void read_qwen2vl(struct reader *r, struct hf_text_config *t)
{
    t->qkv_bias = true;
    read_sections(r, t);
}

static void read_qwen3(struct reader *r, struct hf_text_config *t)
{
    t->qk_norm = true;
    t->qkv_bias = gguf_tensor_lookup(r->g, "blk.0.attn_q.bias") != NULL;
}

static void read_llama(struct reader *r, struct hf_text_config *t)
{
    t->rope_pairs = true;
    t->qkv_bias = gguf_tensor_lookup(r->g, "blk.0.attn_q.bias") != NULL;
    t->o_bias = gguf_tensor_lookup(r->g, "blk.0.attn_output.bias") != NULL;
    t->mlp_bias = gguf_tensor_lookup(r->g, "blk.0.ffn_gate.bias") != NULL;
}

/* Every n-th layer sees everything: a number, or a list that says of each layer whether it
 * slides. */
static void read_pattern(struct reader *r, struct hf_text_config *t)
{
    char key[KEY_TEXT];
    t->window_pattern = 6;
    full_key(key, r, "attention.sliding_window_pattern");
    const struct gguf_value *v = gguf_lookup(r->g, key);
    if (!v || !v->is_array) {
        read_int(r, "attention.sliding_window_pattern", false, HF_LAYERS_MAX, &t->window_pattern);
        return;
    }
    const uint64_t n = (uint64_t)t->n_layers;
    int first = 0;
    bool same = v->type != GGUF_STRING && v->n >= n;
    while (same && (uint64_t)first < n && gguf_int(v, (uint64_t)first) != 0) {
        first++;
    }
    for (uint64_t i = 0; same && i < n; i++) {
        same = (gguf_int(v, i) == 0) == ((i + 1) % ((uint64_t)first + 1) == 0);
    }
    t->window_pattern = first + 1;
    if (!same && !r->rc) {
        refuse(r, key, "irregular", "patterns of every n-th layer");
    }
}

/* The 27B model (62 layers) scales by its width over its heads. */
double gguf_gemma_scale(const struct hf_text_config *t)
{
    return 1 / sqrt(t->n_layers == 62 ? (double)t->hidden / t->n_head : t->head_dim);
}

static void read_gemma3(struct reader *r, struct hf_text_config *t)
{
    read_int(r, "attention.sliding_window", false, HF_CONTEXT_MAX, &t->window);
    read_pattern(r, t);
    t->rope_local.theta = 10000;
    read_number(r, "rope.freq_base_swa", false, 1, HF_THETA_MAX, &t->rope_local.theta);
    read_number(r, "attn_logit_softcapping", false, 0, 1e6, &t->attn_softcap);
    read_number(r, "final_logit_softcapping", false, 0, 1e6, &t->final_softcap);
    t->qk_norm = true;
    t->gelu = true;
    t->embed_scale = sqrt(t->hidden);
    t->query_scale = gguf_gemma_scale(t);
    read_number(r, "attention.scale", false, 1e-6, 1e6, &t->query_scale);
}

static const struct arch_row architectures[] = {
    { "qwen2", HF_QWEN2, read_qwen2 },    { "qwen2vl", HF_QWEN2_5_VL, read_qwen2vl },
    { "qwen3", HF_QWEN3, read_qwen3 },    { "llama", HF_LLAMA, read_llama },
    { "gemma3", HF_GEMMA3, read_gemma3 },
};

static const struct arch_row *find_architecture(const struct gguf *g, struct galley_err *err)
{
    struct gguf_string s;
    if (gguf_read_string(g, "general.architecture", true, &s, err)) {
        return NULL;
    }
    for (size_t i = 0; i < COUNT(architectures); i++) {
        if (gguf_string_is(&s, architectures[i].name)) {
            return &architectures[i];
        }
    }
    if (gguf_string_is(&s, "clip")) {
        galley_err_set(
            err, GALLEY_EMODEL,
            "%s: general.architecture is clip, a projector: give the language model, and "
            "this file as its mmproj",
            gguf_path(g));
        return NULL;
    }
    galley_err_set(err, GALLEY_EMODEL,
                   "%s: general.architecture is %.*s; this build supports qwen2, qwen2vl, qwen3, "
                   "llama and gemma3",
                   gguf_path(g), (int)(s.n < 60 ? s.n : 60), s.text);
    return NULL;
}

/* ---- tokens ---- */

static void add_eos(struct hf_config *c, int64_t id)
{
    for (int i = 0; i < c->n_eos; i++) {
        if (c->eos[i] == id) {
            return;
        }
    }
    if (id >= 0 && id < c->text.n_vocab && c->n_eos < HF_EOS_MAX) {
        c->eos[c->n_eos++] = (int32_t)id;
    }
}

/* The ids of the contents in `want`, -1 where the vocabulary has none. */
static void find_tokens(const struct gguf *g, const char *const *want, size_t n_want, int32_t *out)
{
    for (size_t k = 0; k < n_want; k++) {
        out[k] = -1;
    }
    const struct gguf_value *v = gguf_lookup(g, "tokenizer.ggml.tokens");
    if (!v || !v->is_array || v->type != GGUF_STRING) {
        return;
    }
    for (uint64_t i = 0; i < v->n && i < INT32_MAX; i++) {
        const struct gguf_string *s = &v->strings[i];
        if (s->n < 4 || s->text[0] != '<') {
            continue;
        }
        for (size_t k = 0; k < n_want; k++) {
            if (out[k] < 0 && gguf_string_is(s, want[k])) {
                out[k] = (int32_t)i;
            }
        }
    }
}

/* Ends are those that keys give; the tokenizer adds those it knows by name (tokenizer_eos). */
static void read_tokens(struct reader *r, struct hf_config *c)
{
    static const char *const keys[] = { "tokenizer.ggml.eos_token_id",
                                        "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };
    static const char *const marks[] = { "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
                                         "<|video_pad|>" };
    for (size_t i = 0; !r->rc && i < COUNT(keys); i++) {
        int64_t id = -1;
        r->rc = gguf_read_int(r->g, keys[i], false, -1, UINT32_MAX, &id, r->err);
        if (!r->rc && id >= c->text.n_vocab && id != UINT32_MAX) {
            r->rc = galley_err_set(r->err, GALLEY_EMODEL,
                                   "%s: key %s is %" PRId64 ", the vocabulary has %d",
                                   gguf_path(r->g), keys[i], id, c->text.n_vocab);
        }
        add_eos(c, id);
    }
    int32_t ids[COUNT(marks)];
    find_tokens(r->g, marks, COUNT(marks), ids);
    c->vision_start = ids[0];
    c->vision_end = ids[1];
    c->image_pad = ids[2];
    c->video_pad = ids[3];
}

enum galley_status gguf_config_text(struct hf_config *out, const struct gguf *g,
                                    struct galley_err *err)
{
    *out = (struct hf_config){ 0 };
    const struct arch_row *a = find_architecture(g, err);
    if (!a) {
        return GALLEY_EMODEL;
    }
    struct reader r = { .g = g, .arch = a->name, .err = err };
    struct hf_text_config *t = &out->text;
    out->family = a->family;
    snprintf(out->model_type, sizeof(out->model_type), "%s", a->name);
    check_features(&r);
    read_sizes(&r, t);
    if (!r.rc) {
        read_rope(&r, t);
    }
    if (!r.rc) {
        a->read(&r, t);
    }
    if (!r.rc) {
        read_tokens(&r, out);
    }
    return r.rc;
}
