/* input.h - reading an input file, and opening the engine with the CLI's defaults. */
#ifndef GALLEY_CLI_INPUT_H
#define GALLEY_CLI_INPUT_H

#include <stddef.h>

#include "src/cli/options.h"
#include "src/galley.h"

#define INPUT_BYTES_MAX ((size_t)2 << 30)

/* Reads a file, or standard input for "-".  *bytes is the caller's (mem_free). */
enum galley_status input_read(const char *name, char **bytes, size_t *n, struct galley_err *err);

/* Opens the model the options name (none: the built-in one).  On failure explains on stderr and
 * returns the exit code; 0 is success. */
int engine_for_cli(struct galley_engine **out, const struct cli_options *opt);

#endif
