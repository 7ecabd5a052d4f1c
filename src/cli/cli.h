/* cli.h - what the subcommands share.  Only code below src/cli may print or exit. */
#ifndef GALLEY_CLI_CLI_H
#define GALLEY_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "src/base/compiler.h"
#include "src/galley.h"

/* Exit codes, as README and the man page list them. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_INTERNAL = 1,
    EXIT_USAGE = 2,
    EXIT_MODEL = 3,
    EXIT_INPUT = 4,
    EXIT_ENCRYPTED = 5,
    EXIT_LIMIT = 6,
    EXIT_PARTIAL = 7,
    EXIT_INTERRUPTED = 130
};
int exit_code_of(enum galley_status rc);

/* Replaces what a terminal might obey. */
void make_printable(char *s);
/* Prints "galley: ..." to stderr, control characters replaced. */
void complain(const char *fmt, ...) GALLEY_PRINTF(1, 2);
/* Prints "galley: ... (see: galley help COMMAND)" and returns EXIT_USAGE. */
int usage_error(const char *command, const char *fmt, ...) GALLEY_PRINTF(2, 3);

/* The subcommands: argv[0] is the command's name. */
int cli_convert(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_quantize(int argc, char **argv);
int cli_bench(int argc, char **argv);
/* Help text of a command, NULL when unknown; "" is the overview. */
const char *help_text(const char *command);

/* The built-in model: $GALLEY_MODEL, beside the source tree, or share/galley/ beside the installed
 * program.  Writes into path[size]; false when none exists. */
bool find_model(char *path, size_t size);

/* Strict numbers from the command line: the whole word, inside [lo, hi]. */
bool parse_int(const char *word, long long lo, long long hi, long long *out);
bool parse_number(const char *word, double lo, double hi, double *out);

/* SIGINT and SIGTERM set a flag; a second one ends the program at once. */
void catch_signals(void);
bool interrupted(void);

#endif
