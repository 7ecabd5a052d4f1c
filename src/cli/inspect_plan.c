/* inspect_plan.c - galley inspect MODEL --plan: memory, what fits, and the machine's roof. */
#include "src/cli/inspect_plan.h"

#include <stdio.h>

#include "src/cli/cli.h"

#define ROOF_BUFFER (512u << 20) /* what is read when there is memory enough */

static void print_bytes(const char *name, uint64_t bytes, const char *note)
{
    printf("%-12s %10.1f MB%s%s\n", name, (double)bytes / 1e6, note[0] ? "   " : "", note);
}

/* asked: tokens of a sequence; 0: as many as there may be. */
static void print_memory(const struct galley_plan *p, int asked)
{
    char note[96];
    print_bytes("language", p->language_bytes, "weights as packed");
    if (p->vision_bytes) {
        print_bytes("vision", p->vision_bytes, "weights as packed");
        snprintf(note, sizeof(note), "workspace of an image of %.1f Mpixel",
                 (double)p->max_pixels / 1e6);
        print_bytes("image", p->vision_job_bytes, note);
    }
    snprintf(note, sizeof(note), "scratch and logits of %d rows", p->max_rows);
    print_bytes("step", p->step_bytes, note);
    snprintf(note, sizeof(note), "%d blocks of 32 tokens, %s, %.1f KB per token", p->n_kv_blocks,
             p->kv_type, (double)p->kv_token_bytes / 1e3);
    print_bytes("KV", p->kv_bytes, note);
    snprintf(note, sizeof(note), "of %.1f MB", (double)p->memory_bytes / 1e6);
    print_bytes("total", p->total_bytes, note);
    printf("\n%d sequences of %d tokens planned; at most %d of that length fit, or %d of %d "
           "tokens (%s)\n",
           p->max_seqs, p->context, p->fit_seqs, p->max_seqs, p->fit_context,
           p->fit_context == p->model_context ? "the model's limit" : "as memory allows");
    if (asked > p->context) {
        printf("%d tokens were asked for, the model's limit is %d\n", asked, p->model_context);
    }
}

/* A step of m rows takes the longer of reading the weights once and multiplying m times. */
static void print_roof(const struct galley_plan *p)
{
    const bool codes = p->quantised && !p->exact_linear;
    const double peak = codes ? p->int8_per_s : p->f32_per_s;
    if (p->read_bytes_per_s == 0 || peak == 0) {
        printf("\nroof        not measured: there is no memory to measure in\n");
        return;
    }
    printf("\nroof        %.1f GB/s read, %.0f GFLOP/s f32, %.0f GOP/s int8 (measured now)\n",
           p->read_bytes_per_s / 1e9, p->f32_per_s / 1e9, p->int8_per_s / 1e9);
    if (p->read_buffer_bytes < ROOF_BUFFER) {
        printf("            read from %llu MiB, for want of memory: caches may have helped\n",
               (unsigned long long)(p->read_buffer_bytes >> 20));
    }
    printf("products    %s\n", codes          ? "rows quantised to int8"
                               : p->quantised ? "rows exact, in f32"
                                              : "in f32");
    printf("%6s %18s %12s %12s %14s\n", "rows", "FLOP per byte", "read ms", "multiply ms",
           "at most rows/s");
    for (int m = 1; m <= 64; m *= 2) {
        const double read = p->bytes_per_step / p->read_bytes_per_s;
        const double multiply = m * p->flops_per_row / peak;
        printf("%6d %18.1f %12.1f %12.1f %14.1f\n", m, m * p->flops_per_row / p->bytes_per_step,
               1e3 * read, 1e3 * multiply, m / (read > multiply ? read : multiply));
    }
}

static void print_plan_json(const struct galley_plan *p)
{
    printf("{\"kv_type\":\"%s\",\"language_bytes\":%llu,\"vision_bytes\":%llu,"
           "\"kv_token_bytes\":%llu,\"kv_bytes\":%llu,\"step_bytes\":%llu,"
           "\"vision_job_bytes\":%llu,\"total_bytes\":%llu,\"memory_bytes\":%llu,",
           p->kv_type, (unsigned long long)p->language_bytes, (unsigned long long)p->vision_bytes,
           (unsigned long long)p->kv_token_bytes, (unsigned long long)p->kv_bytes,
           (unsigned long long)p->step_bytes, (unsigned long long)p->vision_job_bytes,
           (unsigned long long)p->total_bytes, (unsigned long long)p->memory_bytes);
    printf("\"context\":%d,\"seqs\":%d,\"rows\":%d,\"kv_blocks\":%d,\"fit_context\":%d,"
           "\"fit_seqs\":%d,\"model_context\":%d,\"exact_linear\":%s,\"flops_per_row\":%.0f,"
           "\"bytes_per_step\":%.0f,\"read_bytes_per_s\":%.0f,\"read_buffer_bytes\":%llu,"
           "\"f32_per_s\":%.0f,\"int8_per_s\":%.0f}\n",
           p->context, p->max_seqs, p->max_rows, p->n_kv_blocks, p->fit_context, p->fit_seqs,
           p->model_context, p->exact_linear ? "true" : "false", p->flops_per_row,
           p->bytes_per_step, p->read_bytes_per_s, (unsigned long long)p->read_buffer_bytes,
           p->f32_per_s, p->int8_per_s);
}

int inspect_plan(const struct galley_plan_request *r, bool json)
{
    struct galley_err err = { 0 };
    struct galley_plan p;
    const enum galley_status rc = galley_plan_make(&p, r, &err);
    if (rc) {
        complain("%s", err.msg);
        return exit_code_of(rc);
    }
    if (json) {
        print_plan_json(&p);
        return EXIT_OK;
    }
    printf("%s\n\n", r->model_path);
    print_memory(&p, r->context);
    print_roof(&p);
    return EXIT_OK;
}
