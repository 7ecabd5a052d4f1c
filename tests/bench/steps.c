/* steps.c - what a step of m rows costs: the verification cost curve of a model, and how number
 * formats trade places as the batch grows.
 *
 *     bench_steps curve MODEL [--threads N] [--context N] [--runs N]
 *     bench_steps formats      [--threads N] [--runs N]
 *
 * curve: time of a forward pass with m rows of one sequence (all their logits wanted), over the
 * time with one row, against the machine's roof max(bytes / bandwidth, operations / peak), both
 * measured in the same run.  formats: rows per second through the matrices of Qwen2.5-VL-3B's
 * layers for 16-, 8- and 4-bit weights; best names the fastest, best_w4 the faster of the two ways
 * to run 4-bit weights, and auto_over_best_w4 is how much longer the default (W4A8) takes than
 * that.  CSV on stdout, what it means on stderr. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/engine/planner.h"
#include "src/engine/roofline.h"
#include "src/model/model.h"

#define M_MAX 64
#define CHECK(call)                           \
    do {                                      \
        if ((call) != GALLEY_OK) {            \
            fprintf(stderr, "%s\n", err.msg); \
            exit(1);                          \
        }                                     \
    } while (0)

static const int batches[] = { 1, 2, 4, 8, 16, 32, 64 };

struct settings {
    const char *model;
    int threads, context, runs;
};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_value);
    return v[n / 2];
}

/* ---- curve ---- */

struct stage {
    struct model *model;
    struct kv_pool *kv;
    struct kv_seq seq;
    float *logits;
    int n_vocab;
};

/* n rows that follow what the cache holds; all wanted when `want`. */
static void forward(struct stage *s, int n, bool want)
{
    static int32_t token[512], pos[512], seq[512], keys[512], slot[512], wanted[512];
    struct galley_err err = { 0 };
    const int at = s->seq.n_tokens;
    if (!kv_seq_resize(s->kv, &s->seq, at + n)) {
        fprintf(stderr, "the cache is too small\n");
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        token[i] = (at + i) * 37 % (s->n_vocab / 4) + s->n_vocab / 8;
        pos[i] = at + i;
        keys[i] = at + i + 1;
        slot[i] = kv_seq_slot(&s->seq, at + i);
        wanted[i] = i;
    }
    const int32_t *const table[] = { s->seq.blocks };
    const struct model_batch b = { .n_rows = n,
                                   .token = token,
                                   .pos = { pos, pos, pos },
                                   .seq = seq,
                                   .n_keys = keys,
                                   .slot = slot,
                                   .block_table = table,
                                   .want = wanted,
                                   .n_want = want ? n : 0,
                                   .logits = s->logits };
    CHECK(model_forward(s->model, s->kv, &b, &err));
}

struct seconds {
    double median, best;
};

static struct seconds step_seconds(struct stage *s, int m, int runs)
{
    double v[64];
    const int at = s->seq.n_tokens;
    for (int i = 0; i < runs + 1; i++) {
        const double start = clock_seconds();
        forward(s, m, true);
        v[i ? i - 1 : 0] = clock_seconds() - start; /* the first one warms */
        if (!kv_seq_resize(s->kv, &s->seq, at)) {
            exit(1);
        }
    }
    const double mid = median(v, runs); /* which sorts */
    return (struct seconds){ mid, v[0] };
}

static void curve(const struct settings *set)
{
    struct galley_err err = { 0 };
    struct checkpoint c;
    struct device *d;
    struct roofline roof;
    struct plan p;
    struct stage s = { 0 };
    CHECK(roofline_measure(&roof, NULL, set->threads, &err));
    CHECK(checkpoint_open(&c, set->model, "none", CHECKPOINT_CONFIG, &err));
    const struct plan_request want = { .context = set->context + 2 * M_MAX,
                                       .max_seqs = 1,
                                       .kv_type = KV_F16 };
    CHECK(plan_make(&p, &c, &want, &err));
    CHECK(device_open_cpu(&d, NULL, set->threads, &err));
    CHECK(model_open(&s.model, d, &c.cfg, c.weights, &err));
    const struct kv_shape shape = model_kv_shape(s.model, KV_F16);
    CHECK(kv_pool_open(&s.kv, d, &shape, set->context / KV_BLOCK + 8, &err));
    s.n_vocab = model_n_vocab(s.model);
    s.logits = d->ops->alloc(d, (size_t)M_MAX * (size_t)s.n_vocab * sizeof(float));
    for (int at = 0; at < set->context; at += 256) {
        forward(&s, set->context - at < 256 ? set->context - at : 256, false);
    }
    const double peak = p.quantised ? roof.int8_per_s : roof.f32_per_s;
    /* The roof is the best of what was seen, so the best step stands beside it; a median says how
     * calm the machine was. */
    printf("model,threads,context,rows,best_s,median_s,over_one_row,roof_s,best_over_roof,"
           "median_over_roof,read_bytes_per_s,peak_per_s\n");
    double one = 0;
    for (size_t i = 0; i < sizeof(batches) / sizeof(*batches); i++) {
        const int m = batches[i];
        const struct seconds t = step_seconds(&s, m, set->runs);
        const double read = p.bytes_per_step / roof.read_bytes_per_s;
        const double multiply = m * p.flops_per_row / peak;
        const double best = read > multiply ? read : multiply;
        one = m == 1 ? t.best : one;
        printf("%s,%d,%d,%d,%.6f,%.6f,%.3f,%.6f,%.3f,%.3f,%.4g,%.4g\n", set->model, set->threads,
               set->context, m, t.best, t.median, t.best / one, best, t.best / best,
               t.median / best, roof.read_bytes_per_s, peak);
        fflush(stdout);
    }
    d->ops->free(d, s.logits);
    kv_seq_clear(s.kv, &s.seq);
    kv_pool_close(s.kv);
    model_close(s.model);
    device_close(d);
    checkpoint_close(&c);
}

/* ---- formats ---- */

static const struct {
    const char *name;
    enum dtype type;
    bool exact; /* decoded weights times f32 rows, not integers */
} formats[] = {
    { "W16A16", DTYPE_BF16, false },
    { "W8A8", DTYPE_Q8_0, false },
    { "W4A8", DTYPE_Q4_K, false },
    { "W4A16", DTYPE_Q4_K, true },
};
#define N_FORMATS (sizeof(formats) / sizeof(*formats))
#define W4_AUTO   2 /* what four-bit weights run as unless told, */
#define W4_EXACT  3 /* and what they could */
#define LAYERS    8

static const struct {
    int n_out, n_in;
} shapes[] = { { 2560, 2048 }, { 2048, 2048 }, { 22016, 2048 }, { 2048, 11008 } };
#define N_SHAPES (sizeof(shapes) / sizeof(*shapes))

/* Valid blocks of any type: small scales, any codes. */
static void fill_blocks(uint8_t *p, enum dtype type, uint64_t bytes)
{
    uint32_t x = 12345;
    for (uint64_t i = 0; i < bytes; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (uint8_t)(x >> 24);
    }
    const uint64_t block = (uint64_t)dtype_info(type)->n_bytes;
    for (uint64_t i = 0; i < bytes; i += block) {
        if (type == DTYPE_BF16) {
            p[i + 1] = 0x3c; /* about 0.01 */
        } else {
            p[i] = 0;
            p[i + 1] = 0x10; /* a small f16 */
            if (type == DTYPE_Q4_K) {
                p[i + 2] = 0;
                p[i + 3] = 0x10;
            }
        }
    }
}

static double pass_seconds(struct device *d, struct linear *l[LAYERS][N_SHAPES], const float *x,
                           float *y, int m, int runs)
{
    double v[64];
    for (int r = 0; r < runs + 1; r++) {
        const double start = clock_seconds();
        for (int i = 0; i < LAYERS; i++) {
            for (size_t k = 0; k < N_SHAPES; k++) {
                d->ops->matmul(d, y, (size_t)shapes[k].n_out, l[i][k], x, (size_t)shapes[k].n_in,
                               m);
            }
        }
        v[r ? r - 1 : 0] = clock_seconds() - start;
    }
    return median(v, runs);
}

static void measure_format(struct device *d, size_t f, double *seconds, const float *x, float *y,
                           int runs)
{
    struct linear *l[LAYERS][N_SHAPES];
    struct galley_err err = { 0 };
    d->ops->set_exact(d, formats[f].exact);
    for (int i = 0; i < LAYERS; i++) {
        for (size_t k = 0; k < N_SHAPES; k++) {
            const uint64_t n = (uint64_t)shapes[k].n_out * (uint64_t)shapes[k].n_in;
            const uint64_t bytes = dtype_row_bytes(formats[f].type, n);
            uint8_t *w = mem_alloc(bytes);
            if (!w) {
                fprintf(stderr, "no memory\n");
                exit(1);
            }
            fill_blocks(w, formats[f].type, bytes);
            const struct linear_part part = {
                .w = { formats[f].type, 2, { shapes[k].n_out, shapes[k].n_in }, w, NULL }
            };
            CHECK(d->ops->linear_new(d, &l[i][k], &part, 1, &err));
            mem_free(w);
        }
    }
    for (size_t b = 0; b < sizeof(batches) / sizeof(*batches); b++) {
        seconds[b] = pass_seconds(d, l, x, y, batches[b], runs);
    }
    for (int i = 0; i < LAYERS; i++) {
        for (size_t k = 0; k < N_SHAPES; k++) {
            d->ops->linear_free(d, l[i][k]);
        }
    }
}

static void compare_formats(const struct settings *set)
{
    struct galley_err err = { 0 };
    struct device *d;
    CHECK(device_open_cpu(&d, NULL, set->threads, &err));
    float *x = mem_many(float, (size_t)M_MAX * 11008), *y = mem_many(float, (size_t)M_MAX * 22016);
    double s[N_FORMATS][sizeof(batches) / sizeof(*batches)];
    if (!x || !y) {
        exit(1);
    }
    for (size_t i = 0; i < (size_t)M_MAX * 11008; i++) {
        x[i] = (float)((int)(i * 7919 % 2001) - 1000) / 500;
    }
    for (size_t f = 0; f < N_FORMATS; f++) {
        measure_format(d, f, s[f], x, y, set->runs);
    }
    printf("threads,batch");
    for (size_t f = 0; f < N_FORMATS; f++) {
        printf(",%s_rows_per_s", formats[f].name);
    }
    printf(",best,best_w4,auto_over_best_w4\n");
    size_t n_exact = 0;
    for (size_t b = 0; b < sizeof(batches) / sizeof(*batches); b++) {
        size_t best = 0;
        printf("%d,%d", set->threads, batches[b]);
        for (size_t f = 0; f < N_FORMATS; f++) {
            printf(",%.2f", batches[b] / s[f][b]);
            best = s[f][b] < s[best][b] ? f : best;
        }
        const size_t w4 = s[W4_EXACT][b] < s[W4_AUTO][b] ? W4_EXACT : W4_AUTO;
        printf(",%s,%s,%.3f\n", formats[best].name, formats[w4].name, s[W4_AUTO][b] / s[w4][b]);
        n_exact += w4 == W4_EXACT;
    }
    fprintf(stderr, "4-bit weights: exact products are faster in %zu of %zu batches\n", n_exact,
            sizeof(batches) / sizeof(*batches));
    mem_free(x);
    mem_free(y);
    device_close(d);
}

int main(int argc, char **argv)
{
    struct settings set = { .context = 256, .runs = 15 };
    const bool is_curve = argc > 2 && strcmp(argv[1], "curve") == 0;
    const bool is_formats = argc > 1 && strcmp(argv[1], "formats") == 0;
    if (!is_curve && !is_formats) {
        fprintf(stderr, "usage: bench_steps curve MODEL | formats [--threads N] [--context N] "
                        "[--runs N]\n");
        return 2;
    }
    set.model = is_curve ? argv[2] : NULL;
    for (int i = is_curve ? 3 : 2; i + 1 < argc; i += 2) {
        int *to = strcmp(argv[i], "--threads") == 0   ? &set.threads
                  : strcmp(argv[i], "--context") == 0 ? &set.context
                                                      : &set.runs;
        *to = atoi(argv[i + 1]);
    }
    if (set.runs < 1 || set.runs > 60 || set.context < 1) {
        return 2;
    }
    if (is_curve) {
        curve(&set);
    } else {
        compare_formats(&set);
    }
    return 0;
}
