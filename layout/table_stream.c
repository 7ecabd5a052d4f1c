/* table_stream.c - tables without a full grid: rows of aligned pieces. */
#include "layout/table.h"

void tables_stream(struct flow *f)
{
    (void)f;
}
