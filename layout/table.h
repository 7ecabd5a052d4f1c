/* table.h - building and writing tables.  Private to layout/. */
#ifndef GALLEY_LAYOUT_TABLE_H
#define GALLEY_LAYOUT_TABLE_H

#include "layout/inline.h"

#define TABLE_MAX_CELLS 4000

/* Room for one more table; NULL when memory is short. */
struct table *table_add(struct flow *f);
/* Fills a cell with the lines of these words (reordered). */
void table_cell_fill(struct flow *f, struct table *t, struct cell *c, struct word **words,
                     int32_t n);
/* Leading rows that are all bold; at least 1. */
int32_t table_header_rows(const struct table *t);
/* Writes GFM, or HTML where cells span.  row_end[r] is the plain length after row r. */
void table_write(struct pen *p, const struct table *t, size_t *row_end);

#endif
