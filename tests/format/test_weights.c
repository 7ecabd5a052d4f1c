/* test_weights.c - safetensors written by the safetensors package, and everything that can be
 * wrong with one. */
#include "src/base/half.h"
#include "src/format/safetensors.h"
#include "src/format/weights.h"
#include "tests/format/folder.h"
#include "tests/format/pixels.h"

/* A file with this header and n_data bytes behind it; the caller frees. */
static struct bytes st_file(const char *header, size_t n_data)
{
    const size_t n = strlen(header);
    struct bytes b = { mem_zero_array(8 + n + n_data, 1), 8 + n + n_data };
    for (int i = 0; i < 8; i++) {
        b.p[i] = (uint8_t)((uint64_t)n >> (8 * i));
    }
    memcpy(b.p + 8, header, n);
    return b;
}

static void reads_the_reference(void)
{
    struct bytes f = file_of("model", "five.safetensors");
    struct galley_err err = { 0 };
    struct safetensors *s;
    T_EQ(safetensors_open_memory(&s, "five", f.p, f.n, &err), GALLEY_OK);
    T_EQ(safetensors_count(s), 5);
    static const char *const names[] = { "a.bias", "b.weight", "c.kernel", "ids", "scalar" };
    for (int i = 0; i < 5; i++) {
        T_STR(safetensors_at(s, i)->name, names[i]);
        T_EQ(safetensors_at(s, i)->usable, i != 3);
    }
    const struct tensor *a = &safetensors_at(s, 0)->view, *b = &safetensors_at(s, 1)->view;
    const struct tensor *c = &safetensors_at(s, 2)->view, *d = &safetensors_at(s, 4)->view;
    uint16_t half[8];
    float full[6], one;
    T_EQ(a->dtype, DTYPE_F16);
    memcpy(half, a->data, 8);
    T_NEAR(f16_to_f32(half[3]), 1.5, 0);
    T_EQ(b->n_dim, 2);
    T_EQ(b->shape[0] * 10 + b->shape[1], 23);
    memcpy(full, b->data, sizeof(full));
    T_NEAR(full[5], 1.25, 0);
    T_EQ(c->dtype, DTYPE_BF16);
    T_EQ(c->n_dim, 5);
    memcpy(half, c->data, sizeof(half));
    T_NEAR(bf16_to_f32(half[7]), 21, 0);
    T_EQ(d->n_dim, 0);
    memcpy(&one, d->data, sizeof(one));
    T_NEAR(one, 0.5, 0);
    safetensors_close(s);
    mem_free(f.p);
}

static enum galley_status open_header(const char *header, size_t n_data, struct galley_err *err)
{
    struct bytes b = st_file(header, n_data);
    struct safetensors *s;
    *err = (struct galley_err){ 0 };
    const enum galley_status rc = safetensors_open_memory(&s, "t.safetensors", b.p, b.n, err);
    T_OK((rc == GALLEY_OK) == (s != NULL));
    safetensors_close(s);
    mem_free(b.p);
    return rc;
}

#define T1(dtype, shape, offsets) \
    "{\"x\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void refuses_by_name(void)
{
    static const struct {
        const char *header, *says;
    } rows[] = {
        { "[]", "not a JSON object" },
        { "{\"x\":", "not valid JSON" },
        { "{\"x\":3}", "x has no dtype" },
        { "{\"x\":{\"dtype\":\"F32\"}}", "x has no dtype or no shape" },
        { T1("F33", "[1]", "[0,4]"), "unknown dtype F33" },
        { T1("F32", "[1]", "[0]"), "data_offsets of x" },
        { T1("F32", "[1]", "[0,4,8]"), "data_offsets of x" },
        { T1("F32", "[1]", "[-4,0]"), "data_offsets of x" },
        { T1("F32", "[1]", "[0.5,4.5]"), "data_offsets of x" },
        { T1("F32", "[1]", "[0,1e300]"), "data_offsets of x" },
        { T1("F32", "[1]", "[8,4]"), "x claims bytes 8 to 4" },
        { T1("F32", "[100]", "[0,400]"), "x claims bytes 0 to 400 of 64" },
        { T1("F32", "[3]", "[0,8]"), "x has 8 bytes, its shape and F32 make 12" },
        { T1("F32", "[-1]", "[0,4]"), "shape of x" },
        { T1("F32", "[1.5]", "[0,6]"), "shape of x" },
        { T1("F32", "[\"1\"]", "[0,4]"), "shape of x" },
        { T1("F32", "[4294967296,4294967296]", "[0,0]"), "shape of x" },
        { T1("F32", "[4503599627370496,4]", "[0,0]"), "shape of x" },
        { T1("F32", "[4611686018427387904]", "[0,0]"), "shape of x" },
        { T1("F4", "[3]", "[0,2]"), "x has 2 bytes" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
          "\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
          "x and y overlap at byte 4" },
        { "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
          "x is there twice" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct galley_err err;
        T_EQ(open_header(rows[i].header, 64, &err), GALLEY_EMODEL);
        T_EQ(err.status, GALLEY_EMODEL);
        if (!strstr(err.msg, rows[i].says) || !strstr(err.msg, "t.safetensors")) {
            T_FAIL("row %zu says: %s", i, err.msg);
        }
    }
}

static void accepts_what_is_allowed(void)
{
    static const char *const rows[] = {
        "{}",
        "{\"__metadata__\":{\"a\":\"b\"}}   ",
        T1("F32", "[0,5]", "[0,0]"),
        T1("F32", "[]", "[60,64]"),          /* holes before are fine */
        T1("F32", "[1,1,1,1,1,1]", "[0,4]"), /* listed, not usable */
        T1("F4", "[4]", "[0,2]"),
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct galley_err err;
        if (open_header(rows[i], 64, &err)) {
            T_FAIL("row %zu: %s", i, err.msg);
        }
    }
}

static void truncated_anywhere(void)
{
    struct bytes f = file_of("model", "five.safetensors");
    for (size_t n = 0; n < f.n; n++) {
        uint8_t *cut = mem_alloc(n);
        memcpy(cut, f.p, n);
        struct galley_err err = { 0 };
        struct safetensors *s;
        T_EQ(safetensors_open_memory(&s, "cut", cut, n, &err), GALLEY_EMODEL);
        T_OK(!s && strstr(err.msg, "cut: "));
        mem_free(cut);
    }
    mem_free(f.p);
}

static void header_length_lies(void)
{
    struct bytes f = file_of("model", "five.safetensors");
    for (int byte = 0; byte < 8; byte++) {
        const uint8_t was = f.p[byte];
        f.p[byte] = 0xff;
        struct galley_err err = { 0 };
        struct safetensors *s;
        T_EQ(safetensors_open_memory(&s, "lie", f.p, f.n, &err), GALLEY_EMODEL);
        f.p[byte] = was;
    }
    mem_free(f.p);
}

/* ---- directories */

static const char part_1[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                             "\"mtp\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}";
static const char part_2[] = "{\"b\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}}";

static void write_part(struct folder *f, const char *name, const char *header)
{
    struct bytes b = st_file(header, 12);
    folder_write(f, name, b.p, b.n);
    mem_free(b.p);
}

static void write_parts(struct folder *f, const char *index)
{
    folder_open(f);
    write_part(f, "p1.safetensors", part_1);
    write_part(f, "p2.safetensors", part_2);
    folder_text(f, "model.safetensors.index.json", index);
}

#define MAP(a, b) "{\"weight_map\":{\"a\":\"" a "\",\"b\":\"" b "\"}}"

static void shards_and_forgotten_tensors(void)
{
    struct folder f;
    struct galley_err err = { 0 };
    struct weights *w;
    write_parts(&f, MAP("p1.safetensors", "p2.safetensors"));
    if (weights_open(&w, f.path, &err)) {
        T_FAIL("%s", err.msg);
    }
    T_EQ(weights_count(w), 3);
    T_STR(weights_name_at(w, 2), "mtp");
    T_OK(weights_has(w, "mtp") && weights_has(w, "b") && !weights_has(w, "c"));
    T_EQ(weights_tensor_at(w, 0)->dtype, DTYPE_F32);
    T_EQ(weights_tensor_at(w, 1)->dtype, DTYPE_COUNT);
    T_EQ(weights_tensor_at(w, 1)->shape[0], 4);
    T_STR(weights_dtype_at(w, 1), "I8");

    const struct tensor *t;
    const int64_t two = 2, one = 1, pair[2] = { 2, 1 };
    T_EQ(weights_lookup(w, "c", 2, pair, &t, &err), GALLEY_EMODEL);
    T_OK(!t && strstr(err.msg, "c [2, 1] is missing"));
    T_EQ(weights_lookup(w, "a", 2, pair, &t, &err), GALLEY_EMODEL);
    T_OK(!t && strstr(err.msg, "p1.safetensors: tensor a is [2], the config wants [2, 1]"));
    T_EQ(weights_lookup(w, "b", 1, &two, &t, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "tensor b is I8"));
    T_EQ(weights_lookup(w, "a", 1, &two, &t, &err), GALLEY_OK);
    T_EQ(t->shape[0], 2);

    static const char *const only_b[] = { "b", NULL }, *const both[] = { "m", "b", NULL };
    T_EQ(weights_check_all_used(w, only_b, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "tensor mtp is not part of this model"));
    T_EQ(weights_check_all_used(w, both, &err), GALLEY_OK);
    T_EQ(weights_lookup(w, "mtp", 1, &one, &t, &err), GALLEY_OK);
    T_EQ(weights_check_all_used(w, NULL, &err), GALLEY_EMODEL); /* b */
    T_EQ(weights_check_all_used(w, only_b, &err), GALLEY_OK);
    weights_close(w);
    folder_close(&f);
}

static void bad_index(void)
{
    static const struct {
        const char *index, *says;
    } rows[] = {
        { "{}", "weight_map" },
        { "{\"weight_map\":{}}", "empty" },
        { "nonsense", "not valid JSON" },
        { MAP("p1.safetensors", "../p2.safetensors"), "the shard of b is no plain file name" },
        { MAP("/etc/passwd", "p2.safetensors"), "the shard of a is no plain file name" },
        { MAP("..", "p2.safetensors"), "the shard of a" },
        { MAP(".p1.safetensors", "p2.safetensors"), "the shard of a is no plain file name" },
        { MAP("", "p2.safetensors"), "the shard of a" },
        { "{\"weight_map\":{\"a\":1}}", "the shard of a" },
        { MAP("p1.safetensors", "p3.safetensors"), "p3.safetensors" },
        { MAP("p1.safetensors", "p1.safetensors"), "b is not in p1.safetensors" },
        { MAP("p2.safetensors", "p1.safetensors"), "a is not in p2.safetensors" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct folder f;
        struct galley_err err = { 0 };
        struct weights *w;
        write_parts(&f, rows[i].index);
        T_EQ(weights_open(&w, f.path, &err), GALLEY_EMODEL);
        T_EQ(err.status, GALLEY_EMODEL);
        folder_close(&f);
        if (w || !strstr(err.msg, rows[i].says)) {
            T_FAIL("row %zu says: %s", i, err.msg);
        }
    }
}

static void same_name_in_two_shards(void)
{
    struct folder f;
    struct galley_err err = { 0 };
    struct weights *w;
    write_parts(&f, MAP("p1.safetensors", "p2.safetensors"));
    write_part(&f, "p2.safetensors", part_1);
    T_EQ(weights_open(&w, f.path, &err), GALLEY_EMODEL);
    folder_close(&f);
    T_OK(strstr(err.msg, "a is in both") && strstr(err.msg, "p1") && strstr(err.msg, "p2"));
}

static void nothing_there(void)
{
    struct galley_err err = { 0 };
    struct weights *w;
    T_EQ(weights_open(&w, "/nonexistent/model", &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "/nonexistent/model") && strstr(err.msg, "directory"));
    struct folder f;
    folder_open(&f);
    folder_text(&f, "model.safetensors", "");
    T_EQ(weights_open(&w, f.path, &err), GALLEY_EMODEL);
    folder_close(&f);
    T_OK(strstr(err.msg, "model.safetensors: 0 bytes"));
}

static void no_memory(void)
{
    struct folder f;
    struct galley_err err = { 0 };
    struct weights *w;
    write_parts(&f, MAP("p1.safetensors", "p2.safetensors"));
    mem_fail_at(0);
    T_EQ(weights_open(&w, f.path, &err), GALLEY_OK);
    const long n = mem_count();
    weights_close(w);
    T_OK(n > 10);
    for (long i = 1; i <= n; i++) {
        mem_fail_at(i);
        const enum galley_status rc = weights_open(&w, f.path, &err);
        mem_fail_at(0);
        T_EQ(rc, GALLEY_ENOMEM);
        T_OK(!w);
    }
    folder_close(&f);
}

static void opens_the_built_in_model(void)
{
    struct galley_err err = { 0 };
    struct weights *w;
    if (weights_open(&w, "models/galley-tiny", &err)) {
        T_FAIL("%s", err.msg);
    }
    const int64_t shape[2] = { 2048, 256 };
    const struct tensor *t;
    T_EQ(weights_lookup(w, "model.embed_tokens.weight", 2, shape, &t, &err), GALLEY_OK);
    T_EQ(weights_check_all_used(w, NULL, &err), GALLEY_EMODEL);
    weights_close(w);
}

static const struct t_case cases[] = {
    { "reads_the_reference", reads_the_reference },
    { "refuses_by_name", refuses_by_name },
    { "accepts_what_is_allowed", accepts_what_is_allowed },
    { "truncated_anywhere", truncated_anywhere },
    { "header_length_lies", header_length_lies },
    { "shards_and_forgotten_tensors", shards_and_forgotten_tensors },
    { "bad_index", bad_index },
    { "same_name_in_two_shards", same_name_in_two_shards },
    { "nothing_there", nothing_there },
    { "no_memory", no_memory },
    { "opens_the_built_in_model", opens_the_built_in_model },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
