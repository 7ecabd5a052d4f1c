/* hf_text.h - the language part of config.json.  Not for other modules; see hf_config.h. */
#ifndef GALLEY_FORMAT_HF_TEXT_H
#define GALLEY_FORMAT_HF_TEXT_H

#include "src/format/hf_json.h"

/* Fills c->text from `text` (which is `root`, or its text_config); c->family is set. */
GALLEY_MUST_USE enum galley_status hf_text_read(struct hf_config *c, const cJSON *root,
                                                const cJSON *text, const char *where,
                                                struct galley_err *err);

#endif
