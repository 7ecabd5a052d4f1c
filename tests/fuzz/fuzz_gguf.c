/* fuzz_gguf.c - claims: every value, string and tensor lies inside the file; a tensor has the bytes
 * of its shape; names are unique and found again; no two tensors share a byte.  What becomes a
 * configuration is within the ranges the model relies on; what becomes weights keeps every tensor.
 * Every refusal has a sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/format/gguf_config.h"
#include "src/format/weights.h"

#define CLAIM(cond)  \
    do {             \
        if (!(cond)) \
            abort(); \
    } while (0)

struct input {
    const uint8_t *data;
    size_t n;
};

static void check_inside(const struct input *in, const void *p, uint64_t n)
{
    const uint8_t *from = p;
    CLAIM(from >= in->data && from <= in->data + in->n);
    CLAIM(n <= (uint64_t)(in->data + in->n - from));
}

static void check_value(const struct input *in, const struct gguf_value *v)
{
    static const int bytes[GGUF_TYPE_COUNT] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    CLAIM(v->type < GGUF_TYPE_COUNT && v->type != GGUF_ARRAY);
    CLAIM(v->is_array || v->n == 1);
    if (v->type == GGUF_STRING) {
        for (uint64_t i = 0; i < v->n; i++) {
            check_inside(in, v->strings[i].text, v->strings[i].n);
        }
        return;
    }
    check_inside(in, v->data, v->n * (uint64_t)bytes[v->type]);
    for (uint64_t i = 0; i < v->n && i < 100; i++) {
        (void)gguf_int(v, i);
        (void)gguf_number(v, i);
    }
}

static void check_tensor(const struct input *in, const struct gguf *g, const struct gguf_tensor *t)
{
    const struct tensor *v = &t->view;
    uint64_t n = 1;
    CLAIM(v->n_dim >= 0 && v->n_dim <= 4 && t->type);
    CLAIM(gguf_tensor_lookup(g, t->name) == t);
    for (int i = 0; i < v->n_dim; i++) {
        CLAIM(v->shape[i] > 0);
        n *= (uint64_t)v->shape[i];
    }
    CLAIM(t->known == (v->dtype < DTYPE_COUNT) && t->known == (v->data != NULL));
    if (t->known) {
        CLAIM(t->bytes == dtype_row_bytes(v->dtype, n));
        check_inside(in, v->data, t->bytes);
    }
}

static void check_pair(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    CLAIM(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
}

static void check_text(const struct hf_config *c)
{
    const struct hf_text_config *t = &c->text;
    CLAIM(t->hidden > 0 && t->n_layers > 0 && t->n_head > 0 && t->n_kv_head > 0);
    CLAIM(t->n_head % t->n_kv_head == 0 && t->head_dim > 0 && t->head_dim % 2 == 0);
    CLAIM(t->n_vocab > 0 && t->intermediate > 0 && t->max_positions > 0 && t->rms_eps > 0);
    CLAIM(t->rope.theta >= 1 && c->n_eos >= 0 && c->n_eos <= HF_EOS_MAX);
    CLAIM(!t->window || t->window_pattern > 0);
    for (int i = 0; i < c->n_eos; i++) {
        CLAIM(c->eos[i] >= 0 && c->eos[i] < t->n_vocab);
    }
    CLAIM(c->image_pad < t->n_vocab);
}

static void check_vision(const struct hf_config *c)
{
    const struct hf_vision_config *v = &c->vision;
    CLAIM(c->has_vision && v->hidden % v->n_head == 0 && v->hidden / v->n_head % 4 == 0);
    CLAIM(v->out_hidden == c->text.hidden && v->depth > 0 && v->intermediate > 0);
    CLAIM(v->n_fullatt <= HF_FULLATT_MAX && v->merge > 0 && v->patch > 0);
    CLAIM(c->pre.min_pixels > 0 && c->pre.min_pixels <= c->pre.max_pixels);
}

/* The language and the vision reader over the same file. */
static void check_config(const struct gguf *g)
{
    struct hf_config c;
    struct galley_err err = { 0 };
    enum galley_status rc = gguf_config_text(&c, g, &err);
    if (!rc) {
        check_text(&c);
    } else {
        CLAIM(rc == GALLEY_EMODEL && err.status == rc && strncmp(err.msg, "memory: ", 8) == 0);
    }
    c = (struct hf_config){ .family = HF_QWEN2_5_VL, .text = { .hidden = 48, .n_vocab = 4 } };
    rc = gguf_config_vision(&c, g, &err);
    if (!rc) {
        check_vision(&c);
    } else {
        CLAIM(rc == GALLEY_EMODEL && err.msg[0] && !c.has_vision);
    }
}

/* Takes g over. */
static void check_weights(struct gguf *g)
{
    struct weights *w;
    struct galley_err err = { 0 };
    const int n = gguf_n_tensors(g);
    if (weights_open_gguf(&w, g, HF_QWEN2_5_VL, &err)) {
        CLAIM(!w && err.status == GALLEY_EMODEL);
        return;
    }
    CLAIM(weights_count(w) == n || weights_count(w) == n - 1);
    for (int i = 0; i < weights_count(w); i++) {
        const struct tensor *t = weights_tensor_at(w, i), *found;
        const enum galley_status rc =
            weights_lookup(w, weights_name_at(w, i), t->n_dim, t->shape, &found, &err);
        CLAIM((rc == GALLEY_OK) == (t->dtype != DTYPE_COUNT));
        CLAIM(i == 0 || strcmp(weights_name_at(w, i - 1), weights_name_at(w, i)) < 0);
    }
    weights_close(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct input in = { data, n };
    struct galley_err err = { 0 };
    struct gguf *g;
    const enum galley_status rc = gguf_open_memory(&g, data, n, &err);
    CLAIM((rc == GALLEY_OK) == (g != NULL));
    if (rc) {
        CLAIM(rc == GALLEY_EMODEL && err.status == rc && strncmp(err.msg, "memory: ", 8) == 0);
        return 0;
    }
    for (int i = 0; i < gguf_n_keys(g); i++) {
        const struct gguf_value *v;
        const char *key = gguf_key_at(g, i, &v);
        CLAIM(gguf_lookup(g, key) == v);
        check_value(&in, v);
    }
    for (int i = 0; i < gguf_n_tensors(g); i++) {
        check_tensor(&in, g, gguf_tensor_at(g, i));
        for (int k = 0; k < i && k < 50; k++) {
            check_pair(gguf_tensor_at(g, k), gguf_tensor_at(g, i));
        }
    }
    check_config(g);
    check_weights(g);
    return 0;
}
