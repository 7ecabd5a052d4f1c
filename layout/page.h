/* page.h - one page as the parsers deliver it: bitmap, glyphs, rules, pictures, links.
 *
 * One frame for everything: points (1/72 inch) of the displayed page (crop box, /Rotate
 * applied), origin top-left, y down.  A picture or scan has a page too: 1 pixel = 72/dpi pt.
 * Filled by layout/pdf.c or layout/ocr.c, immutable afterwards. */
#ifndef GALLEY_LAYOUT_PAGE_H
#define GALLEY_LAYOUT_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/image.h"

struct box {
    float x0, y0, x1, y1; /* x0 <= x1, y0 <= y1 */
};

/* One code point.  White space and line ends come as glyphs as well (cp ' ' and '\n'), in the
 * order of the source's text; layout rebuilds lines from boxes and uses them as hints only. */
struct glyph {
    uint32_t cp;
    struct box box;
    int32_t run; /* index into page.runs */
};

enum run_flag {
    RUN_BOLD = 1,
    RUN_ITALIC = 2,
    RUN_MONO = 4,
    RUN_INVISIBLE = 8, /* text no reader sees (OCR layer, white on white) */
    RUN_OCR = 16       /* recognised from pixels, glyph boxes are estimates */
};

/* A stretch of glyphs in one style. */
struct text_run {
    char font[64]; /* PostScript name without subset prefix; "" for OCR */
    float size;    /* pt */
    uint8_t rgb[3];
    uint8_t flags; /* enum run_flag */
    float conf;    /* 0..1 of OCR; 1 for text layers */
    int16_t angle; /* reading direction: 0, 90, 180, 270 degrees clockwise */
};

/* A straight line of a table, underline, separator; horizontal or vertical only. */
struct page_rule {
    struct box box; /* thin in one direction */
    bool vertical;
    uint8_t rgb[3];
};

/* A raster or vector picture's place. */
struct page_picture {
    struct box box;
    bool vector;
};

struct page_link {
    struct box box;
    char *uri; /* owned; "#page=N" for places inside the document */
};

struct page {
    int index; /* 0-based in its document */
    float width, height;
    struct image *bitmap; /* owned reference; may be NULL when only text was asked for */
    float scale;          /* bitmap pixels per pt */
    float render_seconds; /* what drawing it took; 0 for pictures */
    int turned;           /* clockwise turn (0, 90, 180, 270) applied to a scan to set it upright */
    struct glyph *glyphs;
    int n_glyphs;
    struct text_run *runs;
    int n_runs;
    struct page_rule *rules;
    int n_rules;
    struct page_picture *pictures;
    int n_pictures;
    struct page_link *links;
    int n_links;
};

void page_free(struct page *p); /* NULL and half-built pages are fine */

#endif
