/* window.h - the order patches are processed in, and who attends to whom. */
#ifndef GALLEY_VISION_WINDOW_H
#define GALLEY_VISION_WINDOW_H

#include "vision/vision.h"

/* A unit is one merge cell: merge^2 rows that stay together.  The tower works on units in
 * window order; without windows that is the order they came in. */
struct window_plan {
    int n_units, n_full, n_win; /* n_win is 0 without windows */
    int n_side;                 /* 1 + the largest patch coordinate */
    int32_t *source;     /* [n_units] unit s of the work order is unit source[s] of the input */
    int32_t *row, *col;  /* [n_units] its cell's place in its image */
    int32_t *full, *win; /* [n_full + 1], [n_win + 1] segments in rows (patches) */
};

/* int32 values the arrays of a plan may need for n_units units. */
uint64_t window_plan_values(int64_t n_units);

/* Plans n images into `values` (window_plan_values of them). */
void window_plan_make(struct window_plan *p, int32_t *values, const struct vision_grid *grids,
                      int n, const struct hf_vision_config *v);

#endif
