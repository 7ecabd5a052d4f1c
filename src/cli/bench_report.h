/* bench_report.h - what galley bench measured, and how it is written down. */
#ifndef GALLEY_CLI_BENCH_REPORT_H
#define GALLEY_CLI_BENCH_REPORT_H

#include <stdbool.h>

#define BENCH_LEVELS_MAX 32

/* What was built: "0123456789", "0123456789-dirty" with changes that are not committed, or
 * "unknown".  Written by commit.cmake. */
extern const char bench_commit[];

/* One level of concurrency.  Seconds; medians over its requests unless the name says 95. */
struct bench_row {
    int concurrency, n_requests, n_failed;
    long long n_prompt, n_output; /* tokens of all requests */
    double queue;                 /* submit to admission */
    double ttft, ttft_95;         /* submit to first token */
    double tpot, tpot_95;         /* from token to token after the first */
    double output_rate;           /* output tokens per second of the whole level */
    double total_rate;            /* prompt and output */
    double decode_rate;           /* output tokens per second while decoding, all sequences */
    double encode_seconds;        /* mean per request */
    double seconds;
};

struct bench_report {
    const char *model, *device, *kv;
    int threads, n_prompt, n_output, width, height;
    double load_seconds;
    const struct bench_row *rows;
    int n_rows;
};

/* Table (or JSON) to standard output; CSV and plot into files when named ("-" is no file).  False
 * after an explanation on standard error. */
bool bench_print(const struct bench_report *r, bool json, const char *csv, const char *plot);

#endif
