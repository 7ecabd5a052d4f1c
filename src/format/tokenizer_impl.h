/* tokenizer_impl.h - what the tokenizer's files share; nobody else includes it.
 *
 * A tokenizer is a set of tables built once by tokenizer_open.c or tokenizer_gguf.c and only read
 * afterwards.  Strings are kept as the file spells them (byte-level alphabet or U+2581 for spaces
 * in vocabulary tokens, plain text in added tokens) in one block; decoding maps them back on the
 * fly.
 *
 * There are two sorts.  Byte-level: a word starts as bytes.  `chars`: it starts as characters,
 * spaces are U+2581, and characters without a token become byte tokens.  Both merge by the merge
 * table or, when `ranks` is there, by the joined token's score (SentencePiece). */
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
#define TOK_SPLITS_MAX  4 /* patterns applied one after the other */
#define TOK_EOS_MAX     8
#define TOK_RANK_NEVER  INT32_MAX
#define TOK_SPACE       "\xe2\x96\x81" /* U+2581, which stands for a space */

/* GPT-2's pattern, which ByteLevel uses when it splits by itself. */
#define TOK_GPT2_PATTERN \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

enum tok_flag {
    TOK_PRESENT = 1 << 0, /* the id is in use */
    TOK_ADDED = 1 << 1,   /* from added_tokens; may be in the vocabulary as well */
    TOK_SPECIAL = 1 << 2,
    TOK_LSTRIP = 1 << 3,
    TOK_RSTRIP = 1 << 4,
    TOK_SINGLE_WORD = 1 << 5,
    TOK_MODEL = 1 << 6, /* from the vocabulary: merging may make it */
    TOK_BYTE = 1 << 7   /* "<0x41>": one byte */
};

/* Where U+2581 is put before a text. */
enum tok_prefix {
    TOK_PREFIX_NONE,
    TOK_PREFIX_PIECES, /* before every piece between added tokens */
    TOK_PREFIX_FIRST   /* before the first, unless it starts with a space */
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
    uint32_t *slots; /* string hash table: id and 12 bits of the hash; all ones is empty */
    size_t n_slots;  /* power of two */
    struct tok_merge *merges;
    size_t n_merge_slots; /* power of two; 0: no merges */
    int32_t *ranks;       /* [n_vocab] low merges first, TOK_RANK_NEVER; NULL: by merges */
    int32_t byte_id[256]; /* the token of each single byte; -1: none */
    bool nfc, ignore_merges;
    bool chars, byte_fallback, fuse_unk;
    enum tok_prefix prefix;
    int32_t unk, bos; /* -1: none */
    int32_t eos[TOK_EOS_MAX];
    int n_eos;
    uint32_t token_max;                /* bytes of the longest token that merging may make */
    bool before_space[256];            /* bytes before a U+2581 that is not at a token's start */
    struct tok_trie raw, normalized;   /* matched before and after normalisation */
    pcre2_code *split[TOK_SPLITS_MAX]; /* applied in turn; none: text is one word */
    int n_splits;
    pcre2_match_context *limits;
    pcre2_general_context *heap;
};

/* tokenizer_table.c: byte-level alphabet and hash tables. */
uint32_t tok_alphabet(uint8_t byte); /* the code point that stands for a byte */
int tok_alphabet_byte(uint32_t cp);  /* -1: not in the alphabet */
/* Room for n tokens in the hash table, n_vocab entries and text_cap bytes; both counts are set. */
GALLEY_MUST_USE enum galley_status tok_reserve(struct tokenizer *t, const char *where, size_t n,
                                               struct galley_err *err);
GALLEY_MUST_USE enum galley_status tok_reserve_merges(struct tokenizer *t, const char *where,
                                                      size_t n, struct galley_err *err);
/* Gives `id` its string, which must fit what was reserved; tok_insert makes it findable. */
void tok_put(struct tokenizer *t, int32_t id, const char *s, size_t n, unsigned flags);
/* Sets byte_id of a byte-level vocabulary.  Some lack a few bytes that their training text did. */
GALLEY_MUST_USE enum galley_status tok_find_bytes(struct tokenizer *t, const char *where,
                                                  struct galley_err *err);
/* Once the vocabulary is complete: finds token_max and before_space. */
void tok_survey(struct tokenizer *t);
int32_t tok_find(const struct tokenizer *t, const char *s, size_t n); /* id or -1 */
void tok_insert(struct tokenizer *t, int32_t id);                     /* entries[id] is set */
const struct tok_merge *tok_merge_find(const struct tokenizer *t, int32_t left, int32_t right);
void tok_merge_insert(struct tokenizer *t, struct tok_merge m); /* a later equal pair wins */
GALLEY_MUST_USE enum galley_status tok_trie_add(struct tok_trie *trie, const char *s, size_t n,
                                                int32_t id, struct galley_err *err);
/* Longest token that starts at s[0]; its length, or 0.  *id is set when there is one. */
size_t tok_trie_match(const struct tok_trie *trie, const char *s, size_t n, int32_t *id);

/* tokenizer_split.c: Oniguruma pattern to PCRE2; each call adds a pattern behind the others. */
GALLEY_MUST_USE enum galley_status tok_split_compile(struct tokenizer *t, const char *where,
                                                     const char *pattern, struct galley_err *err);
void tok_split_free(struct tokenizer *t);

/* tokenizer_nfc.c: *out is the caller's (mem_free), or NULL when s is NFC as it stands. */
GALLEY_MUST_USE enum galley_status tok_nfc(const char *s, size_t n, char **out, size_t *out_n,
                                           struct galley_err *err);

/* Spaces become U+2581, and one is put in front with `prefix`; *out is the caller's. */
GALLEY_MUST_USE enum galley_status tok_escape(const char *s, size_t n, bool prefix, char **out,
                                              size_t *out_n, struct galley_err *err);

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
/* The same for text of characters: spaces are U+2581 already. */
GALLEY_MUST_USE enum galley_status tok_bpe_chars(struct tok_bpe *b, const struct tokenizer *t,
                                                 const char *s, size_t n, struct tok_ids *out,
                                                 struct galley_err *err);
void tok_bpe_deinit(struct tok_bpe *b);

#endif
