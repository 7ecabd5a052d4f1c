/* plot.h - throughput against time to first token, as an SVG. */
#ifndef GALLEY_CLI_PLOT_H
#define GALLEY_CLI_PLOT_H

#include <stdio.h>

#include "src/cli/bench_report.h"

void plot_write(FILE *f, const struct bench_report *r, const char *machine);

#endif
