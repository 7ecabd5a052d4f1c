/* chatml.h - the frame around a prompt: Qwen's chat template, written out.
 *
 * The template is a family's, not a file's: chat_template.json would need a template engine to say
 * what these five strings say.  Only the frame is parsed for special tokens; what a user writes
 * cannot forge them (tokenizer_encode with parse_special false). */
#ifndef GALLEY_FORMAT_CHATML_H
#define GALLEY_FORMAT_CHATML_H

#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/format/hf_config.h"
#include "src/format/tokenizer.h"

#define CHATML_SYSTEM     "<|im_start|>system\n"
#define CHATML_SYSTEM_END "<|im_end|>\n"
#define CHATML_USER       "<|im_start|>user\n"
#define CHATML_ASSISTANT  "<|im_end|>\n<|im_start|>assistant\n"

/* GALLEY_EMODEL when the tokenizer lacks a token of the frame, or names an image token by another
 * id than config.json does: the files are not of one model. */
GALLEY_MUST_USE enum galley_status
chatml_check(const struct tokenizer *tok, const struct hf_config *cfg, struct galley_err *err);

#endif
