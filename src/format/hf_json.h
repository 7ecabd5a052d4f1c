/* hf_json.h - what the readers of model JSON files share (hf_config, hf_preprocess, card).
 * Not for other modules. */
#ifndef GALLEY_FORMAT_HF_JSON_H
#define GALLEY_FORMAT_HF_JSON_H

#include "src/base/json.h"
#include "src/format/hf_config.h"

#define HF_WHERE_MAX 384

/* One integer key with its range; *out keeps its value when an optional key is missing. */
struct hf_int {
    const char *key;
    bool required;
    int lo, hi;
    int *out;
};

GALLEY_MUST_USE enum galley_status hf_read_ints(const cJSON *obj, const char *where,
                                                const struct hf_int *keys, size_t n,
                                                struct galley_err *err);
/* A missing key is fine; another value than `want` is refused. */
GALLEY_MUST_USE enum galley_status hf_want_string(const cJSON *obj, const char *where,
                                                  const char *key, const char *want,
                                                  struct galley_err *err);
/* "WHERE: "KEY" is IS; this build supports NEEDS" */
enum galley_status hf_refuse(struct galley_err *err, const char *where, const char *key,
                             const char *is, const char *needs);
/* eos_token_id, one or a list, replaces what is known; a missing key changes nothing. */
GALLEY_MUST_USE enum galley_status hf_read_eos(struct hf_config *c, const cJSON *obj,
                                               const char *where, struct galley_err *err);
void hf_preprocess_default(struct hf_preprocess *p);
/* processor_config.json as transformers 5 writes it: its "image_processor" object replaces
 * preprocessor_config.json; older files without one change nothing. */
GALLEY_MUST_USE enum galley_status hf_processor_parse(struct hf_config *io, const char *where,
                                                      const char *text, size_t n,
                                                      struct galley_err *err);

void hf_place(char out[HF_WHERE_MAX], const char *where, const char *key);
/* Whatever is wrong with a model file is GALLEY_EMODEL to the caller, short memory excepted. */
enum galley_status hf_status(enum galley_status rc, struct galley_err *err);
/* dir/name, the caller's (mem_free). */
GALLEY_MUST_USE enum galley_status hf_path(char **out, const char *dir, const char *name,
                                           struct galley_err *err);
bool hf_exists(const char *path);
/* dir/tokenizer.json, the caller's; a directory with SentencePiece's file alone is told what to do.
 */
GALLEY_MUST_USE enum galley_status hf_tokenizer_path(char **out, const char *dir,
                                                     struct galley_err *err);

#endif
