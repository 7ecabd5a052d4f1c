/* checkpoint.h - a model as its files give it: configuration, tokenizer, chat frame, tensors.
 *
 * path is a Hugging Face directory, a .gguf file (any part of a split one), or a directory that
 * holds exactly one GGUF model and at most one mmproj.  mmproj NULL: a file named *mmproj*.gguf
 * beside a GGUF model that supports images is taken when there is exactly one, or when it is named
 * mmproj-MODEL.gguf after MODEL.gguf; "none": none is.
 * Everything is checked to be of one model (vocabulary sizes, projector width, image token ids);
 * nothing heavy is read: tensors are views of mapped files. */
#ifndef GALLEY_FORMAT_CHECKPOINT_H
#define GALLEY_FORMAT_CHECKPOINT_H

#include "src/format/card.h"
#include "src/format/chat.h"
#include "src/format/hf_config.h"
#include "src/format/tokenizer.h"
#include "src/format/weights.h"

struct checkpoint {
    struct hf_config cfg;
    struct card card;
    bool has_card;
    struct chat chat;
    bool has_template;       /* chat is what a template says, not the family's own */
    struct tokenizer *tok;   /* owned */
    struct weights *weights; /* owned: language, and vision of a directory */
    struct weights *vision;  /* owned when it is not `weights`; NULL: no vision */
};

/* What to open: a planner or inspector needs no tokenizer (slow for 150,000 tokens). */
enum checkpoint_parts { CHECKPOINT_CONFIG, CHECKPOINT_ALL };

GALLEY_MUST_USE enum galley_status checkpoint_open(struct checkpoint *out, const char *path,
                                                   const char *mmproj, enum checkpoint_parts parts,
                                                   struct galley_err *err);
/* What CHECKPOINT_CONFIG leaves out: tokenizer and chat frame.  Another thread may meanwhile read
 * the configuration and bind tensors.  path as given to checkpoint_open. */
GALLEY_MUST_USE enum galley_status checkpoint_open_words(struct checkpoint *c, const char *path,
                                                         struct galley_err *err);
/* The tensors alone: the rest stays as it was read.  Zeroed is fine, here and below. */
void checkpoint_close_files(struct checkpoint *c);
void checkpoint_close(struct checkpoint *c);

/* GALLEY_EMODEL naming the first id at which the two vocabularies differ, with both entries: what a
 * draft model must pass.  Nothing opens a draft model yet; what will must ask this first. */
GALLEY_MUST_USE enum galley_status checkpoint_same_vocab(const struct checkpoint *target,
                                                         const struct checkpoint *draft,
                                                         struct galley_err *err);

#endif
