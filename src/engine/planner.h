/* planner.h - what a model will take, from its headers alone.  Pure.
 *
 * Everything the engine will allocate is counted before it is: packed weights, the embedding table
 * in place, KV per token and sequence, the step's scratch and logits, the vision tower's workspace
 * for the largest image.  engine_open uses the same numbers that `galley inspect --plan` prints. */
#ifndef GALLEY_ENGINE_PLANNER_H
#define GALLEY_ENGINE_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"
#include "src/base/compiler.h"
#include "src/base/err.h"
#include "src/format/checkpoint.h"

struct plan_request {
    int context;  /* tokens per sequence; 0: the model's limit, at most what fits */
    int max_seqs; /* 0: 16 */
    int max_rows; /* 0: 512 */
    enum kv_type kv_type;
    uint64_t kv_bytes;     /* 0: context * max_seqs tokens, less when memory is short */
    uint64_t memory_bytes; /* the most all of it may take */
    int64_t max_pixels;    /* largest image; 0: the preprocessor's */
    int n_threads;         /* 0: one per CPU */
    bool exact;            /* quantised weights multiply f32 rows: no rows are quantised */
};

struct plan {
    uint64_t language_bytes, vision_bytes; /* weights as packed */
    uint64_t kv_token_bytes, kv_bytes;
    uint64_t step_bytes; /* scratch, batch arrays, logits of the largest step; the device's own */
    uint64_t vision_job_bytes; /* workspace of the largest image */
    uint64_t total_bytes;
    int context, max_seqs, max_rows, n_blocks; /* as granted */
    int fit_context;                           /* longest context of max_seqs sequences that fits */
    int model_context;                         /* the model's own limit: neither goes beyond it */
    int fit_seqs;                              /* most sequences of `context` tokens that fit */
    double flops_per_row;                      /* of the language model at context 0 */
    double bytes_per_step;                     /* weights read by one step */
    int max_want;                              /* rows of one step that may have logits */
    bool quantised;                            /* weights_are_quantised */
    int64_t max_pixels;                        /* of the largest image */
};

/* f16 when weights_are_quantised, else f32. */
enum kv_type plan_kv_auto(const struct checkpoint *c);

/* Nine tenths of the machine's memory, or of what control groups leave of it. */
uint64_t plan_machine_bytes(void);

/* GALLEY_ELIMIT with the numbers when even one sequence of `context` tokens does not fit:
 * "weights need 4.1 GB, KV 1.2 GB, ...: 5.9 GB, there are 4.0". */
GALLEY_MUST_USE enum galley_status plan_make(struct plan *out, const struct checkpoint *c,
                                             const struct plan_request *r, struct galley_err *err);

#endif
