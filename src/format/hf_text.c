/* hf_text.c - the language part of config.json, all families.
 *
 * What differs between families is a row of the table below; how a key is read does not.  Two
 * layouts exist: the classic one (rope_theta, rope_scaling, sliding_window_pattern), and the one
 * transformers writes since 4.52 (rope_parameters, layer_types).  Keys that a family's published
 * files leave out take the values transformers gives them; the others are required.  What the
 * forward pass cannot honour is refused by name. */
#include "src/format/hf_text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/device.h"

/* What a family fixes, and the values of keys its files may leave out (0: required). */
struct text_rules {
    bool mrope;      /* three positions per token: mrope_section is there */
    bool qkv_bias;   /* always there; else attention_bias says so, for o as well */
    bool mlp_bias;   /* the key mlp_bias is honoured */
    bool free_heads; /* head_dim is free of hidden_size */
    bool qk_norm;
    bool gemma; /* RMSNorm weights less 1, scaled embeddings, GELU, two thetas, tied */
    int n_head, n_kv_head, head_dim, n_vocab, max_positions, window, window_pattern;
    double rms_eps, theta, local_theta;
};

static const struct text_rules rules_of[HF_FAMILY_COUNT] = {
    [HF_QWEN2_VL] = { .mrope = true, .qkv_bias = true },
    [HF_QWEN2_5_VL] = { .mrope = true, .qkv_bias = true },
    [HF_QWEN2] = { .qkv_bias = true, .free_heads = true },
    [HF_QWEN3] = { .free_heads = true, .qk_norm = true, .head_dim = 128 },
    /* Llama 2's files have no rope_theta, the first ones no num_key_value_heads. */
    [HF_LLAMA] = { .free_heads = true, .mlp_bias = true, .n_kv_head = -1, .theta = 1e4 },
    /* The files of the larger models name only what differs from the 2B draft of the design. */
    [HF_GEMMA3] = { .free_heads = true,
                    .qk_norm = true,
                    .gemma = true,
                    .n_head = 8,
                    .n_kv_head = 4,
                    .head_dim = 256,
                    .n_vocab = 262208,
                    .max_positions = 131072,
                    .window = 4096,
                    .window_pattern = 6,
                    .rms_eps = 1e-6,
                    .theta = 1e6,
                    .local_theta = 1e4 },
};

static enum galley_status check_heads(const struct hf_text_config *t, const char *where,
                                      struct galley_err *err)
{
    if (t->head_dim > ATTN_HEAD_DIM_MAX) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: %d heads of size %d, limit %d", where,
                              t->n_head, t->head_dim, ATTN_HEAD_DIM_MAX);
    }
    if (t->n_head % t->n_kv_head) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: num_attention_heads %d is no multiple of num_key_value_heads %d",
                              where, t->n_head, t->n_kv_head);
    }
    return GALLEY_OK;
}

/* head_dim as the file says it, or hidden_size over the heads. */
static enum galley_status read_head_dim(struct hf_text_config *t, const struct text_rules *rules,
                                        const cJSON *text, const char *where,
                                        struct galley_err *err)
{
    int head_dim = rules->head_dim;
    const struct hf_int key = { "head_dim", false, 1, HF_WIDTH_MAX, &head_dim };
    const enum galley_status rc = hf_read_ints(text, where, &key, 1, err);
    if (rc) {
        return rc;
    }
    if (rules->free_heads && head_dim) {
        t->head_dim = head_dim;
        return head_dim % 2 == 0
                   ? check_heads(t, where, err)
                   : galley_err_set(err, GALLEY_EMODEL, "%s: head_dim %d is odd", where, head_dim);
    }
    if (t->hidden % t->n_head || t->hidden / t->n_head % 2) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: hidden_size %d does not give %d heads of an even size", where,
                              t->hidden, t->n_head);
    }
    t->head_dim = t->hidden / t->n_head;
    if (head_dim && head_dim != t->head_dim) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: head_dim is %d, hidden_size / heads is %d",
                              where, head_dim, t->head_dim);
    }
    return check_heads(t, where, err);
}

static enum galley_status read_sizes(struct hf_text_config *t, const struct text_rules *rules,
                                     const cJSON *text, const char *where, struct galley_err *err)
{
    t->n_head = rules->n_head;
    t->n_kv_head = rules->n_kv_head;
    t->n_vocab = rules->n_vocab;
    t->max_positions = rules->max_positions;
    t->rms_eps = rules->rms_eps;
    const struct hf_int keys[] = {
        { "hidden_size", true, 1, HF_WIDTH_MAX, &t->hidden },
        { "num_hidden_layers", true, 1, HF_LAYERS_MAX, &t->n_layers },
        { "num_attention_heads", rules->n_head == 0, 1, HF_HEADS_MAX, &t->n_head },
        { "num_key_value_heads", rules->n_kv_head == 0, 1, HF_HEADS_MAX, &t->n_kv_head },
        { "intermediate_size", true, 1, HF_FFN_MAX, &t->intermediate },
        { "vocab_size", rules->n_vocab == 0, 1, HF_VOCAB_MAX, &t->n_vocab },
        { "max_position_embeddings", rules->max_positions == 0, 1, HF_CONTEXT_MAX,
          &t->max_positions },
    };
    enum galley_status rc = hf_read_ints(text, where, keys, COUNT(keys), err);
    rc = rc ? rc
            : json_get_number(text, where, "rms_norm_eps", rules->rms_eps == 0, 1e-12, 1.0,
                              &t->rms_eps, err);
    if (rc) {
        return rc;
    }
    t->n_kv_head = t->n_kv_head < 0 ? t->n_head : t->n_kv_head;
    return read_head_dim(t, rules, text, where, err);
}

static enum galley_status read_sections(struct hf_text_config *t, const cJSON *rope,
                                        const char *where, struct galley_err *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(rope, "mrope_section");
    int n = 0, sum = 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 3) {
        return galley_err_set(err, GALLEY_EMODEL,
                              "%s: \"mrope_section\" is not a list of 3 numbers", where);
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        const double v = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(v >= 0 && v <= HF_WIDTH_MAX) || v != floor(v)) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "%s: \"mrope_section\" is not a list of 3 numbers", where);
        }
        t->mrope_section[n++] = (int)v;
        sum += (int)v;
    }
    if (sum != t->head_dim / 2) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"mrope_section\" sums to %d, not to %d",
                              where, sum, t->head_dim / 2);
    }
    return GALLEY_OK;
}

/* How frequencies are changed; yarn, dynamic and the others would silently change every value. */
static enum galley_status read_rope_kind(struct hf_rope *r, bool mrope, const cJSON *rope,
                                         const char *where, struct galley_err *err)
{
    static const char *const keys[] = { "rope_type", "type" };
    r->kind = HF_ROPE_PLAIN;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *kind = "default";
        const enum galley_status rc = json_get_string(rope, where, keys[i], false, &kind, err);
        if (rc) {
            return rc;
        }
        if (strcmp(kind, "default") == 0 || (mrope && strcmp(kind, "mrope") == 0)) {
            continue;
        }
        if (mrope || (strcmp(kind, "linear") != 0 && strcmp(kind, "llama3") != 0)) {
            return hf_refuse(err, where, keys[i], kind,
                             mrope ? "default or mrope" : "default, linear or llama3");
        }
        r->kind = strcmp(kind, "linear") == 0 ? HF_ROPE_LINEAR : HF_ROPE_LLAMA3;
    }
    bool interleaved = false;
    double partial = 1;
    enum galley_status rc =
        json_get_bool(rope, where, "mrope_interleaved", false, &interleaved, err);
    rc =
        rc ? rc : json_get_number(rope, where, "partial_rotary_factor", false, 0, 1, &partial, err);
    if (!rc && interleaved) {
        rc = hf_refuse(err, where, "mrope_interleaved", "true", "false");
    }
    if (!rc && partial != 1) {
        rc = hf_refuse(err, where, "partial_rotary_factor", "below 1", "1");
    }
    return rc;
}

static enum galley_status read_scaling(struct hf_rope *r, const cJSON *rope, const char *where,
                                       struct galley_err *err)
{
    enum galley_status rc = GALLEY_OK;
    if (r->kind != HF_ROPE_PLAIN) {
        rc = json_get_number(rope, where, "factor", true, 1, 1e6, &r->factor, err);
    }
    if (rc || r->kind != HF_ROPE_LLAMA3) {
        return rc;
    }
    const struct hf_int context = { "original_max_position_embeddings", true, 1, HF_CONTEXT_MAX,
                                    &r->original_context };
    rc = json_get_number(rope, where, "low_freq_factor", true, 1e-3, 1e6, &r->low, err);
    rc = rc ? rc : json_get_number(rope, where, "high_freq_factor", true, 1e-3, 1e6, &r->high, err);
    rc = rc ? rc : hf_read_ints(rope, where, &context, 1, err);
    if (!rc && r->high <= r->low) {
        rc = galley_err_set(err, GALLEY_EMODEL,
                            "%s: \"high_freq_factor\" %g is not above \"low_freq_factor\" %g",
                            where, r->high, r->low);
    }
    return rc;
}

/* One rotary embedding: its object (NULL: none), with theta inside, beside it, or the default. */
static enum galley_status read_one_rope(struct hf_rope *r, bool mrope, const cJSON *rope,
                                        const char *place, struct galley_err *err)
{
    enum galley_status rc = read_rope_kind(r, mrope, rope, place, err);
    rc = rc ? rc
            : json_get_number(rope, place, "rope_theta", false, 1, HF_THETA_MAX, &r->theta, err);
    return rc ? rc : read_scaling(r, rope, place, err);
}

/* Gemma's newer files: one object per kind of layer. */
static enum galley_status read_rope_by_layer(struct hf_text_config *t, const cJSON *rope,
                                             const char *where, struct galley_err *err)
{
    static const char *const keys[] = { "full_attention", "sliding_attention" };
    struct hf_rope *const to[] = { &t->rope, &t->rope_local };
    for (size_t i = 0; i < COUNT(keys); i++) {
        const cJSON *one = cJSON_GetObjectItemCaseSensitive(rope, keys[i]);
        char place[HF_WHERE_MAX];
        hf_place(place, where, keys[i]);
        if (!cJSON_IsObject(one)) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is missing", where, keys[i]);
        }
        enum galley_status rc =
            json_get_number(one, place, "rope_theta", true, 1, HF_THETA_MAX, &to[i]->theta, err);
        rc = rc ? rc : read_one_rope(to[i], false, one, place, err);
        if (rc) {
            return rc;
        }
    }
    return GALLEY_OK;
}

/* theta stands in the rope object, beside it, or in both alike. */
static enum galley_status read_theta(double *theta, const struct text_rules *rules,
                                     const cJSON *text, const char *where, const char *key,
                                     struct galley_err *err)
{
    const double inner = *theta;
    *theta = inner != 0 ? inner : rules->theta;
    enum galley_status rc =
        json_get_number(text, where, "rope_theta", *theta == 0, 1, HF_THETA_MAX, theta, err);
    if (!rc && inner != 0 && inner != *theta) {
        rc = galley_err_set(err, GALLEY_EMODEL, "%s: \"rope_theta\" is %g here and %g in %s", where,
                            *theta, inner, key);
    }
    return rc;
}

static enum galley_status read_rope(struct hf_text_config *t, const struct text_rules *rules,
                                    const cJSON *text, const char *where, struct galley_err *err)
{
    const char *key = "rope_parameters";
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(text, key);
    if (!cJSON_IsObject(rope)) {
        key = "rope_scaling";
        rope = cJSON_GetObjectItemCaseSensitive(text, key);
    }
    if (!cJSON_IsObject(rope) && rules->mrope) {
        return galley_err_set(
            err, GALLEY_EMODEL,
            "%s: neither \"rope_parameters\" nor \"rope_scaling\" is there (for mrope_section)",
            where);
    }
    if (rope && !cJSON_IsNull(rope) && !cJSON_IsObject(rope)) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is not an object", where, key);
    }
    char place[HF_WHERE_MAX];
    hf_place(place, where, key);
    t->rope_local.theta = rules->local_theta;
    if (cJSON_GetObjectItemCaseSensitive(rope, "full_attention")) {
        return read_rope_by_layer(t, rope, place, err);
    }
    enum galley_status rc = read_one_rope(&t->rope, rules->mrope, rope, place, err);
    rc = rc ? rc : read_theta(&t->rope.theta, rules, text, where, key, err);
    rc = rc ? rc
            : json_get_number(text, where, "rope_local_base_freq", false, 1, HF_THETA_MAX,
                              &t->rope_local.theta, err);
    if (!rc && t->rope_local.theta == 0) {
        t->rope_local = t->rope;
    }
    return rc || !rules->mrope ? rc : read_sections(t, rope, place, err);
}

/* layer_types as "every n-th layer sees everything": n, or 0 when the list has no such order.
 * n_layers + 1 when every layer slides, 1 when none does. */
static int pattern_of(const cJSON *types, int n_layers)
{
    int n = n_layers + 1, i = 0;
    const cJSON *type;
    cJSON_ArrayForEach(type, types)
    {
        const bool full = strcmp(type->valuestring, "full_attention") == 0;
        if (full && n == n_layers + 1) {
            n = i + 1;
        }
        if (full != ((i + 1) % n == 0)) {
            return 0;
        }
        i++;
    }
    return n;
}

static enum galley_status read_layer_types(int *pattern, const struct hf_text_config *t,
                                           const cJSON *types, const char *where,
                                           struct galley_err *err)
{
    if (!types || cJSON_IsNull(types)) {
        return GALLEY_OK;
    }
    const cJSON *type;
    int n = 0;
    cJSON_ArrayForEach(type, types)
    {
        const char *kind = cJSON_IsString(type) ? type->valuestring : "no string";
        if (strcmp(kind, "full_attention") != 0 && strcmp(kind, "sliding_attention") != 0) {
            return hf_refuse(err, where, "layer_types", kind, "full_attention, sliding_attention");
        }
        n++;
    }
    if (!cJSON_IsArray(types) || n != t->n_layers) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: \"layer_types\" has %d entries, not %d",
                              where, n, t->n_layers);
    }
    *pattern = pattern_of(types, t->n_layers);
    if (*pattern == 0) {
        return hf_refuse(err, where, "layer_types", "irregular", "every n-th layer full_attention");
    }
    return GALLEY_OK;
}

/* Gemma: the window is always there, and so are the two kinds of layer. */
static enum galley_status read_window(struct hf_text_config *t, const struct text_rules *rules,
                                      const cJSON *text, const char *where, struct galley_err *err)
{
    t->window = rules->window;
    t->window_pattern = rules->window_pattern;
    const struct hf_int keys[] = {
        { "sliding_window", false, 1, 1 << 30, &t->window },
        { "sliding_window_pattern", false, 1, 1 << 20, &t->window_pattern },
        { "_sliding_window_pattern", false, 1, 1 << 20, &t->window_pattern },
    };
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(text, "layer_types");
    enum galley_status rc = hf_read_ints(text, where, keys, COUNT(keys), err);
    return rc ? rc : read_layer_types(&t->window_pattern, t, types, where, err);
}

/* The others: a window counts when it is switched on, can ever bite and some layer has it.  Qwen
 * lets the first max_window_layers see everything, which the config has no words for. */
static enum galley_status read_optional_window(struct hf_text_config *t, const cJSON *text,
                                               const char *where, struct galley_err *err)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(text, "layer_types");
    bool use = false;
    int first = t->n_layers, window = 0, pattern = 1;
    const struct hf_int keys[] = {
        { "max_window_layers", false, 0, 1 << 20, &first },
        { "sliding_window", false, 0, 1 << 30, &window },
    };
    enum galley_status rc = json_get_bool(text, where, "use_sliding_window", false, &use, err);
    rc = rc ? rc : hf_read_ints(text, where, keys, COUNT(keys), err);
    if (rc || window == 0 || window >= t->max_positions) {
        return rc;
    }
    if (cJSON_IsArray(types)) {
        rc = read_layer_types(&pattern, t, types, where, err);
    } else if (use && first == 0) {
        pattern = t->n_layers + 1;
    } else if (use && first < t->n_layers) {
        rc = hf_refuse(err, where, "use_sliding_window", "true", "it in all layers or in none");
    }
    if (!rc && pattern > 1) {
        t->window = window;
        t->window_pattern = pattern;
    }
    return rc;
}

static enum galley_status read_biases(struct hf_text_config *t, const struct text_rules *rules,
                                      const cJSON *text, const char *where, struct galley_err *err)
{
    bool bias = rules->qkv_bias, mlp_bias = false;
    enum galley_status rc = json_get_bool(text, where, "attention_bias", false, &bias, err);
    rc = rc ? rc : json_get_bool(text, where, "mlp_bias", false, &mlp_bias, err);
    if (rc) {
        return rc;
    }
    if (rules->qkv_bias && !bias) {
        return hf_refuse(err, where, "attention_bias", "false", "true");
    }
    if (mlp_bias && !rules->mlp_bias) {
        return hf_refuse(err, where, "mlp_bias", "true", "false");
    }
    t->qkv_bias = bias;
    t->o_bias = bias && !rules->qkv_bias;
    t->mlp_bias = mlp_bias;
    return GALLEY_OK;
}

/* Keys that would change the computation and mean nothing to this build. */
static enum galley_status check_known_risks(const cJSON *text, const char *where,
                                            struct galley_err *err)
{
    static const char *const keys[] = {
        "attention_chunk_size", "num_experts",    "num_local_experts",   "no_rope_layers",
        "embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier",
    };
    for (size_t i = 0; i < COUNT(keys); i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(text, keys[i]);
        if (item && !cJSON_IsNull(item)) {
            return hf_refuse(err, where, keys[i], "set", "files without it");
        }
    }
    double partial = 1;
    bool both_ways = false;
    enum galley_status rc =
        json_get_number(text, where, "partial_rotary_factor", false, 0, 1, &partial, err);
    rc =
        rc ? rc : json_get_bool(text, where, "use_bidirectional_attention", false, &both_ways, err);
    if (!rc && partial != 1) {
        rc = hf_refuse(err, where, "partial_rotary_factor", "below 1", "1");
    }
    if (!rc && both_ways) {
        rc = hf_refuse(err, where, "use_bidirectional_attention", "true", "false");
    }
    return rc;
}

static enum galley_status read_gemma(struct hf_text_config *t, const cJSON *text, const char *where,
                                     struct galley_err *err)
{
    double query = 256;
    enum galley_status rc =
        hf_want_string(text, where, "hidden_activation", "gelu_pytorch_tanh", err);
    rc = rc ? rc : hf_want_string(text, where, "hidden_act", "gelu_pytorch_tanh", err);
    rc = rc ? rc
            : json_get_number(text, where, "query_pre_attn_scalar", false, 1e-6, 1e9, &query, err);
    rc = rc ? rc
            : json_get_number(text, where, "attn_logit_softcapping", false, 1e-3, 1e9,
                              &t->attn_softcap, err);
    rc = rc ? rc
            : json_get_number(text, where, "final_logit_softcapping", false, 1e-3, 1e9,
                              &t->final_softcap, err);
    t->gelu = true;
    t->norm_plus_one = true;
    t->query_scale = 1 / sqrt(query);
    t->embed_scale = sqrt(t->hidden); /* transformers rounds it to the weights' type: bf16 files run
                                         in f32 have it exact, and so has llama.cpp */
    return rc;
}

static enum galley_status read_tied(struct hf_text_config *t, const struct text_rules *rules,
                                    const cJSON *root, const cJSON *text, const char *where,
                                    struct galley_err *err)
{
    bool tied = rules->gemma, outer = false;
    enum galley_status rc = json_get_bool(text, where, "tie_word_embeddings", false, &tied, err);
    rc = rc ? rc : json_get_bool(root, where, "tie_word_embeddings", false, &outer, err);
    t->tied = tied || outer; /* as transformers reads files that say it in one place only */
    return rc;
}

enum galley_status hf_text_read(struct hf_config *c, const cJSON *root, const cJSON *text,
                                const char *where, struct galley_err *err)
{
    assert(c->family < HF_FAMILY_COUNT);
    const struct text_rules *rules = &rules_of[c->family];
    struct hf_text_config *t = &c->text;
    enum galley_status rc = GALLEY_OK;
    if (!rules->gemma) {
        rc = hf_want_string(text, where, "hidden_act", "silu", err);
    }
    rc = rc ? rc : read_biases(t, rules, text, where, err);
    rc = rc ? rc : read_sizes(t, rules, text, where, err);
    rc = rc ? rc : check_known_risks(text, where, err);
    rc = rc ? rc : read_rope(t, rules, text, where, err);
    t->qk_norm = rules->qk_norm;
    if (rules->gemma) {
        rc = rc ? rc : read_window(t, rules, text, where, err);
        rc = rc ? rc : read_gemma(t, text, where, err);
    } else {
        rc = rc ? rc : read_optional_window(t, text, where, err);
    }
    return rc ? rc : read_tied(t, rules, root, text, where, err);
}
