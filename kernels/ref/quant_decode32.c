/* quant_decode32.c - blocks of 32 elements.
 *
 * Element order of all 4- and 5-bit ones: byte l holds element l in its low nibble and l + 16 in
 * its high one; bit i of the 32-bit qh is the fifth bit of element i. */
#include <string.h>

#include "kernels/ref/quant_ref.h"
#include "src/base/half.h"

const int8_t quant_iq4[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113 };
const int8_t quant_mxfp4[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

static float read_f16(const uint8_t *p)
{
    return f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

float quant_e8m0_half(uint8_t e)
{
    /* 2^(e - 128); the two smallest are subnormal. */
    const uint32_t bits = e < 2 ? (uint32_t)0x00200000 << e : (uint32_t)(e - 1) << 23;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* The fifth bit of element i, as 16 or 0. */
static int fifth_bit(const uint8_t *qh, int i)
{
    return (qh[i / 8] >> i % 8 & 1) << 4;
}

void quant_decode_q4_0(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += 32, src += 18) {
        const float d = read_f16(src);
        for (int l = 0; l < 16; l++) {
            y[l] = d * (float)((src[2 + l] & 15) - 8);
            y[l + 16] = d * (float)((src[2 + l] >> 4) - 8);
        }
    }
}

void quant_decode_q4_1(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += 32, src += 20) {
        const float d = read_f16(src), m = read_f16(src + 2);
        for (int l = 0; l < 16; l++) {
            y[l] = d * (float)(src[4 + l] & 15) + m;
            y[l + 16] = d * (float)(src[4 + l] >> 4) + m;
        }
    }
}

void quant_decode_q5_0(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += 32, src += 22) {
        const float d = read_f16(src);
        const uint8_t *qh = src + 2, *qs = src + 6;
        for (int l = 0; l < 16; l++) {
            y[l] = d * (float)(((qs[l] & 15) | fifth_bit(qh, l)) - 16);
            y[l + 16] = d * (float)((qs[l] >> 4 | fifth_bit(qh, l + 16)) - 16);
        }
    }
}

void quant_decode_q5_1(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += 32, src += 24) {
        const float d = read_f16(src), m = read_f16(src + 2);
        const uint8_t *qh = src + 4, *qs = src + 8;
        for (int l = 0; l < 16; l++) {
            y[l] = d * (float)((qs[l] & 15) | fifth_bit(qh, l)) + m;
            y[l + 16] = d * (float)(qs[l] >> 4 | fifth_bit(qh, l + 16)) + m;
        }
    }
}

void quant_decode_q8_0(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += 32, src += 34) {
        const float d = read_f16(src);
        for (int l = 0; l < 32; l++) {
            y[l] = d * (float)(int8_t)src[2 + l];
        }
    }
}

void quant_decode_iq4_nl(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += 32, src += 18) {
        const float d = read_f16(src);
        for (int l = 0; l < 16; l++) {
            y[l] = d * (float)quant_iq4[src[2 + l] & 15];
            y[l + 16] = d * (float)quant_iq4[src[2 + l] >> 4];
        }
    }
}

void quant_decode_mxfp4(float *y, const uint8_t *src, size_t n)
{
    for (const float *end = y + n; y < end; y += 32, src += 17) {
        const float d = quant_e8m0_half(src[0]);
        for (int l = 0; l < 16; l++) {
            y[l] = d * (float)quant_mxfp4[src[1 + l] & 15];
            y[l + 16] = d * (float)quant_mxfp4[src[1 + l] >> 4];
        }
    }
}
