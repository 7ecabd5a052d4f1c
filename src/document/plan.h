/* plan.h - a region becomes requests: crops scaled to the text height the model reads best, cut
 * between lines where they are too tall, each with its part of the draft.  Pure, apart from
 * allocation. */
#ifndef GALLEY_DOCUMENT_PLAN_H
#define GALLEY_DOCUMENT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "layout/region.h"
#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/engine/engine.h"
#include "src/galley_types.h"

/* A stretch of lines of one region that is read as one crop. */
struct piece {
    int line_from, line_to; /* region.lines, or 0,0: the whole box */
    bool with_header;       /* a table's later part: its header rows are repeated on top */
    int width, height;      /* target pixels; 0: the model's own smart_resize */
    double scale;           /* target pixels per pt */
    char *draft;            /* owned; NULL: none */
    /* how it ended */
    enum finish finish;
    enum galley_status status; /* of a failed one */
    char *error;               /* owned; NULL unless failed */
    char *text;                /* owned */
    int n_output, n_steps, n_drafted, n_accepted;
    double mean_logprob;
};

struct region_plan {
    bool readable;        /* false: the model is not asked, `why` says so */
    const char *why;      /* constant sentence, "" when readable */
    double tau;           /* 1: exact */
    double doubt_logprob; /* the card's; 0: never doubts */
    struct piece *pieces; /* [n_pieces] */
    int n_pieces;
};

/* cell: the side of one visual token in pixels (28). */
GALLEY_MUST_USE enum galley_status plan_region(struct region_plan *out,
                                               const struct page_layout *page,
                                               const struct region *r, const struct card *card,
                                               const struct galley_convert_options *opt, int cell,
                                               struct galley_err *err);
void region_plan_deinit(struct region_plan *p);

/* The pixels of a piece: white margins fill it up to whole cells.  NULL when memory is short. */
struct image *plan_crop(const struct page_layout *page, const struct region *r,
                        const struct piece *p);

#endif
