/* gguf_names.c - tensor names of GGUF files as Hugging Face writes them. */
#include <stdio.h>
#include <string.h>

#include "src/format/gguf_config.h"

struct name_row {
    const char *gguf, *hf;
};

static const struct name_row text_root[] = {
    { "token_embd", "model.embed_tokens" },
    { "output_norm", "model.norm" },
    { "output", "lm_head" },
};

static const struct name_row text_block[] = {
    { "attn_norm", "input_layernorm" },    { "attn_q", "self_attn.q_proj" },
    { "attn_k", "self_attn.k_proj" },      { "attn_v", "self_attn.v_proj" },
    { "attn_output", "self_attn.o_proj" }, { "attn_q_norm", "self_attn.q_norm" },
    { "attn_k_norm", "self_attn.k_norm" }, { "ffn_norm", "post_attention_layernorm" },
    { "ffn_gate", "mlp.gate_proj" },       { "ffn_up", "mlp.up_proj" },
    { "ffn_down", "mlp.down_proj" },
};

/* What Gemma calls otherwise. */
static const struct name_row gemma_block[] = {
    { "post_attention_norm", "post_attention_layernorm" },
    { "ffn_norm", "pre_feedforward_layernorm" },
    { "post_ffw_norm", "post_feedforward_layernorm" },
};

static const struct name_row vision_root[] = {
    { "v.patch_embd", "visual.patch_embed.proj" },
    { "v.post_ln", "visual.merger.ln_q" },
    { "mm.0", "visual.merger.mlp.0" },
    { "mm.2", "visual.merger.mlp.2" },
};

static const struct name_row vision_block[] = {
    { "ln1", "norm1" },          { "ln2", "norm2" },
    { "attn_q", "attn.q" },      { "attn_k", "attn.k" },
    { "attn_v", "attn.v" },      { "attn_qkv", "attn.qkv" },
    { "attn_out", "attn.proj" }, { "ffn_gate", "mlp.gate_proj" },
    { "ffn_up", "mlp.up_proj" }, { "ffn_down", "mlp.down_proj" },
};

/* Qwen2-VL's MLP has no gate. */
static const struct name_row plain_block[] = {
    { "ffn_up", "mlp.fc1" },
    { "ffn_down", "mlp.fc2" },
};

/* The HF stem for name[0..n); NULL: not in the table. */
static const char *lookup(const struct name_row *rows, size_t n_rows, const char *name, size_t n)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (strlen(rows[i].gguf) == n && memcmp(rows[i].gguf, name, n) == 0) {
            return rows[i].hf;
        }
    }
    return NULL;
}

static bool fits(int n, size_t size)
{
    return n >= 0 && (size_t)n < size;
}

/* "blk.12.": the number as written, and what follows; NULL when it is none. */
static const char *split_block(const char *name, const char *prefix, int *n_digits)
{
    const size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0) {
        return NULL;
    }
    *n_digits = (int)strspn(name + n, "0123456789");
    return *n_digits > 0 && *n_digits < 8 && name[n + (size_t)*n_digits] == '.'
               ? name + n + *n_digits + 1
               : NULL;
}

static bool block_name(char *out, size_t size, const char *name, const char *rest, int n_digits,
                       enum hf_family family)
{
    const bool vision = name[0] == 'v';
    const char *dot = strchr(rest, '.'); /* before weight or bias */
    if (!dot) {
        return false;
    }
    const size_t n = (size_t)(dot - rest);
    const char *stem = NULL;
    if (vision) {
        stem = family == HF_QWEN2_VL ? lookup(plain_block, COUNT(plain_block), rest, n) : NULL;
        stem = stem ? stem : lookup(vision_block, COUNT(vision_block), rest, n);
    } else {
        stem = family == HF_GEMMA3 ? lookup(gemma_block, COUNT(gemma_block), rest, n) : NULL;
        stem = stem ? stem : lookup(text_block, COUNT(text_block), rest, n);
    }
    return stem &&
           fits(snprintf(out, size, "%s.%.*s.%s%s", vision ? "visual.blocks" : "model.layers",
                         n_digits, rest - 1 - n_digits, stem, dot),
                size);
}

bool gguf_tensor_name(char *out, size_t size, const char *name, enum hf_family family)
{
    int n_digits;
    const char *rest = split_block(name, "blk.", &n_digits);
    rest = rest ? rest : split_block(name, "v.blk.", &n_digits);
    if (rest) {
        return block_name(out, size, name, rest, n_digits, family);
    }
    const char *dot = strrchr(name, '.');
    if (!dot || (strcmp(dot, ".weight") != 0 && strcmp(dot, ".bias") != 0)) {
        return false;
    }
    const size_t n = (size_t)(dot - name);
    const char *stem = lookup(text_root, COUNT(text_root), name, n);
    stem = stem ? stem : lookup(vision_root, COUNT(vision_root), name, n);
    return stem && fits(snprintf(out, size, "%s%s", stem, dot), size);
}

/* --- the other way round -------------------------------------------------------------------- */

static const char *lookup_hf(const struct name_row *rows, size_t n_rows, const char *name, size_t n)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (strlen(rows[i].hf) == n && memcmp(rows[i].hf, name, n) == 0) {
            return rows[i].gguf;
        }
    }
    return NULL;
}

/* rest[0..n): what follows the block's number. */
static const char *block_stem(bool vision, const char *rest, size_t n, enum hf_family family)
{
    const char *stem = NULL;
    if (vision) {
        stem = family == HF_QWEN2_VL ? lookup_hf(plain_block, COUNT(plain_block), rest, n) : NULL;
        return stem ? stem : lookup_hf(vision_block, COUNT(vision_block), rest, n);
    }
    stem = family == HF_GEMMA3 ? lookup_hf(gemma_block, COUNT(gemma_block), rest, n) : NULL;
    return stem ? stem : lookup_hf(text_block, COUNT(text_block), rest, n);
}

bool gguf_tensor_from_hf(char *out, size_t size, const char *name, enum hf_family family)
{
    const char *dot = strrchr(name, '.');
    if (!dot || (strcmp(dot, ".weight") != 0 && strcmp(dot, ".bias") != 0)) {
        return false;
    }
    int n_digits;
    const char *text = split_block(name, "model.layers.", &n_digits);
    const char *rest = text ? text : split_block(name, "visual.blocks.", &n_digits);
    if (rest) {
        const char *stem =
            rest < dot ? block_stem(!text, rest, (size_t)(dot - rest), family) : NULL;
        return stem && fits(snprintf(out, size, "%sblk.%.*s.%s%s", text ? "" : "v.", n_digits,
                                     rest - 1 - n_digits, stem, dot),
                            size);
    }
    const size_t n = (size_t)(dot - name);
    const char *stem = lookup_hf(text_root, COUNT(text_root), name, n);
    stem = stem ? stem : lookup_hf(vision_root, COUNT(vision_root), name, n);
    return stem && fits(snprintf(out, size, "%s%s", stem, dot), size);
}
