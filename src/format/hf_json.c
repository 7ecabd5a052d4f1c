/* hf_json.c - small readers with one sentence per mismatch. */
#include "src/format/hf_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/map.h"
#include "src/base/mem.h"

enum galley_status hf_read_ints(const cJSON *obj, const char *where, const struct hf_int *keys,
                                size_t n, struct galley_err *err)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = *keys[i].out;
        const enum galley_status rc = json_get_int(obj, where, keys[i].key, keys[i].required,
                                                   keys[i].lo, keys[i].hi, &v, err);
        if (rc) {
            return rc;
        }
        *keys[i].out = (int)v;
    }
    return GALLEY_OK;
}

enum galley_status hf_refuse(struct galley_err *err, const char *where, const char *key,
                             const char *is, const char *needs)
{
    return galley_err_set(err, GALLEY_EMODEL, "%s: \"%s\" is %.64s; this build supports %s", where,
                          key, is, needs);
}

enum galley_status hf_want_string(const cJSON *obj, const char *where, const char *key,
                                  const char *want, struct galley_err *err)
{
    const char *is = want;
    const enum galley_status rc = json_get_string(obj, where, key, false, &is, err);
    if (rc || strcmp(is, want) == 0) {
        return rc;
    }
    return hf_refuse(err, where, key, is, want);
}

enum galley_status hf_read_eos(struct hf_config *c, const cJSON *obj, const char *where,
                               struct galley_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, "eos_token_id");
    if (!item || cJSON_IsNull(item)) {
        return GALLEY_OK;
    }
    c->n_eos = 0;
    for (const cJSON *id = cJSON_IsArray(item) ? item->child : item; id;
         id = cJSON_IsArray(item) ? id->next : NULL) {
        const double v = cJSON_IsNumber(id) ? id->valuedouble : -1;
        if (!(v >= 0 && v < c->text.n_vocab) || v != floor(v)) {
            return galley_err_set(err, GALLEY_EMODEL,
                                  "%s: \"eos_token_id\" holds something else than ids 0 to %d",
                                  where, c->text.n_vocab - 1);
        }
        if (c->n_eos == HF_EOS_MAX) {
            return galley_err_set(err, GALLEY_EMODEL, "%s: \"eos_token_id\" has more than %d ids",
                                  where, HF_EOS_MAX);
        }
        c->eos[c->n_eos++] = (int32_t)v;
    }
    return GALLEY_OK;
}

void hf_place(char out[HF_WHERE_MAX], const char *where, const char *key)
{
    snprintf(out, HF_WHERE_MAX, "%s: %s", where, key);
}

enum galley_status hf_status(enum galley_status rc, struct galley_err *err)
{
    if (rc == GALLEY_OK || rc == GALLEY_ENOMEM) {
        return rc;
    }
    if (err) {
        err->status = GALLEY_EMODEL;
    }
    return GALLEY_EMODEL;
}

enum galley_status hf_path(char **out, const char *dir, const char *name, struct galley_err *err)
{
    *out = path_join(dir, name);
    return *out ? GALLEY_OK : galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for its name", dir);
}

bool hf_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

enum galley_status hf_tokenizer_path(char **out, const char *dir, struct galley_err *err)
{
    char *model = NULL;
    enum galley_status rc = hf_path(out, dir, "tokenizer.json", err);
    rc = rc ? rc : hf_path(&model, dir, "tokenizer.model", err);
    if (!rc && !hf_exists(*out) && hf_exists(model)) {
        rc = galley_err_set(err, GALLEY_EMODEL,
                            "%s: has tokenizer.model but no tokenizer.json, which is needed: let "
                            "transformers write it (AutoTokenizer.from_pretrained, "
                            "save_pretrained), or give the model as GGUF",
                            dir);
    }
    mem_free(model);
    if (rc) {
        mem_free(*out);
        *out = NULL;
    }
    return rc;
}
