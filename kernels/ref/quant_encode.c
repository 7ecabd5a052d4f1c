/* quant_encode.c - one row into blocks: weights of the errors, then one encoder per type.
 *
 * Without an importance the plain types (Q4_0 to Q8_0) round as ggml's reference does: the extreme
 * value decides the scale.  With one, and always for the others, a search (quant_fit.h) makes the
 * weighted square error small.  The weight of an element is importance * sqrt(mean x^2 + x^2):
 * large weights carry more of the product's error than small ones, but not as their square. */
#include <math.h>
#include <string.h>

#include "kernels/quant.h"
#include "kernels/ref/quant_fit.h"
#include "kernels/widen.h"
#include "src/base/half.h"

/* One block; w NULL: round as the reference. */
typedef void encode_fn(uint8_t *dst, const float *x, const float *w);

static void put_f16(uint8_t *p, float f)
{
    const uint16_t h = f16_from_f32(quant_round_f16(f));
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

/* Codes of 32 elements as nibbles: l low, l + 16 high. */
static void put_nibbles(uint8_t *qs, const uint8_t *q)
{
    for (int l = 0; l < 16; l++) {
        qs[l] = (uint8_t)((q[l] & 15) | (q[l + 16] & 15) << 4);
    }
}

static void put_fifth_bits(uint8_t *qh, const uint8_t *q)
{
    memset(qh, 0, 4);
    for (int l = 0; l < 32; l++) {
        qh[l / 8] |= (uint8_t)((q[l] >> 4 & 1) << l % 8);
    }
}

static int clamp_code(float v, int max)
{
    return v < 0 ? 0 : v > (float)max ? max : (int)v;
}

/* d * (q - half), half = 8 or 16. */
static float code_centred(uint8_t *q, const float *x, const float *w, int half)
{
    float d = 0;
    if (w) {
        const struct quant_code c = { (float)-half, (float)(half - 1), false };
        d = quant_fit_scale(&c, x, w, 32);
    } else {
        float extreme = 0;
        for (int i = 0; i < 32; i++) {
            extreme = fabsf(x[i]) > fabsf(extreme) ? x[i] : extreme;
        }
        d = extreme / (float)-half;
    }
    const float step = w ? quant_round_f16(d) : d;
    const float inverse = fabsf(step) < 1e-30f ? 0 : 1 / step;
    for (int i = 0; i < 32; i++) {
        q[i] = (uint8_t)clamp_code(x[i] * inverse + (float)half + 0.5f, 2 * half - 1);
    }
    return d;
}

/* d * q + m, q in 0..max. */
static float code_line(uint8_t *q, float *m, const float *x, const float *w, int max)
{
    float d, lo = x[0], hi = x[0];
    for (int i = 1; i < 32; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    d = (hi - lo) / (float)max;
    *m = lo;
    if (w) {
        quant_fit_line(&d, m, x, w, 32, max, true);
        d = quant_round_f16(d);
        *m = quant_round_f16(-*m);
    }
    const float inverse = d < 1e-30f ? 0 : 1 / d;
    for (int i = 0; i < 32; i++) {
        q[i] = (uint8_t)clamp_code((x[i] - *m) * inverse + 0.5f, max);
    }
    return d;
}

static void encode_q4_0(uint8_t *dst, const float *x, const float *w)
{
    uint8_t q[32];
    put_f16(dst, code_centred(q, x, w, 8));
    put_nibbles(dst + 2, q);
}

static void encode_q4_1(uint8_t *dst, const float *x, const float *w)
{
    uint8_t q[32];
    float m;
    put_f16(dst, code_line(q, &m, x, w, 15));
    put_f16(dst + 2, m);
    put_nibbles(dst + 4, q);
}

static void encode_q5_0(uint8_t *dst, const float *x, const float *w)
{
    uint8_t q[32];
    put_f16(dst, code_centred(q, x, w, 16));
    put_fifth_bits(dst + 2, q);
    put_nibbles(dst + 6, q);
}

static void encode_q5_1(uint8_t *dst, const float *x, const float *w)
{
    uint8_t q[32];
    float m;
    put_f16(dst, code_line(q, &m, x, w, 31));
    put_f16(dst + 2, m);
    put_fifth_bits(dst + 4, q);
    put_nibbles(dst + 8, q);
}

/* 127 steps each way: the extreme value decides, whatever matters. */
static void encode_q8_0(uint8_t *dst, const float *x, const float *w)
{
    (void)w;
    float top = 0;
    for (int i = 0; i < 32; i++) {
        top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
    }
    const float d = top / 127, inverse = d < 1e-30f ? 0 : 1 / d;
    put_f16(dst, d);
    for (int i = 0; i < 32; i++) {
        dst[2 + i] = (uint8_t)(int8_t)roundf(x[i] * inverse);
    }
}

static void encode_iq4_nl(uint8_t *dst, const float *x, const float *w)
{
    const struct quant_code c = { -127, 113, true };
    const float d = quant_round_f16(quant_fit_scale(&c, x, w, 32));
    uint8_t q[32];
    for (int i = 0; i < 32; i++) {
        q[i] = (uint8_t)quant_iq4_index(d == 0 ? 0 : x[i] / d);
    }
    put_f16(dst, d);
    put_nibbles(dst + 2, q);
}

static int mxfp4_index(float v)
{
    static const float middle[7] = { 0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10 };
    const float a = fabsf(v);
    int k = 0;
    for (int i = 0; i < 7; i++) {
        k += a > middle[i];
    }
    return k != 0 && v < 0 ? k + 8 : k;
}

static float mxfp4_error(uint8_t *q, const float *x, const float *w, int e)
{
    const float d = quant_e8m0_half((uint8_t)e);
    float sum = 0;
    for (int i = 0; i < 32; i++) {
        q[i] = (uint8_t)mxfp4_index(x[i] / d);
        const float r = x[i] - d * (float)quant_mxfp4[q[i]];
        sum += (w ? w[i] : 1) * r * r;
    }
    return sum;
}

/* The power of two that leaves the least error: the one that just holds the extreme value (6 is
 * the largest code), or a neighbour. */
static void encode_mxfp4(uint8_t *dst, const float *x, const float *w)
{
    float top = 0, best = INFINITY;
    for (int i = 0; i < 32; i++) {
        top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
    }
    memset(dst, 0, 17);
    if (top < 1e-30f) {
        return;
    }
    int exponent;
    (void)frexpf(top, &exponent); /* top in [2^(exponent - 1), 2^exponent) */
    for (int e = exponent - 4; e <= exponent - 2; e++) {
        uint8_t q[32];
        const int biased = e + 127 < 0 ? 0 : e + 127 > 254 ? 254 : e + 127;
        const float error = mxfp4_error(q, x, w, biased);
        if (error < best) {
            best = error;
            dst[0] = (uint8_t)biased;
            put_nibbles(dst + 1, q);
        }
    }
}

static void encode_q2_k(uint8_t *dst, const float *x, const float *w)
{
    struct quant_super s;
    quant_fit_lines(&s, x, w, 16, 3, 15);
    memset(dst + 16, 0, 64);
    for (int i = 0; i < 16; i++) {
        dst[i] = (uint8_t)(s.scale[i] | s.min[i] << 4);
        for (int l = 0; l < 16; l++) {
            const int q = (int)s.v[16 * i + l];
            dst[16 + i / 8 * 32 + i % 2 * 16 + l] |= (uint8_t)(q << i % 8 / 2 * 2);
        }
    }
    put_f16(dst + 80, s.d);
    put_f16(dst + 82, s.dmin);
}

static void encode_q3_k(uint8_t *dst, const float *x, const float *w)
{
    const struct quant_code c = { -4, 3, false };
    struct quant_super s;
    quant_fit_scales(&s, &c, x, w, 16, -32, 31);
    memset(dst, 0, 110);
    for (int i = 0; i < 16; i++) {
        const int scale = s.scale[i] + 32;
        dst[96 + i % 8] |= (uint8_t)((scale & 15) << i / 8 * 4);
        dst[104 + i % 4] |= (uint8_t)(scale >> 4 << i / 4 * 2);
        for (int l = 0; l < 16; l++) {
            const int q = (int)s.v[16 * i + l] + 4, at = i % 2 * 16 + l;
            dst[32 + i / 8 * 32 + at] |= (uint8_t)((q & 3) << i % 8 / 2 * 2);
            dst[at] |= (uint8_t)(q >> 2 << i / 2);
        }
    }
    put_f16(dst + 108, s.d);
}

/* The 12 bytes that scale_min of quant_decode_k.c reads. */
static void put_scale_min(uint8_t *p, const struct quant_super *s)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(s->scale[i] | s->scale[i + 4] >> 4 << 6);
        p[i + 4] = (uint8_t)(s->min[i] | s->min[i + 4] >> 4 << 6);
        p[i + 8] = (uint8_t)((s->scale[i + 4] & 15) | (s->min[i + 4] & 15) << 4);
    }
}

static void encode_q4_k(uint8_t *dst, const float *x, const float *w)
{
    struct quant_super s;
    quant_fit_lines(&s, x, w, 32, 15, 63);
    put_f16(dst, s.d);
    put_f16(dst + 2, s.dmin);
    put_scale_min(dst + 4, &s);
    for (int j = 0; j < 4; j++) {
        for (int l = 0; l < 32; l++) {
            const int low = (int)s.v[64 * j + l], high = (int)s.v[64 * j + 32 + l];
            dst[16 + 32 * j + l] = (uint8_t)(low | high << 4);
        }
    }
}

static void encode_q5_k(uint8_t *dst, const float *x, const float *w)
{
    struct quant_super s;
    quant_fit_lines(&s, x, w, 32, 31, 63);
    put_f16(dst, s.d);
    put_f16(dst + 2, s.dmin);
    put_scale_min(dst + 4, &s);
    memset(dst + 16, 0, 160);
    for (int i = 0; i < 8; i++) {
        for (int l = 0; l < 32; l++) {
            const int q = (int)s.v[32 * i + l];
            dst[16 + l] |= (uint8_t)(q >> 4 << i);
            dst[48 + i / 2 * 32 + l] |= (uint8_t)((q & 15) << i % 2 * 4);
        }
    }
}

static void encode_q6_k(uint8_t *dst, const float *x, const float *w)
{
    const struct quant_code c = { -32, 31, false };
    struct quant_super s;
    quant_fit_scales(&s, &c, x, w, 16, -128, 127);
    memset(dst, 0, 192);
    for (int i = 0; i < 16; i++) {
        const int h = i / 8, g = i % 8 / 2, at = i % 2 * 16;
        dst[192 + i] = (uint8_t)(int8_t)s.scale[i];
        for (int l = 0; l < 16; l++) {
            const int q = (int)s.v[16 * i + l] + 32;
            dst[64 * h + g % 2 * 32 + at + l] |= (uint8_t)((q & 15) << g / 2 * 4);
            dst[128 + 32 * h + at + l] |= (uint8_t)(q >> 4 << 2 * g);
        }
    }
    put_f16(dst + 208, s.d);
}

static void encode_iq4_xs(uint8_t *dst, const float *x, const float *w)
{
    const struct quant_code c = { -127, 113, true };
    struct quant_super s;
    quant_fit_scales(&s, &c, x, w, 32, -32, 31);
    memset(dst, 0, 8);
    put_f16(dst, s.d);
    for (int i = 0; i < 8; i++) {
        const int scale = s.scale[i] + 32;
        uint8_t q[32];
        dst[2 + i / 4] |= (uint8_t)(scale >> 4 << i % 4 * 2);
        dst[4 + i / 2] |= (uint8_t)((scale & 15) << i % 2 * 4);
        for (int l = 0; l < 32; l++) {
            q[l] = (uint8_t)quant_iq4_index(s.v[32 * i + l]);
        }
        put_nibbles(dst + 8 + 16 * i, q);
    }
}

/* w = importance * sqrt(mean x^2 + x^2), scaled so that the largest importance counts 1; equal
 * weights where the importance says nothing. */
static void weigh(float *w, const float *x, const float *importance, int n)
{
    float square = 0, top = 0;
    for (int i = 0; i < n; i++) {
        square += x[i] * x[i];
        if (importance) {
            top = importance[i] > top ? importance[i] : top;
        }
    }
    const float mean = square / (float)n;
    for (int i = 0; i < n; i++) {
        const float part = importance && top > 0 ? importance[i] / top : 1;
        const float size = mean > 0 ? sqrtf(1 + x[i] * x[i] / mean) : 1;
        /* Never quite nothing: all-zero weights would leave the scale undefined. */
        w[i] = part > 1e-6f ? part * size : 1e-6f * size;
    }
}

static void encode_dense(void *dst, const float *x, enum dtype t, size_t n)
{
    if (t != DTYPE_F16) {
        narrow_strided(dst, 1, t, x, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        put_f16((uint8_t *)dst + 2 * i, x[i]);
    }
}

void quant_encode(void *dst, const float *x, const float *importance, enum dtype t, size_t n)
{
    static encode_fn *const encode[DTYPE_COUNT] = {
        [DTYPE_Q4_0] = encode_q4_0,     [DTYPE_Q4_1] = encode_q4_1,
        [DTYPE_Q5_0] = encode_q5_0,     [DTYPE_Q5_1] = encode_q5_1,
        [DTYPE_Q8_0] = encode_q8_0,     [DTYPE_Q2_K] = encode_q2_k,
        [DTYPE_Q3_K] = encode_q3_k,     [DTYPE_Q4_K] = encode_q4_k,
        [DTYPE_Q5_K] = encode_q5_k,     [DTYPE_Q6_K] = encode_q6_k,
        [DTYPE_IQ4_NL] = encode_iq4_nl, [DTYPE_IQ4_XS] = encode_iq4_xs,
        [DTYPE_MXFP4] = encode_mxfp4,
    };
    if (dtype_is_dense(t)) {
        encode_dense(dst, x, t, n);
        return;
    }
    const struct dtype_info *info = dtype_info(t);
    const size_t block = (size_t)info->block;
    /* Larger values than any block can hold are cut before their squares overflow. */
    const float limit = 1e12f;
    const bool searched = importance || block == QUANT_K || t == DTYPE_IQ4_NL;
    assert(n % block == 0);
    uint8_t *to = dst;
    for (size_t at = 0; at < n; at += block, to += info->n_bytes) {
        float xb[QUANT_K], w[QUANT_K];
        for (size_t i = 0; i < block; i++) {
            const float v = x[at + i];
            xb[i] = v > limit ? limit : v < -limit ? -limit : v;
        }
        weigh(w, xb, importance ? importance + at : NULL, (int)block);
        encode[t](to, xb, searched ? w : NULL);
    }
}
