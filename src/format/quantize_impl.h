/* quantize_impl.h - what the parts of quantize.c share.  Not for other modules.
 *
 * quantize_source.c lists what is to be written, quantize_rules.c decides the types,
 * quantize_keys.c and quantize_vocab.c write metadata, quantize.c does the work. */
#ifndef GALLEY_FORMAT_QUANTIZE_IMPL_H
#define GALLEY_FORMAT_QUANTIZE_IMPL_H

#include "src/format/gguf_write.h"
#include "src/format/hf_config.h"
#include "src/format/imatrix.h"
#include "src/format/quantize.h"
#include "src/format/weights.h"

#define QUANTIZE_NAME_MAX 128

/* How rows of the output follow from the source's. */
enum quantize_order {
    ORDER_PLAIN,
    ORDER_HEADS,  /* rows of each head of n_order from two halves to pairs (llama's rotation) */
    ORDER_MOMENT, /* [n][ch][2][s][s]: moment n_order of two */
    ORDER_MADE    /* `made` is the data */
};

struct quantize_tensor {
    char name[QUANTIZE_NAME_MAX]; /* GGUF's */
    const struct tensor *src;     /* lent */
    const char *from;
    int64_t row_0;              /* first row of src that belongs to it */
    int64_t src_rows, src_cols; /* what there is; the rest up to shape is zero */
    enum quantize_order order;
    int n_order;
    float *made; /* owned */
    float plus;  /* on every value: norms that are stored less 1 */
    int n_dim;
    int64_t shape[TENSOR_DIM_MAX];
    enum dtype to, wanted;
    bool fell_back;
};

struct quantize_list {
    struct quantize_tensor *items; /* owned */
    int n, cap;
};

/* One checkpoint to read from: a directory or a GGUF file. */
struct quantize_source {
    const char *path;
    struct hf_config cfg;    /* of a directory */
    struct weights *weights; /* of a directory */
    struct gguf *gguf;       /* else this */
    struct quantize_list text, vision;
};

GALLEY_MUST_USE enum galley_status quantize_source_open(struct quantize_source *s, const char *path,
                                                        struct galley_err *err);
void quantize_source_close(struct quantize_source *s);
struct quantize_tensor *quantize_lookup(const struct quantize_list *l, const char *name);

/* A row of the table of types. */
struct quantize_mix;
const struct quantize_mix *quantize_mix_named(const char *name); /* NULL: none */
uint32_t quantize_file_type(const struct quantize_mix *m);
/* Decides `to` of every tensor, and the padded width of a tower's feed-forward.  GALLEY_EUSAGE: a
 * rule that matches nothing in either list. */
GALLEY_MUST_USE enum galley_status quantize_choose(struct quantize_source *s,
                                                   const struct quantize_mix *m,
                                                   const struct quantize_rule *rules, int n_rules,
                                                   struct galley_err *err);

/* The keys of one output file. */
GALLEY_MUST_USE enum galley_status quantize_keys(struct gguf_writer *w,
                                                 const struct quantize_source *s, bool vision,
                                                 const struct quantize_mix *m,
                                                 struct galley_err *err);
/* tokenizer.* of a directory. */
GALLEY_MUST_USE enum galley_status quantize_vocab(struct gguf_writer *w, const char *dir,
                                                  const struct hf_config *cfg,
                                                  struct galley_err *err);

#endif
