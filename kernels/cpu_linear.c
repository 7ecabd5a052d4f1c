/* cpu_linear.c - weights of one or several parts, and matmul over them, on the CPU.
 *
 * The product is cut into (rows x groups of columns) pieces of all parts together, so that the
 * pool is woken once. */
#include <assert.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "kernels/linear.h"
#include "src/base/mem.h"

/* Dense rows per piece: a slice of them (DENSE_ROWS * GEMM_KC floats) stays in L2 across panels. */
#define DENSE_ROWS     252
#define DENSE_ROWS_MIN 24
#define DENSE_GROUPS   4 /* few rows take four panels at once */
#define PIECES_PER_CPU 4
/* Quantised pieces are many, because neighbours on a shared machine slow one thread. */
#define QPIECES_PER_CPU 16
#define QGROUPS_MAX     16
#define QROWS_STEP      6 /* what the widest register tile takes */

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
    if (*n_out < 1 || *n_out > INT_MAX - LINEAR_NR) {
        return galley_err_set(err, GALLEY_EMODEL, "a weight of %d dimensions and %lld rows",
                              w->n_dim, w->n_dim > 0 ? (long long)w->shape[0] : 0LL);
    }
    const int64_t row = w->shape[w->n_dim - 1];
    if (row % dtype_info(w->dtype)->block != 0) {
        return galley_err_set(err, GALLEY_EMODEL, "rows of %lld are no whole blocks of %s",
                              (long long)row, dtype_name(w->dtype));
    }
    return GALLEY_OK;
}

/* Shapes checked and noted; nothing allocated. */
static enum galley_status part_plan(struct linear *l, const struct linear_part *p, bool exact,
                                    struct galley_err *err)
{
    int64_t n_out, n_in;
    enum galley_status rc = shape_of(&p->w, &n_out, &n_in, err);
    if (rc) {
        return rc;
    }
    if (l->n_parts > 0 && n_in != l->n_in) {
        return galley_err_set(err, GALLEY_EMODEL, "weights side by side with %lld and %d inputs",
                              (long long)n_in, l->n_in);
    }
    if (n_out > INT_MAX - LINEAR_NR - l->n_out) {
        return galley_err_set(err, GALLEY_EMODEL, "%lld outputs beside %d are too many",
                              (long long)n_out, l->n_out);
    }
    const struct tensor *b = p->bias;
    if (b && (b->n_dim != 1 || b->shape[0] != n_out || !dtype_is_dense(b->dtype))) {
        return galley_err_set(err, GALLEY_EMODEL, "a bias of %lld (%s) for %lld outputs",
                              b->n_dim == 1 ? (long long)b->shape[0] : 0LL, dtype_name(b->dtype),
                              (long long)n_out);
    }
    const enum dtype t = p->w.dtype;
    l->n_in = (int)n_in;
    l->parts[l->n_parts++] = (struct linear_packed){
        .dtype = t,
        .exact = exact && !dtype_is_dense(t),
        .n_out = (int)n_out,
        .n_in = (int)n_in,
        .column = l->n_out,
        .n_groups = (int)((n_out + LINEAR_NR - 1) / LINEAR_NR),
        /* Below 2^31 * 32 * 4: no overflow, nor times n_groups. */
        .group_bytes = dtype_is_dense(t) ? (size_t)n_in * GEMM_NR * dtype_bytes(t)
                                         : qgemm_group_bytes(t, (int)n_in),
    };
    l->n_out += (int)n_out;
    l->kinds |= dtype_is_dense(t) || exact ? 0 : 1u << qact_kind_of(t);
    return GALLEY_OK;
}

int linear_columns(const struct linear_packed *l, int group)
{
    const int left = l->n_out - group * LINEAR_NR;
    return left < LINEAR_NR ? left : LINEAR_NR;
}

struct pack_job {
    const struct linear_packed *l;
    const struct tensor *w;
    size_t row_bytes;
    char *rows;      /* [n_rooms][LINEAR_NR rows]: what is read from a file; NULL: nothing is */
    int n_rooms;     /* one of each group, or one of each thread when groups are more */
    atomic_bool cut; /* a file gave fewer bytes than it had */
};

static void pack_group(void *arg, int group, int i_thread)
{
    struct pack_job *job = arg;
    const struct linear_packed *l = job->l;
    const int columns = linear_columns(l, group);
    const size_t at = (size_t)group * LINEAR_NR * job->row_bytes;
    const char *src = (const char *)job->w->data + at;
    if (job->rows) {
        const int room = job->n_rooms < l->n_groups ? i_thread : group;
        char *rows = job->rows + (size_t)room * LINEAR_NR * job->row_bytes;
        if (!tensor_read(job->w, rows, at, (size_t)columns * job->row_bytes)) {
            atomic_store(&job->cut, true);
            return;
        }
        src = rows;
    }
    if (dtype_is_dense(l->dtype)) {
        gemm_pack(l, src, group);
    } else {
        qgemm_pack((char *)l->w + (size_t)group * l->group_bytes, src, l->dtype, columns, l->n_in);
    }
}

static enum galley_status no_memory(const struct linear_packed *p, struct galley_err *err)
{
    return galley_err_set(err, GALLEY_ENOMEM, "no memory to pack a weight of %d x %d", p->n_out,
                          p->n_in);
}

static enum galley_status bias_new(struct cpu_device *c, struct linear_packed *p,
                                   const struct tensor *bias, struct galley_err *err)
{
    const size_t n = (size_t)p->n_out;
    void *raw = mem_array(n, dtype_bytes(bias->dtype));
    p->bias = mem_array(n, sizeof(float));
    enum galley_status rc = GALLEY_OK;
    if (!raw || !p->bias) {
        rc = no_memory(p, err);
    } else if (!tensor_read(bias, raw, 0, n * dtype_bytes(bias->dtype))) {
        rc = galley_err_set(err, GALLEY_EMODEL, TENSOR_UNREADABLE);
    } else {
        c->k.widen(p->bias, raw, bias->dtype, n);
    }
    mem_free(raw);
    return rc;
}

#define PACK_KEPT ((size_t)4 << 20)

/* Fresh memory for each linear would be a page fault for every 4 KiB, so some is kept. */
static char *rows_reserve(struct cpu_device *c, size_t n, size_t row_bytes)
{
    if (n * row_bytes > c->pack_bytes) { /* no more than the file has: no overflow */
        mem_free(c->pack_rows);
        c->pack_rows = mem_array(n, row_bytes);
        c->pack_bytes = c->pack_rows ? n * row_bytes : 0;
    }
    return c->pack_rows;
}

static void rows_release(struct cpu_device *c)
{
    if (c->pack_bytes > PACK_KEPT) {
        mem_free(c->pack_rows);
        c->pack_rows = NULL;
        c->pack_bytes = 0;
    }
}

static enum galley_status part_pack(struct cpu_device *c, struct linear *l, int i,
                                    const struct linear_part *part, struct galley_err *err)
{
    struct linear_packed *p = &l->parts[i];
    const size_t bytes = (size_t)p->n_groups * p->group_bytes;
    const size_t row = (size_t)dtype_row_bytes(p->dtype, (uint64_t)p->n_in);
    const int n_threads = pool_n_threads(c->pool);
    struct pack_job job = { .l = p,
                            .w = &part->w,
                            .row_bytes = row,
                            .n_rooms = p->n_groups < n_threads ? p->n_groups : n_threads };
    p->w = arena_alloc(&c->weights, bytes);
    if (part->w.file) { /* at most the tensor's own bytes, whatever the file says */
        const int n_rows = job.n_rooms * LINEAR_NR;
        job.rows = rows_reserve(c, (size_t)(n_rows < p->n_out ? n_rows : p->n_out), row);
    }
    enum galley_status rc = p->w && (job.rows || !part->w.file) ? GALLEY_OK : no_memory(p, err);
    rc = rc || !part->bias ? rc : bias_new(c, p, part->bias, err);
    if (!rc) {
        l->bytes += bytes + (p->bias ? (size_t)p->n_out * sizeof(float) : 0);
        cpu_run(c, pack_group, &job, p->n_groups, 5e-4 * (double)p->n_out * (double)p->n_in);
        rows_release(c);
        rc = atomic_load(&job.cut) ? galley_err_set(err, GALLEY_EMODEL, TENSOR_UNREADABLE)
                                   : GALLEY_OK;
    }
    return rc;
}

enum galley_status cpu_linear_new(struct device *d, struct linear **out,
                                  const struct linear_part *parts, int n_parts,
                                  struct galley_err *err)
{
    assert(n_parts >= 1 && n_parts <= LINEAR_PARTS_MAX);
    *out = NULL;
    struct cpu_device *c = cpu_of(d);
    struct linear *l = mem_new(struct linear);
    if (!l) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a weight");
    }
    enum galley_status rc = GALLEY_OK;
    for (int i = 0; i < n_parts && !rc; i++) {
        rc = part_plan(l, &parts[i], c->exact, err);
    }
    if (!rc) {
        rc = qact_reserve(c, l->kinds, l->n_in, err);
    }
    for (int i = 0; i < n_parts && !rc; i++) {
        rc = part_pack(c, l, i, &parts[i], err);
    }
    if (rc) {
        cpu_linear_free(d, l);
        return rc;
    }
    *out = l;
    return GALLEY_OK;
}

void cpu_linear_free(struct device *d, struct linear *l)
{
    if (l) {
        for (int i = 0; i < l->n_parts; i++) {
            arena_free(&cpu_of(d)->weights, l->parts[i].w);
            mem_free(l->parts[i].bias);
        }
        mem_free(l);
    }
}

void cpu_set_exact(struct device *d, bool exact)
{
    cpu_of(d)->exact = exact;
}

uint64_t cpu_linear_bytes(const struct linear *l)
{
    return l->bytes;
}

static bool float_products(const struct linear_packed *p)
{
    return p->exact || dtype_is_dense(p->dtype);
}

static int pieces(int n, int each)
{
    return (n + each - 1) / each;
}

/* Panels first; rows are cut when there are too few panels to share out. */
static void dense_cut(struct part_job *p, int rows, int n_wanted)
{
    p->groups_piece = DENSE_GROUPS;
    const int n_group_pieces = pieces(p->l->n_groups, p->groups_piece);
    p->rows_piece = pieces(rows, pieces(n_wanted, n_group_pieces));
    p->rows_piece = p->rows_piece < DENSE_ROWS_MIN ? DENSE_ROWS_MIN : p->rows_piece;
    p->rows_piece = p->rows_piece > DENSE_ROWS ? DENSE_ROWS : p->rows_piece;
    p->rows_piece = pieces(rows, pieces(rows, p->rows_piece));
    p->n_row_pieces = pieces(rows, p->rows_piece);
    if (n_group_pieces * p->n_row_pieces < n_wanted && rows > 3) {
        p->groups_piece = 1;
    }
}

static void quant_cut(struct part_job *p, int rows, int n_wanted)
{
    p->rows_piece = pieces(rows, pieces(rows, CPU_QPIECE));
    p->rows_piece = pieces(p->rows_piece, QROWS_STEP) * QROWS_STEP; /* <= CPU_QPIECE: a multiple */
    p->n_row_pieces = pieces(rows, p->rows_piece);
    p->groups_piece = p->l->n_groups * p->n_row_pieces / n_wanted;
    const int most = p->n_row_pieces > 1 ? CPU_QGROUPS : QGROUPS_MAX;
    p->groups_piece = p->groups_piece > most ? most : p->groups_piece;
    p->groups_piece = p->groups_piece < 1 ? 1 : p->groups_piece;
}

#define CACHE_LINE 64

/* The pieces of one thread lie side by side, so that the weights it asks memory for beyond the end
 * of a piece are those of its next one, and not another thread's (3 to 8 % of a step of up to 8
 * rows on 2 threads).  Who has done its own takes others'. */
struct share {
    _Alignas(CACHE_LINE) atomic_int next;
    int end;
};

struct linear_job {
    struct share share[POOL_THREADS_MAX]; /* [n_shares] */
    struct part_job parts[LINEAR_PARTS_MAX];
    int n_parts, n_shares;
};

static void shares_cut(struct linear_job *job, int n_pieces, int n_threads)
{
    job->n_shares = n_threads;
    for (int i = 0; i < n_threads; i++) {
        atomic_init(&job->share[i].next, (int)((int64_t)n_pieces * i / n_threads));
        job->share[i].end = (int)((int64_t)n_pieces * (i + 1) / n_threads);
    }
}

/* Called once for each piece, so there is one left. */
static int piece_take(struct linear_job *job, int i_thread)
{
    assert(i_thread < job->n_shares);
    for (int k = i_thread;; k = k + 1 < job->n_shares ? k + 1 : 0) {
        struct share *s = &job->share[k];
        if (atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end) {
            continue;
        }
        const int i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (i < s->end) {
            return i;
        }
    }
}

/* Which index the pool gave does not matter: a thread takes its own piece. */
static void linear_piece(void *arg, int i_pool, int i_thread)
{
    (void)i_pool;
    struct linear_job *job = arg;
    int i = piece_take(job, i_thread);
    const struct part_job *p = job->parts;
    for (; i >= p->n_pieces; p++) {
        i -= p->n_pieces;
    }
    if (float_products(p->l)) {
        gemm_piece(p, i, i_thread);
    } else {
        qgemm_piece(p, i, i_thread);
    }
}

/* A guess for one thread: operations, and 20 GB/s from L2 or beyond. */
static double micros(const struct cpu_kernels *k, const struct linear *l, int rows)
{
    double us = (double)l->bytes / 2e4;
    for (int i = 0; i < l->n_parts; i++) {
        const struct linear_packed *p = &l->parts[i];
        us += 2.0 * rows * (double)p->n_out * (double)p->n_in /
              (float_products(p) ? k->flops_per_us : k->qops_per_us);
    }
    return us;
}

static void slab_run(const struct matmul_job *m, const struct linear *l)
{
    const double us = micros(&m->c->k, l, m->rows);
    const int n_threads = cpu_pays(m->c, us) ? pool_n_threads(m->c->pool) : 1;
    struct linear_job job;
    int n = 0;
    job.n_parts = l->n_parts;
    qact_rows(m, l->kinds, l->n_in);
    for (int i = 0; i < l->n_parts; i++) {
        struct part_job *p = &job.parts[i];
        *p = (struct part_job){ .m = m, .l = &l->parts[i] };
        if (float_products(p->l)) {
            dense_cut(p, m->rows, n_threads > 1 ? PIECES_PER_CPU * n_threads : 1);
        } else {
            quant_cut(p, m->rows, n_threads > 1 ? QPIECES_PER_CPU * n_threads : 1);
        }
        p->n_pieces = p->n_row_pieces * pieces(p->l->n_groups, p->groups_piece);
        n += p->n_pieces;
    }
    shares_cut(&job, n, n_threads);
    cpu_run(m->c, linear_piece, &job, n, us);
}

void cpu_matmul(struct device *d, float *y, size_t y_ld, const struct linear *l, const float *x,
                size_t x_ld, int rows)
{
    const int slab = l->kinds ? CPU_QROWS : INT_MAX;
    struct matmul_job m = { cpu_of(d), y, x, y_ld, x_ld, 0 };
    for (int r = 0; r < rows; r += m.rows) {
        m.rows = rows - r < slab ? rows - r : slab;
        slab_run(&m, l);
        m.y += (size_t)m.rows * y_ld;
        m.x += (size_t)m.rows * x_ld;
    }
}
