/* bench_print.c - the report as table, JSON, CSV and plot. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "src/cli/bench_report.h"
#include "src/cli/cli.h"
#include "src/cli/outfile.h"
#include "src/cli/plot.h"

/* "model name" of /proc/cpuinfo. */
static void cpu_name(char *out, size_t size)
{
    snprintf(out, size, "unknown CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f && fgets(line, sizeof(line), f)) {
        const char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0) {
            snprintf(out, size, "%s", colon + 2);
            out[strcspn(out, "\n,\"")] = '\0';
            break;
        }
    }
    if (f) {
        fclose(f);
    }
}

static long long peak_rss(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (long long)u.ru_maxrss * 1024 : 0;
}

static void print_table(const struct bench_report *r, const char *machine)
{
    printf("%s on %s (%s, %d threads), KV %s\n", r->model, machine, r->device, r->threads, r->kv);
    printf("prompt %d tokens", r->n_prompt);
    if (r->width) {
        printf(" and an image of %dx%d", r->width, r->height);
    }
    printf(", output %d tokens; opened in %.2f s, peak memory %lld MiB\n\n", r->n_output,
           r->load_seconds, peak_rss() >> 20);
    printf(
        "at once  requests  queue s   TTFT s  95%% s    TPOT ms  95%% ms   tokens/s  decode/s%s\n",
        r->width ? "  encode s" : "");
    for (int i = 0; i < r->n_rows; i++) {
        const struct bench_row *w = &r->rows[i];
        printf("%7d %9d %8.3f %8.3f %7.3f %8.1f %7.1f %10.1f %9.1f", w->concurrency, w->n_requests,
               w->queue, w->ttft, w->ttft_95, 1e3 * w->tpot, 1e3 * w->tpot_95, w->output_rate,
               w->decode_rate);
        if (r->width) {
            printf(" %9.2f", w->encode_seconds);
        }
        putchar('\n');
    }
}

static void print_json_string(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') {
            putchar('\\');
        }
        putchar((unsigned char)*s < 0x20 ? ' ' : *s);
    }
    putchar('"');
}

static void print_json(const struct bench_report *r, const char *machine)
{
    printf("{\"model\":");
    print_json_string(r->model);
    printf(",\"machine\":");
    print_json_string(machine);
    printf(",\"device\":\"%s\",\"threads\":%d,\"kv\":\"%s\",\"version\":\"%s\",\"commit\":\"%s\","
           "\"prompt\":%d,\"output\":%d,\"width\":%d,\"height\":%d,\"load_s\":%.6f,"
           "\"peak_rss\":%lld,\"levels\":[",
           r->device, r->threads, r->kv, galley_version(), bench_commit, r->n_prompt, r->n_output,
           r->width, r->height, r->load_seconds, peak_rss());
    for (int i = 0; i < r->n_rows; i++) {
        const struct bench_row *w = &r->rows[i];
        printf("%s{\"concurrency\":%d,\"requests\":%d,\"failed\":%d,\"queue_s\":%.6f,"
               "\"ttft_s\":%.6f,\"ttft_95_s\":%.6f,\"tpot_s\":%.6f,\"tpot_95_s\":%.6f,"
               "\"output_per_s\":%.3f,\"total_per_s\":%.3f,\"decode_per_s\":%.3f,"
               "\"encode_s\":%.4f,\"seconds\":%.4f}",
               i ? "," : "", w->concurrency, w->n_requests, w->n_failed, w->queue, w->ttft,
               w->ttft_95, w->tpot, w->tpot_95, w->output_rate, w->total_rate, w->decode_rate,
               w->encode_seconds, w->seconds);
    }
    puts("]}");
}

static void write_csv(FILE *f, const struct bench_report *r, const char *machine)
{
    fputs("machine,device,threads,version,commit,model,kv,prompt,output,width,height,load_s,"
          "peak_rss,concurrency,requests,failed,queue_s,ttft_s,ttft_95_s,tpot_s,tpot_95_s,"
          "output_per_s,total_per_s,decode_per_s,encode_s,seconds\n",
          f);
    for (int i = 0; i < r->n_rows; i++) {
        const struct bench_row *w = &r->rows[i];
        fprintf(f, "%s,%s,%d,%s,%s,\"%s\",%s,%d,%d,%d,%d,%.3f,%lld,", machine, r->device,
                r->threads, galley_version(), bench_commit, r->model, r->kv, r->n_prompt,
                r->n_output, r->width, r->height, r->load_seconds, peak_rss());
        fprintf(f, "%d,%d,%d,%.6f,%.6f,%.6f,%.6f,%.6f,%.3f,%.3f,%.3f,%.4f,%.4f\n", w->concurrency,
                w->n_requests, w->n_failed, w->queue, w->ttft, w->ttft_95, w->tpot, w->tpot_95,
                w->output_rate, w->total_rate, w->decode_rate, w->encode_seconds, w->seconds);
    }
}

bool bench_print(const struct bench_report *r, bool json, const char *csv, const char *plot)
{
    char machine[128];
    cpu_name(machine, sizeof(machine));
    if (json) {
        print_json(r, machine);
    } else {
        print_table(r, machine);
    }
    fflush(stdout); /* the numbers come before gigabytes of weights are given back */
    bool ok = true;
    struct writer w;
    if (csv) {
        ok = writer_open(&w, csv);
        if (ok) {
            write_csv(w.f, r, machine);
            ok = writer_close(&w);
        }
    }
    if (plot && ok) {
        ok = writer_open(&w, plot);
        if (ok) {
            plot_write(w.f, r, machine);
            ok = writer_close(&w);
        }
    }
    return ok;
}
