/* chat.h - the frame around a conversation.
 *
 * A chat template is a program in a language of its own; we recognise the templates of the
 * supported families by what they contain and write their frames out.  Only the frame is parsed for
 * special tokens: what a user writes cannot forge them (tokenizer_encode with parse_special
 * false). */
#ifndef GALLEY_FORMAT_CHAT_H
#define GALLEY_FORMAT_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/format/hf_config.h"
#include "src/format/tokenizer.h"

enum chat_kind {
    CHAT_NONE,   /* a base model: only raw prompts */
    CHAT_CHATML, /* Qwen2, Qwen2-VL, SmolLM2 ... */
    CHAT_QWEN3,  /* ChatML with the thinking switch */
    CHAT_LLAMA2,
    CHAT_LLAMA3,
    CHAT_GEMMA,
    CHAT_KIND_COUNT
};

#define CHAT_SYSTEM_MAX 1024

/* A plain value: copying it is fine. */
struct chat {
    enum chat_kind kind;
    /* What differs between templates of a kind. */
    char
        default_system[CHAT_SYSTEM_MAX]; /* put first when the conversation has none; "": nothing */
    bool trim;      /* CHAT_CHATML: contents without white space at both ends */
    bool dated;     /* CHAT_LLAMA3: 3.1 and later put two dates before the system message */
    bool no_system; /* CHAT_GEMMA: 1 and 2 know no system message */
};

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT };

/* From the template's text (tokenizer_config.json, chat_template.jinja, tokenizer.chat_template);
 * template NULL: the family's own, CHAT_NONE when it has none.  A template we do not know: refused
 * with the list of those we do, only when a conversation is framed (kind CHAT_NONE until then). */
void chat_recognise(struct chat *out, const char *template, size_t n, enum hf_family family);
const char *chat_name(enum chat_kind kind);

struct chat_segment {
    int i_message; /* >= 0: that message's content stands here, as chat_content cuts it; -1: text */
    bool trim;     /* content without white space at both ends, as the template does */
    bool trim_end; /* only at the end */
    bool answer;   /* content without the thoughts before "</think>" */
    const char *text; /* frame text, parsed for special tokens; static, or of the struct chat */
};

#define CHAT_MESSAGES_MAX 1024

/* The whole conversation up to and with the assistant's opening.  out: room for 4 n + 4 segments;
 * *n_out of them are filled.  thinking: Qwen3's switch (others ignore it).  The beginning-of-text
 * token is the tokenizer's business (tokenizer_bos).  Encode the segments together with
 * tokenizer_encode_parts, frame texts as trusted parts.  GALLEY_EUSAGE when roles are in an order
 * the template refuses, or there is no template.
 * Llama 3.1's "Today Date" is the one its template falls back to, so that a prompt does not change
 * overnight.  With CHAT_QWEN3 the thoughts of earlier answers are left out, as the template does;
 * an assistant's message behind the last user's, which it would show thinking, is refused. */
GALLEY_MUST_USE enum galley_status chat_frame(struct chat_segment *out, int *n_out,
                                              const struct chat *c, const enum chat_role *roles,
                                              int n_messages, bool thinking,
                                              struct galley_err *err);

/* What of a message's text[0..n) stands in the segment: lends *out_n bytes. */
const char *chat_content(const struct chat_segment *s, const char *text, size_t n, size_t *out_n);

/* GALLEY_EMODEL when the tokenizer lacks a token of the frame, or names an image token by another
 * id than the config does: the files are not of one model. */
GALLEY_MUST_USE enum galley_status chat_check(const struct chat *c, const struct tokenizer *tok,
                                              const struct hf_config *cfg, struct galley_err *err);

#endif
