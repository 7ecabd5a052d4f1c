/* cpu_gemm.c - packed weights and matmul on the CPU.
 *
 * The work is cut into (rows x panels) pieces; each piece walks k in slices of GEMM_KC with
 * the sums resting in y between slices, which changes no bit (gemm.h). */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "kernels/cpu.h"
#include "src/base/mem.h"

/* Rows per piece: a slice of them (ROWS_PIECE * GEMM_KC floats) stays in L2 across panels. */
#define ROWS_PIECE     252
#define ROWS_PIECE_MIN 24
#define PANELS_PIECE   4 /* few rows take four panels at once */
#define PIECES_PER_CPU 4

struct linear {
    enum dtype dtype;
    int n_out, n_in, n_panels;
    void *w;     /* packed as gemm.h says */
    float *bias; /* [n_out] or NULL */
};

struct pack_job {
    struct linear *l;
    const char *src;
};

static void pack_panel(void *arg, int p, int i_thread)
{
    (void)i_thread;
    const struct pack_job *job = arg;
    const struct linear *l = job->l;
    const size_t size = dtype_bytes(l->dtype), n_in = (size_t)l->n_in;
    char *panel = (char *)l->w + (size_t)p * n_in * GEMM_NR * size;
    memset(panel, 0, n_in * GEMM_NR * size);
    for (int j = 0; j < GEMM_NR && p * GEMM_NR + j < l->n_out; j++) {
        const char *row = job->src + (size_t)(p * GEMM_NR + j) * n_in * size;
        const int at = gemm_place(j, l->dtype);
        if (size == 2) {
            for (size_t k = 0; k < n_in; k++) {
                memcpy(panel + (k * GEMM_NR + (size_t)at) * 2, row + k * 2, 2);
            }
        } else {
            for (size_t k = 0; k < n_in; k++) {
                memcpy(panel + (k * GEMM_NR + (size_t)at) * 4, row + k * 4, 4);
            }
        }
    }
}

/* The matrix as [shape[0]][all the rest]: a convolution over whole patches is one too. */
static enum galley_status shape_of(const struct tensor *w, int64_t *n_out, int64_t *n_in,
                                   struct galley_err *err)
{
    *n_out = w->n_dim >= 2 && w->n_dim <= TENSOR_DIM_MAX ? w->shape[0] : 0;
    *n_in = 1;
    for (int i = 1; *n_out > 0 && i < w->n_dim; i++) {
        if (w->shape[i] < 1 || w->shape[i] > INT_MAX / *n_in) {
            return galley_err_set(err, GALLEY_EMODEL, "a weight has dimension %d of %lld", i,
                                  (long long)w->shape[i]);
        }
        *n_in *= w->shape[i];
    }
    if (*n_out < 1 || *n_out > INT_MAX - GEMM_NR) {
        return galley_err_set(err, GALLEY_EMODEL, "a weight of %d dimensions and %lld rows",
                              w->n_dim, w->n_dim > 0 ? (long long)w->shape[0] : 0LL);
    }
    return GALLEY_OK;
}

enum galley_status cpu_linear_new(struct device *d, struct linear **out, const struct tensor *w,
                                  const struct tensor *bias, struct galley_err *err)
{
    *out = NULL;
    struct cpu_device *c = cpu_of(d);
    int64_t n_out, n_in;
    enum galley_status rc = shape_of(w, &n_out, &n_in, err);
    if (rc) {
        return rc;
    }
    if (bias && (bias->n_dim != 1 || bias->shape[0] != n_out)) {
        return galley_err_set(err, GALLEY_EMODEL, "a bias of %lld for %lld outputs",
                              bias->n_dim == 1 ? (long long)bias->shape[0] : 0LL, (long long)n_out);
    }
    struct linear *l = mem_new(struct linear);
    if (!l) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a weight");
    }
    l->dtype = w->dtype;
    l->n_out = (int)n_out;
    l->n_in = (int)n_in;
    l->n_panels = (int)((n_out + GEMM_NR - 1) / GEMM_NR);
    /* Below 2^31 * 2^31 * 4: no overflow. */
    l->w = mem_aligned((size_t)l->n_panels * GEMM_NR * (size_t)n_in * dtype_bytes(w->dtype));
    l->bias = bias ? mem_array((size_t)n_out, sizeof(float)) : NULL;
    if (!l->w || (bias && !l->bias)) {
        cpu_linear_free(d, l);
        return galley_err_set(err, GALLEY_ENOMEM, "no memory to pack a weight of %lld x %lld",
                              (long long)n_out, (long long)n_in);
    }
    if (bias) {
        c->k.widen(l->bias, bias->data, bias->dtype, (size_t)n_out);
    }
    struct pack_job job = { l, w->data };
    cpu_run(c, pack_panel, &job, l->n_panels, 1e-3 * (double)n_out * (double)n_in);
    *out = l;
    return GALLEY_OK;
}

void cpu_linear_free(struct device *d, struct linear *l)
{
    (void)d;
    if (l) {
        mem_free(l->w);
        mem_free(l->bias);
        mem_free(l);
    }
}

struct matmul_job {
    struct cpu_device *c;
    const struct linear *l;
    float *y;
    const float *x;
    size_t y_ld, x_ld;
    int rows, rows_piece, n_row_pieces, panels_piece;
};

/* One slice of k over the panels p0..p1-1 and the rows t already names. */
static void slice_run(const struct matmul_job *job, struct gemm_tile *t, int p0, int p1, int k0,
                      float *widened)
{
    const struct cpu_kernels *k = &job->c->k;
    const struct linear *l = job->l;
    const size_t size = dtype_bytes(l->dtype), panel = (size_t)l->n_in * GEMM_NR;
    const bool last = k0 + t->k == l->n_in;
    const bool widen = l->dtype != DTYPE_F32 && t->rows >= k->widen_rows;
    const int step = widen ? 1 : p1 - p0;
    float *c = t->c;
    for (int p = p0; p < p1; p += step, c += step * GEMM_NR) {
        const int column = p * GEMM_NR;
        const int n_left = l->n_out - column, n_wide = step * GEMM_NR;
        const char *w = (const char *)l->w + ((size_t)p * panel + (size_t)k0 * GEMM_NR) * size;
        struct gemm_tile s = *t;
        s.c = c;
        s.n = n_left < n_wide ? n_left : n_wide;
        s.bias = last && l->bias ? l->bias + column : NULL;
        s.w = w;
        s.w_type = l->dtype;
        if (widen) {
            k->gemm_widen(widened, w, l->dtype, t->k);
            s.w = widened;
            s.w_type = DTYPE_F32;
        }
        k->gemm_tile(&s);
    }
}

static void matmul_piece(void *arg, int i, int i_thread)
{
    const struct matmul_job *job = arg;
    const struct linear *l = job->l;
    const int r0 = i % job->n_row_pieces * job->rows_piece;
    const int p0 = i / job->n_row_pieces * job->panels_piece;
    const int p1 = p0 + job->panels_piece < l->n_panels ? p0 + job->panels_piece : l->n_panels;
    for (int k0 = 0; k0 < l->n_in; k0 += GEMM_KC) {
        struct gemm_tile t = {
            .c = job->y + (size_t)r0 * job->y_ld + (size_t)p0 * GEMM_NR,
            .c_ld = job->y_ld,
            .x = job->x + (size_t)r0 * job->x_ld + k0,
            .x_ld = job->x_ld,
            .w_ld = GEMM_NR,
            .panel = (size_t)l->n_in * GEMM_NR,
            .rows = job->rows - r0 < job->rows_piece ? job->rows - r0 : job->rows_piece,
            .k = l->n_in - k0 < GEMM_KC ? l->n_in - k0 : GEMM_KC,
            .more = k0 > 0,
        };
        slice_run(job, &t, p0, p1, k0, job->c->scratch[i_thread].widened);
    }
}

static int pieces(int n, int each)
{
    return (n + each - 1) / each;
}

void cpu_matmul(struct device *d, float *y, size_t y_ld, const struct linear *l, const float *x,
                size_t x_ld, int rows)
{
    if (rows < 1) {
        return;
    }
    struct cpu_device *c = cpu_of(d);
    struct matmul_job job = { c, l, y, x, y_ld, x_ld, rows, 0, 0, PANELS_PIECE };
    const double flops = 2.0 * rows * (double)l->n_out * (double)l->n_in;
    const double bytes = (double)l->n_out * (double)l->n_in * (double)dtype_bytes(l->dtype);
    const double us = flops / c->k.flops_per_us + bytes / 2e4; /* 20 GB/s, from L2 or beyond */
    const int n_threads = cpu_pays(c, us) ? pool_n_threads(c->pool) : 1;
    const int n_wanted = n_threads > 1 ? PIECES_PER_CPU * n_threads : 1;
    /* Panels first; rows are cut when there are too few panels to share out. */
    const int n_panel_pieces = pieces(l->n_panels, job.panels_piece);
    const int row_cuts = pieces(n_wanted, n_panel_pieces);
    job.rows_piece = pieces(rows, row_cuts);
    job.rows_piece = job.rows_piece < ROWS_PIECE_MIN ? ROWS_PIECE_MIN : job.rows_piece;
    job.rows_piece = job.rows_piece > ROWS_PIECE ? ROWS_PIECE : job.rows_piece;
    job.rows_piece = pieces(rows, pieces(rows, job.rows_piece));
    job.n_row_pieces = pieces(rows, job.rows_piece);
    if (n_panel_pieces * job.n_row_pieces < n_wanted && rows > 3) {
        job.panels_piece = 1;
    }
    cpu_run(c, matmul_piece, &job, pieces(l->n_panels, job.panels_piece) * job.n_row_pieces, us);
}
