/* history.h - what a document taught so far: sizes, words, repeated margins.
 *
 * Private to layout/; owned by struct layout. */
#ifndef GALLEY_LAYOUT_HISTORY_H
#define GALLEY_LAYOUT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/flow.h"

#define HISTORY_STYLES 64
#define HISTORY_CHROME 2048
#define HISTORY_DEPTHS 8

/* Text of one size (half points) and weight. */
struct style {
    int32_t size2;
    bool bold;
    int64_t n_chars;
    int32_t n_heads; /* lines that look like a heading */
    int32_t n_lines;
};

/* A line in a page's top or bottom band, digits folded, by where and on how many pages. */
struct chrome_key {
    uint64_t hash;
    float y;       /* distance from the page's top or bottom edge, pt */
    int32_t count; /* pages */
    int32_t last;  /* page */
    bool top;
};

struct history {
    struct style styles[HISTORY_STYLES];
    int n_styles;
    uint64_t *lexicon; /* open addressing, 0 is free */
    size_t cap_lexicon, n_lexicon;
    struct chrome_key *chrome;
    int32_t n_chrome;
    int32_t seen_to; /* pages [0, seen_to) have been counted */
    int32_t n_seen;
    int32_t n_pages;
    int depth_level[HISTORY_DEPTHS]; /* level of headings numbered 1, 1.1 ...; 0: none yet */
};

bool history_init(struct history *h);
void history_deinit(struct history *h);
/* Counts a page whose lines have been found (each page index once). */
void history_see(struct history *h, const struct flow *f, int n_pages);
float history_body_size(const struct history *h);
bool history_body_bold(const struct history *h);
/* 1..6 for a heading of this size among the document's heading styles. */
int history_level(const struct history *h, float size, bool ocr);

uint64_t text_hash(const uint32_t *cps, size_t n, bool fold);
bool lexicon_has(const struct history *h, uint64_t hash);
/* Key of a line for running headers: lower case, digit runs folded. */
uint64_t chrome_hash(const char *text, size_t n);
/* The key's entry when it was seen near y on that side, else NULL. */
const struct chrome_key *chrome_lookup(const struct history *h, uint64_t hash, float y, bool top);

#endif
