/* test_rng.c - Philox against Random123's known answers, and the numbers made of it. */
#include "src/base/rng.h"
#include "tests/t.h"

/* kat_vectors of Random123 1.14: "philox4x32 10 counter key expected". */
static void philox_equals_random123(void)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        uint32_t out[4];
        rng_philox_block(known[i].key, known[i].counter, out);
        for (int k = 0; k < 4; k++) {
            T_EQ(out[k], known[i].want[k]);
        }
    }
}

/* Counter {7, 1, 0, 0} under key {0x89abcdef, 0x01234567}, by Random123's own header. */
static void uniform_takes_words_in_order(void)
{
    static const uint32_t want[4] = { 0x1ac64c5a, 0xf635a398, 0xdb80f217, 0x339c0261 };
    const uint64_t key = 0x0123456789abcdef, counter = (uint64_t)1 << 32 | 7;
    uint32_t out[4];
    rng_philox(key, counter, out);
    for (int k = 0; k < 4; k++) {
        T_EQ(out[k], want[k]);
    }
    T_OK(rng_uniform(key, 2 * counter) == 0.96175596679202002);
    T_OK(rng_uniform(key, 2 * counter + 1) == 0.2015992630872494);
}

/* Chi-square over 256 cells: 255 degrees of freedom, sigma 22.6; 6 sigma either way. */
static double chi_square(const int *n, double expected)
{
    double sum = 0;
    for (int i = 0; i < 256; i++) {
        sum += (n[i] - expected) * (n[i] - expected) / expected;
    }
    return sum;
}

static void uniform_is_even(void)
{
    enum { N = 1 << 18 };
    static const uint64_t keys[] = { 0, 1, 42, UINT64_MAX };
    for (size_t k = 0; k < COUNT(keys); k++) {
        int high[256] = { 0 }, next[256] = { 0 };
        double mean = 0;
        for (int i = 0; i < N; i++) {
            const double u = rng_uniform(keys[k], (uint64_t)i);
            const double after = rng_uniform(keys[k], (uint64_t)i + 1);
            T_OK(u >= 0 && u < 1);
            mean += u / N;
            high[(int)(u * 256)]++;
            next[(int)(u * 16) * 16 + (int)(after * 16)]++;
        }
        T_NEAR(mean, 0.5, 6 * 0.2887 / 512);
        T_NEAR(chi_square(high, N / 256.0), 255, 6 * 22.6);
        T_NEAR(chi_square(next, N / 256.0), 255, 6 * 22.6);
    }
}

/* The same position of neighbouring streams: seeds 0, 1, 2 ... must not look alike. */
static void streams_are_apart(void)
{
    int cell[256] = { 0 };
    for (int seed = 0; seed < 1 << 16; seed++) {
        cell[(int)(rng_uniform((uint64_t)seed, 3) * 256)]++;
    }
    T_NEAR(chi_square(cell, 256), 255, 6 * 22.6);
}

static const struct t_case cases[] = {
    { "philox_equals_random123", philox_equals_random123 },
    { "uniform_takes_words_in_order", uniform_takes_words_in_order },
    { "uniform_is_even", uniform_is_even },
    { "streams_are_apart", streams_are_apart },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
