/* figures.h - pictures cut out of a page, and regions drawn on it. */
#ifndef GALLEY_CLI_FIGURES_H
#define GALLEY_CLI_FIGURES_H

#include <stdbool.h>

#include "src/galley.h"

/* Writes each figure region of the page as DIR/PREFIX-pN-K.png.  False after an explanation. */
bool figures_write(const struct galley_page *page, const char *dir, const char *prefix);

/* The page with its regions framed and numbered in reading order, as a PNG file. */
bool regions_write(const struct galley_page *page, const char *path);

#endif
