/* half.c - 16-bit and 8-bit floats, bit by bit. */
#include "src/base/half.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static float of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

float f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = h >> 10 & 0x1f;
    const uint32_t fraction = h & 0x3ff;
    if (exponent == 31) {
        return of_bits(sign | 0x7f800000 | fraction << 13);
    }
    if (exponent == 0) {
        const float v = ldexpf((float)fraction, -24);
        return sign ? -v : v;
    }
    return of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t f16_from_f32(float f)
{
    const uint32_t u = bits_of(f);
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    const uint32_t a = u & 0x7fffffff;
    if (a > 0x7f800000) {
        return sign | 0x7e00;
    }
    if (a >= 0x477ff000) {
        return sign | 0x7c00; /* 65520 and above round to infinity */
    }
    if (a < 0x38800000) {
        /* Subnormal: adding 2^-1 lets the FPU round to steps of 2^-24. */
        const uint32_t r = bits_of(of_bits(a) + 0.5f) - 0x3f000000;
        return (uint16_t)(sign | r);
    }
    const uint32_t odd = a >> 13 & 1;
    return (uint16_t)(sign | ((a - 0x38000000 + 0xfff + odd) >> 13));
}

float bf16_to_f32(uint16_t h)
{
    return of_bits((uint32_t)h << 16);
}

uint16_t bf16_from_f32(float f)
{
    const uint32_t u = bits_of(f);
    if ((u & 0x7fffffff) > 0x7f800000) {
        return (uint16_t)(u >> 16 | 0x40);
    }
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float f8_to_f32(uint8_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x80) << 24, a = h & 0x7f;
    if (a == 0x7f) {
        return of_bits(sign | 0x7fc00000);
    }
    if (a < 8) {
        const float v = ldexpf((float)a, -9);
        return sign ? -v : v;
    }
    return of_bits(sign | ((a << 20) + (120u << 23)));
}

uint8_t f8_from_f32(float f)
{
    const uint32_t u = bits_of(f);
    const uint8_t sign = (uint8_t)(u >> 24 & 0x80);
    const uint32_t a = u & 0x7fffffff;
    if (a > 0x7f800000) {
        return sign | 0x7f;
    }
    if (a >= 0x43e80000) {
        return sign | 0x7e; /* 464 lies half way to the 480 there is not */
    }
    if (a < 0x3c800000) {
        /* Below 2^-6, in steps of 2^-9: adding 2^14 lets the FPU round. */
        return (uint8_t)(sign | (bits_of(of_bits(a) + 16384.0f) - 0x46800000));
    }
    const uint32_t odd = a >> 20 & 1;
    return (uint8_t)(sign | ((a - 0x3c000000 + 0x7ffff + odd) >> 20));
}
