/* options.h - the command line of convert and inspect. */
#ifndef GALLEY_CLI_OPTIONS_H
#define GALLEY_CLI_OPTIONS_H

#include <stdbool.h>

#include "src/galley.h"

struct cli_options {
    struct galley_convert_options convert; /* strings point into argv */
    const char *output, *model, *stats, *figures, *regions;
    enum galley_format format;
    int threads;
    bool page_break, quiet, verbose, json;
    const char *mmproj, *kv, *vision_cache;
    int context, max_seqs, max_rows;
    uint64_t memory_bytes;
    bool exact_linear;
    bool plan;
};

/* Parses argv for `command` ("convert", "inspect", "doctor"): options it does not have are refused.
 * *first is the index of the first input.  0 or the exit code, after an explanation. */
int options_parse(struct cli_options *out, const char *command, int argc, char **argv, int *first);

#endif
