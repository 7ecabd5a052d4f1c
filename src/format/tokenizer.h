/* tokenizer.h - text to token ids and back, equal to Hugging Face's tokenizers on every input.
 *
 * From tokenizer.json:
 * - byte-level BPE: normalizer NFC or none; pre-tokenizer ByteLevel, alone or behind Split (regex,
 *   isolated) and Digits; decoder ByteLevel;
 * - BPE of characters (Gemma 3, Llama 2): normalizer Replace or Prepend and Replace, or
 *   pre-tokenizer Metaspace; byte_fallback; decoder Sequence of Replace, ByteFallback, Fuse, Strip;
 * - in both: merges as strings or pairs, ignore_merges, added tokens (special and not, normalized
 *   or not, lstrip/rstrip/single_word), one token in front by TemplateProcessing.
 * From GGUF metadata: the same two, byte-level ones with a known tokenizer.ggml.pre (and NFC where
 * the family's tokenizer.json has it), the others merged by score.
 * Anything else in a file is refused by name.  Immutable after opening: any number of threads may
 * encode at once. */
#ifndef GALLEY_FORMAT_TOKENIZER_H
#define GALLEY_FORMAT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

struct tokenizer;

GALLEY_MUST_USE enum galley_status tokenizer_open(struct tokenizer **out, const char *path,
                                                  struct galley_err *err);
GALLEY_MUST_USE enum galley_status tokenizer_open_memory(struct tokenizer **out, const char *where,
                                                         const char *text, size_t n,
                                                         struct galley_err *err);
/* From GGUF metadata (tokenizer.ggml.*): byte-level BPE with the known pre-tokenizers, and
 * SentencePiece's scores ("llama").  g is not needed afterwards. */
struct gguf;
GALLEY_MUST_USE enum galley_status tokenizer_open_gguf(struct tokenizer **out, const struct gguf *g,
                                                       struct galley_err *err);
void tokenizer_close(struct tokenizer *t);

/* Number of ids: highest id + 1 over vocabulary and added tokens. */
int tokenizer_n_vocab(const struct tokenizer *t);

/* Encodes text[0..n).  Malformed UTF-8 is replaced by U+FFFD first (maximal subparts, as
 * Python's errors="replace").  With parse_special false, special tokens written in the text are
 * ordinary text: documents must not be able to forge control tokens.  *ids is the caller's
 * (mem_free). */
GALLEY_MUST_USE enum galley_status tokenizer_encode(const struct tokenizer *t, const char *text,
                                                    size_t n, bool parse_special, int32_t **ids,
                                                    int *n_ids, struct galley_err *err);

/* A text put together from what the caller wrote (trusted: special tokens count) and what others
 * wrote.  It is encoded as one text: a word may reach across a border, as it does when a chat
 * template is rendered and encoded whole; a special token must lie in trusted text entirely. */
struct tokenizer_part {
    const char *text; /* lent */
    size_t n;
    bool trusted;
};
GALLEY_MUST_USE enum galley_status tokenizer_encode_parts(const struct tokenizer *t,
                                                          const struct tokenizer_part *parts,
                                                          int n_parts, int32_t **ids, int *n_ids,
                                                          struct galley_err *err);

/* Appends the token's bytes (they may be part of a UTF-8 character).  Special tokens add
 * nothing unless `special`.  Ids out of range add nothing. */
void tokenizer_decode(const struct tokenizer *t, int32_t id, bool special, struct buf *out);
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);
/* Tokens that begin every prompt of this model by themselves (add_bos_token): -1 for none. */
int32_t tokenizer_bos(const struct tokenizer *t);
/* Tokens that end a text by their names, beside those that a configuration gives: lends [*n] ids.
 * Only of GGUF files; beside a tokenizer.json lies a configuration with all of them. */
const int32_t *tokenizer_eos(const struct tokenizer *t, int *n);
/* Whether encoding puts a space before a text (Llama 2): the first text decoded has it, too. */
bool tokenizer_adds_space(const struct tokenizer *t);
/* Types (enum gguf_token_type) and scores, [tokenizer_n_vocab] each, by which GGUF's "llama" form
 * encodes as this tokenizer of characters does.  Of `where`, a tokenizer.json; GALLEY_EUNSUP when
 * there are none. */
GALLEY_MUST_USE enum galley_status tokenizer_pieces(const struct tokenizer *t, const char *where,
                                                    int32_t *types, float *scores,
                                                    struct galley_err *err);
/* -1 when the content is no token. */
int32_t tokenizer_lookup(const struct tokenizer *t, const char *content);

#endif
