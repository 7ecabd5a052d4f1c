/* progress.h - one line on a terminal that says how far things are. */
#ifndef GALLEY_CLI_PROGRESS_H
#define GALLEY_CLI_PROGRESS_H

#include <stdbool.h>

#include "src/galley.h"

struct progress {
    bool on;          /* standard error is a terminal and nobody asked for silence */
    const char *name; /* the file at work */
    int i_file, n_files;
    bool drawn;
};

void progress_init(struct progress *p, bool quiet, int n_files);
void progress_draw(struct progress *p, const struct galley_progress *g);
void progress_clear(struct progress *p); /* before anything else is printed */

#endif
