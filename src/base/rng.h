/* rng.h - Philox4x32-10 (Salmon et al., SC 2011): random numbers by position, not by history. */
#ifndef GALLEY_BASE_RNG_H
#define GALLEY_BASE_RNG_H

#include <stdint.h>

/* The bijection itself, words in the paper's order. */
void rng_philox_block(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);
/* The four words of counter block `counter` under `key` (low words first, upper half zero). */
void rng_philox(uint64_t key, uint64_t counter, uint32_t out[4]);
/* The n-th number in [0, 1) of stream `key`: 53 bits, the same on every machine. */
double rng_uniform(uint64_t key, uint64_t n);

#endif
