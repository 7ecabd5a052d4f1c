/* test_planner.c - plans against what opening a model takes, and what plans refuse. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "src/base/mem.h"
#include "src/engine/engine.h"
#include "src/engine/planner.h"
#include "src/engine/roofline.h"
#include "src/format/checkpoint.h"
#include "src/format/quantize.h"
#include "tests/t.h"

#define TINY  "models/galley-tiny"
#define FIXED (48ull << 20) /* what the planner adds for everything small */

/* Bytes the allocator has handed out; 0 where nobody counts (sanitizers, other libraries). */
static uint64_t handed_out(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 m = mallinfo2();
    return (uint64_t)m.uordblks + (uint64_t)m.hblkhd;
#else
    return 0;
#endif
}

static void plan_of(struct plan *p, const char *path, const struct plan_request *r)
{
    struct checkpoint c;
    struct galley_err err = { 0 };
    if (checkpoint_open(&c, path, NULL, CHECKPOINT_CONFIG, &err) != GALLEY_OK ||
        plan_make(p, &c, r, &err) != GALLEY_OK) {
        T_FAIL("%s: %s", path, err.msg);
    }
    checkpoint_close(&c);
}

/* Opening stays below the plan, and the plan is no wild guess. */
static void check_opening(const char *path, bool exact)
{
    const struct plan_request r = {
        .max_seqs = 4, .kv_type = KV_F16, .n_threads = 2, .exact = exact
    };
    const struct engine_config cfg = {
        .model_path = path, .n_threads = 2, .max_seqs = 4, .kv_type = KV_F16, .exact_linear = exact
    };
    struct plan p;
    struct engine *e;
    struct galley_err err = { 0 };
    plan_of(&p, path, &r);
    const uint64_t before = handed_out();
    if (engine_open(&e, &cfg, &err) != GALLEY_OK) {
        T_FAIL("%s: %s", path, err.msg);
    }
    const uint64_t took = handed_out() - before;
    engine_close(e);
    if (took > 0 && (took > p.total_bytes || p.total_bytes > took / 2 * 3 + FIXED)) {
        T_FAIL("%s takes %llu bytes, planned %llu", path, (unsigned long long)took,
               (unsigned long long)p.total_bytes);
    }
}

static void test_opening(void)
{
    check_opening(TINY, false);
    check_opening(TINY, true);
}

/* The same for a quantised file; rows quantised for its products are counted, unless exact. */
static void test_opening_quantised(void)
{
    char dir[] = "/tmp/galley-planner-XXXXXX", path[64], mmproj[64];
    T_OK(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/tiny.gguf", dir);
    snprintf(mmproj, sizeof(mmproj), "%s/mmproj-tiny.gguf", dir);
    const struct quantize_job job = {
        .in = TINY, .out = path, .mmproj = mmproj, .type = "q8_0", .n_threads = 1
    };
    struct quantize_total total = { 0 };
    struct galley_err err = { 0 };
    if (quantize_run(&job, &total, &err) != GALLEY_OK) {
        T_FAIL("%s", err.msg);
    }
    mem_free(total.mmproj);
    struct plan_request r = { .n_threads = 2, .kv_type = KV_F16 };
    struct plan codes, exact;
    plan_of(&codes, path, &r);
    r.exact = true;
    plan_of(&exact, path, &r);
    check_opening(path, false);
    check_opening(path, true);
    (void)unlink(path);
    (void)unlink(mmproj);
    T_EQ(rmdir(dir), 0);
    T_OK(codes.quantised);
    /* 512 rows of at least hidden / 256 units of 384 bytes. */
    T_OK(codes.step_bytes - exact.step_bytes >= 512 * 384);
}

static void refused(const struct plan_request *r, enum galley_status status, const char *says)
{
    struct checkpoint c;
    struct plan p;
    struct galley_err err = { 0 };
    T_EQ(checkpoint_open(&c, TINY, NULL, CHECKPOINT_CONFIG, &err), GALLEY_OK);
    T_EQ(plan_make(&p, &c, r, &err), status);
    if (!strstr(err.msg, says)) {
        T_FAIL("\"%s\" does not say \"%s\"", err.msg, says);
    }
    checkpoint_close(&c);
}

static void test_refusals(void)
{
    refused(&(struct plan_request){ .context = -1 }, GALLEY_EUSAGE, "-1");
    refused(&(struct plan_request){ .max_seqs = 65537 }, GALLEY_EUSAGE, "65537");
    refused(&(struct plan_request){ .max_rows = -7 }, GALLEY_EUSAGE, "-7");
    refused(&(struct plan_request){ .max_pixels = -5 }, GALLEY_EUSAGE, "-5");
    refused(&(struct plan_request){ .memory_bytes = 70000000 }, GALLEY_ELIMIT, "0.07");
    refused(&(struct plan_request){ .kv_bytes = 17 }, GALLEY_ELIMIT, "17");
}

/* A token's bytes follow the type, and fewer of them make room for more. */
static void test_kv_types(void)
{
    static const struct {
        enum kv_type type;
        int per_value; /* bytes of a code; q8 has a scale per vector beside it */
    } types[] = { { KV_F32, 4 }, { KV_F16, 2 }, { KV_BF16, 2 }, { KV_Q8, 1 }, { KV_FP8, 1 } };
    struct plan_request r = { .memory_bytes = 200000000, .n_threads = 1, .max_seqs = 2 };
    struct plan first = { 0 }, p;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        r.kv_type = types[i].type;
        plan_of(&p, TINY, &r);
        first = i == 0 ? p : first;
        const uint64_t codes = first.kv_token_bytes / 4 * (uint64_t)types[i].per_value;
        T_OK(types[i].type == KV_Q8 ? p.kv_token_bytes > codes && p.kv_token_bytes < 2 * codes
                                    : p.kv_token_bytes == codes);
        T_EQ(p.step_bytes, first.step_bytes);
        T_OK(p.fit_seqs >= first.fit_seqs);
        T_EQ(p.kv_bytes, (uint64_t)p.n_blocks * KV_BLOCK * p.kv_token_bytes);
        T_OK(p.total_bytes <= r.memory_bytes);
    }
}

/* Whatever the memory, no context is longer than the model's own. */
static void test_contexts(void)
{
    enum { LIMIT = 2048 }; /* galley-tiny's */
    struct plan_request r = {
        .memory_bytes = 64ull << 30, .n_threads = 1, .max_seqs = 2, .kv_type = KV_F16
    };
    struct plan p;
    plan_of(&p, TINY, &r);
    T_OK(p.model_context == LIMIT && p.fit_context == LIMIT && p.context == LIMIT);
    r.context = 3 * LIMIT;
    plan_of(&p, TINY, &r);
    T_OK(p.fit_context == LIMIT && p.context == LIMIT);
    r.memory_bytes = p.total_bytes - p.kv_bytes + LIMIT / 2 * p.kv_token_bytes;
    r.context = 64;
    plan_of(&p, TINY, &r);
    T_OK(p.model_context == LIMIT && p.fit_context == LIMIT / 4 && p.context == 64);
}

/* Without memory for the whole buffer a smaller one is measured; without any, nothing. */
static void test_roof_in_short_memory(void)
{
    struct roofline roof = { 0 };
    for (int n = 1; roof.read_bytes != ROOFLINE_READ_BYTES / 2; n++) {
        mem_fail_at(n);
        const enum galley_status rc = roofline_measure(&roof, NULL, 1, NULL);
        mem_fail_at(0);
        T_OK(n < 20 && (rc == GALLEY_ENOMEM || rc == GALLEY_OK));
        T_OK((roof.read_bytes > 0) == (rc == GALLEY_OK));
        T_OK((roof.read_bytes_per_s > 0) == (rc == GALLEY_OK));
    }
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "contexts", test_contexts }, { "roof_in_short_memory", test_roof_in_short_memory },
        { "opening", test_opening },   { "opening_quantised", test_opening_quantised },
        { "refusals", test_refusals }, { "kv_types", test_kv_types },
    };
    return t_main(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
