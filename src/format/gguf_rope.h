/* gguf_rope.h - rope_freqs.weight: Llama 3's rotary scaling, which GGUF files carry as one divisor
 * per frequency. */
#ifndef GALLEY_FORMAT_GGUF_ROPE_H
#define GALLEY_FORMAT_GGUF_ROPE_H

#include "src/format/gguf.h"
#include "src/format/hf_config.h"

/* Divisors that are those of Llama 3's rule become its four numbers (theta is known); all ones
 * change nothing; others are refused. */
GALLEY_MUST_USE enum galley_status gguf_rope_factors(struct hf_rope *io,
                                                     const struct gguf_tensor *factors,
                                                     int head_dim, const char *where,
                                                     struct galley_err *err);

#endif
