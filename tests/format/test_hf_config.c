/* test_hf_config.c - files written by transformers, the published layouts, and refusals. */
#include "src/format/hf_config.h"
#include "tests/format/folder.h"
#include "tests/format/pixels.h"

static void parse_file(struct hf_config *c, const char *name)
{
    struct bytes f = file_of("model", name);
    struct galley_err err = { 0 };
    const enum galley_status rc = hf_config_parse(c, name, (const char *)f.p, f.n, &err);
    mem_free(f.p);
    if (rc) {
        T_FAIL("%s", err.msg);
    }
}

static void check_new_text(const struct hf_config *c)
{
    const struct hf_text_config *t = &c->text;
    T_EQ(t->hidden, 64);
    T_EQ(t->n_layers, 3);
    T_EQ(t->n_head, 4);
    T_EQ(t->n_kv_head, 2);
    T_EQ(t->head_dim, 16);
    T_EQ(t->intermediate, 96);
    T_EQ(t->n_vocab, 500);
    T_EQ(t->max_positions, 1024);
    T_NEAR(t->rms_eps, 1e-6, 0);
    T_NEAR(t->rope.theta, 5000, 0);
    T_EQ(t->mrope_section[0] * 100 + t->mrope_section[1] * 10 + t->mrope_section[2], 233);
    T_OK(t->tied);
    T_EQ(c->n_eos, 1);
    T_EQ(c->eos[0], 481);
    T_EQ(c->vision_start, 490);
    T_EQ(c->vision_end, 491);
    T_EQ(c->image_pad, 492);
    T_EQ(c->video_pad, 493);
}

static void new_layout_2(void)
{
    struct hf_config c;
    parse_file(&c, "qwen2_vl_new.json");
    check_new_text(&c);
    const struct hf_vision_config *v = &c.vision;
    T_EQ(c.family, HF_QWEN2_VL);
    T_EQ(v->depth, 5);
    T_EQ(v->hidden, 48);
    T_EQ(v->out_hidden, 64);
    T_EQ(v->n_head, 3);
    T_EQ(v->intermediate, 144);
    T_EQ(v->patch, 12);
    T_EQ(v->window, 0);
    T_EQ(v->n_fullatt, 0);
    T_OK(!v->gated_rms);
}

static void new_layout_2_5(void)
{
    struct hf_config c;
    parse_file(&c, "qwen2_5_vl_new.json");
    check_new_text(&c);
    const struct hf_vision_config *v = &c.vision;
    T_EQ(c.family, HF_QWEN2_5_VL);
    T_EQ(v->depth, 4);
    T_EQ(v->hidden, 32);
    T_EQ(v->out_hidden, 64);
    T_EQ(v->n_head, 2);
    T_EQ(v->intermediate, 80);
    T_EQ(v->patch, 14);
    T_EQ(v->window, 84);
    T_EQ(v->n_fullatt, 2);
    T_EQ(v->fullatt[1], 3);
    T_OK(v->gated_rms);
}

/* The flat layout as Qwen publishes it (2B, 3B), with one line to replace. */
static const char qwen2_vl_2b[] =
    "{\"architectures\":[\"Qwen2VLForConditionalGeneration\"],\"attention_dropout\":0.0,"
    "\"bos_token_id\":151643,\"eos_token_id\":151645,\"vision_start_token_id\":151652,"
    "\"vision_end_token_id\":151653,\"vision_token_id\":151654,\"image_token_id\":151655,"
    "\"video_token_id\":151656,\"hidden_act\":\"silu\",\"hidden_size\":1536,"
    "\"initializer_range\":0.02,\"intermediate_size\":8960,\"max_position_embeddings\":32768,"
    "\"max_window_layers\":28,\"model_type\":\"qwen2_vl\",\"num_attention_heads\":12,"
    "\"num_hidden_layers\":28,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,"
    "\"rope_theta\":1000000.0,\"sliding_window\":32768,\"tie_word_embeddings\":true,"
    "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.41.2\",\"use_cache\":true,"
    "\"use_sliding_window\":false,\"vision_config\":{\"depth\":32,\"embed_dim\":1280,"
    "\"mlp_ratio\":4,\"num_heads\":16,\"in_chans\":3,\"hidden_size\":1536,\"patch_size\":14,"
    "\"spatial_merge_size\":2,\"spatial_patch_size\":14,\"temporal_patch_size\":2},"
    "\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[16,24,24]},\"vocab_size\":151936}";

static const char qwen2_5_vl_3b[] =
    "{\"architectures\":[\"Qwen2_5_VLForConditionalGeneration\"],\"attention_dropout\":0.0,"
    "\"bos_token_id\":151643,\"eos_token_id\":151645,\"vision_start_token_id\":151652,"
    "\"vision_end_token_id\":151653,\"vision_token_id\":151654,\"image_token_id\":151655,"
    "\"video_token_id\":151656,\"hidden_act\":\"silu\",\"hidden_size\":2048,"
    "\"initializer_range\":0.02,\"intermediate_size\":11008,\"max_position_embeddings\":128000,"
    "\"max_window_layers\":70,\"model_type\":\"qwen2_5_vl\",\"num_attention_heads\":16,"
    "\"num_hidden_layers\":36,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,"
    "\"rope_theta\":1000000.0,\"sliding_window\":32768,\"tie_word_embeddings\":true,"
    "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.41.2\",\"use_cache\":true,"
    "\"use_sliding_window\":false,\"vision_config\":{\"depth\":32,\"hidden_act\":\"silu\","
    "\"hidden_size\":1280,\"intermediate_size\":3420,\"num_heads\":16,\"in_chans\":3,"
    "\"out_hidden_size\":2048,\"patch_size\":14,\"spatial_merge_size\":2,"
    "\"spatial_patch_size\":14,\"window_size\":112,\"fullatt_block_indexes\":[7,15,23,31],"
    "\"tokens_per_second\":2,\"temporal_patch_size\":2},\"rope_scaling\":{\"type\":\"mrope\","
    "\"mrope_section\":[16,24,24]},\"vocab_size\":151936}";

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

static void flat_layout_2(void)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    T_EQ(hf_config_parse(&c, "x", qwen2_vl_2b, strlen(qwen2_vl_2b), &err), GALLEY_OK);
    T_STR(c.model_type, "qwen2_vl");
    T_EQ(c.text.head_dim, 128);
    T_EQ(c.text.n_vocab, 151936);
    T_EQ(c.vision.hidden, 1280);
    T_EQ(c.vision.intermediate, 5120);
    T_EQ(c.vision.out_hidden, 1536);
    T_EQ(c.pre.min_pixels, 3136);
    T_EQ(c.pre.max_pixels, 1003520);
    T_EQ(c.max_new_tokens, 0);
}

static void flat_layout_2_5(void)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    T_EQ(hf_config_parse(&c, "x", qwen2_5_vl_3b, strlen(qwen2_5_vl_3b), &err), GALLEY_OK);
    T_EQ(c.text.mrope_section[1], 24);
    T_EQ(c.vision.intermediate, 3420);
    T_EQ(c.vision.window, 112);
    T_EQ(c.vision.n_fullatt, 4);
    T_EQ(c.vision.fullatt[3], 31);
    T_EQ(c.image_pad, 151655);
    T_EQ(c.eos[0], 151645);
}

static void refuses_by_name(void)
{
    static const struct {
        const char *was, *is, *says;
    } rows[] = {
        { "\"qwen2_5_vl\"", "\"mamba\"", "\"model_type\" is mamba" },
        { "\"qwen2_5_vl\"", "\"llama\"", "\"type\" is mrope" },
        { "\"model_type\":\"qwen2_5_vl\",", "", "\"model_type\" is missing" },
        { "\"hidden_size\":2048,", "", "\"hidden_size\" is missing" },
        { "\"hidden_size\":2048", "\"hidden_size\":\"2048\"", "\"hidden_size\" is not a number" },
        { "\"hidden_size\":2048", "\"hidden_size\":1e9", "\"hidden_size\" is 1e+09" },
        { "\"hidden_size\":2048", "\"hidden_size\":2050", "hidden_size 2050 does not give 16" },
        { "\"num_hidden_layers\":36", "\"num_hidden_layers\":0", "\"num_hidden_layers\" is 0" },
        { "\"num_hidden_layers\":36", "\"num_hidden_layers\":3.5", "not a whole number" },
        { "\"num_key_value_heads\":2", "\"num_key_value_heads\":3", "no multiple of" },
        { "\"num_attention_heads\":16", "\"num_attention_heads\":2", "2 heads of size 1024" },
        { "\"type\":\"mrope\"", "\"type\":\"yarn\"", "rope_scaling: \"type\" is yarn" },
        { "\"type\":\"mrope\"", "\"rope_type\":\"linear\"", "\"rope_type\" is linear" },
        { "\"type\":\"mrope\"", "\"mrope_interleaved\":true", "\"mrope_interleaved\" is true" },
        { "\"type\":\"mrope\"", "\"partial_rotary_factor\":0.5", "\"partial_rotary_factor\"" },
        { "\"type\":\"mrope\"", "\"rope_theta\":5", "\"rope_theta\" is 1e+06 here and 5" },
        { "\"rope_theta\":1000000.0,", "", "\"rope_theta\" is missing" },
        { "[16,24,24]", "[16,24,25]", "\"mrope_section\" sums to 65, not to 64" },
        { "[16,24,24]", "[16,48]", "\"mrope_section\" is not a list of 3" },
        { "[16,24,24]", "[-16,40,40]", "\"mrope_section\" is not a list of 3" },
        { "\"rope_scaling\"", "\"rope\"", "neither \"rope_parameters\" nor \"rope_scaling\"" },
        { "\"use_sliding_window\":false,\"vision_config\"",
          "\"use_sliding_window\":true,\"max_window_layers\":9,\"vision_config\"", NULL },
        { "\"max_window_layers\":70", "\"use_sliding_window\":true,\"max_window_layers\":7",
          "\"use_sliding_window\" is true" },
        { "\"use_cache\":true", "\"layer_types\":[\"sliding_attention\"]",
          "\"layer_types\" has 1 entries, not 36" },
        { "\"use_cache\":true", "\"layer_types\":[\"linear_attention\"]",
          "\"layer_types\" is linear_attention" },
        { "\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\"", "\"hidden_act\" is gelu" },
        { "\"use_cache\":true", "\"attention_bias\":false", "\"attention_bias\" is false" },
        { "\"use_cache\":true", "\"head_dim\":64", "head_dim is 64" },
        { "\"use_cache\":true", "\"quantization_config\":{}", "\"quantization_config\"" },
        { "\"vision_config\"", "\"vision\"", "\"vision_config\" is missing" },
        { "\"depth\":32,\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\"",
          "vision_config: \"hidden_act\" is gelu" },
        { "\"in_chans\":3", "\"in_chans\":4", "vision_config: \"in_chans\" is 4" },
        { "\"out_hidden_size\":2048", "\"out_hidden_size\":2047",
          "\"out_hidden_size\" is 2047, the language model's" },
        { "\"num_heads\":16", "\"num_heads\":15", "width 1280 does not give 15" },
        { "\"num_heads\":16", "\"num_heads\":2", "vision_config: 2 heads of size 640" },
        { "\"window_size\":112", "\"window_size\":20", "\"window_size\" 20 is under one cell" },
        { "[7,15,23,31]", "[7,-1]", "\"fullatt_block_indexes\" holds" },
        { "[7,15,23,31]", "7", "\"fullatt_block_indexes\" is not a list" },
        { "\"tokens_per_second\":2", "\"rope_parameters\":{\"rope_theta\":5}",
          "rope_parameters: \"rope_theta\"" },
        { "\"eos_token_id\":151645", "\"eos_token_id\":[1,999999]", "\"eos_token_id\"" },
        { "\"image_token_id\":151655", "\"image_token_id\":151936", "\"image_token_id\"" },
        { "\"vocab_size\":151936", "\"vocab_size\":1000", "151652" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf_config c;
        struct galley_err err = { 0 };
        char *text = replaced(qwen2_5_vl_3b, rows[i].was, rows[i].is);
        const enum galley_status rc =
            hf_config_parse(&c, "m/config.json", text, strlen(text), &err);
        mem_free(text);
        if (!rows[i].says) {
            T_EQ(rc, GALLEY_OK); /* the first of two equal keys counts: 70 layers, no window */
            continue;
        }
        if (rc != GALLEY_EMODEL || err.status != rc || !strstr(err.msg, rows[i].says) ||
            !strstr(err.msg, "m/config.json")) {
            T_FAIL("row %zu (%s) says: %s", i, rows[i].is, err.msg);
        }
    }
}

/* As in transformers: a missing vision key takes the class's value, null is like missing. */
static void vision_defaults(void)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    char *text = replaced(qwen2_5_vl_3b, "\"fullatt_block_indexes\":[7,15,23,31],", "");
    char *more = replaced(text, "\"window_size\":112", "\"window_size\":null");
    char *last = replaced(more, "\"depth\":32", "\"depth\":20");
    T_EQ(hf_config_parse(&c, "x", last, strlen(last), &err), GALLEY_OK);
    T_EQ(c.vision.window, 112);
    T_EQ(c.vision.n_fullatt, 2); /* 7 and 15; 23 and 31 name no block */
    mem_free(text);
    mem_free(more);
    mem_free(last);
}

/* Tied when either place says so, as in transformers. */
static void tied_in_either_place(void)
{
    struct bytes f = file_of("model", "qwen2_vl_new.json");
    const char *yes = "\"tie_word_embeddings\": true", *no = "\"tie_word_embeddings\": false";
    struct hf_config c;
    struct galley_err err = { 0 };
    char *outer = replaced((const char *)f.p, yes, no); /* the first one is in text_config */
    char *neither = replaced(outer, yes, no);
    T_EQ(hf_config_parse(&c, "x", outer, strlen(outer), &err), GALLEY_OK);
    T_OK(c.text.tied);
    T_EQ(hf_config_parse(&c, "x", neither, strlen(neither), &err), GALLEY_OK);
    T_OK(!c.text.tied);
    char *inner = replaced(neither, no, yes);
    T_EQ(hf_config_parse(&c, "x", inner, strlen(inner), &err), GALLEY_OK);
    T_OK(c.text.tied);
    mem_free(inner);
    mem_free(outer);
    mem_free(neither);
    mem_free(f.p);
}

static void preprocess_lists(void)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    parse_file(&c, "qwen2_vl_new.json");
    const char *text = "{\"patch_size\":12,\"image_mean\":[0.1,0.2,0.3],"
                       "\"image_std\":[0.4,0.5,0.6],\"rescale_factor\":0.5}";
    T_EQ(hf_preprocess_parse(&c, "x", text, strlen(text), &err), GALLEY_OK);
    for (int i = 0; i < 3; i++) {
        T_NEAR(c.pre.mean[i], 0.1 * (i + 1), 1e-7);
        T_NEAR(c.pre.std[i], 0.1 * (i + 4), 1e-7);
    }
    T_NEAR(c.pre.rescale, 0.5, 0);
}

static void preprocess(void)
{
    static const struct {
        const char *text, *says; /* NULL: fine, then the pixels */
        int64_t min_pixels, max_pixels;
    } rows[] = {
        { "{}", NULL, 3136, 1003520 },
        { "{\"min_pixels\":100,\"max_pixels\":5000}", NULL, 100, 5000 },
        { "{\"size\":{\"shortest_edge\":200,\"longest_edge\":9000}}", NULL, 200, 9000 },
        { "{\"size\":{\"shortest_edge\":200,\"longest_edge\":9000},\"max_pixels\":8000}", NULL, 200,
          8000 },
        { "{\"image_processor_type\":\"Qwen2VLImageProcessorFast\",\"min_pixels\":null}", NULL,
          3136, 1003520 },
        { "{\"min_pixels\":100,\"max_pixels\":99}", "min_pixels 100 is over max_pixels 99", 0, 0 },
        { "{\"max_pixels\":0}", "\"max_pixels\" is 0", 0, 0 },
        { "{\"size\":7}", "\"size\" is not an object", 0, 0 },
        { "{\"size\":{\"longest_edge\":-1}}", "size: \"longest_edge\" is -1", 0, 0 },
        { "{\"do_rescale\":false}", "\"do_rescale\" is false", 0, 0 },
        { "{\"resample\":2}", "\"resample\"", 0, 0 },
        { "{\"image_mean\":[1,2]}", "\"image_mean\" is not 3 numbers", 0, 0 },
        { "{\"image_std\":[1,0,1]}", "\"image_std\" is not 3 numbers", 0, 0 },
        { "{\"rescale_factor\":0}", "\"rescale_factor\"", 0, 0 },
        { "{\"patch_size\":16}", "\"patch_size\" is 16, config.json says 14", 0, 0 },
        { "{\"merge_size\":1}", "\"merge_size\" is 1", 0, 0 },
        { "{\"image_processor_type\":\"SiglipImageProcessor\"}", "is SiglipImageProcessor", 0, 0 },
        { "[]", "not a JSON object", 0, 0 },
        { "{", "not valid JSON", 0, 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hf_config c;
        struct galley_err err = { 0 };
        T_EQ(hf_config_parse(&c, "x", qwen2_vl_2b, strlen(qwen2_vl_2b), &err), GALLEY_OK);
        const enum galley_status rc =
            hf_preprocess_parse(&c, "pre.json", rows[i].text, strlen(rows[i].text), &err);
        if (rows[i].says) {
            T_EQ(rc, GALLEY_EMODEL);
            if (!strstr(err.msg, rows[i].says) || !strstr(err.msg, "pre.json")) {
                T_FAIL("row %zu says: %s", i, err.msg);
            }
        } else {
            T_EQ(rc, GALLEY_OK);
            T_EQ(c.pre.min_pixels, rows[i].min_pixels);
            T_EQ(c.pre.max_pixels, rows[i].max_pixels);
            T_NEAR(c.pre.mean[0], 0.48145466, 1e-7);
            T_NEAR(c.pre.rescale, 1.0 / 255, 1e-8);
        }
    }
}

static void generation(void)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    parse_file(&c, "qwen2_5_vl_new.json");
    const char *good = "{\"eos_token_id\":[3,4],\"max_new_tokens\":77}";
    T_EQ(hf_generation_parse(&c, "g", good, strlen(good), &err), GALLEY_OK);
    T_EQ(c.n_eos, 2);
    T_EQ(c.eos[1], 4);
    T_EQ(c.max_new_tokens, 77);
    T_EQ(hf_generation_parse(&c, "g", "{}", 2, &err), GALLEY_OK);
    T_EQ(c.n_eos, 2);
    static const char *const bad[] = { "{\"eos_token_id\":[1,2,3,4,5,6,7,8,9]}",
                                       "{\"eos_token_id\":-1}",
                                       "{\"eos_token_id\":\"<|end|>\"}",
                                       "{\"eos_token_id\":500}",
                                       "{\"max_new_tokens\":0}",
                                       "3" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        T_EQ(hf_generation_parse(&c, "g.json", bad[i], strlen(bad[i]), &err), GALLEY_EMODEL);
        T_OK(strstr(err.msg, "g.json"));
    }
}

static void directories(void)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    T_EQ(hf_config_read(&c, "/nonexistent/model", &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "/nonexistent/model: no config.json"));
    struct folder f;
    folder_open(&f);
    folder_text(&f, "config.json", qwen2_vl_2b);
    T_EQ(hf_config_read(&c, f.path, &err), GALLEY_OK); /* the other two may be missing */
    char *mute = replaced(qwen2_vl_2b, "\"eos_token_id\":151645,", "");
    folder_text(&f, "config.json", mute);
    mem_free(mute);
    T_EQ(hf_config_read(&c, f.path, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "eos_token_id"));
    folder_text(&f, "generation_config.json", "{\"eos_token_id\":5}");
    T_EQ(hf_config_read(&c, f.path, &err), GALLEY_OK);
    T_EQ(c.eos[0], 5);
    folder_text(&f, "preprocessor_config.json", "{\"max_pixels\":\"many\"}");
    T_EQ(hf_config_read(&c, f.path, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "preprocessor_config.json: \"max_pixels\""));
    folder_text(&f, "preprocessor_config.json", "{\"max_pixels\":5000}");
    folder_text(&f, "processor_config.json", "{\"processor_class\":\"Qwen2VLProcessor\"}");
    T_EQ(hf_config_read(&c, f.path, &err), GALLEY_OK);
    T_EQ(c.pre.max_pixels, 5000);
    folder_text(&f, "processor_config.json",
                "{\"image_processor\":{\"size\":{\"shortest_edge\":70,\"longest_edge\":7000}}}");
    T_EQ(hf_config_read(&c, f.path, &err), GALLEY_OK);
    T_EQ(c.pre.min_pixels, 70);
    T_EQ(c.pre.max_pixels, 7000);
    folder_text(&f, "processor_config.json", "{\"image_processor\":{\"do_resize\":false}}");
    T_EQ(hf_config_read(&c, f.path, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "processor_config.json: image_processor: \"do_resize\""));
    folder_close(&f);
}

static void no_memory(void)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    mem_fail_at(0);
    T_EQ(hf_config_read(&c, "models/galley-tiny", &err), GALLEY_OK);
    const long n = mem_count();
    T_OK(n >= 6);
    for (long i = 1; i <= n; i++) {
        mem_fail_at(i);
        const enum galley_status rc = hf_config_read(&c, "models/galley-tiny", &err);
        mem_fail_at(0);
        T_EQ(rc, GALLEY_ENOMEM);
    }
}

static const struct t_case cases[] = {
    { "new_layout_2", new_layout_2 },
    { "new_layout_2_5", new_layout_2_5 },
    { "flat_layout_2", flat_layout_2 },
    { "flat_layout_2_5", flat_layout_2_5 },
    { "refuses_by_name", refuses_by_name },
    { "vision_defaults", vision_defaults },
    { "tied_in_either_place", tied_in_either_place },
    { "preprocess", preprocess },
    { "preprocess_lists", preprocess_lists },
    { "generation", generation },
    { "directories", directories },
    { "no_memory", no_memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
