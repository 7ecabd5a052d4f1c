/* tokenizer_impl.h - what the tokenizer's files share; nobody else includes it.
 *
 * A tokenizer is a set of tables built once by tokenizer_open.c and only read afterwards.
 * Strings are kept as the file spells them (byte-level alphabet for vocabulary tokens, plain
 * text for added tokens) in one block; decoding maps the alphabet back on the fly. */
#ifndef GALLEY_FORMAT_TOKENIZER_IMPL_H
#define GALLEY_FORMAT_TOKENIZER_IMPL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "src/format/tokenizer.h"

#define TOK_FILE_MAX ((size_t)64 << 20)
#define TOK_TEXT_MAX \
    ((size_t)16 << 20)            /* bytes of one text: one word takes 72 bytes of scratch a byte */
#define TOK_VOCAB_MAX   (1 << 20) /* ids are below this */
#define TOK_MERGES_MAX  (1 << 21)
#define TOK_CONTENT_MAX 1024 /* bytes of an added token: bounds the work per text position */
#define TOK_PATTERN_MAX 8192

enum tok_flag {
    TOK_PRESENT = 1 << 0, /* the id is in use */
    TOK_ADDED = 1 << 1,   /* from added_tokens; may be in the vocabulary as well */
    TOK_SPECIAL = 1 << 2,
    TOK_LSTRIP = 1 << 3,
    TOK_RSTRIP = 1 << 4,
    TOK_SINGLE_WORD = 1 << 5,
    TOK_MODEL = 1 << 6 /* from the vocabulary */
};

struct tok_entry {
    uint32_t at, n; /* the string is text[at..at + n), NUL-terminated */
    uint8_t flags;  /* enum tok_flag */
};

/* One slot of the merge table: the pair (left, right) becomes id; low ranks merge first. */
struct tok_merge {
    int32_t left, right; /* left is -1 in an empty slot */
    int32_t rank, id;
};

/* Added tokens as a byte trie; node 0 is the root.  Siblings are a list: fan-out is small. */
struct tok_node {
    int32_t child, sibling; /* 0: none */
    int32_t id;             /* -1: no token ends here */
    uint8_t byte;
};

struct tok_trie {
    struct tok_node *nodes;
    int32_t n, cap;
    int32_t first[256]; /* the root's children; 0: none */
};

struct tokenizer {
    struct tok_entry *entries; /* [n_vocab] */
    int n_vocab;
    char *text;
    size_t text_n, text_cap;
    int32_t *slots; /* string hash table: ids, -1 is empty */
    size_t n_slots; /* power of two */
    struct tok_merge *merges;
    size_t n_merge_slots; /* power of two; 0: no merges */
    int32_t byte_id[256]; /* the token of each single byte */
    bool nfc, ignore_merges;
    struct tok_trie raw, normalized; /* matched before and after normalisation */
    pcre2_code *split;               /* NULL: text is one word */
    pcre2_match_context *limits;
    pcre2_general_context *heap;
};

/* tokenizer_table.c: byte-level alphabet and hash tables. */
uint32_t tok_alphabet(uint8_t byte); /* the code point that stands for a byte */
int tok_alphabet_byte(uint32_t cp);  /* -1: not in the alphabet */
int32_t tok_find(const struct tokenizer *t, const char *s, size_t n); /* id or -1 */
void tok_insert(struct tokenizer *t, int32_t id);                     /* entries[id] is set */
const struct tok_merge *tok_merge_find(const struct tokenizer *t, int32_t left, int32_t right);
void tok_merge_insert(struct tokenizer *t, struct tok_merge m); /* a later equal pair wins */
GALLEY_MUST_USE enum galley_status tok_trie_add(struct tok_trie *trie, const char *s, size_t n,
                                                int32_t id, struct galley_err *err);
/* Longest token that starts at s[0]; its length, or 0.  *id is set when there is one. */
size_t tok_trie_match(const struct tok_trie *trie, const char *s, size_t n, int32_t *id);

/* tokenizer_split.c: Oniguruma pattern to PCRE2. */
GALLEY_MUST_USE enum galley_status tok_split_compile(struct tokenizer *t, const char *where,
                                                     const char *pattern, struct galley_err *err);
void tok_split_free(struct tokenizer *t);

/* tokenizer_nfc.c: *out is the caller's (mem_free), or NULL when s is NFC as it stands. */
GALLEY_MUST_USE enum galley_status tok_nfc(const char *s, size_t n, char **out, size_t *out_n,
                                           struct galley_err *err);

/* tokenizer_bpe.c: one word to ids.  Scratch memory grows and is kept between words. */
struct tok_bpe {
    struct bpe_symbol *symbols;
    struct bpe_merge *heap;
    char *spelled; /* the word in the byte-level alphabet, for ignore_merges */
    size_t cap, n_heap;
};
struct tok_ids {
    int32_t *v;
    size_t n, cap;
};
GALLEY_MUST_USE enum galley_status tok_ids_add(struct tok_ids *ids, int32_t id,
                                               struct galley_err *err);
GALLEY_MUST_USE enum galley_status tok_bpe_word(struct tok_bpe *b, const struct tokenizer *t,
                                                const char *s, size_t n, struct tok_ids *out,
                                                struct galley_err *err);
void tok_bpe_deinit(struct tok_bpe *b);

#endif
