/* test_gguf.c - GGUF files of gguf-py (tools/reference/gguf_files.py), and files that lie. */
#include <inttypes.h>

#include "src/base/map.h"
#include "tests/format/folder.h"
#include "tests/format/gguf_bytes.h"

#define FIXTURES "tests/format/fixtures/gguf/"

static struct gguf *open_fixture(const char *name)
{
    char path[256];
    struct gguf *g = NULL;
    struct galley_err err = { 0 };
    snprintf(path, sizeof(path), FIXTURES "%s", name);
    if (gguf_open(&g, path, &err)) {
        T_FAIL("%s", err.msg);
    }
    return g;
}

static char *read_fixture(const char *name, size_t *n)
{
    char path[256], *bytes = NULL;
    struct galley_err err = { 0 };
    snprintf(path, sizeof(path), FIXTURES "%s", name);
    if (file_read(path, 1 << 24, &bytes, n, &err)) {
        T_FAIL("%s", err.msg);
    }
    return bytes;
}

/* ---- what gguf-py wrote */

struct kind_row {
    const char *name;
    enum gguf_type type;
    int64_t whole;
    double number;
};

static const struct kind_row kind_rows[] = {
    { "u8", GGUF_U8, 200, 200 },
    { "i8", GGUF_I8, -100, -100 },
    { "u16", GGUF_U16, 60000, 60000 },
    { "i16", GGUF_I16, -30000, -30000 },
    { "u32", GGUF_U32, 4000000000, 4e9 },
    { "i32", GGUF_I32, -2000000000, -2e9 },
    { "f32", GGUF_F32, 0, 0.5 },
    { "bool", GGUF_BOOL, 1, 1 },
    { "u64", GGUF_U64, INT64_MAX, 9223372036854775809.0 },
    { "i64", GGUF_I64, -(INT64_C(1) << 62), -4611686018427387904.0 },
    { "f64", GGUF_F64, INT64_MAX, 1e300 },
};

static void check_kind(const struct gguf *g, const struct kind_row *r)
{
    char key[32];
    snprintf(key, sizeof(key), "one.%s", r->name);
    const struct gguf_value *v = gguf_lookup(g, key);
    T_OK(v && !v->is_array);
    T_EQ(v->type, r->type);
    T_EQ(v->n, 1);
    T_EQ(gguf_int(v, 0), r->whole);
    T_NEAR(gguf_number(v, 0), r->number, 0);
    snprintf(key, sizeof(key), "many.%s", r->name);
    v = gguf_lookup(g, key);
    T_OK(v && v->is_array);
    T_EQ(v->type, r->type);
    T_EQ(v->n, 2);
    T_EQ(gguf_int(v, 1), r->type == GGUF_BOOL ? 0 : r->whole);
}

static void test_kinds(void)
{
    struct gguf *g = open_fixture("kinds.gguf");
    for (size_t i = 0; i < COUNT(kind_rows); i++) {
        check_kind(g, &kind_rows[i]);
    }
    const struct gguf_value *v = gguf_lookup(g, "one.string");
    T_OK(v && v->type == GGUF_STRING && !v->is_array && v->strings[0].n == 5);
    T_OK(memcmp(v->strings[0].text, "a\xc3\xa9\0b", 5) == 0);
    v = gguf_lookup(g, "many.string");
    T_OK(v && v->is_array && v->n == 3);
    T_OK(gguf_string_is(&v->strings[0], "") && gguf_string_is(&v->strings[2], "yy"));
    T_OK(!gguf_string_is(&v->strings[2], "y") && !gguf_string_is(&v->strings[1], "xx"));
    T_OK(!gguf_lookup(g, "one.") && !gguf_lookup(g, ""));
    /* by position: the same values */
    bool seen = false;
    for (int i = 0; i < gguf_n_keys(g); i++) {
        const struct gguf_value *at;
        const char *key = gguf_key_at(g, i, &at);
        T_OK(gguf_lookup(g, key) == at);
        seen = seen || strcmp(key, "many.f64") == 0;
    }
    T_OK(seen);
    T_EQ(gguf_version(g), 3);
    gguf_close(g);
}

static void test_shapes(void)
{
    struct gguf *g = open_fixture("kinds.gguf");
    T_EQ(gguf_n_tensors(g), 2);
    const struct gguf_tensor *t = gguf_tensor_lookup(g, "b");
    T_OK(t && t == gguf_tensor_at(g, 1) && !gguf_tensor_lookup(g, "c"));
    T_EQ(t->view.n_dim, 3);
    T_EQ(t->view.shape[0], 2);
    T_EQ(t->view.shape[1], 3);
    T_EQ(t->view.shape[2], 4);
    T_EQ(t->bytes, 96);
    T_EQ(t->offset, 64); /* the file's alignment */
    float f[24];
    memcpy(f, t->view.data, sizeof(f));
    for (int i = 0; i < 24; i++) {
        T_NEAR(f[i], i, 0);
    }
    gguf_close(g);
}

/* types.txt: id, name, elements in a row, bytes, first and last byte. */
static void test_types(void)
{
    struct gguf *g = open_fixture("types.gguf");
    size_t n;
    char *text = read_fixture("types.txt", &n);
    int n_rows = 0, n_known = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n_rows++) {
        unsigned id, first, last;
        char name[32];
        int row, bytes;
        T_EQ(sscanf(line, "%u %31s %d %d %u %u", &id, name, &row, &bytes, &first, &last), 6);
        const struct gguf_tensor *t = gguf_tensor_lookup(g, name);
        T_OK(t);
        T_EQ(t->ggml_type, id);
        T_STR(t->type, name);
        T_EQ(t->view.shape[0], 2);
        T_EQ(t->view.shape[1], row);
        T_EQ(t->bytes, bytes);
        n_known += t->known;
        if (t->known) {
            const uint8_t *p = t->view.data;
            T_STR(dtype_name(t->view.dtype), name);
            T_EQ(p[0], first);
            T_EQ(p[bytes - 1], last);
        } else {
            T_EQ(t->view.dtype, DTYPE_COUNT);
        }
    }
    T_EQ(n_rows, gguf_n_tensors(g));
    T_EQ(n_known, DTYPE_COUNT); /* all that the kernels have */
    mem_free(text);
    gguf_close(g);
}

/* ---- split files */

static void check_parts(const char *first)
{
    struct gguf *g = open_fixture(first);
    T_EQ(gguf_n_parts(g), 3);
    T_EQ(gguf_n_tensors(g), 5);
    T_OK(strstr(gguf_path(g), "split-00001-of-00003.gguf"));
    T_OK(strstr(gguf_part_path(g, 2), "split-00003-of-00003.gguf"));
    struct gguf_string s;
    struct galley_err err = { 0 };
    T_EQ(gguf_read_string(g, "general.name", true, &s, &err), GALLEY_OK);
    T_OK(gguf_string_is(&s, "in three parts"));
    for (int i = 0; i < 5; i++) {
        char name[16];
        float f[4];
        snprintf(name, sizeof(name), "t%d", i);
        const struct gguf_tensor *t = gguf_tensor_lookup(g, name);
        T_OK(t);
        T_EQ(t->i_part, i / 2);
        memcpy(f, t->view.data, sizeof(f));
        T_NEAR(f[3], 3 + 10 * i, 0);
    }
    gguf_close(g);
}

static void test_split(void)
{
    check_parts("split-00001-of-00003.gguf");
    check_parts("split-00003-of-00003.gguf");
}

static void copy_part(struct folder *f, const char *from, const char *to)
{
    size_t n;
    char *bytes = read_fixture(from, &n);
    folder_write(f, to, bytes, n);
    mem_free(bytes);
}

static void refused_part(const struct folder *f, const char *name, const char *says)
{
    char path[160];
    struct gguf *g;
    struct galley_err err = { 0 };
    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    T_EQ(gguf_open(&g, path, &err), GALLEY_EMODEL);
    if (g || !strstr(err.msg, says)) {
        T_FAIL("%s, not: %s", err.msg, says);
    }
}

static void test_split_refused(void)
{
    struct folder f;
    folder_open(&f);
    copy_part(&f, "split-00001-of-00003.gguf", "m-00001-of-00003.gguf");
    copy_part(&f, "split-00002-of-00003.gguf", "m-00002-of-00003.gguf");
    refused_part(&f, "m-00001-of-00003.gguf", "part 3 of 3: model file: ");
    refused_part(&f, "m-00001-of-00003.gguf", "m-00003-of-00003.gguf: cannot open");
    copy_part(&f, "split-00002-of-00003.gguf", "m-00003-of-00003.gguf");
    refused_part(&f, "m-00001-of-00003.gguf", "is not part 3 of 3");
    copy_part(&f, "split-00002-of-00003.gguf", "other.gguf");
    refused_part(&f, "other.gguf", "not named NAME-0000N-of-00003.gguf");
    copy_part(&f, "split-00002-of-00003.gguf", "x-00002-of-00004.gguf");
    refused_part(&f, "x-00002-of-00004.gguf", "not named NAME-0000N-of-00003.gguf");
    copy_part(&f, "kinds.gguf", "y-00001-of-00003.gguf");
    copy_part(&f, "split-00002-of-00003.gguf", "y-00002-of-00003.gguf");
    refused_part(&f, "y-00002-of-00003.gguf", "y-00001-of-00003.gguf: is not part 1 of 3");
    refused_part(&f, "none.gguf", "model file: ");
    folder_close(&f);
}

/* ---- damage */

static void test_cut_short(void)
{
    size_t n;
    char *bytes = read_fixture("kinds.gguf", &n);
    struct gguf *g = NULL;
    struct galley_err err = { 0 };
    T_EQ(gguf_open_memory(&g, bytes, n, &err), GALLEY_OK);
    const struct gguf_tensor *last = gguf_tensor_at(g, 1);
    const size_t end = (size_t)((const char *)last->view.data - bytes) + 96;
    gguf_close(g);
    for (size_t i = 0; i < end; i++) {
        char *copy;
        T_EQ(open_copy(&g, &copy, bytes, i, &err), GALLEY_EMODEL);
        T_OK(!g && strncmp(err.msg, "memory: ", 8) == 0);
        mem_free(copy);
    }
    char *copy;
    T_EQ(open_copy(&g, &copy, bytes, end, &err), GALLEY_OK);
    gguf_close(g);
    mem_free(copy);
    mem_free(bytes);
}

/* Every byte set to extremes: opens or is refused, and reads nothing outside. */
static void test_wrong_bytes(void)
{
    static const char values[] = { 0, 1, 127, -1 };
    size_t n;
    char *bytes = read_fixture("kinds.gguf", &n);
    for (size_t i = 0; i < 4 * n; i++) {
        struct gguf *g;
        struct galley_err err = { 0 };
        char *copy, was = bytes[i / 4];
        bytes[i / 4] = values[i % 4];
        const enum galley_status rc = open_copy(&g, &copy, bytes, n, &err);
        T_OK(rc == GALLEY_OK || rc == GALLEY_EMODEL);
        bytes[i / 4] = was;
        gguf_close(g);
        mem_free(copy);
    }
    mem_free(bytes);
}

static void refused(struct buf *b, const char *says)
{
    struct gguf *g;
    struct galley_err err = { 0 };
    char *copy;
    const enum galley_status rc = open_copy(&g, &copy, b->data, b->n, &err);
    if (rc != GALLEY_EMODEL || g || err.status != rc || !strstr(err.msg, says)) {
        T_FAIL("status %d, \"%s\", not: %s", rc, err.msg, says);
    }
    mem_free(copy);
    buf_deinit(b);
}

static void test_versions(void)
{
    static const struct {
        uint32_t version;
        const char *says;
    } rows[] = { { 0, "version 0;" },
                 { 1, "version 1; this build reads versions 2 and 3" },
                 { 4, "version 4;" },
                 { 0x03000000, "big-endian" } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct buf b;
        put_head(&b, rows[i].version, 0, 0);
        refused(&b, rows[i].says);
    }
    struct buf b;
    put_head(&b, 2, 0, 0); /* nothing inside is fine */
    struct gguf *g;
    struct galley_err err = { 0 };
    T_EQ(gguf_open_memory(&g, b.data, b.n, &err), GALLEY_OK);
    T_EQ(gguf_n_tensors(g) + gguf_n_keys(g), 0);
    T_OK(!gguf_lookup(g, "a") && !gguf_tensor_lookup(g, "a"));
    gguf_close(g);
    b.data[3] = 'X';
    refused(&b, "not a GGUF file");
}

static void test_lying_keys(void)
{
    struct buf b;
    put_head(&b, 3, 0, UINT64_MAX);
    refused(&b, "keys in 0 bytes");
    put_head(&b, 3, 0, 1);
    put_key(&b, "k", GGUF_TYPE_COUNT);
    put_u64(&b, 0);
    refused(&b, "key k has the unknown type 13");
    put_head(&b, 3, 0, 1);
    put_key(&b, "k", GGUF_ARRAY);
    put_u32(&b, GGUF_ARRAY);
    put_u64(&b, 1);
    refused(&b, "array of arrays");
    put_head(&b, 3, 0, 1);
    put_key(&b, "k", GGUF_ARRAY);
    put_u32(&b, GGUF_U64);
    put_u64(&b, UINT64_MAX / 8 + 2); /* times 8 is small */
    put_u64(&b, 1);
    refused(&b, "ends within k");
    put_head(&b, 3, 0, 1);
    put_key(&b, "k", GGUF_ARRAY);
    put_u32(&b, GGUF_STRING);
    put_u64(&b, UINT64_MAX / 16 + 1);
    refused(&b, "ends within k");
    put_head(&b, 3, 0, 1);
    put_key(&b, "k", GGUF_STRING);
    put_u64(&b, UINT64_MAX - 3);
    refused(&b, "ends within k");
    put_head(&b, 3, 0, 1);
    put_key_str(&b, "", "value");
    refused(&b, "is empty");
    put_head(&b, 3, 0, 2);
    put_key_u32(&b, "twice", 1);
    put_key_u32(&b, "twice", 1);
    refused(&b, "key twice is there twice");
    put_head(&b, 3, 0, 1);
    put_key_u32(&b, "general.alignment", 48);
    refused(&b, "no power of two");
    put_head(&b, 3, 0, 1);
    put_key_u32(&b, "split.count", 2);
    refused(&b, "one of 2 parts");
}

static void test_lying_tensors(void)
{
    static const uint64_t eight[] = { 8 }, none[] = { 4, 0 }, odd[] = { 33, 32 };
    static const uint64_t huge[] = { UINT64_C(1) << 31, UINT64_C(1) << 31, 4, 1 };
    static const uint64_t wraps[] = { UINT64_C(1) << 32, UINT64_C(1) << 32 };
    static const struct {
        uint32_t n_dim;
        const uint64_t *dims;
        uint32_t type;
        uint64_t offset;
        const char *says;
    } rows[] = {
        { 5, eight, 0, 0, "5 dimensions" },
        { UINT32_MAX, eight, 0, 0, "4294967295 dimensions" },
        { 2, none, 0, 0, "dimension of 0" },
        { 4, huge, 0, 0, "a dimension of" },
        { 2, wraps, 0, 0, "a dimension of" },
        { 2, odd, 8, 0, "rows of 33 elements, Q8_0 comes in blocks of 32" },
        { 1, eight, 0, 8, "no multiple of the file's alignment 32" },
        { 1, eight, 0, 64, "the file has 64: it is damaged" },
        { 1, eight, 0, UINT64_MAX - 31, "the file has 64: it is damaged" },
    };
    struct buf b;
    for (size_t i = 0; i < COUNT(rows); i++) {
        put_head(&b, 3, 1, 0);
        put_tensor(&b, "t", rows[i].n_dim < 5 ? rows[i].n_dim : 0, rows[i].dims, rows[i].type,
                   rows[i].offset);
        memcpy(b.data + 24 + 9, &rows[i].n_dim, 4);
        put_data(&b, 64);
        refused(&b, rows[i].says);
    }
    put_head(&b, 3, UINT64_MAX, 0);
    put_data(&b, 64);
    refused(&b, "tensors in");
    put_head(&b, 3, 2, 0);
    put_tensor(&b, "t", 1, eight, 0, 0);
    put_tensor(&b, "t", 1, eight, 0, 32);
    put_data(&b, 64);
    refused(&b, "tensor t is there twice");
    put_head(&b, 3, 2, 0);
    put_tensor(&b, "t", 1, eight, 0, 32);
    put_tensor(&b, "u", 2, (const uint64_t[]){ 8, 2 }, 0, 0);
    put_data(&b, 64);
    refused(&b, "tensors u and t overlap at byte 32");
}

/* A type of the future is listed, with its place checked as far as it can be. */
static void test_unknown_type(void)
{
    struct buf b;
    struct gguf *g;
    struct galley_err err = { 0 };
    put_head(&b, 3, 1, 0);
    put_tensor(&b, "t", 1, (const uint64_t[]){ 8 }, 4242, 32);
    put_data(&b, 64);
    T_EQ(gguf_open_memory(&g, b.data, b.n, &err), GALLEY_OK);
    const struct gguf_tensor *t = gguf_tensor_at(g, 0);
    T_OK(!t->known && t->bytes == 0 && t->ggml_type == 4242 && !t->view.data);
    gguf_close(g);
    buf_deinit(&b);
}

/* ---- scalars by key */

static void test_scalars(void)
{
    struct gguf *g = open_fixture("kinds.gguf");
    struct galley_err err = { 0 };
    int64_t i = 7;
    double d = 7;
    bool yes = false;
    struct gguf_string s = { NULL, 0 };
    T_EQ(gguf_read_int(g, "one.i16", true, -30000, 0, &i, &err), GALLEY_OK);
    T_EQ(i, -30000);
    T_EQ(gguf_read_int(g, "no", false, 0, 1, &i, &err), GALLEY_OK);
    T_EQ(i, -30000);
    T_EQ(gguf_read_int(g, "no", true, 0, 1, &i, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "kinds.gguf: key no is missing"));
    T_EQ(gguf_read_int(g, "one.i16", true, -29999, 0, &i, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "key one.i16 is -30000, outside -29999 to 0"));
    T_EQ(gguf_read_int(g, "one.f32", true, 0, 1, &i, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "key one.f32 is f32, not a whole number"));
    T_EQ(gguf_read_int(g, "many.u8", true, 0, 255, &i, &err), GALLEY_EMODEL);
    T_OK(strstr(err.msg, "an array of u8"));
    T_EQ(gguf_read_number(g, "one.u8", true, 0, 255, &d, &err), GALLEY_OK);
    T_NEAR(d, 200, 0);
    T_EQ(gguf_read_number(g, "one.f64", true, 0, 1e9, &d, &err), GALLEY_EMODEL);
    T_EQ(gguf_read_number(g, "one.bool", true, 0, 1, &d, &err), GALLEY_EMODEL);
    T_EQ(gguf_read_bool(g, "one.bool", true, &yes, &err), GALLEY_OK);
    T_OK(yes);
    T_EQ(gguf_read_bool(g, "one.u8", true, &yes, &err), GALLEY_EMODEL);
    T_EQ(gguf_read_string(g, "one.string", true, &s, &err), GALLEY_OK);
    T_EQ(s.n, 5);
    T_EQ(gguf_read_string(g, "many.string", true, &s, &err), GALLEY_EMODEL);
    T_EQ(gguf_read_string(g, "one.u8", true, &s, &err), GALLEY_EMODEL);
    gguf_close(g);
}

static void test_no_memory(void)
{
    static const char *const names[] = { FIXTURES "kinds.gguf",
                                         FIXTURES "split-00002-of-00003.gguf" };
    for (size_t k = 0; k < COUNT(names); k++) {
        enum galley_status rc = GALLEY_ENOMEM;
        int n = 1;
        for (; rc == GALLEY_ENOMEM; n++) {
            struct gguf *g;
            struct galley_err err = { 0 };
            mem_fail_at(n);
            rc = gguf_open(&g, names[k], &err);
            mem_fail_at(0);
            T_OK((rc == GALLEY_OK) == (g != NULL) && n < 1000);
            gguf_close(g);
        }
        T_EQ(rc, GALLEY_OK);
        T_OK(n > 10);
    }
}

static void test_is_file(void)
{
    T_OK(gguf_is_file(FIXTURES "kinds.gguf"));
    T_OK(!gguf_is_file(FIXTURES "types.txt") && !gguf_is_file(FIXTURES) && !gguf_is_file("none"));
}

static const struct t_case cases[] = {
    { "kinds", test_kinds },
    { "shapes", test_shapes },
    { "types", test_types },
    { "split", test_split },
    { "split_refused", test_split_refused },
    { "cut_short", test_cut_short },
    { "wrong_bytes", test_wrong_bytes },
    { "versions", test_versions },
    { "lying_keys", test_lying_keys },
    { "lying_tensors", test_lying_tensors },
    { "unknown_type", test_unknown_type },
    { "scalars", test_scalars },
    { "no_memory", test_no_memory },
    { "is_file", test_is_file },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
