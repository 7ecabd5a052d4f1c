/* gguf_rope.c - see gguf_rope.h.
 *
 * The rule, with l the wavelength of a frequency: divisor 1 below context / high, `factor` above
 * context / low, and between them 1 / ((1 - s) / factor + s) with s = (context / l - low) / (high -
 * low).  Scaling context, low and high together changes nothing, so any context may be assumed;
 * s is linear in 1 / l, so two frequencies of the ramp give low and high. */
#include "src/format/gguf_rope.h"

#include <math.h>
#include <string.h>

#define PI        3.14159265358979323846
#define CONTEXT   8192 /* what Llama 3 was first trained with */
#define TOLERANCE 1e-5 /* relative: divisors are stored as f32 */

static double divisor(const struct gguf_tensor *t, int i)
{
    float v;
    memcpy(&v, (const char *)t->view.data + (size_t)i * sizeof(v), sizeof(v));
    return (double)v;
}

static double wavelength(double theta, int i, int head_dim)
{
    return 2 * PI * pow(theta, 2.0 * i / head_dim);
}

static double rule(const struct hf_rope *r, double length)
{
    if (length < r->original_context / r->high) {
        return 1;
    }
    if (length > r->original_context / r->low) {
        return r->factor;
    }
    const double s = (r->original_context / length - r->low) / (r->high - r->low);
    return 1 / ((1 - s) / r->factor + s);
}

static bool explains(const struct hf_rope *r, const struct gguf_tensor *t, int head_dim)
{
    for (int i = 0; i < head_dim / 2; i++) {
        const double want = divisor(t, i), is = rule(r, wavelength(r->theta, i, head_dim));
        if (!(fabs(is - want) <= TOLERANCE * want)) {
            return false;
        }
    }
    return true;
}

/* low and high from the two outermost frequencies of the ramp; with fewer, from the frequencies
 * that enclose it. */
static void fit(struct hf_rope *r, const struct gguf_tensor *t, int head_dim)
{
    double s[2] = { 1, 0 }, x[2] = { 0, 0 }; /* s and context / l at two points */
    int n = 0;
    for (int i = 0; i < head_dim / 2; i++) {
        const double d = divisor(t, i),
                     at = r->original_context / wavelength(r->theta, i, head_dim);
        const double si = (1 / d - 1 / r->factor) / (1 - 1 / r->factor);
        if (d == 1) {
            x[0] = at; /* the last one untouched, as long as no ramp follows */
        } else if (si > 1e-4 && si < 1 - 1e-4) {
            const int k = n++ ? 1 : 0;
            s[k] = si;
            x[k] = at;
        } else if (n == 0 && x[1] == 0) {
            x[1] = at; /* no ramp: the first one scaled in full */
        } else if (n == 1) {
            n = 2;
            s[1] = 0;
            x[1] = at;
        }
    }
    const double slope = (s[0] - s[1]) / (x[0] - x[1]);
    r->low = x[1] - s[1] / slope;
    r->high = r->low + 1 / slope;
}

enum galley_status gguf_rope_factors(struct hf_rope *io, const struct gguf_tensor *factors,
                                     int head_dim, const char *where, struct galley_err *err)
{
    const struct tensor *v = &factors->view;
    if (v->dtype != DTYPE_F32 || v->n_dim != 1 || v->shape[0] != head_dim / 2) {
        return galley_err_set(err, GALLEY_EMODEL, "%s: rope_freqs.weight is not %d divisors in F32",
                              where, head_dim / 2);
    }
    struct hf_rope r = *io;
    r.kind = HF_ROPE_LLAMA3;
    r.factor = divisor(factors, head_dim / 2 - 1);
    r.low = 1;
    r.high = 4;
    r.original_context = CONTEXT;
    bool ones = true;
    for (int i = 0; i < head_dim / 2; i++) {
        ones = ones && divisor(factors, i) == 1;
    }
    if (ones) {
        return GALLEY_OK;
    }
    if (io->kind == HF_ROPE_PLAIN && r.factor > 1 && r.factor < 1e6) {
        if (explains(&r, factors, head_dim)) {
            *io = r;
            return GALLEY_OK;
        }
        fit(&r, factors, head_dim);
        if (r.low > 0 && r.high > r.low && explains(&r, factors, head_dim)) {
            *io = r;
            return GALLEY_OK;
        }
    }
    return galley_err_set(err, GALLEY_EMODEL,
                          "%s: the divisors of rope_freqs.weight are not those of Llama 3's rotary "
                          "scaling",
                          where);
}
