/* check_rows.c - operators that work row by row or element by element. */
#include "kernels/quant.h"
#include "tests/kernels/check.h"

static const int dims[] = { 1, 2, 7, 15, 16, 17, 31, 32, 33, 64, 100, 255, 256, 1000 };

enum norm { NORM_RMS, NORM_LAYER };

static void norm_oracle(const float *y, const float *x, const float *w, const float *b, int dim,
                        double eps, enum norm kind)
{
    double mean = 0.0, square = 0.0, top = 1e-30;
    for (int i = 0; i < dim && kind == NORM_LAYER; i++) {
        mean += (double)x[i] / dim;
    }
    for (int i = 0; i < dim; i++) {
        square += ((double)x[i] - mean) * ((double)x[i] - mean) / dim;
    }
    const double inv = 1.0 / sqrt(square + eps);
    for (int i = 0; i < dim; i++) {
        top = fmax(top, fabs(((double)x[i] - mean) * inv * (double)w[i]));
    }
    for (int i = 0; i < dim; i++) {
        const double want = ((double)x[i] - mean) * inv * (double)w[i];
        T_NEAR((double)y[i], want + (kind == NORM_LAYER ? (double)b[i] : 0.0), 1e-5 * (top + 1.0));
    }
}

static void norm_run(struct device *d, enum norm kind, float *y, const float *x, const float *w,
                     const float *b, int rows, int dim)
{
    if (kind == NORM_RMS) {
        d->ops->rms_norm(d, y, x, w, rows, dim, 1e-6f);
    } else {
        d->ops->layer_norm(d, y, x, w, b, rows, dim, 1e-5f);
    }
}

static void check_norm(struct devices *ds, enum norm kind, int rows, int dim, enum fill fk)
{
    const size_t n = (size_t)rows * (size_t)dim;
    float *x = mem_array(n, sizeof(float)), *w = mem_array((size_t)dim, sizeof(float));
    float *b = mem_array((size_t)dim, sizeof(float));
    struct guarded first = guard_new(n), y = guard_new(n);
    T_OK(x && w && b);
    fill(x, n, fk);
    fill(w, (size_t)dim, FILL_RANDOM);
    fill(b, (size_t)dim, FILL_RANDOM);
    for (int i = 0; i < ds->n; i++) {
        struct guarded *g = i == 0 ? &first : &y;
        guard_reset(g);
        norm_run(ds->d[i], kind, g->p, x, w, b, rows, dim);
        guard_check(g, (size_t)dim, (size_t)dim, ds->d[i]->ops->name);
        bytes_same(g->p, first.p, n, ds->d[i]->ops->name);
        /* in place, and the last row alone */
        memcpy(g->p, x, n * sizeof(float));
        norm_run(ds->d[i], kind, g->p, g->p, w, b, rows, dim);
        bytes_same(g->p, first.p, i == 0 ? 0 : n, "in place");
        const size_t last = n - (size_t)dim;
        norm_run(ds->d[i], kind, g->p, x + last, w, b, 1, dim);
        bytes_same(g->p, first.p + last, i == 0 ? 0 : (size_t)dim, "row alone");
        if (i == 0) {
            norm_run(ds->d[i], kind, g->p, x, w, b, rows, dim);
        }
    }
    for (int r = 0; r < rows && fk != FILL_HUGE; r++) {
        norm_oracle(first.p + r * dim, x + r * dim, w, b, dim,
                    (double)(kind == NORM_RMS ? 1e-6f : 1e-5f), kind);
    }
    guard_free(&first);
    guard_free(&y);
    mem_free(x);
    mem_free(w);
    mem_free(b);
}

static void test_norm(void)
{
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(dims); i++) {
        for (int fk = 0; fk < FILL_COUNT; fk++) {
            check_norm(&ds, NORM_RMS, 1 + (int)i % 5, dims[i], (enum fill)fk);
            check_norm(&ds, NORM_LAYER, 1 + (int)i % 5, dims[i], (enum fill)fk);
        }
    }
    check_norm(&ds, NORM_RMS, 301, 256, FILL_RANDOM); /* enough for the pool */
    check_norm(&ds, NORM_LAYER, 301, 256, FILL_RANDOM);
    devices_close(&ds);
}

static double act_exact(double x, enum act kind)
{
    switch (kind) {
    case ACT_SILU:
        return x / (1.0 + exp(-x));
    case ACT_QUICK_GELU:
        return x / (1.0 + exp(-1.702 * x));
    case ACT_GELU_TANH:
        return 0.5 * x *
               (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case ACT_GELU_ERF:
        break;
    }
    return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
}

#define N_ACT 4099 /* crosses pieces and leaves an odd tail */

static void act_inputs(float *x)
{
    static const float special[] = { 0.0f,    -0.0f, 1e-40f, -1e-40f, 88.0f, -88.0f,  104.5f,
                                     -104.5f, 1e4f,  -1e4f,  5.65f,   -5.7f, 1.4142f, -1.4143f };
    for (int i = 0; i < N_ACT; i++) {
        x[i] = i < (int)COUNT(special) ? special[i] : 24.0f * (float)(i - N_ACT / 2) / N_ACT;
    }
}

static void test_act(void)
{
    static float x[N_ACT], up[N_ACT], gate_up[2 * N_ACT];
    struct devices ds = devices_open();
    struct guarded first = guard_new(N_ACT), y = guard_new(N_ACT);
    act_inputs(x);
    fill(up, N_ACT, FILL_RANDOM);
    memcpy(gate_up, x, sizeof(x));
    memcpy(gate_up + N_ACT, up, sizeof(up));
    for (int kind = 0; kind <= ACT_QUICK_GELU; kind++) {
        for (int i = 0; i < ds.n; i++) {
            struct guarded *g = i == 0 ? &first : &y;
            guard_reset(g);
            memcpy(g->p, x, sizeof(x));
            ds.d[i]->ops->act(ds.d[i], g->p, N_ACT, (enum act)kind);
            guard_check(g, N_ACT, N_ACT, ds.d[i]->ops->name);
            bytes_same(g->p, first.p, N_ACT, ds.d[i]->ops->name);
            /* every element alone: a tail must not have another formula */
            for (int e = 0; e < N_ACT; e += 13) {
                float one = x[e];
                ds.d[i]->ops->act(ds.d[i], &one, 1, (enum act)kind);
                bytes_same(&one, first.p + e, 1, "element alone");
            }
        }
        for (int e = 0; e < N_ACT; e++) {
            const double want = act_exact((double)x[e], (enum act)kind);
            T_NEAR((double)first.p[e], want, 1e-6 * fmax(1.0, fabs((double)x[e])));
        }
        for (int i = 0; i < ds.n; i++) {
            guard_reset(&y);
            ds.d[i]->ops->gated(ds.d[i], y.p, gate_up, 1, N_ACT, (enum act)kind);
            guard_check(&y, N_ACT, N_ACT, ds.d[i]->ops->name);
            for (int e = 0; e < N_ACT; e++) {
                const float want = first.p[e] * up[e];
                bytes_same(y.p + e, &want, 1, "gated");
            }
        }
    }
    guard_free(&first);
    guard_free(&y);
    devices_close(&ds);
}

static void test_gated_rows(void)
{
    struct devices ds = devices_open();
    const int rows = 300, n = 51; /* over the pool's threshold, odd */
    const size_t size = (size_t)rows * (size_t)n;
    float *in = mem_array(2 * size, sizeof(float));
    struct guarded first = guard_new(size), y = guard_new(size);
    T_OK(in);
    fill(in, 2 * size, FILL_RANDOM);
    for (int i = 0; i < ds.n; i++) {
        struct guarded *g = i == 0 ? &first : &y;
        guard_reset(g);
        ds.d[i]->ops->gated(ds.d[i], g->p, in, rows, n, ACT_SILU);
        guard_check(g, (size_t)n, (size_t)n, ds.d[i]->ops->name);
        bytes_same(g->p, first.p, size, ds.d[i]->ops->name);
    }
    for (size_t r = 0; r < (size_t)rows; r++) {
        for (size_t j = 0; j < (size_t)n; j++) {
            const double gate = (double)in[r * 2 * (size_t)n + j];
            const double up = (double)in[r * 2 * (size_t)n + (size_t)n + j];
            T_NEAR((double)first.p[r * (size_t)n + j], act_exact(gate, ACT_SILU) * up, 2e-6);
        }
    }
    guard_free(&first);
    guard_free(&y);
    mem_free(in);
    devices_close(&ds);
}

/* In place, whole and element by element, on every device alike. */
static void check_flat(struct devices *ds, bool cap, float by)
{
    static float x[N_ACT];
    struct guarded first = guard_new(N_ACT), y = guard_new(N_ACT);
    act_inputs(x);
    for (int i = 0; i < ds->n; i++) {
        struct guarded *g = i == 0 ? &first : &y;
        const struct dev_ops *ops = ds->d[i]->ops;
        guard_reset(g);
        memcpy(g->p, x, sizeof(x));
        (cap ? ops->softcap : ops->scale)(ds->d[i], g->p, N_ACT, by);
        guard_check(g, N_ACT, N_ACT, ops->name);
        bytes_same(g->p, first.p, N_ACT, ops->name);
        for (int e = 0; e < N_ACT; e += 13) {
            float one = x[e];
            (cap ? ops->softcap : ops->scale)(ds->d[i], &one, 1, by);
            bytes_same(&one, first.p + e, 1, "element alone");
        }
    }
    for (int e = 0; e < N_ACT; e++) {
        const float scaled = x[e] * by;
        if (cap) {
            T_NEAR((double)first.p[e], by * tanh((double)x[e] / by), 4e-7 * by);
        } else {
            bytes_same(first.p + e, &scaled, 1, "scale");
        }
    }
    guard_free(&first);
    guard_free(&y);
}

static void test_scale_softcap(void)
{
    static const float factors[] = { 30.0f, 50.0f, 1.0f, 0.037f };
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(factors); i++) {
        check_flat(&ds, false, factors[i]);
        check_flat(&ds, true, factors[i]);
    }
    devices_close(&ds);
}

static void test_add(void)
{
    struct devices ds = devices_open();
    static float x[100000], y[100000];
    fill(x, COUNT(x), FILL_MIXED);
    for (int i = 0; i < ds.n; i++) {
        for (size_t n = 0; n <= COUNT(x); n = n < 40 ? n + 1 : n * 7 / 2 + 1) {
            fill(y, COUNT(y), FILL_ZERO);
            y[n < COUNT(y) ? n : 0] = 7.0f;
            ds.d[i]->ops->add(ds.d[i], y, x, n);
            for (size_t e = 0; e < n; e++) {
                T_OK(y[e] == x[e] || (e == 0 && n == COUNT(y)));
            }
            T_OK(n == COUNT(y) || y[n] == 7.0f);
        }
    }
    devices_close(&ds);
}

/* One case of rope: a head's first rot_dim elements turn, in halves or in pairs. */
struct rope_case {
    int rows, n_head, head_dim, rot_dim;
    bool pairs;
};

/* What the element pair i of head h of a row must be. */
static void rope_oracle(const struct rope_case *k, const float *got, const float *x,
                        const double *angle)
{
    const int half = k->rot_dim / 2;
    for (int h = 0; h < k->n_head; h++, got += k->head_dim, x += k->head_dim) {
        for (int i = 0; i < half; i++) {
            const int a = k->pairs ? 2 * i : i, b = k->pairs ? 2 * i + 1 : i + half;
            const double c = cos(angle[i]), s = sin(angle[i]);
            T_NEAR((double)got[a], (double)x[a] * c - (double)x[b] * s, 4e-7);
            T_NEAR((double)got[b], (double)x[b] * c + (double)x[a] * s, 4e-7);
        }
        bytes_same(got + k->rot_dim, x + k->rot_dim, (size_t)(k->head_dim - k->rot_dim), "rest");
    }
}

static void check_rope(struct devices *ds, struct rope_case k)
{
    const int half = k.rot_dim / 2, third = half / 3;
    const int section[3] = { half - 2 * third, third, third };
    int32_t *pos[3];
    const size_t width = (size_t)(k.n_head * k.head_dim), ld = width + 3;
    const size_t n = (size_t)k.rows * ld, n_angle = (size_t)(k.rows * half);
    float *c = mem_array(n_angle, sizeof(float)), *s = mem_array(n_angle, sizeof(float));
    double *angle = mem_array(n_angle, sizeof(double));
    float *x = mem_array(n, sizeof(float));
    struct guarded first = guard_new(n), y = guard_new(n);
    T_OK(c && s && x && angle);
    for (int a = 0; a < 3; a++) {
        pos[a] = mem_array((size_t)k.rows, sizeof(int32_t));
        T_OK(pos[a]);
        for (int r = 0; r < k.rows; r++) {
            pos[a][r] = r * (a + 1) + (r == k.rows - 1 ? 30000 : 0);
        }
    }
    for (int i = 0; i < k.rows * half; i++) {
        const int p = i % half, axis = p < section[0] ? 0 : p < section[0] + section[1] ? 1 : 2;
        angle[i] = pos[axis][i / half] * pow(10000.0, -2.0 * p / k.rot_dim);
    }
    rope_table(c, s, (const int32_t *const *)pos, section, k.rows, k.rot_dim, 10000.0);
    fill(x, n, FILL_RANDOM);
    for (int i = 0; i < ds->n; i++) {
        struct guarded *g = i == 0 ? &first : &y;
        guard_reset(g);
        for (int r = 0; r < k.rows; r++) {
            memcpy(g->p + (size_t)r * ld, x + (size_t)r * ld, width * sizeof(float));
        }
        const struct rope_args a = { .x = g->p,
                                     .ld = ld,
                                     .cos = c,
                                     .sin = s,
                                     .rows = k.rows,
                                     .n_head = k.n_head,
                                     .head_dim = k.head_dim,
                                     .rot_dim = k.rot_dim == k.head_dim ? 0 : k.rot_dim,
                                     .pairs = k.pairs };
        ds->d[i]->ops->rope(ds->d[i], &a);
        guard_check(g, ld, width, ds->d[i]->ops->name);
        bytes_same(g->p, first.p, n, ds->d[i]->ops->name);
    }
    for (int r = 0; r < k.rows; r++) {
        rope_oracle(&k, first.p + (size_t)r * ld, x + (size_t)r * ld, angle + r * half);
    }
    guard_free(&first);
    guard_free(&y);
    for (int a = 0; a < 3; a++) {
        mem_free(pos[a]);
    }
    mem_free(c);
    mem_free(s);
    mem_free(angle);
    mem_free(x);
}

static void test_rope(void)
{
    static const int head_dims[] = { 2, 4, 20, 24, 30, 32, 40, 64, 80, 128 };
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(head_dims); i++) {
        for (int pairs = 0; pairs < 2; pairs++) {
            const int rows = 1 + (int)i, d = head_dims[i];
            check_rope(&ds, (struct rope_case){ rows, 3, d, d, pairs });
            check_rope(&ds, (struct rope_case){ rows, 3, d + 10, d, pairs });
            check_rope(&ds, (struct rope_case){ rows, 2, d + 1, d, pairs });
        }
    }
    check_rope(&ds, (struct rope_case){ 200, 4, 64, 64, false });
    check_rope(&ds, (struct rope_case){ 200, 4, 64, 48, true });
    devices_close(&ds);
}

/* Zeroes keep their signs alike on every instruction set. */
static void test_rope_zeroes(void)
{
    static const float cosines[] = { 1.0f, 0.0f, -1.0f, 0.5f },
                       sines[] = { 0.0f, 1.0f, 0.0f, -0.5f };
    struct devices ds = devices_open();
    for (int pairs = 0; pairs < 2; pairs++) {
        for (unsigned signs = 0; signs < 256; signs++) {
            float first[8] = { 0 };
            for (int i = 0; i < ds.n; i++) {
                float x[8];
                for (unsigned e = 0; e < 8; e++) {
                    x[e] = signs >> e & 1 ? -0.0f : 0.0f;
                }
                const struct rope_args a = { .x = x,
                                             .ld = 8,
                                             .cos = cosines,
                                             .sin = sines,
                                             .rows = 1,
                                             .n_head = 1,
                                             .head_dim = 8,
                                             .pairs = pairs };
                ds.d[i]->ops->rope(ds.d[i], &a);
                if (i == 0) {
                    memcpy(first, x, sizeof(x));
                }
                bytes_same(x, first, 8, ds.d[i]->ops->name);
            }
        }
    }
    devices_close(&ds);
}

static void test_rope_angles(void)
{
    static const double freq[] = { 1.0, 0.25, 3e-5 };
    static const uint8_t axis[] = { 2, 0, 1 };
    static const int32_t t[] = { 3, 40000 }, h[] = { 7, 11 }, w[] = { 0, 123456 };
    const int32_t *const pos[3] = { t, h, w };
    float c[6], s[6];
    rope_angles(c, s, pos, axis, freq, 2, 3, 1.5);
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 3; i++) {
            const double angle = pos[axis[i]][r] * freq[i];
            T_NEAR((double)c[3 * r + i], 1.5 * cos(angle), 1e-7);
            T_NEAR((double)s[3 * r + i], 1.5 * sin(angle), 1e-7);
        }
    }
}

static void check_head_norm(struct devices *ds, int rows, int n_head, int head_dim)
{
    const size_t width = (size_t)(n_head * head_dim), ld = width + 5, n = (size_t)rows * ld;
    float *x = mem_array(n, sizeof(float)), *w = mem_array((size_t)head_dim, sizeof(float));
    struct guarded first = guard_new(n), y = guard_new(n);
    T_OK(x && w);
    fill(x, n, FILL_RANDOM);
    fill(w, (size_t)head_dim, FILL_RANDOM);
    for (int i = 0; i < ds->n; i++) {
        struct guarded *g = i == 0 ? &first : &y;
        guard_reset(g);
        for (int r = 0; r < rows; r++) {
            memcpy(g->p + (size_t)r * ld, x + (size_t)r * ld, width * sizeof(float));
        }
        ds->d[i]->ops->head_norm(ds->d[i], g->p, ld, w, rows, n_head, head_dim, 1e-6f);
        guard_check(g, ld, width, ds->d[i]->ops->name);
        bytes_same(g->p, first.p, n, ds->d[i]->ops->name);
    }
    for (int i = 0; i < rows * n_head; i++) {
        const size_t at = (size_t)(i / n_head) * ld + (size_t)(i % n_head * head_dim);
        norm_oracle(first.p + at, x + at, w, NULL, head_dim, (double)1e-6f, NORM_RMS);
    }
    guard_free(&first);
    guard_free(&y);
    mem_free(x);
    mem_free(w);
}

static void test_head_norm(void)
{
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(dims); i++) {
        check_head_norm(&ds, 1 + (int)i % 3, 1 + (int)i % 4, dims[i]);
    }
    check_head_norm(&ds, 150, 8, 72); /* enough for the pool */
    devices_close(&ds);
}

/* dst after one top1 on each device; all must agree in every bit. */
static struct logit_top top1_all(struct devices *ds, const float *x, int n)
{
    struct logit_top first = { 0 };
    for (int i = 0; i < ds->n; i++) {
        struct logit_top t = { -1, 0.0f, 0.0f };
        ds->d[i]->ops->top1(ds->d[i], &t, x, (size_t)n, 1, n);
        if (i == 0) {
            first = t;
        }
        T_EQ(t.id, first.id);
        bytes_same(&t.logit, &first.logit, 1, ds->d[i]->ops->name);
        bytes_same(&t.log_sum, &first.log_sum, 1, ds->d[i]->ops->name);
    }
    return first;
}

static void test_top1(void)
{
    static const int sizes[] = { 1, 2, 15, 16, 17, 33, 64, 100, 2048, 5001 };
    struct devices ds = devices_open();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const int n = sizes[i];
        float *x = mem_array((size_t)n, sizeof(float));
        T_OK(x);
        for (int round = 0; round < 12; round++) {
            for (int j = 0; j < n; j++) {
                x[j] = round == 0 ? -3.0f : (round < 6 ? 1.0f : 40.0f) * check_uniform();
            }
            /* equals: the lowest must win, wherever the vector's lanes fall */
            const int a = (int)(check_bits() % (unsigned)n), b = (int)(check_bits() % (unsigned)n);
            if (round > 0) {
                x[a] = x[b] = 41.0f;
            }
            int best = 0;
            double sum = 0.0;
            for (int j = 0; j < n; j++) {
                best = x[j] > x[best] ? j : best;
            }
            for (int j = 0; j < n; j++) {
                sum += exp((double)x[j] - (double)x[best]);
            }
            const struct logit_top t = top1_all(&ds, x, n);
            const double want = (double)x[best] + log(sum);
            T_EQ(t.id, best);
            T_OK(t.logit == x[best]);
            T_NEAR((double)t.log_sum, want, 1e-5 * fmax(1.0, fabs(want)));
        }
        mem_free(x);
    }
    devices_close(&ds);
}

static void test_embed(void)
{
    enum { VOCAB = 41, DIM = 37 }; /* two groups of columns */
    static uint16_t half[VOCAB * DIM + 1];
    static float wide[VOCAB * DIM];
    static const int32_t ids[] = { 40, 0, 31, 3, 3, 32, 17 };
    struct devices ds = devices_open();
    for (int i = 0; i < VOCAB * DIM; i++) {
        const uint16_t h = (uint16_t)(check_bits() & 0xbbff); /* finite in both types */
        wide[i] = check_uniform();
        memcpy((char *)half + 1 + 2 * i, &h, 2);
    }
    struct guarded y = guard_new(COUNT(ids) * DIM);
    for (int i = 0; i < ds.n; i++) {
        for (int type = 0; type < DTYPE_N_DENSE; type++) {
            const void *data = type == DTYPE_F32 ? (const void *)wide : (const char *)half + 1;
            const struct tensor t = { (enum dtype)type, 2, { VOCAB, DIM }, data, NULL };
            guard_reset(&y);
            const struct linear_part part = { t, NULL };
            struct linear *l;
            T_EQ(ds.d[i]->ops->linear_new(ds.d[i], &l, &part, 1, NULL), GALLEY_OK);
            ds.d[i]->ops->embed(ds.d[i], y.p, l, ids, COUNT(ids));
            ds.d[i]->ops->linear_free(ds.d[i], l);
            guard_check(&y, DIM, DIM, ds.d[i]->ops->name);
            for (size_t e = 0; e < COUNT(ids) * DIM; e++) {
                const size_t at = (size_t)ids[e / DIM] * DIM + e % DIM;
                uint16_t h;
                memcpy(&h, (char *)half + 1 + 2 * at, 2);
                const float want = type == DTYPE_F32   ? wide[at]
                                   : type == DTYPE_F16 ? f16_to_f32(h)
                                                       : bf16_to_f32(h);
                bytes_same(y.p + e, &want, 1, "embed");
            }
        }
    }
    guard_free(&y);
    devices_close(&ds);
}

/* Rows of a quantised table have the bits of quant_decode, which check_quant holds against ggml. */
static void test_embed_quantised(void)
{
    enum { VOCAB = 41, DIM_MAX = 1312, ROW_MAX = DIM_MAX * 2 };
    static uint8_t w[VOCAB * ROW_MAX];
    static float want[DIM_MAX];
    static const int32_t ids[] = { 40, 0, 31, 3, 3, 32, 17 };
    struct devices ds = devices_open();
    struct guarded y = guard_new(COUNT(ids) * DIM_MAX);
    for (size_t i = 0; i < sizeof(w); i++) {
        w[i] = (uint8_t)check_bits() & 0x3f; /* f16 scales up to 1.8 */
    }
    for (int type = DTYPE_N_DENSE; type < DTYPE_COUNT; type++) {
        const enum dtype t = (enum dtype)type;
        const size_t dim = dtype_info(t)->block == 32 ? 1312 : 1280; /* no whole slices of k */
        const size_t row_bytes = (size_t)dtype_row_bytes(t, dim);
        const struct linear_part part = { { t, 2, { VOCAB, (int64_t)dim }, w, NULL }, NULL };
        for (int i = 0; i < ds.n; i++) {
            struct linear *l;
            T_EQ(ds.d[i]->ops->linear_new(ds.d[i], &l, &part, 1, NULL), GALLEY_OK);
            ds.d[i]->ops->embed(ds.d[i], y.p, l, ids, COUNT(ids));
            ds.d[i]->ops->linear_free(ds.d[i], l);
            for (size_t r = 0; r < COUNT(ids); r++) {
                quant_decode(want, w + (size_t)ids[r] * row_bytes, t, dim);
                bytes_same(y.p + r * dim, want, dim, dtype_name(t));
            }
        }
    }
    guard_free(&y);
    devices_close(&ds);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "norm", test_norm },
        { "head_norm", test_head_norm },
        { "act", test_act },
        { "gated_rows", test_gated_rows },
        { "add", test_add },
        { "scale_softcap", test_scale_softcap },
        { "rope", test_rope },
        { "rope_zeroes", test_rope_zeroes },
        { "rope_angles", test_rope_angles },
        { "top1", test_top1 },
        { "embed", test_embed },
        { "embed_quantised", test_embed_quantised },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
