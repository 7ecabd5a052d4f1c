/* outfile.h - where each input's result goes. */
#ifndef GALLEY_CLI_OUTFILE_H
#define GALLEY_CLI_OUTFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "src/cli/options.h"

/* One planned output: path is owned, NULL is standard output. */
struct outfile {
    const char *input;
    char *path;
};

/* Plans an output for every input.  Without --output: standard output for one input, else NAME.EXT
 * beside each input; a path that ends in '/' or is a directory: NAME.EXT in it (created).  Equal
 * names get -2, -3 ...; no input is ever overwritten, not by --stats either.  0 or the exit code,
 * after an explanation. */
int outfiles_plan(struct outfile *out, char **inputs, int n, const struct cli_options *opt);
void outfiles_free(struct outfile *out, int n);

/* A file that appears under its name only when it is complete. */
struct writer {
    FILE *f;
    char *path, *tmp; /* owned; NULL for standard output */
    bool failed;
};

bool writer_open(struct writer *w, const char *path); /* NULL: standard output */
/* Writes and frees the text (galley_free); NULL marks failure. */
void writer_add(struct writer *w, char *text);
/* Renames to the final name.  False after an explanation on stderr. */
bool writer_close(struct writer *w);

/* Gives up: nothing appears under the final name. */
void writer_abandon(struct writer *w);

/* mkdir -p; false after an explanation. */
bool make_dirs(const char *path);

#endif
