/* quant_decode_k.c - super-blocks of 256 elements: K-quants and IQ4_XS.
 *
 * A super-block has one or two f16 scales and a small integer scale for each 16 or 32 elements. */
#include "kernels/ref/quant_ref.h"
#include "src/base/half.h"

static float read_f16(const uint8_t *p)
{
    return f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

/* scales[16] (low nibble: scale, high: minimum of 16 elements), qs[64], d, dmin.  Half h of the
 * elements uses 32 bytes of qs; element 128h + 32g + l is bits 2g, 2g + 1 of byte l. */
void quant_decode_q2_k(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += QUANT_K, src += 84) {
        const float d = read_f16(src + 80), dmin = read_f16(src + 82);
        for (int i = 0; i < 16; i++) {
            const float dl = d * (float)(src[i] & 15), ml = dmin * (float)(src[i] >> 4);
            const uint8_t *q = src + 16 + i / 8 * 32 + i % 2 * 16;
            const int shift = i % 8 / 2 * 2;
            for (int l = 0; l < 16; l++) {
                y[16 * i + l] = dl * (float)(q[l] >> shift & 3) - ml;
            }
        }
    }
}

/* Scale i (0..15) of Q3_K's 12 bytes: four low bits in bytes 0-7 (low nibbles 0..7, high 8..15),
 * two high bits in bits 2(i/4), 2(i/4) + 1 of byte 8 + i%4; stored plus 32. */
static int q3_scale(const uint8_t *p, int i)
{
    const int low = i < 8 ? p[i] & 15 : p[i - 8] >> 4;
    return (low | (p[8 + i % 4] >> i / 4 * 2 & 3) << 4) - 32;
}

/* hmask[32], qs[64], scales[12], d.  Low bits as in Q2_K; the third bit of element 128h + 32g + l
 * is bit 4h + g of hmask[l], and where it is not set 4 is subtracted. */
void quant_decode_q3_k(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += QUANT_K, src += 110) {
        const float d = read_f16(src + 108);
        for (int i = 0; i < 16; i++) {
            const float dl = d * (float)q3_scale(src + 96, i);
            const uint8_t *q = src + 32 + i / 8 * 32 + i % 2 * 16, *hm = src + i % 2 * 16;
            const int shift = i % 8 / 2 * 2, bit = i / 2;
            for (int l = 0; l < 16; l++) {
                const int v = (q[l] >> shift & 3) - (hm[l] >> bit & 1 ? 0 : 4);
                y[16 * i + l] = dl * (float)v;
            }
        }
    }
}

/* Scale and minimum i (0..7) of the 12 packed bytes of Q4_K and Q5_K.
 * Six bits each: 0..3 in the low bits of bytes 0-3 (scales) and 4-7 (minima); 4..7 have their low
 * nibbles in bytes 8-11 (scale low, minimum high) and their two top bits on top of bytes 0-7. */
static void scale_min(const uint8_t *packed, int i, uint8_t *scale, uint8_t *min)
{
    if (i < 4) {
        *scale = packed[i] & 63;
        *min = packed[i + 4] & 63;
        return;
    }
    *scale = (uint8_t)((packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4);
    *min = (uint8_t)(packed[i + 4] >> 4 | (packed[i] >> 6) << 4);
}

/* d, dmin, scales[12], qs[128].  Bytes 32j..32j+31: low nibbles are sub-block 2j, high 2j + 1. */
void quant_decode_q4_k(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += QUANT_K, src += 144) {
        const float d = read_f16(src), dmin = read_f16(src + 2);
        for (int i = 0; i < 8; i++) {
            uint8_t scale, min;
            scale_min(src + 4, i, &scale, &min);
            const float dl = d * (float)scale, ml = dmin * (float)min;
            const uint8_t *q = src + 16 + i / 2 * 32;
            for (int l = 0; l < 32; l++) {
                y[32 * i + l] = dl * (float)(q[l] >> i % 2 * 4 & 15) - ml;
            }
        }
    }
}

/* d, dmin, scales[12], qh[32], qs[128].  As Q4_K; bit i of qh[l] is the fifth bit of element l of
 * sub-block i. */
void quant_decode_q5_k(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += QUANT_K, src += 176) {
        const float d = read_f16(src), dmin = read_f16(src + 2);
        for (int i = 0; i < 8; i++) {
            uint8_t scale, min;
            scale_min(src + 4, i, &scale, &min);
            const float dl = d * (float)scale, ml = dmin * (float)min;
            const uint8_t *qh = src + 16, *q = src + 48 + i / 2 * 32;
            for (int l = 0; l < 32; l++) {
                const int v = (q[l] >> i % 2 * 4 & 15) | (qh[l] >> i & 1) << 4;
                y[32 * i + l] = dl * (float)v - ml;
            }
        }
    }
}

/* ql[128], qh[64], scales int8[16], d.  Half h has 64 bytes of ql and 32 of qh.  Groups of 32:
 * g 0 and 1 are the low nibbles of its bytes 0-31 and 32-63, g 2 and 3 the high ones; bits 2g and
 * 2g + 1 of qh[l] are on top. */
void quant_decode_q6_k(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += QUANT_K, src += 210) {
        const float d = read_f16(src + 208);
        for (int i = 0; i < 16; i++) {
            const float dl = d * (float)(int8_t)src[192 + i];
            const int h = i / 8, g = i % 8 / 2, at = i % 2 * 16;
            const uint8_t *ql = src + 64 * h + g % 2 * 32 + at, *qh = src + 128 + 32 * h + at;
            for (int l = 0; l < 16; l++) {
                const int v = (ql[l] >> g / 2 * 4 & 15) | (qh[l] >> 2 * g & 3) << 4;
                y[16 * i + l] = dl * (float)(v - 32);
            }
        }
    }
}

/* d, scales_h u16, scales_l[4], qs[128].  Scale i of 32 elements: nibble i of scales_l, bits 2i and
 * 2i + 1 of scales_h on top, minus 32.  Within 32 elements as IQ4_NL. */
void quant_decode_iq4_xs(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += QUANT_K, src += 136) {
        const float d = read_f16(src);
        const int high = src[2] | src[3] << 8;
        for (int i = 0; i < 8; i++) {
            const int ls = (src[4 + i / 2] >> i % 2 * 4 & 15) | (high >> 2 * i & 3) << 4;
            const float dl = d * (float)(ls - 32);
            const uint8_t *q = src + 8 + 16 * i;
            for (int l = 0; l < 16; l++) {
                y[32 * i + l] = dl * (float)quant_iq4[q[l] & 15];
                y[32 * i + l + 16] = dl * (float)quant_iq4[q[l] >> 4];
            }
        }
    }
}
