/* linear.h - a packed weight of several parts and the pieces of its product, inside kernels/.
 *
 * A part is one file tensor: its groups of columns are packed as gemm.h says when it is dense, as
 * qgemm.h says when it is quantised.  Groups have LINEAR_NR columns in both. */
#ifndef GALLEY_KERNELS_LINEAR_H
#define GALLEY_KERNELS_LINEAR_H

#include "kernels/cpu.h"

#define LINEAR_NR GEMM_NR

struct linear_packed {
    enum dtype dtype;
    bool exact; /* quantised, to be widened for float products */
    int n_out, n_in;
    int column; /* where its outputs begin */
    int n_groups;
    size_t group_bytes;
    void *w;     /* [n_groups] */
    float *bias; /* [n_out] or NULL */
};

struct linear {
    int n_out, n_in, n_parts;
    unsigned kinds; /* of quantised activations wanted: bits 1 << enum qact_kind */
    uint64_t bytes;
    struct linear_packed parts[LINEAR_PARTS_MAX];
};

/* One call of matmul, or a slab of its rows. */
struct matmul_job {
    struct cpu_device *c;
    float *y;
    const float *x;
    size_t y_ld, x_ld;
    int rows;
};

/* The pieces of one part: n_row_pieces x pieces of columns. */
struct part_job {
    const struct matmul_job *m;
    const struct linear_packed *l;
    int rows_piece, n_row_pieces, groups_piece, n_pieces;
};

/* cpu_linear.c: columns of a group, LINEAR_NR or what is left. */
int linear_columns(const struct linear_packed *l, int group);

/* cpu_gemm.c */
/* The group's columns are as many rows at src. */
void gemm_pack(const struct linear_packed *l, const void *src, int group);
void gemm_piece(const struct part_job *job, int i, int i_thread);
/* n_k (at most GEMM_KC) of k from k0 on, both whole units but at the end, of a quantised panel as
 * f32: s->widened [n_k][LINEAR_NR]. */
void linear_widen(const struct cpu_device *c, const struct linear_packed *l, struct cpu_scratch *s,
                  int panel, int k0, int n_k);

/* cpu_qgemm.c */
GALLEY_MUST_USE enum galley_status qact_reserve(struct cpu_device *c, unsigned kinds, int n_in,
                                                struct galley_err *err);
uint64_t qact_bytes(int n_in); /* of the buffers of one kind */
void qact_free(struct cpu_device *c);
void qact_rows(const struct matmul_job *m, unsigned kinds, int n_in);
void qgemm_piece(const struct part_job *job, int i, int i_thread);

#endif
