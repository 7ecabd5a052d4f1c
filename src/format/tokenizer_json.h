/* tokenizer_json.h - reading tokenizer.json: what tokenizer_open.c and tokenizer_stages.c share. */
#ifndef GALLEY_FORMAT_TOKENIZER_JSON_H
#define GALLEY_FORMAT_TOKENIZER_JSON_H

#include "src/base/json.h"
#include "src/format/tokenizer_impl.h"

struct tok_source {
    const char *where;
    const cJSON *model, *vocab, *merges, *added;
    struct galley_err *err;
};

const cJSON *tok_json_item(const cJSON *obj, const char *key); /* NULL for null, too */
const char *tok_json_type(const cJSON *obj);                   /* "(no type)" when there is none */
GALLEY_MUST_USE enum galley_status tok_json_refuse(const struct tok_source *src, const char *what,
                                                   const char *name);
GALLEY_MUST_USE enum galley_status tok_json_flag(const struct tok_source *src, const cJSON *obj,
                                                 const char *key, bool fallback, bool *out);
/* Settings that must be false or empty, else they are refused by name. */
GALLEY_MUST_USE enum galley_status tok_json_off(const struct tok_source *src, const cJSON *obj,
                                                const char *key);

/* Normalizer, pre-tokenizer and decoder: they also say whether the model is of bytes or of
 * characters. */
GALLEY_MUST_USE enum galley_status tok_read_stages(struct tokenizer *t,
                                                   const struct tok_source *src, const cJSON *root);
/* The post-processor, once all tokens are known: it may put one token before a text. */
GALLEY_MUST_USE enum galley_status tok_read_post(struct tokenizer *t, const struct tok_source *src,
                                                 const cJSON *post);

#endif
