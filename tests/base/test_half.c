/* test_half.c - base: 16-bit floats, all 65,536 of each, against the formulas of IEEE 754, and the
 * 256 of E4M3 against OCP's.
 *
 * What a format holds is computed here in double by ldexp; rounding is checked at every midpoint
 * between neighbours and a hair beside it, which decides every float there is. */
#include <math.h>

#include "src/base/half.h"
#include "tests/t.h"

struct format {
    int exponent_bits, fraction_bits;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
};
static const struct format f16 = { 5, 10, f16_to_f32, f16_from_f32 };
static const struct format bf16 = { 8, 7, bf16_to_f32, bf16_from_f32 };

static int exponent_of(const struct format *f, unsigned h)
{
    return (int)(h >> f->fraction_bits) & ((1 << f->exponent_bits) - 1);
}

/* The value by the standard's formula; infinity counts as the next power of two. */
static double value(const struct format *f, unsigned h)
{
    const int bias = (1 << (f->exponent_bits - 1)) - 1;
    const int e = exponent_of(f, h), one = 1 << f->fraction_bits;
    const int fraction = (int)(h & ((unsigned)one - 1));
    const double v = e == 0 ? ldexp(fraction, 1 - bias - f->fraction_bits)
                            : ldexp(one + fraction, e - bias - f->fraction_bits);
    return h & 0x8000 ? -v : v;
}

static unsigned infinity_of(const struct format *f)
{
    return ((1u << f->exponent_bits) - 1) << f->fraction_bits;
}

static void check_widening(const struct format *f)
{
    for (unsigned h = 0; h < 65536; h++) {
        const unsigned a = h & 0x7fff;
        const float v = f->widen((uint16_t)h);
        if (a > infinity_of(f)) {
            T_OK(isnan(v));
            const uint16_t back = f->narrow(v);
            T_OK((back & 0x7fff) > infinity_of(f));
            continue;
        }
        if (a == infinity_of(f)) {
            T_OK(isinf(v));
        } else if ((double)v != value(f, h)) {
            T_FAIL("%04x is %a, not %a", h, (double)v, value(f, h));
        }
        T_EQ(signbit(v) != 0, h >> 15);
        T_EQ(f->narrow(v), h);
    }
}

static void narrows_to(const struct format *f, float v, unsigned want)
{
    if (f->narrow(v) != want || f->narrow(-v) != (want | 0x8000)) {
        T_FAIL("%a becomes %04x and %04x, not %04x", (double)v, f->narrow(v), f->narrow(-v), want);
    }
}

/* Between two neighbours: the middle goes to the even one, and a hair decides. */
static void check_rounding(const struct format *f)
{
    for (unsigned h = 0; h < infinity_of(f); h++) {
        const double middle = (value(f, h) + value(f, h + 1)) / 2;
        const float m = (float)middle;
        if ((double)m != middle) {
            continue; /* below float's own smallest step: bfloat16 has none such */
        }
        narrows_to(f, m, h & 1 ? h + 1 : h);
        narrows_to(f, nextafterf(m, 0), h);
        narrows_to(f, nextafterf(m, INFINITY), h + 1);
        narrows_to(f, nextafterf((float)value(f, h), INFINITY), h);
    }
    narrows_to(f, INFINITY, infinity_of(f));
    narrows_to(f, 3.40282347e38f, infinity_of(f));
}

static void f16_widens(void)
{
    check_widening(&f16);
}

static void f16_rounds(void)
{
    check_rounding(&f16);
    narrows_to(&f16, 65519.996f, 0x7bff);
    narrows_to(&f16, 65520.0f, 0x7c00);
    narrows_to(&f16, 1e-45f, 0);
    narrows_to(&f16, 0.333333343f, 0x3555);
}

static void bf16_widens(void)
{
    check_widening(&bf16);
}

static void bf16_rounds(void)
{
    check_rounding(&bf16);
    narrows_to(&bf16, 3.14159274f, 0x4049);
}

/* A NaN whose fraction lies below the 16 bits must not become infinity. */
static void nan_stays_nan(void)
{
    for (unsigned bit = 0; bit < 23; bit++) {
        const uint32_t u = 0x7f800000u | 1u << bit;
        float v;
        memcpy(&v, &u, sizeof(v));
        T_OK((f16_from_f32(v) & 0x7fff) > 0x7c00);
        T_OK((bf16_from_f32(v) & 0x7fff) > 0x7f80);
        T_OK((bf16_from_f32(-v) & 0x7fff) > 0x7f80);
    }
    const uint32_t all = 0x7fffffff;
    float v;
    memcpy(&v, &all, sizeof(v));
    T_OK((bf16_from_f32(v) & 0x7fff) > 0x7f80);
}

static double f8_value(unsigned a) /* 0..0x7e, positive */
{
    return a < 8 ? ldexp(a, -9) : ldexp(8 + (a & 7), (int)(a >> 3) - 10);
}

static void f8_widens(void)
{
    for (unsigned a = 0; a < 0x7f; a++) {
        T_OK((double)f8_to_f32((uint8_t)a) == f8_value(a));
        T_OK((double)f8_to_f32((uint8_t)(a | 0x80)) == -f8_value(a));
        T_OK(signbit(f8_to_f32((uint8_t)(a | 0x80))));
    }
    T_OK(isnan(f8_to_f32(0x7f)) && isnan(f8_to_f32(0xff)));
    T_OK(f8_value(0x7e) == 448.0 && f8_value(1) == ldexp(1, -9)); /* as OCP's table has them */
}

static void f8_is(float v, unsigned want)
{
    if (f8_from_f32(v) != want || f8_from_f32(-v) != (want | 0x80)) {
        T_FAIL("%a becomes %02x and %02x, not %02x", (double)v, f8_from_f32(v), f8_from_f32(-v),
               want);
    }
}

static void f8_rounds(void)
{
    for (unsigned a = 0; a < 0x7e; a++) {
        const float middle = (float)((f8_value(a) + f8_value(a + 1)) / 2);
        f8_is((float)f8_value(a), a);
        f8_is(middle, a & 1 ? a + 1 : a);
        f8_is(nextafterf(middle, 0), a);
        f8_is(nextafterf(middle, INFINITY), a + 1);
    }
    f8_is(448.0f, 0x7e);
    f8_is(1e30f, 0x7e);
    f8_is(INFINITY, 0x7e); /* saturates: there is no infinity */
    f8_is(1e-45f, 0);
    for (unsigned bit = 0; bit < 23; bit++) {
        const uint32_t u = 0x7f800000u | 1u << bit;
        float v;
        memcpy(&v, &u, sizeof(v));
        T_EQ(f8_from_f32(v) & 0x7f, 0x7f);
    }
}

static const struct t_case cases[] = {
    { "f16_widens", f16_widens },       { "f16_rounds", f16_rounds },
    { "bf16_widens", bf16_widens },     { "bf16_rounds", bf16_rounds },
    { "f8_widens", f8_widens },         { "f8_rounds", f8_rounds },
    { "nan_stays_nan", nan_stays_nan },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
