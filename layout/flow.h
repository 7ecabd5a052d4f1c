/* flow.h - a page's text while it is being understood: words, lines, blocks.
 *
 * Private to layout/.  One struct flow lives for one page; everything in it comes from one arena
 * of blocks that flow_deinit frees at once.  The steps run in this order and each only reads what
 * the earlier ones wrote: word.c, table_ruled.c, line.c, table_stream.c, chrome.c, figure.c,
 * order.c, block.c, then draft.c writes the regions. */
#ifndef GALLEY_LAYOUT_FLOW_H
#define GALLEY_LAYOUT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/page.h"
#include "layout/region.h"

/* Bounds that keep hostile pages linear; a page over them is cut, never refused. */
#define FLOW_MAX_GLYPHS  500000
#define FLOW_MAX_LINES   20000
#define FLOW_MAX_REGIONS 10000
#define FLOW_MAX_TEXT    (8u << 20)
#define FLOW_MAX_NOTES   64

struct flow_char {
    uint32_t cp;
    float x0, x1;
};

enum word_owner { OWNER_NONE, OWNER_TABLE, OWNER_FIGURE };

/* A stretch of characters in one style without space inside. */
struct word {
    struct box box;
    float size, baseline;
    float conf;
    int32_t char0, n_chars;
    int32_t source; /* place in the source's order */
    int32_t link;   /* index into page.links or -1 */
    int32_t i_line;
    uint8_t flags; /* enum run_flag */
    int8_t script; /* 1 raised, -1 lowered */
    bool space;    /* a space stands before it (first of a line: false) */
    bool tight;    /* follows the word before it in the source without a space */
    bool math;     /* mathematical font or signs */
    uint8_t owner; /* enum word_owner */
};

enum line_role {
    LINE_BODY,
    LINE_TABLE,
    LINE_FIGURE,
    LINE_HEADER,
    LINE_FOOTER,
    LINE_NUMBER,
    LINE_NOTE,
    LINE_CAPTION,
    LINE_DROPPED
};

enum marker_kind { MARKER_NONE, MARKER_BULLET, MARKER_NUMBER, MARKER_LABEL };

/* What stands at a line's start as a list marker. */
struct marker {
    uint8_t kind;    /* enum marker_kind */
    uint8_t style;   /* bullet sign class or numbering form: equal for siblings */
    int32_t number;  /* value of an ordered marker */
    int32_t n_words; /* words the marker fills */
    int32_t skip;    /* characters of the next word that belong to it ("1.Text") */
    float x, text_x; /* left edges of marker and text */
};

/* Words on one baseline without a column gap between them. */
struct line {
    struct box box;
    float size, baseline;
    int32_t word0, n_words;
    char *text; /* UTF-8, arena */
    int32_t n_text;
    int32_t n_letters, n_digits, n_chars;
    uint8_t role;
    bool bold, italic, mono; /* (nearly) all of it */
    bool ocr, rtl;
    float math; /* share of characters */
    float conf; /* mean of its words */
    int32_t group;
    int32_t i_object; /* table or figure that owns it, else -1 */
    struct marker marker;
};

/* A vertical band of white that words on both sides respect. */
struct strip {
    float x0, x1, y0, y1;
    int32_t n_left, n_right;
};

struct cell {
    struct box box;
    int32_t row, col, row_span, col_span;
    struct line *lines; /* arena */
    int32_t n_lines;
};

struct table {
    struct box box;
    int32_t n_rows, n_cols, n_cells;
    struct cell *cells;  /* row-major; spanned places are missing */
    int32_t n_lines;     /* of all cells */
    struct box *row_box; /* [n_rows] */
    int32_t n_header_rows;
    bool spans;
    float score;
};

struct figure {
    struct box box;
    bool vector;
    bool weak; /* small on a scan: content only with a caption */
};

/* A thing with a place in the reading order. */
enum item_kind { ITEM_LINE, ITEM_TABLE, ITEM_FIGURE, ITEM_GONE };
struct item {
    struct box box;
    uint8_t kind;
    int32_t index;
    int32_t group; /* column it was read in: numbers grow with the reading order */
};

/* The edges of one column leaf. */
struct group {
    float left, right, pitch;
    int32_t n_lines;
};

/* Edges of the stretch of like lines around an item: what "a full line" means there. */
struct run {
    float left, right;
};

struct block {
    enum region_kind kind;
    int level;
    struct box box;
    int32_t item0, n_items; /* range of flow.items */
    int32_t object;         /* table or figure index, else -1 */
    float score;
    bool joins_next, continues;
    int32_t note; /* footnotes: the mark's number */
};

struct flow {
    const struct page *page;
    bool ocr;
    bool failed; /* out of memory: every step returns at once */
    void **blocks_mem;
    size_t n_mem, cap_mem;

    struct flow_char *chars;
    int32_t n_chars;
    /* [0, n_source) as found; lines append copies of their words, so that indices stay good. */
    struct word *words;
    int32_t n_words, n_source, cap_words;
    int32_t *chain, *bucket; /* line.c's working space, shared by all cells */
    struct strip *strips;
    int32_t n_strips;
    struct line *lines;
    int32_t n_lines;
    struct table *tables;
    int32_t n_tables, cap_tables;
    struct figure *figures;
    int32_t n_figures;
    struct item *items;
    int32_t n_items;
    struct run *runs; /* [n_items] */
    bool *hard;       /* [n_items] the line ends where it wants to: its break stays */
    struct group *groups;
    int32_t n_groups;
    struct block *blocks;
    int32_t n_blocks;
    int32_t notes[FLOW_MAX_NOTES]; /* numbers of the footnotes on this page */
    int32_t n_notes;
    float em; /* dominant size of the page */
};

/* flow.c */
void flow_init(struct flow *f, const struct page *p, bool ocr);
void flow_deinit(struct flow *f);
/* Zeroed array that lives as long as the flow; NULL sets f->failed. */
void *flow_array(struct flow *f, size_t n, size_t size);
#define flow_many(f, type, n) ((type *)flow_array((f), (n), sizeof(type)))

bool box_valid(const struct box *b);
void box_grow(struct box *a, const struct box *b); /* union; an empty a takes b */
float box_overlap_x(const struct box *a, const struct box *b);
float box_overlap_y(const struct box *a, const struct box *b);
bool box_has(const struct box *b, float x, float y);
/* Share of `b` that lies in `a`. */
float box_cover(const struct box *a, const struct box *b);
float float_median(float *v, size_t n); /* reorders v; 0 when empty */
/* For qsort: floats ascending; items from left to right. */
int float_compare(const void *a, const void *b);
int item_compare_x(const void *a, const void *b);

/* word.c: sanitised glyphs to words in source order. */
void words_find(struct flow *f);
/* line.c: column strips, then lines of the words that no table owns. */
void strips_find(struct flow *f);
void lines_find(struct flow *f);
/* Lines of chosen words (reordered) top to bottom, for table cells: no column splitting. */
int32_t lines_of_words(struct flow *f, struct word **list, int32_t n, struct line **out);
uint32_t line_first_cp(const struct flow *f, const struct line *l);
uint32_t line_last_cp(const struct flow *f, const struct line *l);

/* list.c: list markers at line starts (sequences checked), then how far a list goes. */
void markers_find(struct flow *f);
/* Number of items from item i on that form one list; 0 when none starts there. */
int32_t list_extent(const struct flow *f, int32_t i);

/* table_ruled.c: grids drawn with rules; their words get OWNER_TABLE.  Before strips_find. */
void tables_ruled(struct flow *f);
/* table_stream.c: takes tables held together by alignment out of a set of items sorted by height:
 * their lines become ITEM_GONE at the set's end; returns how many items stay. */
int32_t tables_stream(struct flow *f, struct item *items, int32_t n);

/* block.c: items to blocks.  `h` remembers the document. */
struct history;
void blocks_find(struct flow *f, struct history *h);
const struct line *item_line(const struct flow *f, int32_t i); /* NULL: no line */

/* order.c: items in reading order with their groups. */
void order_find(struct flow *f);

#endif
