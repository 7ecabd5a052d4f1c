/* quantize_rules.c - which type each tensor gets.
 *
 * 1. Vectors, norms and biases are F32; so is whatever has more than two dimensions (the patch
 *    embedding), F16 there staying F16.
 * 2. A mix names a type for some matrices of some layers (llama.cpp's rules, so that q4_k_m means
 *    what people know); every other matrix gets the base type.
 * 3. The output matrix, or the embedding table that serves as one, is Q6_K under a base type of
 *    fewer bits (Q8_0 under MXFP4, and where its width is no multiple of 256).
 * 4. The caller's rules over all that: the last one that matches.
 * 5. The rows of a matrix must be whole blocks.  A tower's feed-forward is padded with zeros until
 *    they are; anything else falls back to a type with blocks of 32, or to F16. */
#include <assert.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kernels/quant.h"
#include "src/format/quantize_impl.h"

enum layers { LAYERS_ALL, LAYERS_FIRST_2, LAYERS_FIRST_4, LAYERS_16TH, LAYERS_8TH, LAYERS_MORE };

struct part_rule {
    const char *part; /* "attn_v" */
    enum layers layers;
    enum dtype type;
};

struct quantize_mix {
    const char *name;
    enum dtype base;
    uint32_t file_type; /* ggml's number for general.file_type */
    struct part_rule parts[6];
};

static const struct quantize_mix mixes[] = {
    { "f32", DTYPE_F32, 0, { { 0 } } },
    { "f16", DTYPE_F16, 1, { { 0 } } },
    { "bf16", DTYPE_BF16, 32, { { 0 } } },
    { "q4_0", DTYPE_Q4_0, 2, { { 0 } } },
    { "q4_1", DTYPE_Q4_1, 3, { { 0 } } },
    { "q5_0", DTYPE_Q5_0, 8, { { 0 } } },
    { "q5_1", DTYPE_Q5_1, 9, { { 0 } } },
    { "q8_0", DTYPE_Q8_0, 7, { { 0 } } },
    { "q2_k", DTYPE_Q2_K, 10, { { 0 } } },
    { "q3_k", DTYPE_Q3_K, 11, { { 0 } } },
    { "q3_k_m",
      DTYPE_Q3_K,
      12,
      { { "attn_v", LAYERS_FIRST_2, DTYPE_Q5_K },
        { "attn_v", LAYERS_ALL, DTYPE_Q4_K },
        { "ffn_down", LAYERS_16TH, DTYPE_Q5_K },
        { "ffn_down", LAYERS_MORE, DTYPE_Q4_K },
        { "attn_output", LAYERS_ALL, DTYPE_Q4_K } } },
    { "q3_k_l",
      DTYPE_Q3_K,
      13,
      { { "attn_v", LAYERS_ALL, DTYPE_Q5_K },
        { "ffn_down", LAYERS_ALL, DTYPE_Q5_K },
        { "attn_output", LAYERS_ALL, DTYPE_Q5_K } } },
    { "q4_k", DTYPE_Q4_K, 14, { { 0 } } },
    { "q4_k_s",
      DTYPE_Q4_K,
      14,
      { { "attn_v", LAYERS_FIRST_4, DTYPE_Q5_K }, { "ffn_down", LAYERS_8TH, DTYPE_Q5_K } } },
    { "q4_k_m",
      DTYPE_Q4_K,
      15,
      { { "attn_v", LAYERS_MORE, DTYPE_Q6_K }, { "ffn_down", LAYERS_MORE, DTYPE_Q6_K } } },
    { "q5_k", DTYPE_Q5_K, 16, { { 0 } } },
    { "q5_k_m",
      DTYPE_Q5_K,
      17,
      { { "attn_v", LAYERS_MORE, DTYPE_Q6_K }, { "ffn_down", LAYERS_MORE, DTYPE_Q6_K } } },
    { "q6_k", DTYPE_Q6_K, 18, { { 0 } } },
    { "iq4_nl", DTYPE_IQ4_NL, 25, { { 0 } } },
    { "iq4_xs", DTYPE_IQ4_XS, 30, { { 0 } } },
    { "mxfp4", DTYPE_MXFP4, 38, { { 0 } } },
};

const char *quantize_types(void)
{
    return "f32, f16, bf16, q8_0, q6_k, q5_k, q5_k_m, q5_1, q5_0, q4_k, q4_k_s, q4_k_m, q4_1, "
           "q4_0, iq4_nl, iq4_xs, mxfp4, q3_k, q3_k_m, q3_k_l, q2_k";
}

enum dtype quantize_type_named(const char *name)
{
    return quant_dtype_named(name);
}

const struct quantize_mix *quantize_mix_named(const char *name)
{
    for (size_t i = 0; i < COUNT(mixes); i++) {
        if (strcasecmp(name, mixes[i].name) == 0) {
            return &mixes[i];
        }
    }
    return NULL;
}

uint32_t quantize_file_type(const struct quantize_mix *m)
{
    return m->file_type;
}

/* Matrices that are multiplied by, or looked up in. */
static bool is_matrix(const struct quantize_tensor *t)
{
    const char *dot = strrchr(t->name, '.');
    return t->n_dim == 2 && dot && strcmp(dot, ".weight") == 0 && !strstr(t->name, "norm") &&
           !strstr(t->name, "position_embd");
}

/* "blk.7.attn_v.weight": 7 and the part's name; false for others. */
static bool split_layer(const char *name, int *layer, char part[QUANTIZE_NAME_MAX])
{
    int n = 0;
    return sscanf(name, "blk.%d.%n", layer, &n) == 1 && n > 0 &&
           sscanf(name + n, "%127[^.]", part) == 1;
}

static int count_layers(const struct quantize_list *l)
{
    int n = 0, layer;
    char part[QUANTIZE_NAME_MAX];
    for (int i = 0; i < l->n; i++) {
        if (split_layer(l->items[i].name, &layer, part)) {
            n = layer >= n ? layer + 1 : n;
        }
    }
    return n;
}

/* LAYERS_MORE: the first and the last eighth, and every third between. */
static bool layer_in(enum layers which, int i, int n)
{
    switch (which) {
    case LAYERS_FIRST_2:
        return i < 2;
    case LAYERS_FIRST_4:
        return i < 4;
    case LAYERS_16TH:
        return i < n / 16;
    case LAYERS_8TH:
        return i < n / 8;
    case LAYERS_MORE:
        return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    default:
        return true;
    }
}

static enum dtype mixed(const struct quantize_mix *m, const char *name, int n_layers)
{
    int layer;
    char part[QUANTIZE_NAME_MAX];
    if (split_layer(name, &layer, part)) {
        for (size_t i = 0; i < COUNT(m->parts) && m->parts[i].part; i++) {
            if (strcmp(part, m->parts[i].part) == 0 &&
                layer_in(m->parts[i].layers, layer, n_layers)) {
                return m->parts[i].type;
            }
        }
    }
    return m->base;
}

static bool is_output(const struct quantize_list *l, const char *name)
{
    return strcmp(name, "output.weight") == 0 ||
           (strcmp(name, "token_embd.weight") == 0 && !quantize_lookup(l, "output.weight"));
}

static enum dtype output_type(enum dtype base, int64_t width)
{
    if (dtype_is_dense(base) || base == DTYPE_Q8_0 || base == DTYPE_Q6_K) {
        return base;
    }
    return base == DTYPE_MXFP4 || width % dtype_info(DTYPE_Q6_K)->block ? DTYPE_Q8_0 : DTYPE_Q6_K;
}

static enum dtype plain_type(const struct quantize_tensor *t)
{
    const bool f16 = t->n_dim > 2 && t->src && t->src->dtype == DTYPE_F16;
    return f16 ? DTYPE_F16 : DTYPE_F32;
}

static void choose_list(struct quantize_list *l, const struct quantize_mix *m,
                        const struct quantize_rule *rules, int n_rules, bool *matched)
{
    const int n_layers = count_layers(l);
    for (int i = 0; i < l->n; i++) {
        struct quantize_tensor *t = &l->items[i];
        t->wanted = plain_type(t);
        if (!is_matrix(t)) {
            continue;
        }
        t->wanted =
            is_output(l, t->name) ? output_type(m->base, t->shape[1]) : mixed(m, t->name, n_layers);
        for (int k = 0; k < n_rules; k++) {
            if (fnmatch(rules[k].pattern, t->name, 0) == 0) {
                t->wanted = rules[k].type;
                matched[k] = true;
            }
        }
    }
}

/* The nearest type with blocks of 32 elements. */
static enum dtype smaller_block(enum dtype t)
{
    switch (t) {
    case DTYPE_Q2_K:
    case DTYPE_Q3_K:
    case DTYPE_IQ4_XS:
        return DTYPE_IQ4_NL;
    case DTYPE_Q4_K:
        return DTYPE_Q5_0;
    case DTYPE_Q5_K:
        return DTYPE_Q5_1;
    case DTYPE_Q6_K:
        return DTYPE_Q8_0;
    default:
        return DTYPE_F16;
    }
}

static void fit(struct quantize_tensor *t)
{
    const int64_t width = t->shape[t->n_dim - 1];
    t->to = t->wanted;
    while (width % dtype_info(t->to)->block) {
        t->to = smaller_block(t->to);
        t->fell_back = true;
    }
}

/* --- the tower's feed-forward -------------------------------------------------------------- */

static bool is_tower_part(const char *name, const char *part)
{
    return strncmp(name, "v.blk.", 6) == 0 && strstr(name, part);
}

/* Width of the feed-forward after padding; the width itself when all is well. */
static int64_t padded_width(const struct quantize_list *l, int64_t *width)
{
    int64_t to = 0;
    *width = 0;
    for (int i = 0; i < l->n; i++) {
        const struct quantize_tensor *t = &l->items[i];
        if (is_tower_part(t->name, ".ffn_down.weight") && t->n_dim == 2) {
            const int64_t block = dtype_info(t->wanted)->block, n = t->shape[1];
            const int64_t up = (n + block - 1) / block * block;
            to = up > to ? up : to;
            *width = n > *width ? n : *width;
        }
    }
    return to;
}

/* Zero rows of gate and up (their biases as well) meet zero columns of down: silu(0) * 0 and
 * gelu(0) are 0, so the wider tower computes the same. */
static void pad_tower(struct quantize_list *l)
{
    int64_t width;
    const int64_t to = padded_width(l, &width);
    for (int i = 0; i < l->n && to > width; i++) {
        struct quantize_tensor *t = &l->items[i];
        if (is_tower_part(t->name, ".ffn_down.weight") && t->n_dim == 2 && t->shape[1] == width) {
            t->shape[1] = to;
        } else if ((is_tower_part(t->name, ".ffn_up.") || is_tower_part(t->name, ".ffn_gate.")) &&
                   t->shape[0] == width) {
            t->shape[0] = to;
        }
    }
}

enum galley_status quantize_choose(struct quantize_source *s, const struct quantize_mix *m,
                                   const struct quantize_rule *rules, int n_rules,
                                   struct galley_err *err)
{
    bool matched[QUANTIZE_RULES_MAX] = { false };
    if (n_rules > QUANTIZE_RULES_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d rules for tensors, at most %d can be given",
                              n_rules, QUANTIZE_RULES_MAX);
    }
    choose_list(&s->text, m, rules, n_rules, matched);
    choose_list(&s->vision, m, rules, n_rules, matched);
    for (int k = 0; k < n_rules; k++) {
        if (!matched[k]) {
            return galley_err_set(err, GALLEY_EUSAGE, "%s: the pattern \"%s\" matches no matrix",
                                  s->path, rules[k].pattern);
        }
    }
    pad_tower(&s->vision);
    pad_tower(&s->text); /* an mmproj file given by itself */
    for (int i = 0; i < s->text.n; i++) {
        fit(&s->text.items[i]);
    }
    for (int i = 0; i < s->vision.n; i++) {
        fit(&s->vision.items[i]);
    }
    return GALLEY_OK;
}
