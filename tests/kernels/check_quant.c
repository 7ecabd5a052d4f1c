/* check_quant.c - block-quantised rows against fixtures/quants.bin, which tools/reference/quants.py
 * makes with gguf-py (decoding) and ggml (encoding). */
#include "kernels/quant.h"
#include "tests/kernels/check.h"

#define GOLDEN "tests/kernels/fixtures/quants.bin"

enum { GOLDEN_N = 1024, BLOCK_BYTES_MAX = 2048 };

static uint8_t golden[1 << 17];
static float golden_x[GOLDEN_N], golden_w[GOLDEN_N];

struct golden_type {
    enum dtype type;
    size_t bytes;
    const uint8_t *random, *decoded, *plain, *weighted;
};

/* Type i of the file; returns how many there are. */
static int golden_at(struct golden_type *g, int i)
{
    FILE *f = fopen(GOLDEN, "rb");
    T_OK(f != NULL);
    const size_t size = fread(golden, 1, sizeof(golden), f);
    fclose(f);
    uint32_t head[2];
    memcpy(head, golden, sizeof(head));
    T_EQ(head[1], GOLDEN_N);
    memcpy(golden_x, golden + 8, sizeof(golden_x));
    memcpy(golden_w, golden + 8 + sizeof(golden_x), sizeof(golden_w));
    const uint8_t *p = golden + 8 + 2 * sizeof(golden_x);
    for (int k = 0; k <= i; k++) {
        char name[9] = { 0 };
        memcpy(name, p, 8);
        g->type = quant_dtype_named(name);
        T_OK(g->type != DTYPE_COUNT);
        g->bytes = (size_t)dtype_row_bytes(g->type, GOLDEN_N);
        g->random = p + 8;
        g->decoded = g->random + g->bytes;
        g->plain = g->decoded + sizeof(golden_x);
        g->weighted = g->plain + g->bytes;
        p = g->weighted + g->bytes;
    }
    T_OK(p <= golden + size);
    return (int)head[0];
}

static void test_names(void)
{
    T_EQ(quant_dtype_named("q4_k"), DTYPE_Q4_K);
    T_EQ(quant_dtype_named("Q4_K"), DTYPE_Q4_K);
    T_EQ(quant_dtype_named("bf16"), DTYPE_BF16);
    T_EQ(quant_dtype_named("q4_k_m"), DTYPE_COUNT);
    T_EQ(quant_dtype_named(""), DTYPE_COUNT);
}

static void test_decode(void)
{
    struct golden_type g;
    const int n = golden_at(&g, 0);
    T_EQ(n, DTYPE_COUNT - DTYPE_N_DENSE);
    for (int i = 0; i < n; i++) {
        golden_at(&g, i);
        struct guarded y = guard_new(GOLDEN_N);
        /* At an odd address: files align nothing but the tensor. */
        uint8_t *moved = mem_alloc(g.bytes + 1);
        memcpy(moved + 1, g.random, g.bytes);
        quant_decode(y.p, moved + 1, g.type, GOLDEN_N);
        if (memcmp(y.p, g.decoded, sizeof(golden_x)) != 0) {
            T_FAIL("%s decodes to other bits than gguf-py's", dtype_name(g.type));
        }
        mem_free(moved);
        guard_check(&y, GOLDEN_N, GOLDEN_N, dtype_name(g.type));
        guard_free(&y);
    }
}

static double weighted_error(const uint8_t *blocks, const float *w, enum dtype t)
{
    float y[GOLDEN_N];
    double sum = 0;
    quant_decode(y, blocks, t, GOLDEN_N);
    for (int i = 0; i < GOLDEN_N; i++) {
        const double e = (double)y[i] - (double)golden_x[i];
        sum += e * e * (w ? (double)w[i] : 1);
    }
    return sqrt(sum / GOLDEN_N);
}

/* Types whose plain encoding is a formula come out byte for byte; the searched ones must do at
 * least as well as ggml's search, to 2 per cent. */
static void test_encode(void)
{
    struct golden_type g;
    const int n = golden_at(&g, 0);
    for (int i = 0; i < n; i++) {
        golden_at(&g, i);
        uint8_t blocks[BLOCK_BYTES_MAX];
        quant_encode(blocks, golden_x, NULL, g.type, GOLDEN_N);
        if (g.type <= DTYPE_Q8_0 && memcmp(blocks, g.plain, g.bytes) != 0) {
            T_FAIL("%s differs from ggml's reference rounding", dtype_name(g.type));
        }
        const double plain = weighted_error(blocks, NULL, g.type);
        const double peer = weighted_error(g.plain, NULL, g.type);
        quant_encode(blocks, golden_x, golden_w, g.type, GOLDEN_N);
        const double weighted = weighted_error(blocks, golden_w, g.type);
        const double weighted_peer = weighted_error(g.weighted, golden_w, g.type);
        if (plain > 1.02 * peer || weighted > 1.02 * weighted_peer) {
            T_FAIL("%s: %g against %g, weighted %g against %g", dtype_name(g.type), plain, peer,
                   weighted, weighted_peer);
        }
    }
}

static void fill_strange(float *x, int n, int kind)
{
    for (int i = 0; i < n; i++) {
        const float u = check_uniform();
        const float one[] = { 0,
                              -0.0f,
                              1e-40f * u,
                              3e38f * u,
                              1e-8f * u,
                              7,
                              -0.5f,
                              1e15f * u,
                              (float)(i == 77) * 1e6f,
                              i % 2 ? 3e38f : -1e-38f,
                              ldexpf(u, i % 200 - 100),
                              65504 * u,
                              -1e-16f,
                              fabsf(u) };
        x[i] = one[kind];
    }
}

/* Whatever finite numbers come, finite ones come back, no further away than the format's range
 * explains. */
static void test_extremes(void)
{
    enum { N = 512, N_KINDS = 14 };
    for (int t = DTYPE_F16; t < DTYPE_COUNT; t++) {
        for (int k = 0; k < N_KINDS * 4; k++) {
            float x[N], w[N], y[N];
            uint8_t blocks[4 * N];
            fill_strange(x, N, k % N_KINDS);
            fill_strange(w, N, k * 5 % N_KINDS);
            for (int i = 0; i < N; i++) {
                w[i] = fabsf(w[i]);
            }
            quant_encode(blocks, x, k < N_KINDS ? NULL : w, (enum dtype)t, N);
            quant_decode(y, blocks, (enum dtype)t, N);
            for (int i = 0; i < N; i++) {
                if (!isfinite(y[i]) || (k % N_KINDS < 2 && y[i] != 0)) {
                    T_FAIL("%s kind %d: x[%d] = %g becomes %g", dtype_name((enum dtype)t), k, i,
                           (double)x[i], (double)y[i]);
                }
            }
        }
    }
}

/* A column that matters 10,000 times more than the rest is kept closer. */
static void test_importance(void)
{
    enum { N = 256, I_COLUMN = 37 };
    for (int t = DTYPE_Q4_0; t < DTYPE_COUNT; t++) {
        double plain = 0, weighted = 0;
        for (int row = 0; row < 50; row++) {
            float x[N], w[N], y[N];
            uint8_t blocks[2 * N];
            fill(x, N, FILL_RANDOM);
            for (int i = 0; i < N; i++) {
                w[i] = i == I_COLUMN ? 1 : 1e-4f;
            }
            quant_encode(blocks, x, NULL, (enum dtype)t, N);
            quant_decode(y, blocks, (enum dtype)t, N);
            plain += fabs((double)(y[I_COLUMN] - x[I_COLUMN]));
            quant_encode(blocks, x, w, (enum dtype)t, N);
            quant_decode(y, blocks, (enum dtype)t, N);
            weighted += fabs((double)(y[I_COLUMN] - x[I_COLUMN]));
        }
        /* Q8_0 always rounds the same way; MXFP4 has but three scales to choose from. */
        const double limit = t == DTYPE_Q8_0 ? 1 : t == DTYPE_MXFP4 ? 0.95 : 0.6;
        if (weighted > limit * plain) {
            T_FAIL("%s: error %g with importance, %g without", dtype_name((enum dtype)t), weighted,
                   plain);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "names", test_names },       { "decode", test_decode },         { "encode", test_encode },
        { "extremes", test_extremes }, { "importance", test_importance },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
