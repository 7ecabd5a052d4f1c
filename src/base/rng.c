/* rng.c - see rng.h. */
#include "src/base/rng.h"

/* Multipliers and key increments of Philox4x32 (Salmon et al., table 2 and section 3.2). */
#define M0     0xD2511F53u
#define M1     0xCD9E8D57u
#define W0     0x9E3779B9u
#define W1     0xBB67AE85u
#define ROUNDS 10

void rng_philox_block(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t p0 = (uint64_t)M0 * c0, p1 = (uint64_t)M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += W0;
        k1 += W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void rng_philox(uint64_t key, uint64_t counter, uint32_t out[4])
{
    const uint32_t k[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
    const uint32_t c[4] = { (uint32_t)counter, (uint32_t)(counter >> 32), 0, 0 };
    rng_philox_block(k, c, out);
}

double rng_uniform(uint64_t key, uint64_t n)
{
    uint32_t w[4];
    rng_philox(key, n >> 1, w);
    const uint32_t *half = n & 1 ? w + 2 : w; /* a block holds two numbers */
    const uint64_t bits = (uint64_t)half[1] << 32 | half[0];
    return (double)(bits >> 11) * 0x1p-53;
}
