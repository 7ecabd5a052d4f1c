/* quant_fit.c - see quant_fit.h.
 *
 * One search throughout: try a row of inverse scales around the one that maps the extreme value to
 * the last code, take the least-squares scale for the codes each of them gives, keep the best, then
 * alternate codes and scale (Lloyd's iteration) while the error falls.  Sums go to eight lanes so
 * that compilers can use vector registers without being allowed to reorder. */
#include "kernels/ref/quant_fit.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "src/base/half.h"

#define N_LANES 8
#define N_LLOYD 3
#define TINY    1e-15f /* below any scale f16 can hold: such blocks are zero */

struct sums {
    double w, x, xx, v, vv, xv; /* weighted */
};

float quant_round_f16(float d)
{
    const float limit = 65504;
    return f16_to_f32(f16_from_f32(d > limit ? limit : d < -limit ? -limit : d));
}

/* Nearest whole number of |v| < 2^22, half to even. */
static inline float round_whole(float v)
{
    return (v + 12582912.0f) - 12582912.0f;
}

int quant_iq4_index(float v)
{
    /* Codes are at least 11 apart, so eight units hold at most one middle between two of them:
     * first[b] counts the middles below -128 + 8b. */
    static const uint8_t first[31] = { 0, 0, 1, 1,  1,  2,  2,  3,  3,  4,  4,  5,  5,  6,  6, 7,
                                       8, 9, 9, 10, 11, 11, 12, 12, 13, 13, 14, 14, 14, 15, 15 };
    static const float middle[16] = { -115.5f, -93.5f, -74,   -57,   -42, -28.5f, -16, -4.5f,
                                      7,       19,     31.5f, 45.5f, 61,  79,     101, INFINITY };
    const float t = v < -127 ? -127 : v > 113 ? 113 : v;
    const int k = first[(int)(t + 128) >> 3];
    return k + (t > middle[k]);
}

/* v[i] = the value of the code nearest to x[i] * inverse. */
static void nearest(const struct quant_code *c, float *v, const float *x, float inverse, int n)
{
    if (c->iq4) {
        for (int i = 0; i < n; i++) {
            v[i] = quant_iq4[quant_iq4_index(x[i] * inverse)];
        }
        return;
    }
    const float lo = c->lo, hi = c->hi;
    for (int i = 0; i < n; i++) {
        float t = x[i] * inverse;
        t = t < lo ? lo : t;
        t = t > hi ? hi : t;
        v[i] = round_whole(t);
    }
}

static double lane_sum(const float *a)
{
    return (double)((a[0] + a[4]) + (a[2] + a[6])) + (double)((a[1] + a[5]) + (a[3] + a[7]));
}

/* vv and xv only. */
static void sum_codes(struct sums *s, const float *x, const float *w, const float *v, int n)
{
    float vv[N_LANES] = { 0 }, xv[N_LANES] = { 0 };
    for (int i = 0; i < n; i += N_LANES) {
        for (int j = 0; j < N_LANES; j++) {
            const float wv = w[i + j] * v[i + j];
            vv[j] += wv * v[i + j];
            xv[j] += wv * x[i + j];
        }
    }
    s->vv = lane_sum(vv);
    s->xv = lane_sum(xv);
}

static void sum_inputs(struct sums *s, const float *x, const float *w, int n)
{
    float sw[N_LANES] = { 0 }, sx[N_LANES] = { 0 }, sxx[N_LANES] = { 0 };
    for (int i = 0; i < n; i += N_LANES) {
        for (int j = 0; j < N_LANES; j++) {
            const float wx = w[i + j] * x[i + j];
            sw[j] += w[i + j];
            sx[j] += wx;
            sxx[j] += wx * x[i + j];
        }
    }
    s->w = lane_sum(sw);
    s->x = lane_sum(sx);
    s->xx = lane_sum(sxx);
}

/* sum w v: what a line needs besides. */
static double sum_v(const float *w, const float *v, int n)
{
    float a[N_LANES] = { 0 };
    for (int i = 0; i < n; i += N_LANES) {
        for (int j = 0; j < N_LANES; j++) {
            a[j] += w[i + j] * v[i + j];
        }
    }
    return lane_sum(a);
}

/* --- a scale ------------------------------------------------------------------------------- */

struct scale_search {
    const struct quant_code *c;
    const float *x, *w;
    int n;
    double scale, gain; /* the best so far; gain: by how much it lowers sum w x^2 */
};

static bool try_inverse(struct scale_search *f, float inverse)
{
    float v[QUANT_K];
    struct sums s;
    nearest(f->c, v, f->x, inverse, f->n);
    sum_codes(&s, f->x, f->w, v, f->n);
    if (!(s.vv > 0) || s.xv * (s.xv / s.vv) <= f->gain) {
        return false;
    }
    f->scale = s.xv / s.vv;
    f->gain = s.xv * f->scale;
    return true;
}

/* The element of largest magnitude, with its sign. */
static float extreme(const float *x, int n)
{
    float e = 0;
    for (int i = 0; i < n; i++) {
        e = fabsf(x[i]) > fabsf(e) ? x[i] : e;
    }
    return e;
}

float quant_fit_scale(const struct quant_code *c, const float *x, const float *w, int n)
{
    const float e = extreme(x, n);
    if (fabsf(e) < TINY) {
        return 0;
    }
    struct scale_search f = { c, x, w, n, 0, 0 };
    /* From clipping a quarter to leaving a tenth unused, both signs: the range is lopsided. */
    const int n_step = 9, stride = c->hi > 8 && !c->iq4 ? 3 : 1; /* fine codes need fewer */
    for (int i = -n_step; i <= n_step; i += stride) {
        const float stretch = c->iq4 ? 0.9f + 0.025f * (float)(i + 5) : 0;
        const float step = 0.1f * (float)i;
        (void)try_inverse(&f, c->iq4 ? c->lo * stretch / e : (c->lo + step) / e);
        (void)try_inverse(&f, c->iq4 ? c->hi * stretch / e : (c->hi + step) / e);
    }
    for (int i = 0; i < N_LLOYD && f.scale != 0; i++) {
        if (!try_inverse(&f, (float)(1 / f.scale))) {
            break;
        }
    }
    return (float)f.scale;
}

/* --- a line -------------------------------------------------------------------------------- */

struct line_search {
    const float *x, *w;
    int n;
    float max;
    bool any_min;
    struct sums s;
    double scale, base, error; /* x ~ scale q + base */
};

/* q[i] in 0..max nearest to (x - base) / scale. */
static void nearest_line(float *q, const float *x, float base, float inverse, float max, int n)
{
    for (int i = 0; i < n; i++) {
        float t = (x[i] - base) * inverse;
        t = t < 0 ? 0 : t;
        t = t > max ? max : t;
        q[i] = round_whole(t);
    }
}

/* The least-squares line through (q, x); false when all q are equal. */
static bool solve_line(const struct sums *s, bool any_min, double *scale, double *base)
{
    const double det = s->w * s->vv - s->v * s->v;
    if (!(det > 1e-9 * s->w * s->vv)) {
        return false;
    }
    *scale = (s->w * s->xv - s->x * s->v) / det;
    *base = (s->vv * s->x - s->v * s->xv) / det;
    if (*base > 0 && !any_min) {
        *base = 0;
        *scale = s->xv / s->vv;
    }
    return *scale > 0;
}

static bool try_line(struct line_search *f, float base, float inverse)
{
    float q[QUANT_K];
    double scale, b;
    nearest_line(q, f->x, base, inverse, f->max, f->n);
    sum_codes(&f->s, f->x, f->w, q, f->n);
    f->s.v = sum_v(f->w, q, f->n);
    if (!solve_line(&f->s, f->any_min, &scale, &b)) {
        return false;
    }
    const struct sums *s = &f->s;
    const double error =
        s->xx + scale * (scale * s->vv - 2 * s->xv) + b * (b * s->w - 2 * s->x + 2 * scale * s->v);
    if (error >= f->error) {
        return false;
    }
    f->scale = scale;
    f->base = b;
    f->error = error;
    return true;
}

void quant_fit_line(float *s, float *m, const float *x, const float *w, int n, int max,
                    bool any_min)
{
    float lo = x[0], hi = x[0];
    for (int i = 1; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    lo = lo > 0 && !any_min ? 0 : lo;
    *s = 0;
    *m = -lo;
    if (hi - lo < TINY) {
        return;
    }
    struct line_search f = { .x = x, .w = w, .n = n, .max = (float)max, .any_min = any_min };
    sum_inputs(&f.s, x, w, n);
    f.error = INFINITY;
    f.scale = (hi - lo) / (float)max;
    f.base = lo;
    const int n_step = 20;
    for (int i = 0; i <= n_step; i++) {
        const float top = (float)max - 0.9f + 0.09f * (float)i;
        (void)try_line(&f, lo, top / (hi - lo));
    }
    for (int i = 0; i < N_LLOYD; i++) {
        if (!try_line(&f, (float)f.base, (float)(1 / f.scale))) {
            break;
        }
    }
    *s = (float)f.scale;
    *m = (float)-f.base;
}

/* --- super-blocks -------------------------------------------------------------------------- */

static int clamp_whole(float v, int lo, int hi)
{
    return (int)round_whole(v < (float)lo ? (float)lo : v > (float)hi ? (float)hi : v);
}

static float inverse_of(float s)
{
    return fabsf(s) < FLT_MIN * 4 ? 0 : 1 / s;
}

static float error_of(const float *x, const float *w, const float *v, float scale, float base,
                      int n)
{
    float a[N_LANES] = { 0 };
    for (int i = 0; i < n; i += N_LANES) {
        for (int j = 0; j < N_LANES; j++) {
            const float e = x[i + j] - (scale * v[i + j] + base);
            a[j] += w[i + j] * e * e;
        }
    }
    return (float)lane_sum(a);
}

/* Codes of one sub-block under the whole-number scale that serves it best: the rounded one or a
 * neighbour. */
static void settle_scale(struct quant_super *out, const struct quant_code *c, const float *x,
                         const float *w, int i_sub, int n, const int *range)
{
    float v[QUANT_K], best = INFINITY;
    const int centre = out->scale[i_sub];
    for (int s = centre - 1; s <= centre + 1; s++) {
        if (s < range[0] || s > range[1]) {
            continue;
        }
        const float scale = out->d * (float)s;
        nearest(c, v, x, inverse_of(scale), n);
        const float e = error_of(x, w, v, scale, 0, n);
        if (e < best) {
            best = e;
            out->scale[i_sub] = s;
            memcpy(out->v + i_sub * n, v, (size_t)n * sizeof(v[0]));
        }
    }
}

/* The d that fits all codes and scales at once. */
static float refit_d(const struct quant_super *out, const float *x, const float *w, int n_sub)
{
    double vv = 0, xv = 0;
    for (int i = 0; i < QUANT_K / n_sub; i++) {
        struct sums s;
        sum_codes(&s, x + i * n_sub, w + i * n_sub, out->v + i * n_sub, n_sub);
        xv += s.xv * out->scale[i];
        vv += s.vv * out->scale[i] * out->scale[i];
    }
    return vv > 0 ? quant_round_f16((float)(xv / vv)) : 0;
}

void quant_fit_scales(struct quant_super *out, const struct quant_code *c, const float *x,
                      const float *w, int n_sub, int scale_lo, int scale_hi)
{
    const int range[2] = { scale_lo, scale_hi };
    float s[16];
    for (int i = 0; i < QUANT_K / n_sub; i++) {
        s[i] = quant_fit_scale(c, x + i * n_sub, w + i * n_sub, n_sub);
    }
    memset(out, 0, sizeof(*out));
    out->d = quant_round_f16(extreme(s, QUANT_K / n_sub) / (float)scale_lo);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < QUANT_K / n_sub; i++) {
            out->scale[i] = clamp_whole(s[i] * inverse_of(out->d), scale_lo, scale_hi);
            settle_scale(out, c, x + i * n_sub, w + i * n_sub, i, n_sub, range);
        }
        if (pass == 0) {
            const float d = refit_d(out, x, w, n_sub);
            out->d = d == 0 ? out->d : d;
        }
    }
}

static void settle_line(struct quant_super *out, const float *x, const float *w, int i_sub, int n,
                        int max, int scale_max)
{
    float q[QUANT_K], best = INFINITY;
    const int s0 = out->scale[i_sub], m0 = out->min[i_sub];
    for (int k = 0; k < 9; k++) {
        const int s = s0 + k % 3 - 1, m = m0 + k / 3 - 1;
        if (s < 0 || s > scale_max || m < 0 || m > scale_max) {
            continue;
        }
        const float scale = out->d * (float)s, base = -(out->dmin * (float)m);
        nearest_line(q, x, base, inverse_of(scale), (float)max, n);
        const float e = error_of(x, w, q, scale, base, n);
        if (e < best) {
            best = e;
            out->scale[i_sub] = s;
            out->min[i_sub] = m;
            memcpy(out->v + i_sub * n, q, (size_t)n * sizeof(q[0]));
        }
    }
}

/* d and dmin that fit all codes, scales and minima at once; left alone where that has no sense. */
static void refit_line(struct quant_super *out, const float *x, const float *w, int n_sub)
{
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0; /* x ~ d a + dmin b */
    for (int i = 0; i < QUANT_K / n_sub; i++) {
        const float *xi = x + i * n_sub, *wi = w + i * n_sub, *v = out->v + i * n_sub;
        const double sc = out->scale[i], mn = -out->min[i];
        struct sums s;
        sum_codes(&s, xi, wi, v, n_sub);
        sum_inputs(&s, xi, wi, n_sub);
        aa += s.vv * sc * sc;
        ab += sum_v(wi, v, n_sub) * sc * mn;
        bb += s.w * mn * mn;
        xa += s.xv * sc;
        xb += s.x * mn;
    }
    const double det = aa * bb - ab * ab;
    double d = aa > 0 ? xa / aa : 0, dmin = 0;
    if (bb > 0 && det > 1e-9 * aa * bb) {
        d = (xa * bb - xb * ab) / det;
        dmin = (xb * aa - xa * ab) / det;
    }
    if (d > 0 && (dmin > 0 || bb == 0)) {
        out->d = quant_round_f16((float)d);
        out->dmin = bb == 0 ? out->dmin : quant_round_f16((float)dmin);
    }
}

void quant_fit_lines(struct quant_super *out, const float *x, const float *w, int n_sub, int max,
                     int scale_max)
{
    float s[16], m[16], s_top = 0, m_top = 0;
    for (int i = 0; i < QUANT_K / n_sub; i++) {
        quant_fit_line(&s[i], &m[i], x + i * n_sub, w + i * n_sub, n_sub, max, false);
        s_top = s[i] > s_top ? s[i] : s_top;
        m_top = m[i] > m_top ? m[i] : m_top;
    }
    memset(out, 0, sizeof(*out));
    out->d = quant_round_f16(s_top / (float)scale_max);
    out->dmin = quant_round_f16(m_top / (float)scale_max);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < QUANT_K / n_sub; i++) {
            out->scale[i] = clamp_whole(s[i] * inverse_of(out->d), 0, scale_max);
            out->min[i] = clamp_whole(m[i] * inverse_of(out->dmin), 0, scale_max);
            settle_line(out, x + i * n_sub, w + i * n_sub, i, n_sub, max, scale_max);
        }
        if (pass == 0) {
            refit_line(out, x, w, n_sub);
        }
    }
}
