/* region.h - what layout finds on a page: regions in reading order, each with a draft. */
#ifndef GALLEY_LAYOUT_REGION_H
#define GALLEY_LAYOUT_REGION_H

#include "layout/page.h"

#define REGION_KIND_MAP(X)        \
    X(HEADING, "heading")         \
    X(PARAGRAPH, "paragraph")     \
    X(LIST, "list")               \
    X(TABLE, "table")             \
    X(FIGURE, "figure")           \
    X(CAPTION, "caption")         \
    X(FORMULA, "formula")         \
    X(CODE, "code")               \
    X(FOOTNOTE, "footnote")       \
    X(PAGE_HEADER, "page_header") \
    X(PAGE_FOOTER, "page_footer") \
    X(PAGE_NUMBER, "page_number")

enum region_kind {
#define X(name, text) REGION_##name,
    REGION_KIND_MAP(X)
#undef X
        REGION_KIND_COUNT
};
const char *region_kind_name(enum region_kind k);

enum draft_source {
    DRAFT_NONE,
    DRAFT_TEXT, /* the PDF's text layer */
    DRAFT_OCR
};
const char *draft_source_name(enum draft_source s); /* "none", "text", "ocr" */

/* The light parser's guess of a region. */
struct draft {
    enum draft_source source;
    float score;    /* 0..1: how far it deserves belief */
    char *markdown; /* owned; with bold, italic, links; "" for figures without text */
    char *plain;    /* owned; the same words without inline markup: what a model that writes none
                       would produce ("# ", "- ", "1. ", tables and line breaks stay) */
};

/* One text line inside a region, for cutting tall regions between lines. */
struct region_line {
    struct box box;
    float size; /* dominant font size, pt */
    /* Bytes [plain_from, plain_to) of draft.plain that this line (or table row) carries, so that a
     * region can be cut together with its draft; equal when unknown. */
    int32_t plain_from, plain_to;
};

struct region {
    enum region_kind kind;
    int level; /* headings 1..6; others 0 */
    struct box box;
    struct region_line *lines; /* [n_lines] top to bottom; tables: one per row */
    int n_lines;
    int n_header_rows; /* tables: rows to repeat when cut; 0 or 1 */
    float size;        /* dominant font size, pt; 0 for figures */
    struct draft draft;
    bool joins_next; /* the paragraph goes on in the next region of this kind (column break) */
    bool continues;  /* ... and this one is such a continuation */
};

struct page_layout {
    struct region *regions; /* [n_regions] in reading order */
    int n_regions;
    bool blank;             /* nothing to read: never reaches the model */
    bool used_ocr;          /* the text layer was absent or not believed */
    float text_layer_score; /* 0..1; 0 without a layer */
    double ocr_seconds;
    /* The page upright: bitmap and frame that all boxes refer to.  Equals the input page unless a
     * scan was turned or deskewed. */
    struct image *bitmap; /* owned reference */
    float width, height, scale;
};

void page_layout_free(struct page_layout *l); /* NULL is fine */

#endif
