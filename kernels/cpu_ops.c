/* cpu_ops.c - operators that work row by row or element by element. */
#include <assert.h>

#include "kernels/cpu.h"

/* Elements one piece takes, and microseconds per 1000 elements on one thread (a guess for
 * the vector forms; the reference is slower, and then threads only come a little late). */
#define PIECE             8192
#define US_STREAM         0.1 /* add */
#define US_EXP            1.0 /* anything with an exponential */
#define US_NORM           0.3
#define N_PIECES(n, each) (((n) + (each)-1) / (each))

static double micros(double n, double us_per_1000)
{
    return n * us_per_1000 / 1000.0;
}

/* Rows per piece, so that a piece has about PIECE elements. */
static int rows_of(int dim)
{
    return dim >= PIECE ? 1 : PIECE / (dim < 1 ? 1 : dim);
}

struct norm_job {
    struct cpu_device *c;
    float *y;
    const float *x, *weight, *bias; /* bias NULL: rms */
    int rows, dim, each;
    float eps;
};

static void norm_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct norm_job *j = arg;
    const int r0 = i * j->each;
    const int n = j->rows - r0 < j->each ? j->rows - r0 : j->each;
    const size_t at = (size_t)r0 * (size_t)j->dim;
    if (j->bias) {
        j->c->k.norm_layer(j->y + at, j->x + at, j->weight, j->bias, n, j->dim, j->eps);
    } else {
        j->c->k.norm_rms(j->y + at, j->x + at, j->weight, n, j->dim, j->eps);
    }
}

void cpu_rms_norm(struct device *d, float *y, const float *x, const float *weight, int rows,
                  int dim, float eps)
{
    struct norm_job j = { cpu_of(d), y, x, weight, NULL, rows, dim, rows_of(dim), eps };
    cpu_run(j.c, norm_piece, &j, N_PIECES(rows, j.each), micros((double)rows * dim, US_NORM));
}

void cpu_layer_norm(struct device *d, float *y, const float *x, const float *weight,
                    const float *bias, int rows, int dim, float eps)
{
    assert(bias);
    struct norm_job j = { cpu_of(d), y, x, weight, bias, rows, dim, rows_of(dim), eps };
    cpu_run(j.c, norm_piece, &j, N_PIECES(rows, j.each), micros((double)rows * dim, US_NORM));
}

struct head_norm_job {
    struct cpu_device *c;
    float *x;
    size_t ld;
    const float *weight;
    int rows, n_head, head_dim, each;
    float eps;
};

static void head_norm_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct head_norm_job *j = arg;
    for (int r = i * j->each; r < j->rows && r < (i + 1) * j->each; r++) {
        float *x = j->x + (size_t)r * j->ld;
        j->c->k.norm_rms(x, x, j->weight, j->n_head, j->head_dim, j->eps);
    }
}

void cpu_head_norm(struct device *d, float *x, size_t ld, const float *weight, int rows, int n_head,
                   int head_dim, float eps)
{
    const int dim = n_head * head_dim;
    struct head_norm_job j = {
        cpu_of(d), x, ld, weight, rows, n_head, head_dim, rows_of(dim), eps
    };
    cpu_run(j.c, head_norm_piece, &j, N_PIECES(rows, j.each), micros((double)rows * dim, US_NORM));
}

/* An operation on elements wherever they lie. */
struct flat_job {
    struct cpu_device *c;
    void (*run)(const struct flat_job *j, size_t at, size_t n);
    float *y;
    const float *x;
    size_t n;
    enum act kind;
    float by;
};

static void flat_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct flat_job *j = arg;
    const size_t at = (size_t)i * PIECE;
    j->run(j, at, j->n - at < PIECE ? j->n - at : PIECE);
}

static void flat_run(struct flat_job *j, double us_per_1000)
{
    const int n_pieces = (int)N_PIECES(j->n, (size_t)PIECE);
    cpu_run(j->c, flat_piece, j, n_pieces, micros((double)j->n, us_per_1000));
}

static void flat_add(const struct flat_job *j, size_t at, size_t n)
{
    j->c->k.act_add(j->y + at, j->x + at, n);
}

static void flat_scale(const struct flat_job *j, size_t at, size_t n)
{
    j->c->k.act_scale(j->y + at, n, j->by);
}

static void flat_softcap(const struct flat_job *j, size_t at, size_t n)
{
    j->c->k.act_softcap(j->y + at, n, j->by);
}

static void flat_act(const struct flat_job *j, size_t at, size_t n)
{
    j->c->k.act(j->y + at, n, j->kind);
}

void cpu_add(struct device *d, float *y, const float *x, size_t n)
{
    struct flat_job j = { .c = cpu_of(d), .run = flat_add, .y = y, .x = x, .n = n };
    flat_run(&j, US_STREAM);
}

void cpu_scale(struct device *d, float *x, size_t n, float by)
{
    struct flat_job j = { .c = cpu_of(d), .run = flat_scale, .y = x, .n = n, .by = by };
    flat_run(&j, US_STREAM);
}

void cpu_softcap(struct device *d, float *x, size_t n, float cap)
{
    assert(cap > 0);
    struct flat_job j = { .c = cpu_of(d), .run = flat_softcap, .y = x, .n = n, .by = cap };
    flat_run(&j, US_EXP);
}

void cpu_act(struct device *d, float *x, size_t n, enum act kind)
{
    struct flat_job j = { .c = cpu_of(d), .run = flat_act, .y = x, .n = n, .kind = kind };
    flat_run(&j, US_EXP);
}

struct gated_job {
    struct cpu_device *c;
    float *y;
    const float *gate_up;
    int rows, n, each;
    enum act kind;
};

static void gated_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct gated_job *j = arg;
    const size_t n = (size_t)j->n;
    for (int r = i * j->each; r < j->rows && r < (i + 1) * j->each; r++) {
        const float *gate = j->gate_up + (size_t)r * 2 * n;
        j->c->k.act_gated(j->y + (size_t)r * n, gate, gate + n, n, j->kind);
    }
}

void cpu_gated(struct device *d, float *y, const float *gate_up, int rows, int n, enum act kind)
{
    struct gated_job j = { cpu_of(d), y, gate_up, rows, n, rows_of(n), kind };
    cpu_run(j.c, gated_piece, &j, N_PIECES(rows, j.each), micros((double)rows * n, US_EXP));
}

struct rope_job {
    struct cpu_device *c;
    const struct rope_args *a;
    int each;
};

static void rope_piece(void *arg, int i, int i_thread)
{
    (void)i_thread;
    const struct rope_job *j = arg;
    const struct rope_args *a = j->a;
    const int rot_dim = a->rot_dim ? a->rot_dim : a->head_dim;
    const size_t half = (size_t)rot_dim / 2;
    rope_row_fn *turn = a->pairs ? j->c->k.rope_pairs : j->c->k.rope_row;
    for (int r = i * j->each; r < a->rows && r < (i + 1) * j->each; r++) {
        turn(a->x + (size_t)r * a->ld, a->cos + (size_t)r * half, a->sin + (size_t)r * half,
             a->n_head, a->head_dim, rot_dim);
    }
}

void cpu_rope(struct device *d, const struct rope_args *a)
{
    const int dim = a->n_head * a->head_dim;
    assert(a->rot_dim >= 0 && a->rot_dim <= a->head_dim && a->rot_dim % 2 == 0);
    struct rope_job j = { cpu_of(d), a, rows_of(dim) };
    cpu_run(j.c, rope_piece, &j, N_PIECES(a->rows, j.each), micros((double)a->rows * dim, US_NORM));
}

struct top1_job {
    struct cpu_device *c;
    struct logit_top *top;
    const float *logits;
    size_t ld;
    int n_vocab;
};

static void top1_piece(void *arg, int r, int i_thread)
{
    (void)i_thread;
    const struct top1_job *j = arg;
    j->c->k.top1(&j->top[r], j->logits + (size_t)r * j->ld, j->n_vocab);
}

void cpu_top1(struct device *d, struct logit_top *top, const float *logits, size_t ld, int rows,
              int n_vocab)
{
    assert(n_vocab > 0);
    struct top1_job j = { cpu_of(d), top, logits, ld, n_vocab };
    cpu_run(j.c, top1_piece, &j, rows, micros((double)rows * n_vocab, US_EXP));
}
