/* quantize.h - a checkpoint written anew as GGUF, its matrices in another type.
 *
 * From a Hugging Face directory (qwen2, qwen2_vl, qwen2_5_vl, qwen3, llama with byte-level BPE) or
 * a GGUF file; a directory with a vision tower gives two files.  Tensors stream: memory is a few
 * rows per thread and the header.  Which type each tensor gets is written at quantize_rules.c and
 * in galley(1). */
#ifndef GALLEY_FORMAT_QUANTIZE_H
#define GALLEY_FORMAT_QUANTIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/tensor.h"
#include "src/base/compiler.h"
#include "src/base/err.h"

#define QUANTIZE_RULES_MAX 256

/* --tensor 'PATTERN=TYPE': a glob over GGUF names.  The last rule that matches counts. */
struct quantize_rule {
    const char *pattern;
    enum dtype type;
};

/* What became of one tensor. */
struct quantize_row {
    const char *name; /* lent for the call */
    bool vision;      /* it went into the mmproj file */
    int n_dim;
    int64_t shape[TENSOR_DIM_MAX];
    const char *from; /* as the source says: "BF16", "Q4_K" */
    enum dtype to, wanted;
    bool fell_back;   /* its width is no multiple of the wanted type's block */
    int64_t padded;   /* elements of padding in a row or rows, 0 for none */
    double error;     /* RMS of the difference over RMS of the tensor */
    double error_max; /* largest difference */
    bool has_importance;
};

struct quantize_total {
    int n_tensors;
    uint64_t n_params;
    uint64_t bytes;     /* of both files */
    uint64_t data_bits; /* of the tensors' data, for bits per weight */
    int n_without;      /* quantised tensors that the imatrix says nothing about */
    char *mmproj;       /* where the vision tower went, the caller's (mem_free); NULL: none */
};

struct quantize_job {
    const char *in, *out;
    const char *mmproj; /* NULL: mmproj-NAME beside out, when there is a vision tower */
    const char *type;   /* see quantize_types */
    const struct quantize_rule *rules;
    int n_rules;
    const char *imatrix; /* NULL: none */
    int n_threads;       /* 0: one per CPU */
    /* Optional: after each tensor; share of the work done so far, 0 to 1; true stops the run with
     * GALLEY_ECANCELLED. */
    void (*on_tensor)(void *arg, const struct quantize_row *row);
    void (*on_progress)(void *arg, const char *tensor, double done);
    bool (*stopped)(void *arg);
    void *arg;
};

/* GALLEY_EUSAGE: a type, rule or path that cannot be; nothing appears under a name then, nor after
 * any other failure. */
GALLEY_MUST_USE enum galley_status
quantize_run(const struct quantize_job *job, struct quantize_total *total, struct galley_err *err);
/* The type of a rule, "q6_k"; DTYPE_COUNT when there is none. */
enum dtype quantize_type_named(const char *name);
/* The names of all types and mixes, for sentences: "f32, f16, ...". */
const char *quantize_types(void);

#endif
