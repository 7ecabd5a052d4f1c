/* inspect_model.c - configuration, tensors and memory of a model, from its headers alone. */
#include "src/cli/inspect_model.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "src/cli/cli.h"
#include "src/cli/inspect_gguf.h"
#include "src/format/checkpoint.h"

struct model_facts {
    struct checkpoint c;
    struct gguf *gguf; /* the file itself, when a file was named */
    bool runs;         /* else why not */
    struct galley_err why;
    int n_tensors;
    uint64_t n_params, bytes;
    uint64_t by_type[DTYPE_COUNT];
    uint64_t kv_token_bytes;
    bool kv_f16;
};

static uint64_t elements(const struct tensor *t)
{
    uint64_t n = 1;
    for (int d = 0; d < t->n_dim; d++) {
        n *= (uint64_t)t->shape[d];
    }
    return n;
}

static void count_tensors(struct model_facts *f, const struct weights *w)
{
    f->n_tensors += weights_count(w);
    for (int i = 0; i < weights_count(w); i++) {
        const struct tensor *t = weights_tensor_at(w, i);
        const uint64_t n = elements(t);
        f->n_params += n;
        if ((size_t)t->dtype < DTYPE_COUNT) {
            f->by_type[t->dtype] += n;
            f->bytes += dtype_row_bytes(t->dtype, n);
        }
    }
}

static void count_model(struct model_facts *f)
{
    const struct checkpoint *c = &f->c;
    const struct hf_text_config *t = &c->cfg.text;
    count_tensors(f, c->weights);
    if (c->vision && c->vision != c->weights) {
        count_tensors(f, c->vision);
    }
    f->kv_f16 = weights_are_quantised(c->weights); /* as the engine decides (planner.h) */
    f->kv_token_bytes = 2ull * (uint64_t)t->n_layers * (uint64_t)t->n_kv_head *
                        (uint64_t)t->head_dim * (f->kv_f16 ? 2 : 4);
}

static void print_language(const struct hf_text_config *t)
{
    printf("language  hidden %d, layers %d, heads %d (kv %d) of %d, ffn %d, vocabulary %d%s\n",
           t->hidden, t->n_layers, t->n_head, t->n_kv_head, t->head_dim, t->intermediate,
           t->n_vocab, t->tied ? ", tied head" : "");
    printf("          context %d, rope theta %g", t->max_positions, t->rope.theta);
    if (t->rope.kind == HF_ROPE_LINEAR) {
        printf(", scaled by %g", t->rope.factor);
    } else if (t->rope.kind == HF_ROPE_LLAMA3) {
        printf(", Llama 3's scaling by %g", t->rope.factor);
    }
    if (t->mrope_section[0] + t->mrope_section[1] + t->mrope_section[2]) {
        printf(", M-RoPE sections %d %d %d", t->mrope_section[0], t->mrope_section[1],
               t->mrope_section[2]);
    }
    if (t->window) {
        printf(", window %d but in every %dth layer", t->window, t->window_pattern);
    }
    printf("\n");
}

static void print_vision(const struct hf_config *c)
{
    const struct hf_vision_config *v = &c->vision;
    printf("vision    hidden %d, blocks %d, heads %d, patch %d, merge %d, window %d px, out %d\n",
           v->hidden, v->depth, v->n_head, v->patch, v->merge, v->window, v->out_hidden);
    printf("pixels    %" PRId64 " to %" PRId64 "\n", c->pre.min_pixels, c->pre.max_pixels);
}

static void print_card(const struct checkpoint *c)
{
    if (c->has_card) {
        printf("card      text height %g px, %d lines and %d visual tokens per crop, tau %g (text) "
               "%g (ocr)\n",
               c->card.text_height, c->card.max_lines, c->card.max_visual_tokens, c->card.tau_text,
               c->card.tau_ocr);
    } else {
        printf("card      none (galley.json): defaults of the family\n");
    }
}

static void print_model(const struct model_facts *f)
{
    const struct hf_config *c = &f->c.cfg;
    print_language(&c->text);
    if (c->has_vision) {
        print_vision(c);
    }
    printf("tensors   %d, %.2f M parameters, %.1f MB (", f->n_tensors, (double)f->n_params / 1e6,
           (double)f->bytes / 1e6);
    const char *comma = "";
    for (int d = 0; d < DTYPE_COUNT; d++) {
        if (f->by_type[d]) {
            printf("%s%s %.2f M", comma, dtype_name((enum dtype)d), (double)f->by_type[d] / 1e6);
            comma = ", ";
        }
    }
    printf(")\nmemory    KV %.1f KB per token (%s); 16 regions of 1,024 tokens %.1f MB; more: "
           "--plan\n",
           (double)f->kv_token_bytes / 1e3, f->kv_f16 ? "f16" : "f32",
           (double)f->kv_token_bytes * 16 * 1024 / 1e6);
    print_card(&f->c);
}

static void print_tensors(const struct weights *w)
{
    for (int i = 0; i < weights_count(w); i++) {
        const struct tensor *x = weights_tensor_at(w, i);
        printf("%-60s %-5s [", weights_name_at(w, i), weights_dtype_at(w, i));
        for (int d = 0; d < x->n_dim; d++) {
            printf("%s%lld", d ? ", " : "", (long long)x->shape[d]);
        }
        printf("]\n");
    }
}

static void print_facts(const char *path, const struct model_facts *f)
{
    printf("%s: %s\n\n", path, f->runs ? f->c.cfg.model_type : "no language model Galley runs");
    if (f->runs) {
        print_model(f);
    } else {
        printf("runs      no: %s\n", f->why.msg);
    }
    if (f->gguf) {
        gguf_print_metadata(f->gguf);
        printf("\n");
        gguf_print_tensors(f->gguf);
        return;
    }
    printf("\n");
    print_tensors(f->c.weights);
    if (f->c.vision && f->c.vision != f->c.weights) {
        print_tensors(f->c.vision);
    }
}

static void add_tensors(cJSON *tensors, const struct weights *w)
{
    for (int i = 0; i < weights_count(w); i++) {
        const struct tensor *x = weights_tensor_at(w, i);
        cJSON *e = cJSON_CreateObject();
        cJSON_AddStringToObject(e, "name", weights_name_at(w, i));
        cJSON_AddStringToObject(e, "dtype", weights_dtype_at(w, i));
        cJSON *shape = cJSON_AddArrayToObject(e, "shape");
        for (int d = 0; d < x->n_dim; d++) {
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)x->shape[d]));
        }
        cJSON_AddItemToArray(tensors, e);
    }
}

static void add_model(cJSON *o, const struct model_facts *f)
{
    const struct hf_text_config *t = &f->c.cfg.text;
    cJSON_AddStringToObject(o, "model_type", f->c.cfg.model_type);
    cJSON *text = cJSON_AddObjectToObject(o, "text");
    cJSON_AddNumberToObject(text, "hidden", t->hidden);
    cJSON_AddNumberToObject(text, "layers", t->n_layers);
    cJSON_AddNumberToObject(text, "heads", t->n_head);
    cJSON_AddNumberToObject(text, "kv_heads", t->n_kv_head);
    cJSON_AddNumberToObject(text, "vocabulary", t->n_vocab);
    cJSON_AddNumberToObject(text, "context", t->max_positions);
    cJSON_AddBoolToObject(o, "vision", f->c.cfg.has_vision);
    cJSON_AddNumberToObject(o, "parameters", (double)f->n_params);
    cJSON_AddNumberToObject(o, "weight_bytes", (double)f->bytes);
    cJSON_AddNumberToObject(o, "kv_bytes_per_token", (double)f->kv_token_bytes);
    cJSON_AddBoolToObject(o, "card", f->c.has_card);
}

static void print_json(const struct model_facts *f)
{
    cJSON *o = cJSON_CreateObject();
    if (f->runs) {
        add_model(o, f);
    } else {
        cJSON_AddStringToObject(o, "runs_not", f->why.msg);
    }
    if (f->gguf) {
        cJSON_AddItemToObject(o, "gguf", gguf_json_metadata(f->gguf));
        cJSON_AddItemToObject(o, "tensors", gguf_json_tensors(f->gguf));
    } else {
        cJSON *tensors = cJSON_AddArrayToObject(o, "tensors");
        add_tensors(tensors, f->c.weights);
        if (f->c.vision && f->c.vision != f->c.weights) {
            add_tensors(tensors, f->c.vision);
        }
    }
    char *s = cJSON_Print(o);
    puts(s ? s : "{}");
    cJSON_free(s);
    cJSON_Delete(o);
}

/* A GGUF file is shown whether or not it is a model this build runs: projectors, other
 * architectures. */
int inspect_model(const char *path, bool json)
{
    struct model_facts f = { 0 };
    struct galley_err err = { 0 };
    f.runs = checkpoint_open(&f.c, path, NULL, CHECKPOINT_CONFIG, &f.why) == GALLEY_OK;
    const bool is_file = gguf_is_file(path);
    if (is_file && gguf_open(&f.gguf, path, &err)) {
        f.why = err;
    }
    if (!f.runs && !f.gguf) {
        complain("%s", f.why.msg);
        return EXIT_MODEL;
    }
    if (f.runs) {
        count_model(&f);
    }
    if (json) {
        print_json(&f);
    } else {
        print_facts(path, &f);
    }
    checkpoint_close(&f.c);
    gguf_close(f.gguf);
    return EXIT_OK;
}
