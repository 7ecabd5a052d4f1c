/* sample.c - see sample.h.
 *
 * Every filter keeps a beginning of one order, logit descending and id ascending, so that a filter
 * is a cut, not a sort: a radix select over the ordered bits of the logits, by count (top-k) or by
 * mass (top-p).  The kept tokens stay in id order, and the draw walks them in it.
 *
 * Bits are the same on every machine: plain mul and add in double, an own exp, fixed orders of
 * summation, no library function.  NaN counts as minus infinity, which is never drawn. */
#include "src/model/sample.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"

#define SLICE         256 /* logits per recorded maximum */
#define LANES         16
#define DIGIT_MAX     2048
#define SUM_BLOCK     1024
#define GREEDY_BELOW  1e-5                /* temperature: the quotients would only overflow */
#define WEIGHT_LOWEST -709.08956571282405 /* -1023 ln 2: exp of that counts as nothing */

struct sampler {
    int n_vocab, n_slices;
    float *x;       /* [n_vocab] penalised logits, then those kept */
    int32_t *id;    /* [n_vocab] kept tokens, ascending */
    double *w;      /* [n_vocab] their weights: exp((logit - largest) / temperature) */
    float *top;     /* [n_slices] largest logit of each slice */
    double *mass;   /* [DIGIT_MAX] */
    uint32_t *key;  /* [n_vocab] of a select: bits that order as the logits do, */
    int32_t *pick;  /* [n_vocab] and where the digits found so far occur */
    uint64_t *seen; /* bitmap of this row */
};

struct sample_seen {
    int n_vocab;
    uint64_t bits[];
};

/* What is left of the vocabulary.  id NULL: all of it. */
struct kept {
    const int32_t *id;
    const float *x; /* [n] */
    int n;
};

static size_t bitmap_words(int n_vocab)
{
    return ((size_t)n_vocab + 63) / 64;
}

static bool has_penalty(const struct sample_params *p)
{
    return p->repetition != 0 && p->repetition != 1;
}

static bool range_ok(double x, double low, double high)
{
    return x >= low && x <= high; /* false for NaN */
}

enum galley_status sample_check(const struct sample_params *p, struct galley_err *err)
{
    const struct {
        const char *name;
        double value, low, high;
    } field[] = {
        { "temperature", p->temperature, 0, 100 },
        { "top_p", p->top_p, 0, 1 },
        { "min_p", p->min_p, 0, 1 },
    };
    for (size_t i = 0; i < COUNT(field); i++) {
        if (!range_ok(field[i].value, field[i].low, field[i].high)) {
            return galley_err_set(err, GALLEY_EUSAGE, "%s is %g, it must be %g to %g",
                                  field[i].name, field[i].value, field[i].low, field[i].high);
        }
    }
    if (p->top_k < 0) {
        return galley_err_set(err, GALLEY_EUSAGE, "top_k is %d, it must be 0 (all) or more",
                              p->top_k);
    }
    if (p->repetition != 0 && !range_ok(p->repetition, 0.01, 100)) {
        return galley_err_set(err, GALLEY_EUSAGE,
                              "repetition is %g, it must be 0 (off) or 0.01 to 100", p->repetition);
    }
    return GALLEY_OK;
}

static bool takes_largest(const struct sample_params *p)
{
    return p->temperature < GREEDY_BELOW || p->top_k == 1;
}

bool sample_is_greedy(const struct sample_params *p)
{
    return takes_largest(p) && !has_penalty(p);
}

struct sampler *sampler_new(int n_vocab)
{
    assert(n_vocab > 0);
    struct sampler *s = mem_new(struct sampler);
    if (!s) {
        return NULL;
    }
    s->n_vocab = n_vocab;
    s->n_slices = (n_vocab - 1) / SLICE + 1;
    s->x = mem_many(float, (size_t)n_vocab);
    s->id = mem_many(int32_t, (size_t)n_vocab);
    s->w = mem_many(double, (size_t)n_vocab);
    s->top = mem_many(float, (size_t)s->n_slices);
    s->mass = mem_many(double, DIGIT_MAX);
    s->key = mem_many(uint32_t, (size_t)n_vocab);
    s->pick = mem_many(int32_t, (size_t)n_vocab);
    s->seen = mem_many(uint64_t, bitmap_words(n_vocab));
    if (!s->x || !s->id || !s->w || !s->top || !s->mass || !s->key || !s->pick || !s->seen) {
        sampler_free(s);
        return NULL;
    }
    return s;
}

void sampler_free(struct sampler *s)
{
    if (!s) {
        return;
    }
    mem_free(s->x);
    mem_free(s->id);
    mem_free(s->w);
    mem_free(s->top);
    mem_free(s->mass);
    mem_free(s->key);
    mem_free(s->pick);
    mem_free(s->seen);
    mem_free(s);
}

struct sample_seen *sample_seen_new(int n_vocab)
{
    assert(n_vocab > 0);
    struct sample_seen *s =
        mem_zero_array(1, sizeof(*s) + bitmap_words(n_vocab) * sizeof(s->bits[0]));
    if (s) {
        s->n_vocab = n_vocab;
    }
    return s;
}

void sample_seen_free(struct sample_seen *s)
{
    mem_free(s);
}

void sample_seen_add(struct sample_seen *s, int32_t token)
{
    assert(token >= 0 && token < s->n_vocab);
    s->bits[token / 64] |= (uint64_t)1 << (token % 64);
}

/* ---- weights ---- */

/* exp(d) for d <= 0 in double without fused operations: n = rint(d log2 e), the Taylor polynomial
 * of degree 10 in the rest (error below 3e-13), and n added to the exponent.  exp(0) is 1; at
 * WEIGHT_LOWEST n is -1023 and the power's bits are those of zero.  No branch: loops over it become
 * vectors. */
static inline double weight_of(double d)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: the sum's low bits are the integer */
    double c = d > WEIGHT_LOWEST ? d : WEIGHT_LOWEST; /* NaN as well */
    c = c < 0 ? c : 0;                                /* above 0 only when infinities meet */
    const double t = c * 1.4426950408889634 + magic;
    const double n = t - magic;
    const double r = (c - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    double p = 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    double power;
    memcpy(&bits, &t, sizeof(bits));
    bits = (bits << 52) + 0x3ff0000000000000u;
    memcpy(&power, &bits, sizeof(power));
    return p * power;
}

static void weights_fill(double *restrict w, const float *restrict x, int n, float top,
                         double temperature)
{
    const double per = 1 / temperature;
    for (int i = 0; i < n; i++) {
        w[i] = (double)x[i];
    }
    for (int i = 0; i < n; i++) {
        w[i] = weight_of((w[i] - (double)top) * per);
    }
}

/* Blocks of SUM_BLOCK, lanes inside. */
static double block_sum(const double *w, int n)
{
    double lane[LANES] = { 0 };
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            lane[k] += w[i + k];
        }
    }
    for (int k = 0; i + k < n; k++) {
        lane[k] += w[i + k];
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; k++) {
            lane[k] += lane[k + half];
        }
    }
    return lane[0];
}

static int block_end(int at, int n)
{
    return n - at < SUM_BLOCK ? n : at + SUM_BLOCK;
}

static double weights_sum(const double *w, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i += SUM_BLOCK) {
        sum += block_sum(w + i, block_end(i, n) - i);
    }
    return sum;
}

/* ---- cuts ---- */

/* Ascending with the logit; both zeros are one, NaN is the lowest. */
static void keys_fill(uint32_t *restrict key, const float *restrict x, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t u;
        const float y = (x[i] > -FLT_MAX ? x[i] : -FLT_MAX) + 0.0f;
        memcpy(&u, &y, sizeof(u));
        key[i] = u ^ ((0u - (u >> 31)) | 0x80000000u);
    }
}

static float key_value(uint32_t key)
{
    const uint32_t u = key >> 31 ? key & 0x7fffffffu : ~key;
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

/* The last tokens that are kept: those above `key`, and the first n_equal with it. */
struct cut {
    uint32_t key;
    int n_equal;
};

/* The digit where the mass from the top reaches *goal, which becomes what that digit must give.
 * When rounding puts the goal beyond the sum: the lowest digit with any mass, whole. */
static uint32_t digit_find(const double *mass, int n_digits, double *goal)
{
    int last = -1;
    for (int at = n_digits - 1; at >= 0; at--) {
        if (mass[at] > 0) {
            last = at;
            if (mass[at] >= *goal) {
                return (uint32_t)at;
            }
            *goal -= mass[at];
        }
    }
    *goal += last < 0 ? 0 : mass[last];
    return last < 0 ? 0 : (uint32_t)last;
}

/* One digit of all n keys: the indexes of those that share it go to s->pick; returns how many. */
static int digit_top(struct sampler *s, const double *w, int n, double *goal)
{
    enum { SHIFT = 21 };
    memset(s->mass, 0, sizeof(*s->mass) * DIGIT_MAX);
    for (int i = 0; i < n; i++) {
        s->mass[s->key[i] >> SHIFT] += w ? w[i] : 1;
    }
    const uint32_t digit = digit_find(s->mass, DIGIT_MAX, goal);
    int n_pick = 0;
    for (int i = 0; i < n; i++) {
        s->pick[n_pick] = i;
        n_pick += s->key[i] >> SHIFT == digit;
    }
    return n_pick;
}

/* The same of the keys picked before. */
static int digit_next(struct sampler *s, const double *w, int n, int shift, int bits, double *goal)
{
    const uint32_t mask = (1u << bits) - 1;
    memset(s->mass, 0, sizeof(*s->mass) * DIGIT_MAX);
    for (int i = 0; i < n; i++) {
        const int at = s->pick[i];
        s->mass[s->key[at] >> shift & mask] += w ? w[at] : 1;
    }
    const uint32_t digit = digit_find(s->mass, DIGIT_MAX, goal);
    int n_pick = 0;
    for (int i = 0; i < n; i++) {
        const int at = s->pick[i];
        s->pick[n_pick] = at;
        n_pick += (s->key[at] >> shift & mask) == digit;
    }
    return n_pick;
}

/* Where the mass of the best tokens reaches `goal`: keeps the token that reaches it.  w NULL: each
 * weighs 1.  Leaves the keys of x in s->key. */
static struct cut cut_find(struct sampler *s, const float *x, const double *w, int n, double goal)
{
    keys_fill(s->key, x, n);
    int n_pick = digit_top(s, w, n, &goal);
    n_pick = digit_next(s, w, n_pick, 10, 11, &goal);
    n_pick = digit_next(s, w, n_pick, 0, 10, &goal);
    if (n_pick == 0) { /* nothing has a weight */
        return (struct cut){ .key = UINT32_MAX };
    }
    struct cut c = { .key = s->key[s->pick[0]] };
    do {
        goal -= w ? w[s->pick[c.n_equal]] : 1;
        c.n_equal++;
    } while (goal > 0 && c.n_equal < n_pick);
    return c;
}

/* What of k the cut (just found in it) keeps, into s->x, s->id and, when there are weights, s->w.
 * Those may be where k lies: nothing is written before it is read. */
static struct kept kept_cut(struct sampler *s, const struct kept *k, struct cut c, bool weights)
{
    int n = 0;
    for (int i = 0; i < k->n; i++) {
        int keep = s->key[i] > c.key;
        if (s->key[i] == c.key && c.n_equal > 0) {
            c.n_equal--;
            keep = 1;
        }
        s->x[n] = k->x[i];
        s->id[n] = k->id ? k->id[i] : i;
        s->w[n] = weights ? s->w[i] : 0;
        n += keep;
    }
    return (struct kept){ .id = s->id, .x = s->x, .n = n };
}

/* ---- filters ---- */

/* The row with its penalty, where there is one. */
static const float *row_penalise(struct sampler *s, const struct sample_params *p,
                                 const float *logits, const struct sample_seen *seen,
                                 const int32_t *extra, int n_extra)
{
    if (!has_penalty(p)) {
        return logits;
    }
    const size_t n_words = bitmap_words(s->n_vocab);
    const float by = (float)p->repetition;
    memcpy(s->x, logits, sizeof(*logits) * (size_t)s->n_vocab);
    if (seen) {
        assert(seen->n_vocab == s->n_vocab);
        memcpy(s->seen, seen->bits, n_words * sizeof(*s->seen));
    } else {
        memset(s->seen, 0, n_words * sizeof(*s->seen));
    }
    for (int i = 0; i < n_extra; i++) {
        assert(extra[i] >= 0 && extra[i] < s->n_vocab);
        s->seen[extra[i] / 64] |= (uint64_t)1 << (extra[i] % 64);
    }
    for (size_t i = 0; i < n_words; i++) {
        uint64_t word = s->seen[i];
        for (float *x = s->x + 64 * i; word; word >>= 1, x++) {
            if (word & 1) {
                *x = *x < 0 ? *x * by : *x / by;
            }
        }
    }
    return s->x;
}

static float slice_top(const float *x, int n)
{
    float lane[LANES];
    int i = 0;
    for (int k = 0; k < LANES; k++) {
        lane[k] = -FLT_MAX;
    }
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
        }
    }
    for (; i < n; i++) {
        lane[0] = x[i] > lane[0] ? x[i] : lane[0];
    }
    for (int k = 1; k < LANES; k++) {
        lane[0] = lane[k] > lane[0] ? lane[k] : lane[0];
    }
    return lane[0] < FLT_MAX ? lane[0] : FLT_MAX;
}

static int slice_end(const struct sampler *s, int i)
{
    return i + 1 < s->n_slices ? (i + 1) * SLICE : s->n_vocab;
}

/* The maxima of the slices; returns the largest. */
static float slices_scan(struct sampler *s, const float *x)
{
    float top = -FLT_MAX;
    for (int i = 0; i < s->n_slices; i++) {
        s->top[i] = slice_top(x + i * SLICE, slice_end(s, i) - i * SLICE);
        top = s->top[i] > top ? s->top[i] : top;
    }
    return top;
}

/* The k best.  The k-th largest slice maximum bounds the k-th largest logit from below, so only
 * slices that reach it are looked into. */
static struct kept top_k_keep(struct sampler *s, const float *x, int top_k)
{
    struct kept all = { .x = x, .n = s->n_vocab };
    if (top_k < s->n_slices) {
        const float least = key_value(cut_find(s, s->top, NULL, s->n_slices, top_k).key);
        int n = 0;
        for (int i = 0; i < s->n_slices; i++) {
            for (int j = i * SLICE, end = slice_end(s, i); s->top[i] >= least && j < end; j++) {
                if (x[j] >= least) {
                    s->x[n] = x[j];
                    s->id[n++] = j;
                }
            }
        }
        all = (struct kept){ .id = s->id, .x = s->x, .n = n };
    }
    return top_k < all.n ? kept_cut(s, &all, cut_find(s, all.x, NULL, all.n, top_k), false) : all;
}

static struct kept min_p_keep(struct sampler *s, const struct kept *k, double min_p)
{
    int n = 0;
    for (int i = 0; i < k->n; i++) {
        if (s->w[i] >= min_p) { /* the largest weighs 1 */
            s->id[n] = k->id ? k->id[i] : i;
            s->w[n++] = s->w[i];
        }
    }
    return (struct kept){ .id = s->id, .n = n };
}

/* All filters; the weights are in s->w.  x: the penalised row. */
static struct kept row_filter(struct sampler *s, const struct sample_params *p, const float *x)
{
    const float top = slices_scan(s, x);
    struct kept k = { .x = x, .n = s->n_vocab };
    if (p->top_k > 0 && p->top_k < s->n_vocab) {
        k = top_k_keep(s, x, p->top_k);
    }
    weights_fill(s->w, k.x, k.n, top, p->temperature);
    if (p->top_p > 0 && p->top_p < 1) {
        const double goal = p->top_p * weights_sum(s->w, k.n);
        k = kept_cut(s, &k, cut_find(s, k.x, s->w, k.n, goal), true);
    }
    return p->min_p > 0 ? min_p_keep(s, &k, p->min_p) : k;
}

/* ---- choices ---- */

/* 0 when nothing is above minus infinity. */
static int32_t largest(const float *x, int n)
{
    int32_t best = 0;
    float top = -FLT_MAX;
    for (int i = 0; i < n; i++) {
        if (x[i] > top) {
            top = x[i];
            best = i;
        }
    }
    return best;
}

/* Inverse of the cumulative weights in id order; -1 when nothing has a weight. */
static int draw(const double *w, int n, double u)
{
    double left = u * weights_sum(w, n);
    int last = -1;
    for (int i = 0; i < n; i += SUM_BLOCK) {
        const int end = block_end(i, n);
        const double sum = block_sum(w + i, end - i);
        if (left >= sum && end < n) {
            left -= sum;
            continue;
        }
        for (int j = i; j < end; j++) {
            if (left < w[j]) {
                return j;
            }
            last = w[j] > 0 ? j : last;
            left -= w[j];
        }
    }
    return last; /* rounding carried it past the end */
}

int32_t sample_token(struct sampler *s, const struct sample_params *p, const float *logits,
                     const struct sample_seen *seen, const int32_t *extra, int n_extra,
                     uint64_t position)
{
    const float *x = row_penalise(s, p, logits, seen, extra, n_extra);
    if (takes_largest(p)) {
        return largest(x, s->n_vocab);
    }
    const struct kept k = row_filter(s, p, x);
    const int i = draw(s->w, k.n, rng_uniform(p->seed, position));
    if (i < 0) {
        return 0;
    }
    return k.id ? k.id[i] : i;
}

void sample_probs(struct sampler *s, const struct sample_params *p, const float *logits,
                  const struct sample_seen *seen, const int32_t *extra, int n_extra, double *probs)
{
    const float *x = row_penalise(s, p, logits, seen, extra, n_extra);
    memset(probs, 0, sizeof(*probs) * (size_t)s->n_vocab);
    if (takes_largest(p)) {
        probs[largest(x, s->n_vocab)] = 1;
        return;
    }
    const struct kept k = row_filter(s, p, x);
    const double sum = weights_sum(s->w, k.n);
    for (int i = 0; i < k.n && sum > 0; i++) {
        probs[k.id ? k.id[i] : i] = s->w[i] / sum;
    }
    probs[0] = sum > 0 ? probs[0] : 1;
}

void sample_top_logprobs(struct sample_logprob *out, int n, const float *logits, int n_vocab,
                         float log_sum)
{
    assert(n >= 0 && n <= n_vocab);
    for (int i = 0; i < n; i++) {
        out[i] = (struct sample_logprob){ .id = -1, .logprob = -INFINITY };
    }
    for (int i = 0; n > 0 && i < n_vocab; i++) {
        if (logits[i] > out[n - 1].logprob) { /* logits until the end */
            int at = n - 1;
            for (; at > 0 && logits[i] > out[at - 1].logprob; at--) {
                out[at] = out[at - 1];
            }
            out[at] = (struct sample_logprob){ .id = i, .logprob = logits[i] };
        }
    }
    for (int i = 0; i < n; i++) {
        out[i].logprob -= log_sum;
    }
}
