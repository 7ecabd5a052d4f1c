/* families.h - the text models of tools/reference/text_families.py, opened whole. */
#ifndef GALLEY_TESTS_MODEL_FAMILIES_H
#define GALLEY_TESTS_MODEL_FAMILIES_H

#include "tests/model/run.h"

static inline void family_dir(char dir[256], const char *name)
{
    snprintf(dir, 256, GOLDEN_HF "%s", name);
}

static inline struct hf_config family_config(const char *name)
{
    char dir[256];
    struct hf_config cfg;
    struct galley_err err = { 0 };
    family_dir(dir, name);
    if (hf_config_read(&cfg, dir, &err)) {
        T_FAIL("%s", err.msg);
    }
    cfg.text.rope_pairs = strcmp(name, "llama_pairs") == 0; /* only GGUF files can say so */
    return cfg;
}

static inline struct toy_checkpoint family_open(const char *name, struct device *dev)
{
    char dir[256];
    struct toy_checkpoint c = { .dev = dev, .cfg = family_config(name) };
    struct galley_err err = { 0 };
    family_dir(dir, name);
    if (weights_open(&c.w, dir, &err) || model_open(&c.model, dev, &c.cfg, c.w, &err) ||
        weights_check_all_used(c.w, model_ignored_tensors(c.model), &err)) {
        T_FAIL("%s: %s", name, err.msg);
    }
    T_OK(!c.cfg.has_vision);
    return c;
}

static inline float *family_logits(const struct toy_checkpoint *c)
{
    float *p = mem_many(float, (size_t)PROMPT_MAX *(size_t)model_n_vocab(c->model));
    T_OK(p);
    return p;
}

#endif
