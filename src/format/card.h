/* card.h - galley.json, Galley's card for a model directory.
 *
 * A directory without the card gets the defaults of card_default.  docs/model-card.md
 * describes the keys; unknown keys are refused by name, so that a typing error is seen. */
#ifndef GALLEY_FORMAT_CARD_H
#define GALLEY_FORMAT_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"

#define CARD_TEXT_MAX 2048

/* Bits of card.scripts: writing systems the model reads. */
enum card_script {
    CARD_LATIN = 1 << 0,
    CARD_GREEK = 1 << 1,
    CARD_CYRILLIC = 1 << 2,
    CARD_HAN = 1 << 3,
    CARD_KANA = 1 << 4,
    CARD_HANGUL = 1 << 5,
    CARD_ARABIC = 1 << 6,
    CARD_HEBREW = 1 << 7,
    CARD_OTHER = 1 << 8,
    CARD_ALL_SCRIPTS = (1 << 9) - 1
};

/* Bits of card.kinds: 1 << enum region_kind (layout/region.h keeps the same order;
 * tests/document compares the names).  Names in the JSON are the region kinds' names. */
#define CARD_ALL_KINDS 0xffffffffu

struct card {
    char prompt_region[CARD_TEXT_MAX]; /* "Convert to Markdown." */
    char prompt_table[CARD_TEXT_MAX];  /* empty: as region */
    char system[CARD_TEXT_MAX];        /* system message; empty: none is sent */
    double text_height;                /* best body font size in pixels; 0: leave the scale alone */
    double heading_height;             /* most pixels of font size for headings; 0: no cap */
    int max_lines;                     /* per crop; 0: no limit */
    int max_visual_tokens;             /* per crop; 0: what max_pixels gives */
    bool inline_markup;                /* writes bold, italic and links itself */
    int64_t min_pixels, max_pixels;    /* 0: from preprocessor_config.json */
    double tau_text, tau_ocr;          /* acceptance threshold per draft source; 1 is exact */
    double doubt_logprob; /* mean log-probability per token below which a drafted text is
                             reported as doubtful; 0: never */
    uint32_t scripts;     /* enum card_script bits */
    uint32_t kinds;       /* region kinds it reads */
    int max_new_tokens;   /* 0: from generation_config.json */
};

/* Names of the kinds in bit order. */
int card_kind_count(void);
const char *card_kind_name(int i);

void card_default(struct card *c);
/* Reads dir/galley.json over the defaults; a missing file is fine (*found = false). */
GALLEY_MUST_USE enum galley_status card_read(struct card *out, const char *dir, bool *found,
                                             struct galley_err *err);
GALLEY_MUST_USE enum galley_status card_parse(struct card *out, const char *where, const char *text,
                                              size_t n, struct galley_err *err);

#endif
