/* fuzz_hf_config.c - the small JSON files of a model directory, each reader over the same
 * input.  Claims: what is accepted satisfies everything the model code divides by and indexes
 * with; every refusal is GALLEY_EMODEL and names the file. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/format/card.h"
#include "src/format/hf_config.h"
#include "src/format/hf_json.h"

#define CLAIM(cond)  \
    do {             \
        if (!(cond)) \
            abort(); \
    } while (0)

static void check_refusal(enum galley_status rc, const struct galley_err *err)
{
    CLAIM(rc == GALLEY_EMODEL && err->status == rc && strncmp(err->msg, "input", 5) == 0);
}

static void check_eos(const struct hf_config *c)
{
    CLAIM(c->n_eos >= 0 && c->n_eos <= HF_EOS_MAX && c->max_new_tokens >= 0);
    for (int i = 0; i < c->n_eos; i++) {
        CLAIM(c->eos[i] >= 0 && c->eos[i] < c->text.n_vocab);
    }
}

static void check_rope(const struct hf_rope *r)
{
    CLAIM(isfinite(r->theta) && r->theta >= 1);
    CLAIM(r->kind == HF_ROPE_PLAIN || r->factor >= 1);
    CLAIM(r->kind != HF_ROPE_LLAMA3 || (r->low > 0 && r->high > r->low && r->original_context > 0));
}

static void check_text(const struct hf_config *c)
{
    const struct hf_text_config *t = &c->text;
    const int n_axes = t->mrope_section[0] + t->mrope_section[1] + t->mrope_section[2];
    CLAIM(t->hidden > 0 && t->n_layers > 0 && t->n_vocab > 0 && t->max_positions > 0);
    CLAIM(t->intermediate > 0 && t->n_kv_head > 0 && t->n_head % t->n_kv_head == 0);
    CLAIM(t->head_dim > 0 && t->head_dim % 2 == 0 && t->n_head > 0);
    CLAIM(n_axes == (c->has_vision ? t->head_dim / 2 : 0));
    CLAIM(t->rms_eps > 0 && t->window >= 0 && (t->window == 0 || t->window_pattern > 0));
    CLAIM(t->embed_scale >= 0 && t->query_scale >= 0);
    CLAIM(t->attn_softcap >= 0 && t->final_softcap >= 0);
    check_rope(&t->rope);
    check_rope(&t->rope_local);
}

static void check_vision(const struct hf_vision_config *v, const struct hf_text_config *t)
{
    CLAIM(v->depth > 0 && v->patch > 0 && v->temporal_patch > 0 && v->merge > 0);
    CLAIM(v->n_head > 0 && v->hidden % v->n_head == 0 && v->hidden / v->n_head % 4 == 0);
    CLAIM(v->intermediate > 0 && v->out_hidden == t->hidden && v->in_channels == 3);
    CLAIM(v->window == 0 || v->window >= v->patch * v->merge);
    CLAIM(v->n_fullatt >= 0 && v->n_fullatt <= HF_FULLATT_MAX);
    for (int i = 0; i < v->n_fullatt; i++) {
        CLAIM(v->fullatt[i] >= 0 && v->fullatt[i] < v->depth);
    }
}

static void check_preprocess(const struct hf_preprocess *p)
{
    CLAIM(p->min_pixels > 0 && p->min_pixels <= p->max_pixels && p->rescale > 0);
    for (int i = 0; i < 3; i++) {
        CLAIM(isfinite(p->mean[i]) && isfinite(p->std[i]) && p->std[i] > 0);
    }
}

static void check_card(const struct card *c)
{
    CLAIM(c->scripts && !(c->scripts & ~(uint32_t)CARD_ALL_SCRIPTS) && c->kinds);
    CLAIM(c->tau_text >= 0 && c->tau_text <= 1 && c->tau_ocr >= 0 && c->tau_ocr <= 1);
    CLAIM(c->text_height >= 0 && c->heading_height >= 0 && c->max_lines >= 0);
    CLAIM(c->max_visual_tokens >= 0 && c->max_new_tokens >= 0);
    CLAIM(utf8_valid(c->prompt_region, strnlen(c->prompt_region, CARD_TEXT_MAX)));
    CLAIM(utf8_valid(c->system, strnlen(c->system, CARD_TEXT_MAX)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *text = (const char *)data;
    struct hf_config c;
    struct card card;
    struct galley_err err = { 0 };
    enum galley_status rc = hf_config_parse(&c, "input", text, n, &err);
    if (rc) {
        check_refusal(rc, &err);
        c = (struct hf_config){ .text.n_vocab = 2048 };
    } else {
        check_text(&c);
        check_eos(&c);
    }
    if (!rc && c.has_vision) {
        check_vision(&c.vision, &c.text);
    } else {
        c.vision = (struct hf_vision_config){ .patch = 14, .temporal_patch = 2, .merge = 2 };
        hf_preprocess_default(&c.pre);
    }
    rc = hf_preprocess_parse(&c, "input", text, n, &err);
    if (rc) {
        check_refusal(rc, &err);
        hf_preprocess_default(&c.pre);
    } else {
        check_preprocess(&c.pre);
    }
    rc = hf_processor_parse(&c, "input", text, n, &err);
    if (rc) {
        check_refusal(rc, &err);
    } else {
        check_preprocess(&c.pre);
    }
    rc = hf_generation_parse(&c, "input", text, n, &err);
    if (rc) {
        check_refusal(rc, &err);
    } else {
        check_eos(&c);
    }
    rc = card_parse(&card, "input", text, n, &err);
    if (rc) {
        check_refusal(rc, &err);
    } else {
        check_card(&card);
    }
    return 0;
}
