/* test_sample.c - filters against Hugging Face's, ties and damage against a plain sort, draws
 * against their distribution. */
#include <math.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/model/sample.h"
#include "tests/npy.h"
#include "tests/t.h"

#define GOLDEN "tests/golden/sampling"
#define SEED   0x123456789abcdef0u /* of tools/reference/sampling.py */

struct golden {
    struct npy logits, seen, params, probs, draws;
    int n_cases, n_vocab;
};

static struct golden golden_open(void)
{
    struct golden g = { .logits = npy_open(GOLDEN, "logits"),
                        .seen = npy_open(GOLDEN, "seen"),
                        .params = npy_open(GOLDEN, "params"),
                        .probs = npy_open(GOLDEN, "probs"),
                        .draws = npy_open(GOLDEN, "draws") };
    g.n_cases = (int)g.params.dim[0];
    g.n_vocab = (int)g.logits.dim[1];
    T_OK(g.n_cases > 10 && g.probs.dim[0] == g.n_cases && g.probs.dim[1] == g.n_vocab);
    T_OK(g.params.dim[1] == 6 && g.draws.dim[0] == g.n_cases);
    return g;
}

static void golden_close(struct golden *g)
{
    npy_close(&g->logits);
    npy_close(&g->seen);
    npy_close(&g->params);
    npy_close(&g->probs);
    npy_close(&g->draws);
}

static struct sample_params golden_params(const struct golden *g, int i, const float **logits)
{
    const float *v = g->params.f + 6 * i;
    *logits = g->logits.f + (int)v[0] * g->n_vocab;
    return (struct sample_params){ .temperature = (double)v[1],
                                   .top_k = (int)v[2],
                                   .top_p = (double)v[3],
                                   .min_p = (double)v[4],
                                   .repetition = (double)v[5],
                                   .seed = SEED + (uint64_t)i };
}

/* The same tokens are left, with the same probabilities; draws are those of an independent
 * Philox and cumulative sum.  Seen tokens come once through the bitmap, once as a draft's. */
static void equals_hugging_face(void)
{
    struct golden g = golden_open();
    struct sampler *s = sampler_new(g.n_vocab);
    struct sample_seen *seen = sample_seen_new(g.n_vocab);
    double *p = mem_many(double, (size_t)g.n_vocab);
    T_OK(s && seen && p);
    const int n_seen = (int)g.seen.n, n_first = n_seen / 2;
    for (int i = 0; i < n_first; i++) {
        sample_seen_add(seen, g.seen.i[i]);
    }
    for (int i = 0; i < g.n_cases; i++) {
        const float *logits, *want = g.probs.f + i * g.n_vocab;
        const struct sample_params q = golden_params(&g, i, &logits);
        T_EQ(sample_check(&q, NULL), GALLEY_OK);
        sample_probs(s, &q, logits, seen, g.seen.i + n_first, n_seen - n_first, p);
        for (int k = 0; k < g.n_vocab; k++) {
            if ((p[k] > 0) != (want[k] > 0)) {
                T_FAIL("case %d, token %d: %g, not %g", i, k, p[k], (double)want[k]);
            }
            T_NEAR(p[k], (double)want[k], 1e-7 + 1e-5 * (double)want[k]);
        }
        for (int k = 0; k < g.draws.dim[1]; k++) {
            T_EQ(sample_token(s, &q, logits, seen, g.seen.i + n_first, n_seen - n_first,
                              (uint64_t)k),
                 g.draws.i[i * g.draws.dim[1] + k]);
        }
    }
    mem_free(p);
    sample_seen_free(seen);
    sampler_free(s);
    golden_close(&g);
}

/* ---- against a plain sort ---- */

struct ranked {
    float x;
    int32_t id;
    double w;
};

static int ranked_order(const void *a, const void *b)
{
    const struct ranked *p = a, *q = b;
    return p->x != q->x ? (p->x < q->x) - (p->x > q->x) : (p->id > q->id) - (p->id < q->id);
}

/* The distribution by sorting everything, with the library's exp. */
static void probs_plain(const struct sample_params *q, const float *logits, int n, double *p)
{
    struct ranked *r = mem_many(struct ranked, (size_t)n);
    T_OK(r);
    double sum = 0, below = 0;
    for (int i = 0; i < n; i++) {
        r[i] = (struct ranked){ logits[i], i, 0 };
        p[i] = 0;
    }
    qsort(r, (size_t)n, sizeof(*r), ranked_order);
    int keep = q->top_k > 0 && q->top_k < n ? q->top_k : n;
    for (int i = 0; i < keep; i++) {
        r[i].w = exp(((double)r[i].x - (double)r[0].x) / q->temperature);
        sum += r[i].w;
    }
    for (int i = 0; q->top_p > 0 && i < keep; i++) {
        below += r[i].w;
        keep = below >= q->top_p * sum * (1 - 1e-12) ? i + 1 : keep;
    }
    sum = 0;
    while (r[keep - 1].w < q->min_p) {
        keep--;
    }
    for (int i = 0; i < keep; i++) {
        sum += r[i].w;
    }
    for (int i = 0; i < keep; i++) {
        p[r[i].id] = r[i].w / sum;
    }
    mem_free(r);
}

static double unit(uint64_t key, int i)
{
    return rng_uniform(key, (uint64_t)i);
}

/* Rows of every kind: smooth, few distinct values (ties at every cut), all equal, sorted,
 * steep, both zeros. */
static void row_fill(float *x, int n, int kind, uint64_t key)
{
    for (int i = 0; i < n; i++) {
        const double u = unit(key, i);
        x[i] = kind == 0 ? (float)(30 * u - 20) : 0.25f;
        x[i] = kind == 1 ? (float)(int)(12 * u) - 6.0f : x[i];
        x[i] = kind == 3 ? (float)(i % 2 ? -i : i) * 0.01f : x[i];
        x[i] = kind == 5 ? (u < 0.3 ? -1.0f : u < 0.6 ? -0.0f : 0.0f) : x[i]; /* zeros are one */
        x[i] = kind == 4 ? (float)(-log(u + 1e-12)) - 9.0f : x[i];
    }
}

static void equals_plain_sort(void)
{
    static const int sizes[] = { 1, 2, 15, 256, 257, 1024, 5000 };
    static const struct sample_params params[] = {
        { .temperature = 1 },
        { .temperature = 0.6, .top_k = 2 },
        { .temperature = 1.2, .top_k = 17 },
        { .temperature = 1.2, .top_k = 18 },
        { .temperature = 1, .top_k = 300 },
        { .temperature = 1.5, .top_p = 0.31 },
        { .temperature = 0.9, .top_p = 0.9 },
        { .temperature = 40, .top_p = 0.97, .min_p = 0.5 },
        { .temperature = 1, .min_p = 0.1 },
        { .temperature = 1, .min_p = 1 },
        { .temperature = 2, .top_k = 33, .top_p = 0.8, .min_p = 0.05 },
        { .temperature = 2, .top_p = 1e-9 },
    };
    double *got = mem_many(double, 5000), *want = mem_many(double, 5000);
    float *x = mem_many(float, 5000);
    T_OK(got && want && x);
    for (size_t k = 0; k < COUNT(sizes); k++) {
        struct sampler *s = sampler_new(sizes[k]);
        T_OK(s);
        for (int kind = 0; kind < 6; kind++) {
            row_fill(x, sizes[k], kind, k);
            for (size_t i = 0; i < COUNT(params); i++) {
                probs_plain(&params[i], x, sizes[k], want);
                sample_probs(s, &params[i], x, NULL, NULL, 0, got);
                for (int t = 0; t < sizes[k]; t++) {
                    if ((got[t] > 0) != (want[t] > 0) ||
                        !(fabs(got[t] - want[t]) <= 1e-11 * want[t] + 1e-300)) {
                        T_FAIL("n %d, row %d, params %zu, token %d: %.17g, not %.17g", sizes[k],
                               kind, i, t, got[t], want[t]);
                    }
                }
            }
        }
        sampler_free(s);
    }
    mem_free(got);
    mem_free(want);
    mem_free(x);
}

/* ---- draws ---- */

/* Chi-square of 40,000 draws per case of the golden parameters; cells under 20 expected are put
 * together.  5 sigma. */
static void draws_follow_the_distribution(void)
{
    enum { N = 40000 };
    struct golden g = golden_open();
    struct sampler *s = sampler_new(g.n_vocab);
    double *p = mem_many(double, (size_t)g.n_vocab);
    int *hits = mem_many(int, (size_t)g.n_vocab);
    T_OK(s && p && hits);
    for (int i = 0; i < g.n_cases; i += 2) {
        const float *logits;
        const struct sample_params q = golden_params(&g, i, &logits);
        sample_probs(s, &q, logits, NULL, NULL, 0, p);
        memset(hits, 0, sizeof(*hits) * (size_t)g.n_vocab);
        for (int k = 0; k < N; k++) {
            hits[sample_token(s, &q, logits, NULL, NULL, 0, (uint64_t)k)]++;
        }
        double chi = 0, rest = 0, rest_hits = 0;
        int cells = 0;
        for (int k = 0; k < g.n_vocab; k++) {
            T_OK(p[k] > 0 || hits[k] == 0);
            if (p[k] * N < 20) {
                rest += p[k] * N;
                rest_hits += hits[k];
            } else {
                chi += (hits[k] - p[k] * N) * (hits[k] - p[k] * N) / (p[k] * N);
                cells++;
            }
        }
        chi += rest > 1 ? (rest_hits - rest) * (rest_hits - rest) / rest : 0;
        T_OK(chi < cells + 5 * sqrt(2.0 * (cells + 1)) + 5);
    }
    mem_free(p);
    mem_free(hits);
    sampler_free(s);
    golden_close(&g);
}

static void greedy_takes_the_lowest(void)
{
    enum { N = 700 };
    float x[N];
    struct sampler *s = sampler_new(N);
    struct sample_seen *seen = sample_seen_new(N);
    T_OK(s && seen);
    for (int i = 0; i < N; i++) {
        x[i] = -3;
    }
    x[5] = x[300] = x[699] = 2;
    struct sample_params q = { .seed = 9 };
    T_OK(sample_is_greedy(&q));
    T_EQ(sample_token(s, &q, x, NULL, NULL, 0, 0), 5);
    sample_seen_add(seen, 5);
    T_EQ(sample_token(s, &q, x, seen, NULL, 0, 0), 5); /* no penalty asked for */
    q.repetition = 1.2;
    T_OK(!sample_is_greedy(&q));
    T_EQ(sample_token(s, &q, x, seen, NULL, 0, 0), 300);
    const int32_t extra[] = { 300, 300, 5 };
    T_EQ(sample_token(s, &q, x, seen, extra, 3, 0), 699);
    T_EQ(sample_token(s, &q, x, NULL, extra, 2, 0), 5);
    q.repetition = 0.5; /* a reward: twice as good, once */
    T_EQ(sample_token(s, &q, x, NULL, extra, 2, 0), 300);
    x[699] = 3.9f;
    T_EQ(sample_token(s, &q, x, NULL, extra, 2, 0), 300);
    x[699] = 4.1f; /* twice over it would be 8 */
    T_EQ(sample_token(s, &q, x, NULL, extra, 2, 0), 699);
    q = (struct sample_params){ .temperature = 1, .top_k = 1 };
    T_OK(sample_is_greedy(&q));
    T_EQ(sample_token(s, &q, x, NULL, NULL, 0, 77), 699);
    sample_seen_free(seen);
    sampler_free(s);
}

/* Rows no model should give: something sensible, and never a token of minus infinity. */
static void damaged_rows(void)
{
    enum { N = 600 };
    static const struct sample_params params[] = {
        { .temperature = 1 },
        { .temperature = 1, .top_k = 3 },
        { .temperature = 1, .top_k = 400 },
        { .temperature = 0.01, .top_p = 0.9 },
        { .temperature = 1, .min_p = 0.1 },
        { .temperature = 100, .top_k = 50, .top_p = 0.99, .min_p = 0.01, .repetition = 1.1 },
        { .temperature = 0 },
    };
    float x[N];
    struct sampler *s = sampler_new(N);
    T_OK(s);
    for (size_t i = 0; i < COUNT(params); i++) {
        for (int k = 0; k < 50; k++) {
            const uint64_t at = (uint64_t)k;
            for (int j = 0; j < N; j++) {
                x[j] = j % 3 ? NAN : -INFINITY;
            }
            T_EQ(sample_token(s, &params[i], x, NULL, NULL, 0, at), 0);
            x[411] = x[412] = 3;
            const int32_t one = sample_token(s, &params[i], x, NULL, NULL, 0, at);
            T_OK(one == 411 || one == 412);
            x[7] = INFINITY;
            T_EQ(sample_token(s, &params[i], x, NULL, NULL, 0, at), 7);
            for (int j = 0; j < N; j++) {
                x[j] = j == 599 ? -20.0f : -3.4028235e38f;
            }
            T_EQ(sample_token(s, &params[i], x, NULL, NULL, 0, at), 599);
            for (int j = 0; j < N; j++) {
                x[j] = INFINITY;
            }
            const int32_t any = sample_token(s, &params[i], x, NULL, NULL, 0, at);
            T_OK(any >= 0 && any < N);
        }
    }
    sampler_free(s);
}

static void check_names_the_field(void)
{
    static const struct {
        struct sample_params p;
        const char *msg;
    } bad[] = {
        { { .temperature = -1 }, "temperature is -1, it must be 0 to 100" },
        { { .temperature = NAN }, "temperature is nan, it must be 0 to 100" },
        { { .top_p = 1.5 }, "top_p is 1.5, it must be 0 to 1" },
        { { .min_p = -0.5 }, "min_p is -0.5, it must be 0 to 1" },
        { { .top_k = -3 }, "top_k is -3, it must be 0 (all) or more" },
        { { .repetition = -2 }, "repetition is -2, it must be 0 (off) or 0.01 to 100" },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct galley_err err = { 0 };
        T_EQ(sample_check(&bad[i].p, &err), GALLEY_EUSAGE);
        T_STR(err.msg, bad[i].msg);
    }
    const struct sample_params most = {
        .temperature = 100, .top_k = 1 << 30, .top_p = 1, .min_p = 1, .repetition = 100
    };
    T_EQ(sample_check(&most, NULL), GALLEY_OK);
    T_EQ(sample_check(&(struct sample_params){ 0 }, NULL), GALLEY_OK);
}

static void top_logprobs(void)
{
    float x[] = { 1, 5, -2, 5, NAN, 3, -INFINITY };
    struct sample_logprob out[7];
    sample_top_logprobs(out, 3, x, 7, 6);
    T_OK(out[0].id == 1 && out[1].id == 3 && out[2].id == 5);
    T_OK(out[0].logprob == -1 && out[1].logprob == -1 && out[2].logprob == -3);
    sample_top_logprobs(out, 7, x, 7, 6);
    T_OK(out[3].id == 0 && out[4].id == 2 && out[5].id == -1 && out[6].id == -1);
    T_OK(isinf(out[5].logprob));
    sample_top_logprobs(out, 0, x, 7, 6);
}

/* Once made, a sampler never allocates; making one survives any failing allocation. */
static void memory(void)
{
    enum { N = 5000 };
    struct sampler *s = NULL;
    int n = 1;
    for (; !s; n++) {
        T_OK(n < 20);
        mem_fail_at(n);
        s = sampler_new(N);
        mem_fail_at(0);
    }
    T_OK(n > 5);
    mem_fail_at(1);
    T_OK(!sample_seen_new(N));
    mem_fail_at(0);
    float *x = mem_many(float, N);
    T_OK(x);
    row_fill(x, N, 0, 1);
    const struct sample_params q = {
        .temperature = 1, .top_k = 30, .top_p = 0.9, .min_p = 0.01, .repetition = 1.1
    };
    mem_fail_at(0);
    for (int i = 0; i < 100; i++) {
        T_OK(sample_token(s, &q, x, NULL, NULL, 0, (uint64_t)i) >= 0);
    }
    T_EQ(mem_count(), 0);
    mem_free(x);
    sampler_free(s);
}

static const struct t_case cases[] = {
    { "equals_hugging_face", equals_hugging_face },
    { "equals_plain_sort", equals_plain_sort },
    { "draws_follow_the_distribution", draws_follow_the_distribution },
    { "greedy_takes_the_lowest", greedy_takes_the_lowest },
    { "damaged_rows", damaged_rows },
    { "check_names_the_field", check_names_the_field },
    { "top_logprobs", top_logprobs },
    { "memory", memory },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
