/* inspect_model.c - configuration, tensors and memory of a model, from its headers alone. */
#include "src/cli/inspect_model.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>

#include "src/cli/cli.h"
#include "src/format/card.h"
#include "src/format/hf_config.h"
#include "src/format/weights.h"

struct model_facts {
    struct hf_config cfg;
    struct card card;
    bool has_card;
    int n_tensors;
    uint64_t n_params, bytes;
    uint64_t by_type[DTYPE_COUNT];
    uint64_t kv_token_bytes;
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
    f->n_tensors = weights_count(w);
    for (int i = 0; i < f->n_tensors; i++) {
        const struct tensor *t = weights_tensor_at(w, i);
        const uint64_t n = elements(t);
        f->n_params += n;
        if ((size_t)t->dtype < DTYPE_COUNT) {
            f->by_type[t->dtype] += n;
            f->bytes += n * dtype_bytes(t->dtype);
        }
    }
    const struct hf_text_config *c = &f->cfg.text;
    f->kv_token_bytes =
        2ull * (uint64_t)c->n_layers * (uint64_t)c->n_kv_head * (uint64_t)c->head_dim * 4;
}

static void print_facts(const char *dir, const struct model_facts *f, const struct weights *w)
{
    const struct hf_text_config *t = &f->cfg.text;
    const struct hf_vision_config *v = &f->cfg.vision;
    printf("%s: %s\n\n", dir, f->cfg.model_type);
    printf("language  hidden %d, layers %d, heads %d (kv %d) of %d, ffn %d, vocabulary %d%s\n",
           t->hidden, t->n_layers, t->n_head, t->n_kv_head, t->head_dim, t->intermediate,
           t->n_vocab, t->tied ? ", tied head" : "");
    printf("          context %d, rope theta %g, M-RoPE sections %d %d %d\n", t->max_positions,
           t->rope.theta, t->mrope_section[0], t->mrope_section[1], t->mrope_section[2]);
    printf("vision    hidden %d, blocks %d, heads %d, patch %d, merge %d, window %d px, out %d\n",
           v->hidden, v->depth, v->n_head, v->patch, v->merge, v->window, v->out_hidden);
    printf("pixels    %lld to %lld\n", (long long)f->cfg.pre.min_pixels,
           (long long)f->cfg.pre.max_pixels);
    printf("tensors   %d, %.2f M parameters, %.1f MB (", f->n_tensors, (double)f->n_params / 1e6,
           (double)f->bytes / 1e6);
    const char *comma = "";
    for (int d = 0; d < DTYPE_COUNT; d++) {
        if (f->by_type[d]) {
            printf("%s%s %.2f M", comma, dtype_name((enum dtype)d), (double)f->by_type[d] / 1e6);
            comma = ", ";
        }
    }
    printf(")\nmemory    KV %.1f KB per token; 16 regions of 1,024 tokens %.1f MB\n",
           (double)f->kv_token_bytes / 1e3, (double)f->kv_token_bytes * 16 * 1024 / 1e6);
    if (f->has_card) {
        printf("card      text height %g px, %d lines and %d visual tokens per crop, tau %g (text) "
               "%g (ocr)\n",
               f->card.text_height, f->card.max_lines, f->card.max_visual_tokens, f->card.tau_text,
               f->card.tau_ocr);
    } else {
        printf("card      none (galley.json): defaults of the family\n");
    }
    printf("\n");
    for (int i = 0; i < f->n_tensors; i++) {
        const struct tensor *x = weights_tensor_at(w, i);
        printf("%-60s %-5s [", weights_name_at(w, i), weights_dtype_at(w, i));
        for (int d = 0; d < x->n_dim; d++) {
            printf("%s%lld", d ? ", " : "", (long long)x->shape[d]);
        }
        printf("]\n");
    }
}

static void print_json(const struct model_facts *f, const struct weights *w)
{
    const struct hf_text_config *t = &f->cfg.text;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "model_type", f->cfg.model_type);
    cJSON *text = cJSON_AddObjectToObject(o, "text");
    cJSON_AddNumberToObject(text, "hidden", t->hidden);
    cJSON_AddNumberToObject(text, "layers", t->n_layers);
    cJSON_AddNumberToObject(text, "heads", t->n_head);
    cJSON_AddNumberToObject(text, "kv_heads", t->n_kv_head);
    cJSON_AddNumberToObject(text, "vocabulary", t->n_vocab);
    cJSON_AddNumberToObject(text, "context", t->max_positions);
    cJSON_AddNumberToObject(o, "parameters", (double)f->n_params);
    cJSON_AddNumberToObject(o, "weight_bytes", (double)f->bytes);
    cJSON_AddNumberToObject(o, "kv_bytes_per_token", (double)f->kv_token_bytes);
    cJSON_AddBoolToObject(o, "card", f->has_card);
    cJSON *tensors = cJSON_AddArrayToObject(o, "tensors");
    for (int i = 0; i < f->n_tensors; i++) {
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
    char *s = cJSON_Print(o);
    puts(s ? s : "{}");
    cJSON_free(s);
    cJSON_Delete(o);
}

int inspect_model(const char *dir, bool json)
{
    struct model_facts f = { 0 };
    struct weights *w = NULL;
    struct galley_err err = { 0 };
    enum galley_status rc = hf_config_read(&f.cfg, dir, &err);
    rc = rc ? rc : card_read(&f.card, dir, &f.has_card, &err);
    rc = rc ? rc : weights_open(&w, dir, &err);
    if (rc) {
        complain("%s", err.msg);
        return EXIT_MODEL;
    }
    count_tensors(&f, w);
    if (json) {
        print_json(&f, w);
    } else {
        print_facts(dir, &f, w);
    }
    weights_close(w);
    return EXIT_OK;
}
