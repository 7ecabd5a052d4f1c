/* test_hf_text.c - config.json of the text families: the published layouts, and refusals. */
#include "src/format/hf_config.h"

#include <math.h>

#include "src/base/mem.h"
#include "tests/format/folder.h"

/* As published, less what nobody reads. */
static const char qwen2_5_0_5b[] =
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":151643,"
    "\"eos_token_id\":151645,\"hidden_act\":\"silu\",\"hidden_size\":896,"
    "\"intermediate_size\":4864,\"max_position_embeddings\":32768,\"max_window_layers\":21,"
    "\"model_type\":\"qwen2\",\"num_attention_heads\":14,\"num_hidden_layers\":24,"
    "\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,"
    "\"sliding_window\":32768,\"tie_word_embeddings\":true,\"use_sliding_window\":false,"
    "\"vocab_size\":151936}";

static const char qwen3_0_6b[] =
    "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"bos_token_id\":151643,"
    "\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":1024,"
    "\"intermediate_size\":3072,\"max_position_embeddings\":40960,\"max_window_layers\":28,"
    "\"model_type\":\"qwen3\",\"num_attention_heads\":16,\"num_hidden_layers\":28,"
    "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,\"rope_scaling\":null,"
    "\"rope_theta\":1000000,\"sliding_window\":null,\"tie_word_embeddings\":true,"
    "\"use_sliding_window\":false,\"vocab_size\":151936}";

static const char llama2_7b[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"bos_token_id\":1,\"eos_token_id\":2,"
    "\"hidden_act\":\"silu\",\"hidden_size\":4096,\"intermediate_size\":11008,"
    "\"max_position_embeddings\":4096,\"model_type\":\"llama\",\"num_attention_heads\":32,"
    "\"num_hidden_layers\":32,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
    "\"rope_scaling\":null,\"tie_word_embeddings\":false,\"vocab_size\":32000}";

static const char llama3_2_1b[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"bos_token_id\":128000,"
    "\"eos_token_id\":[128001,128008,128009],\"head_dim\":64,\"hidden_act\":\"silu\","
    "\"hidden_size\":2048,\"intermediate_size\":8192,\"max_position_embeddings\":131072,"
    "\"mlp_bias\":false,\"model_type\":\"llama\",\"num_attention_heads\":32,"
    "\"num_hidden_layers\":16,\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,"
    "\"rope_scaling\":{\"factor\":32.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
    "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},"
    "\"rope_theta\":500000.0,\"tie_word_embeddings\":true,\"vocab_size\":128256}";

static const char gemma3_1b[] =
    "{\"architectures\":[\"Gemma3ForCausalLM\"],\"attention_bias\":false,"
    "\"attn_logit_softcapping\":null,\"bos_token_id\":2,\"eos_token_id\":[1,106],"
    "\"final_logit_softcapping\":null,\"head_dim\":256,\"hidden_activation\":"
    "\"gelu_pytorch_tanh\",\"hidden_size\":1152,\"intermediate_size\":6912,"
    "\"max_position_embeddings\":32768,\"model_type\":\"gemma3_text\",\"num_attention_heads\":4,"
    "\"num_hidden_layers\":26,\"num_key_value_heads\":1,\"query_pre_attn_scalar\":256,"
    "\"rms_norm_eps\":1e-06,\"rope_local_base_freq\":10000,\"rope_scaling\":null,"
    "\"rope_theta\":1000000,\"sliding_window\":512,\"sliding_window_pattern\":6,"
    "\"vocab_size\":262144}";

/* The text part of the model with a vision tower says little. */
static const char gemma3_4b[] =
    "{\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"boi_token_index\":255999,"
    "\"eoi_token_index\":256000,\"eos_token_id\":[1,106],\"image_token_index\":262144,"
    "\"mm_tokens_per_image\":256,\"model_type\":\"gemma3\",\"text_config\":{\"hidden_size\":2560,"
    "\"intermediate_size\":10240,\"model_type\":\"gemma3_text\",\"num_hidden_layers\":34,"
    "\"rope_scaling\":{\"factor\":8.0,\"rope_type\":\"linear\"},\"sliding_window\":1024},"
    "\"vision_config\":{\"hidden_size\":1152,\"image_size\":896,\"model_type\":"
    "\"siglip_vision_model\",\"patch_size\":14}}";

static struct hf_config parsed(const char *text)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    if (hf_config_parse(&c, "x", text, strlen(text), &err)) {
        T_FAIL("%s", err.msg);
    }
    T_OK(!c.has_vision && c.vision.depth == 0 && c.pre.max_pixels == 0);
    T_OK(c.image_pad == 0 && c.vision_start == 0);
    T_EQ(c.text.mrope_section[0] + c.text.mrope_section[1] + c.text.mrope_section[2], 0);
    T_OK(!c.text.rope_pairs);
    return c;
}

static void qwen(void)
{
    struct hf_config c = parsed(qwen2_5_0_5b);
    const struct hf_text_config *t = &c.text;
    T_EQ(c.family, HF_QWEN2);
    T_OK(t->hidden == 896 && t->head_dim == 64 && t->n_kv_head == 2 && t->window == 0);
    T_OK(t->qkv_bias && !t->o_bias && !t->mlp_bias && !t->qk_norm && t->tied);
    T_OK(t->embed_scale == 0 && t->query_scale == 0 && !t->gelu && !t->norm_plus_one);
    T_NEAR(t->rope.theta, 1e6, 0);
    c = parsed(qwen3_0_6b);
    T_EQ(c.family, HF_QWEN3);
    T_OK(t->head_dim == 128 && t->n_head == 16 && t->hidden == 1024);
    T_OK(!t->qkv_bias && !t->o_bias && t->qk_norm && t->rope.kind == HF_ROPE_PLAIN);
}

static void llama(void)
{
    struct hf_config c = parsed(llama2_7b);
    const struct hf_text_config *t = &c.text;
    T_EQ(c.family, HF_LLAMA);
    T_OK(t->n_kv_head == 32 && t->head_dim == 128 && !t->tied && !t->qkv_bias);
    T_NEAR(t->rope.theta, 1e4, 0);
    T_NEAR(t->rms_eps, 1e-5, 0);
    c = parsed(llama3_2_1b);
    T_OK(t->rope.kind == HF_ROPE_LLAMA3 && t->rope.original_context == 8192 && t->tied);
    T_NEAR(t->rope.factor, 32, 0);
    T_NEAR(t->rope.low, 1, 0);
    T_NEAR(t->rope.high, 4, 0);
    T_NEAR(t->rope.theta, 5e5, 0);
    T_OK(c.n_eos == 3 && c.eos[2] == 128009);
}

static void gemma(void)
{
    struct hf_config c = parsed(gemma3_1b);
    const struct hf_text_config *t = &c.text;
    T_EQ(c.family, HF_GEMMA3);
    T_OK(t->head_dim == 256 && t->window == 512 && t->window_pattern == 6 && t->tied);
    T_OK(t->qk_norm && t->norm_plus_one && t->gelu && t->final_softcap == 0);
    T_NEAR(t->embed_scale, sqrt(1152), 1e-12);
    T_NEAR(t->query_scale, 1.0 / 16, 1e-15);
    T_NEAR(t->rope.theta, 1e6, 0);
    T_NEAR(t->rope_local.theta, 1e4, 0);
    T_OK(c.n_eos == 2 && c.eos[1] == 106);
    c = parsed(gemma3_4b);
    T_STR(c.model_type, "gemma3");
    T_OK(t->hidden == 2560 && t->n_head == 8 && t->n_kv_head == 4 && t->head_dim == 256);
    T_OK(t->n_vocab == 262208 && t->max_positions == 131072 && t->window == 1024 && t->tied);
    T_OK(t->rope.kind == HF_ROPE_LINEAR && t->rope.factor == 8);
    T_OK(t->rope_local.kind == HF_ROPE_PLAIN && t->window_pattern == 6);
}

/* `text` with the first `was` replaced; the caller frees. */
static char *replaced(const char *text, const char *was, const char *is)
{
    const char *at = strstr(text, was);
    if (!at) {
        T_FAIL("no %s", was);
    }
    const size_t n = strlen(text) + strlen(is) + 1;
    char *out = mem_alloc(n);
    snprintf(out, n, "%.*s%s%s", (int)(at - text), text, is, at + strlen(was));
    return out;
}

static void refuses_by_name(void)
{
    static const struct {
        const char *text, *was, *is, *says;
    } rows[] = {
        { qwen2_5_0_5b, "\"rope_theta\":1000000.0,", "", "\"rope_theta\" is missing" },
        { qwen2_5_0_5b, "\"use_sliding_window\":false", "\"rope_scaling\":{\"type\":\"yarn\"}",
          "rope_scaling: \"type\" is yarn" },
        { qwen2_5_0_5b, "\"use_sliding_window\":false", "\"rope_scaling\":[]",
          "\"rope_scaling\" is not an object" },
        { qwen2_5_0_5b, "\"use_sliding_window\":false", "\"mlp_bias\":true", "\"mlp_bias\"" },
        { qwen2_5_0_5b,
          "\"sliding_window\":32768,\"tie_word_embeddings\":true,"
          "\"use_sliding_window\":false",
          "\"sliding_window\":100,\"use_sliding_window\":true",
          "\"use_sliding_window\" is true; this build supports it in all layers or in none" },
        { qwen3_0_6b, "\"head_dim\":128", "\"head_dim\":127", "head_dim 127 is odd" },
        { qwen3_0_6b, "\"head_dim\":128", "\"head_dim\":514", "16 heads of size 514, limit 512" },
        { qwen3_0_6b, "\"qwen3\"", "\"qwen3_moe\"", "\"model_type\" is qwen3_moe" },
        { qwen3_0_6b, "\"head_dim\"", "\"num_experts\":4,\"head_dim\"", "\"num_experts\" is set" },
        { qwen3_0_6b, "\"head_dim\"", "\"quantization_config\":{},\"head_dim\"",
          "\"quantization_config\"" },
        { llama2_7b, "\"silu\"", "\"gelu\"", "\"hidden_act\" is gelu" },
        { llama2_7b, "\"pretraining_tp\":1", "\"partial_rotary_factor\":0.5",
          "\"partial_rotary_factor\" is below 1" },
        { llama2_7b, "\"hidden_size\":4096", "\"hidden_size\":4095", "hidden_size 4095 does not" },
        { llama3_2_1b, "\"factor\":32.0,", "", "\"factor\" is missing" },
        { llama3_2_1b, "\"factor\":32.0", "\"factor\":0", "\"factor\" is 0" },
        { llama3_2_1b, "\"high_freq_factor\":4.0", "\"high_freq_factor\":1.0",
          "\"high_freq_factor\" 1 is not above \"low_freq_factor\" 1" },
        { llama3_2_1b, "\"original_max_position_embeddings\":8192,", "",
          "\"original_max_position_embeddings\" is missing" },
        { llama3_2_1b, "\"rope_type\":\"llama3\"", "\"rope_type\":\"longrope\"", "is longrope" },
        { llama3_2_1b, "\"rope_type\":\"llama3\"", "\"rope_type\":\"mrope\"", "is mrope" },
        { gemma3_1b, "gelu_pytorch_tanh", "relu", "\"hidden_activation\" is relu" },
        { gemma3_1b, "\"sliding_window\":512", "\"sliding_window\":0", "\"sliding_window\" is 0" },
        { gemma3_1b, "\"bos_token_id\":2", "\"use_bidirectional_attention\":true",
          "\"use_bidirectional_attention\" is true" },
        { gemma3_1b, "\"query_pre_attn_scalar\":256", "\"query_pre_attn_scalar\":0",
          "\"query_pre_attn_scalar\" is 0" },
        { gemma3_1b, "\"num_hidden_layers\":26",
          "\"num_hidden_layers\":3,\"layer_types\":[\"full_attention\",\"sliding_attention\"]",
          "\"layer_types\" has 2 entries, not 3" },
        { gemma3_1b, "\"num_hidden_layers\":26",
          "\"num_hidden_layers\":3,\"layer_types\":[\"sliding_attention\",\"full_attention\","
          "\"full_attention\"]",
          "\"layer_types\" is irregular" },
        { gemma3_1b, "\"num_hidden_layers\":26",
          "\"num_hidden_layers\":1,\"layer_types\":[\"chunked_attention\"]",
          "\"layer_types\" is chunked_attention" },
        { gemma3_1b, "\"rope_scaling\":null",
          "\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5.0}}",
          "rope_parameters: \"sliding_attention\" is missing" },
        { gemma3_1b, "\"rope_scaling\":null",
          "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"}}",
          "full_attention: \"rope_theta\" is missing" },
        { gemma3_1b, "\"eos_token_id\":[1,106]", "\"eos_token_id\":262144", "\"eos_token_id\"" },
        { gemma3_4b, "\"linear\"", "\"dynamic\"", "text_config: rope_scaling: \"rope_type\"" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf_config c;
        struct galley_err err = { 0 };
        char *text = replaced(rows[i].text, rows[i].was, rows[i].is);
        const enum galley_status rc =
            hf_config_parse(&c, "m/config.json", text, strlen(text), &err);
        mem_free(text);
        if (rc != GALLEY_EMODEL || err.status != rc || !strstr(err.msg, rows[i].says) ||
            !strstr(err.msg, "m/config.json")) {
            T_FAIL("row %zu (%s) says: %s", i, rows[i].is, err.msg);
        }
    }
}

/* layer_types as transformers lists it is the pattern; a window that no position reaches is none;
 * every layer may have one. */
static void windows(void)
{
    static const struct {
        const char *text, *was, *is;
        int window, pattern;
    } rows[] = {
        { gemma3_1b, "\"num_hidden_layers\":26",
          "\"num_hidden_layers\":5,\"layer_types\":[\"sliding_attention\",\"full_attention\","
          "\"sliding_attention\",\"full_attention\",\"sliding_attention\"]",
          512, 2 },
        { gemma3_1b, "\"num_hidden_layers\":26",
          "\"num_hidden_layers\":2,\"layer_types\":[\"sliding_attention\",\"sliding_attention\"]",
          512, 3 },
        { qwen3_0_6b, "\"sliding_window\":null", "\"sliding_window\":64", 0, 0 },
        { qwen3_0_6b,
          "\"sliding_window\":null,\"tie_word_embeddings\":true,\"use_sliding_window\":false",
          "\"sliding_window\":64,\"use_sliding_window\":true", 0, 0 },
        { qwen2_5_0_5b, "\"max_window_layers\":21",
          "\"max_window_layers\":0,\"use_sliding_window\":true", 0, 0 },
        { qwen2_5_0_5b, "\"max_position_embeddings\":32768,\"max_window_layers\":21",
          "\"max_position_embeddings\":65536,\"max_window_layers\":0,\"use_sliding_window\":true",
          32768, 25 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = replaced(rows[i].text, rows[i].was, rows[i].is);
        const struct hf_config c = parsed(text);
        mem_free(text);
        if (c.text.window != rows[i].window || c.text.window_pattern != rows[i].pattern) {
            T_FAIL("row %zu: window %d, pattern %d", i, c.text.window, c.text.window_pattern);
        }
    }
}

/* Pictures' files of a model that sees none are not read. */
static void no_preprocessor(void)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    struct folder f;
    folder_open(&f);
    folder_text(&f, "config.json", gemma3_4b);
    folder_text(&f, "preprocessor_config.json",
                "{\"image_processor_type\":\"Gemma3ImageProcessor\"}");
    folder_text(&f, "generation_config.json", "{\"eos_token_id\":[1,106,107]}");
    T_EQ(hf_config_read(&c, f.path, &err), GALLEY_OK);
    T_EQ(c.n_eos, 3);
    folder_close(&f);
}

static const struct t_case cases[] = {
    { "qwen", qwen },       { "llama", llama },
    { "gemma", gemma },     { "refuses_by_name", refuses_by_name },
    { "windows", windows }, { "no_preprocessor", no_preprocessor },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
