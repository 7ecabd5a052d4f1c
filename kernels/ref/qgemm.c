/* qgemm.c - see qgemm.h.  Written element by element from the table of block layouts. */
#include "kernels/qgemm.h"
#include "kernels/qwiden.h"

#include <math.h>
#include <string.h>

#include "src/base/half.h"

static const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113 };
static const int8_t mxfp4_values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

/* Byte i of column j in a field of words that begins at p. */
static unsigned byte_at(const uint8_t *p, int i, int j)
{
    return p[(i / 4 * QGEMM_NR + j) * 4 + i % 4];
}

static float half_at(const uint8_t *p, int j)
{
    uint16_t h;
    memcpy(&h, p + 2 * j, 2);
    return f16_to_f32(h);
}

/* Fields in a unit, as words of QGEMM_NR columns: how far field 1, 2, 3 are from the start. */
#define WORDS(n) ((size_t)(n)*4 * QGEMM_NR)
#define HALVES   ((size_t)2 * QGEMM_NR)

/* The nibble of element k (0..255) of column j where blocks of 32 hold k and k + 16 in a byte. */
static unsigned nibble_block(const uint8_t *p, int k, int j)
{
    const unsigned byte = byte_at(p, k / 32 * 16 + k % 16, j);
    return k % 32 < 16 ? byte & 15 : byte >> 4;
}

/* ... and where 64 elements hold k and k + 32 in a byte. */
static unsigned nibble_k(const uint8_t *p, int k, int j)
{
    const unsigned byte = byte_at(p, k / 64 * 32 + k % 32, j);
    return k % 64 < 32 ? byte & 15 : byte >> 4;
}

static unsigned code_k(const uint8_t *u, enum dtype t, int k, int j)
{
    const int half = k / 128, group = k % 128 / 32, l = k % 32;
    switch (t) {
    case DTYPE_Q2_K:
        return byte_at(u, 32 * half + l, j) >> (2 * group) & 3;
    case DTYPE_Q3_K:
        return (byte_at(u, 32 * half + l, j) >> (2 * group) & 3) |
               (byte_at(u + WORDS(16), l, j) >> (4 * half + group) & 1) << 2;
    case DTYPE_Q4_K:
        return nibble_k(u, k, j);
    case DTYPE_Q5_K:
        return nibble_k(u, k, j) | (byte_at(u + WORDS(32), l, j) >> (k / 32) & 1) << 4;
    case DTYPE_Q6_K: {
        const unsigned byte = byte_at(u, 64 * half + 32 * (group % 2) + l, j);
        return (group < 2 ? byte & 15 : byte >> 4) |
               (byte_at(u + WORDS(32), 32 * half + l, j) >> (2 * group) & 3) << 4;
    }
    default:
        return (unsigned)(iq4_values[nibble_block(u, k, j)] + 128);
    }
}

/* n: blocks in the unit; element k is of block k / 32. */
static unsigned code_block(const uint8_t *u, enum dtype t, int n, int k, int j)
{
    switch (t) {
    case DTYPE_Q8_0:
        return byte_at(u, k, j);
    case DTYPE_Q5_0:
    case DTYPE_Q5_1:
        return nibble_block(u, k, j) |
               (byte_at(u + WORDS(4 * n), k / 32 * 4 + k % 4, j) >> (k % 32 / 4) & 1) << 4;
    case DTYPE_IQ4_NL:
        return (unsigned)(iq4_values[nibble_block(u, k, j)] + 128);
    case DTYPE_MXFP4:
        return (unsigned)(mxfp4_values[nibble_block(u, k, j)] + 128);
    default:
        return nibble_block(u, k, j);
    }
}

/* The twelve bytes of 6-bit scales and minima of Q4_K and Q5_K. */
static void scales_six(struct qgemm_panel *p, const uint8_t *s, int j)
{
    for (int i = 0; i < 8; i++) {
        unsigned scale, min;
        if (i < 4) {
            scale = byte_at(s, i, j) & 63;
            min = byte_at(s, 4 + i, j) & 63;
        } else {
            scale = (byte_at(s, 4 + i, j) & 15) | byte_at(s, i - 4, j) >> 6 << 4;
            min = byte_at(s, 4 + i, j) >> 4 | byte_at(s, i, j) >> 6 << 4;
        }
        p->factor[i][j][0] = (int16_t)scale;
        p->pair[i / 4 * 2 + i % 2][j][i % 4 / 2] = (int16_t)min;
    }
}

/* Scales of the K kind; returns where the f16 scales of the block begin. */
static const uint8_t *scales_k(struct qgemm_panel *p, const uint8_t *u, enum dtype t, int j)
{
    const uint8_t *s = u + WORDS(t == DTYPE_Q2_K   ? 16
                                 : t == DTYPE_Q3_K ? 24
                                 : t == DTYPE_Q5_K ? 40
                                 : t == DTYPE_Q6_K ? 48
                                                   : 32);
    if (t == DTYPE_Q4_K || t == DTYPE_Q5_K) {
        scales_six(p, s, j);
        return s + WORDS(3);
    }
    if (t == DTYPE_IQ4_XS) {
        uint16_t high;
        memcpy(&high, s + WORDS(1) + 2 * j, 2);
        for (int i = 0; i < 8; i++) {
            const unsigned low = byte_at(s, i / 2, j) >> (4 * (i % 2)) & 15;
            p->scale[i][j] = (float)((int)(low | (high >> (2 * i) & 3u) << 4) - 32);
        }
        return s + WORDS(1) + HALVES;
    }
    for (int i = 0; i < 16; i++) {
        if (t == DTYPE_Q2_K) {
            p->factor[i][j][0] = byte_at(s, i, j) & 15;
            p->pair[i / 4 * 2 + i % 2][j][i % 4 / 2] = (int16_t)(byte_at(s, i, j) >> 4);
        } else if (t == DTYPE_Q6_K) {
            p->factor[i][j][0] = (int8_t)byte_at(s, i, j);
        } else {
            const unsigned low = byte_at(s, i % 8, j) >> (i / 8 * 4) & 15;
            const unsigned high = byte_at(s, 8 + i % 4, j) >> (2 * (i / 4)) & 3;
            p->factor[i][j][0] = (int16_t)((int)(low | high << 4) - 32);
        }
    }
    return s + WORDS(t == DTYPE_Q3_K ? 3 : 4);
}

/* The 8-bit exponent of MXFP4, halved because its table is doubled. */
static float exponent_half(unsigned e)
{
    const uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static void unpack(struct qgemm_panel *p, const uint8_t *u, enum dtype t, int n)
{
    p->code = p->bytes;
    for (int j = 0; j < QGEMM_NR; j++) {
        for (int k = 0; k < n * dtype_info(t)->block; k++) {
            p->bytes[(k / 4 * QGEMM_NR + j) * 4 + k % 4] =
                (uint8_t)(qact_kind_of(t) == QACT_K ? code_k(u, t, k, j)
                                                    : code_block(u, t, n, k, j));
        }
        if (qact_kind_of(t) == QACT_K) {
            const uint8_t *d = scales_k(p, u, t, j);
            p->d[j] = half_at(d, j);
            const bool min = qgemm_form_of(t) == QGEMM_K32_MIN || qgemm_form_of(t) == QGEMM_K16_MIN;
            p->dmin[j] = min ? half_at(d + HALVES, j) : 0.0f;
            continue;
        }
        const int words = t == DTYPE_Q8_0 ? 8 : t == DTYPE_Q5_0 || t == DTYPE_Q5_1 ? 5 : 4;
        const uint8_t *d = u + WORDS(words * n);
        for (int b = 0; b < n; b++) {
            p->scale[b][j] = t == DTYPE_MXFP4 ? exponent_half(d[b * QGEMM_NR + j])
                                              : half_at(d + (size_t)b * HALVES, j);
            p->min[b][j] = qgemm_form_of(t) == QGEMM_BLOCK_MIN
                               ? half_at(d + (size_t)(n + b) * HALVES, j)
                               : 0.0f;
        }
    }
}

/* The exact sum over codes k0 .. k0 + n - 1 of column j. */
static int32_t dot(const struct qgemm_panel *p, const int8_t *x, int k0, int n, int j, int offset)
{
    int32_t sum = 0;
    for (int k = k0; k < k0 + n; k++) {
        sum += (p->code[(k / 4 * QGEMM_NR + j) * 4 + k % 4] - offset) * x[k];
    }
    return sum;
}

static float unit_k(float acc, const struct qgemm_panel *p, enum dtype t, const int8_t *x,
                    const union qact_meta *m, int j)
{
    const enum qgemm_form form = qgemm_form_of(t);
    const bool min = form == QGEMM_K32_MIN || form == QGEMM_K16_MIN;
    const int n = form == QGEMM_K16_MIN || form == QGEMM_K16 ? 16 : 8;
    float wide = 0.0f;
    int32_t exact = 0;
    for (int i = 0; i < n; i++) {
        const int32_t sum = dot(p, x, i * (256 / n), 256 / n, j, min ? 0 : 1 << qgemm_shift(t));
        if (form == QGEMM_K32) {
            wide = fmaf((float)sum, p->scale[i][j], wide);
        } else {
            exact += sum * p->factor[i][j][0];
        }
    }
    const float s = form == QGEMM_K32 ? wide : (float)exact;
    acc = fmaf(s, p->d[j] * m->k.d, acc);
    if (!min) {
        return acc;
    }
    int32_t mins = 0;
    for (int i = 0; i < n / 2; i++) {
        for (int half = 0; half < 2; half++) {
            mins += p->pair[i][j][half] * (n == 16 ? m->k.pair16[i][half] : m->k.pair32[i][half]);
        }
    }
    return fmaf((float)mins, -(p->dmin[j] * m->k.d), acc);
}

static float unit_block(float acc, const struct qgemm_panel *p, enum dtype t, int n,
                        const int8_t *x, const union qact_meta *m, int j)
{
    const bool min = qgemm_form_of(t) == QGEMM_BLOCK_MIN;
    for (int b = 0; b < n; b++) {
        const int32_t sum = dot(p, x, 32 * b, 32, j, min ? 0 : 1 << qgemm_shift(t));
        acc = fmaf((float)sum, p->scale[b][j] * m->block.d[b], acc);
        if (min) {
            acc = fmaf(p->min[b][j], m->block.sum[b], acc);
        }
    }
    return acc;
}

void qgemm_tile_ref(const struct qgemm_tile *t)
{
    const int block = dtype_info(t->type)->block;
    const uint8_t *unit = t->w;
    memset(t->acc, 0, (size_t)t->rows * QGEMM_NR * sizeof(float));
    for (int u = 0, k = 0; k < t->n_in; u++, k += QGEMM_K) {
        const int n = (t->n_in - k < QGEMM_K ? t->n_in - k : QGEMM_K) / block;
        unpack(t->panel, unit, t->type, n);
        unit += qgemm_unit_bytes(t->type, n);
        for (int r = 0; r < t->rows; r++) {
            const size_t at = (size_t)u * (size_t)t->x->rows + (size_t)(t->row0 + r);
            const int8_t *x = t->x->code + at * QGEMM_K;
            float *acc = t->acc + (size_t)r * QGEMM_NR;
            for (int j = 0; j < QGEMM_NR; j++) {
                acc[j] = block == 256
                             ? unit_k(acc[j], t->panel, t->type, x, t->x->meta + at, j)
                             : unit_block(acc[j], t->panel, t->type, n, x, t->x->meta + at, j);
            }
        }
    }
}

void qgemm_widen_ref(float *dst, const void *w, enum dtype t, int n_blocks,
                     struct qgemm_panel *scratch)
{
    unpack(scratch, w, t, n_blocks);
    qwiden(dst, scratch, t, n_blocks);
}
