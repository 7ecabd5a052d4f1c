/* window.c - see window.h.  The order is get_window_index's: windows row by row over each
 * frame, the last ones cut short at the edge, cells row by row inside a window. */
#include "vision/window.h"

#include <assert.h>

uint64_t window_plan_values(int64_t n_units)
{
    return 5 * (uint64_t)n_units + 2; /* no segment is empty */
}

static void plan_cell(struct window_plan *p, int base, int row, int col, int cols)
{
    const int s = p->n_units++;
    p->source[s] = base + row * cols + col;
    p->row[s] = row;
    p->col[s] = col;
}

/* One frame of rows x cols cells, cut into windows of side cells (0: no windows). */
static void plan_frame(struct window_plan *p, int rows, int cols, int side, int unit_rows)
{
    const int base = p->n_units;
    const int step_y = side ? side : rows, step_x = side ? side : cols;
    for (int y0 = 0; y0 < rows; y0 += step_y) {
        for (int x0 = 0; x0 < cols; x0 += step_x) {
            for (int y = y0; y < rows && y < y0 + step_y; y++) {
                for (int x = x0; x < cols && x < x0 + step_x; x++) {
                    plan_cell(p, base, y, x, cols);
                }
            }
            if (side) {
                p->win[++p->n_win] = p->n_units * unit_rows;
            }
        }
    }
    p->full[++p->n_full] = p->n_units * unit_rows;
}

void window_plan_make(struct window_plan *p, int32_t *values, const struct vision_grid *grids,
                      int n, const struct hf_vision_config *v)
{
    int64_t n_units = 0;
    for (int i = 0; i < n; i++) {
        assert(grids[i].h % v->merge == 0 && grids[i].w % v->merge == 0);
        n_units += vision_n_tokens(&grids[i], v);
    }
    *p = (struct window_plan){ .source = values,
                               .row = values + n_units,
                               .col = values + 2 * n_units,
                               .full = values + 3 * n_units,
                               .win = values + 4 * n_units + 1 };
    p->full[0] = p->win[0] = 0;
    const int side = v->window / v->merge / v->patch;
    for (int i = 0; i < n; i++) {
        for (int t = 0; t < grids[i].t; t++) {
            plan_frame(p, grids[i].h / v->merge, grids[i].w / v->merge, side, v->merge * v->merge);
        }
        p->n_side = grids[i].h > p->n_side ? grids[i].h : p->n_side;
        p->n_side = grids[i].w > p->n_side ? grids[i].w : p->n_side;
    }
    assert(p->n_units == n_units);
}
