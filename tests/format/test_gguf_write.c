/* test_gguf_write.c - files that are written are read back: keys of all types, tensors, padding;
 * and nothing is left behind when writing fails. */
#include "src/format/gguf_write.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "src/base/mem.h"
#include "tests/format/folder.h"

static const int64_t shape_a[] = { 3, 64 }, shape_b[] = { 5 }, shape_c[] = { 2, 3, 1, 4 };

static void declare(struct gguf_writer *w)
{
    gguf_write_tensor(w, "a.weight", DTYPE_Q4_0, 2, shape_a);
    gguf_write_tensor(w, "b", DTYPE_F32, 1, shape_b);
    gguf_write_tensor(w, "c", DTYPE_F16, 4, shape_c);
}

/* The tensors' bytes: one block of them, cut where no tensor ends. */
static size_t data_bytes(uint8_t out[256])
{
    const size_t n = 3 * 36 + 5 * 4 + 24 * 2;
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint8_t)(i * 7 + 1);
    }
    return n;
}

static void write_keys(struct gguf_writer *w)
{
    static const uint64_t numbers[] = { 1, 0x8000000000000001u, 3 };
    static const struct gguf_string words[] = { { "one", 3 }, { "", 0 }, { "t\0wo", 4 } };
    gguf_write_string(w, "general.architecture", "test");
    gguf_write_u32(w, "u32", 4000000000u);
    gguf_write_f32(w, "f32", -1.5f);
    gguf_write_bool(w, "yes", true);
    gguf_write_bool(w, "no", false);
    for (int t = 0; t < GGUF_TYPE_COUNT; t++) {
        char key[32];
        snprintf(key, sizeof(key), "array.%d", t);
        const struct gguf_value v = { .type = (enum gguf_type)t,
                                      .is_array = true,
                                      .n = t == GGUF_BOOL ? 1 : 3,
                                      .data = (const uint8_t *)numbers,
                                      .strings = words };
        if (t != GGUF_ARRAY) {
            gguf_write_key(w, key, &v);
        }
    }
    const struct gguf_value none = { .type = GGUF_STRING, .is_array = true };
    gguf_write_key(w, "empty", &none);
}

static enum galley_status write_all(const char *path, struct galley_err *err)
{
    struct gguf_writer *w;
    uint8_t data[256];
    const size_t n = data_bytes(data);
    enum galley_status rc = gguf_write_open(&w, path, err);
    if (rc) {
        return rc;
    }
    write_keys(w);
    declare(w);
    rc = gguf_write_begin(w, err);
    if (rc) {
        gguf_write_abandon(w);
        return rc;
    }
    for (size_t at = 0; at < n; at += 50) {
        gguf_write_data(w, data + at, n - at < 50 ? n - at : 50);
    }
    return gguf_write_close(w, err);
}

static void check_keys(const struct gguf *g)
{
    T_EQ(gguf_n_keys(g), 5 + GGUF_TYPE_COUNT - 1 + 1);
    T_EQ(gguf_int(gguf_lookup(g, "u32"), 0), 4000000000ll);
    T_OK(gguf_number(gguf_lookup(g, "f32"), 0) == -1.5);
    T_EQ(gguf_int(gguf_lookup(g, "yes"), 0), 1);
    T_EQ(gguf_int(gguf_lookup(g, "no"), 0), 0);
    const struct gguf_value *v = gguf_lookup(g, "array.8");
    T_OK(v && v->type == GGUF_STRING && v->n == 3);
    T_EQ(v->strings[2].n, 4);
    T_OK(memcmp(v->strings[2].text, "t\0wo", 4) == 0);
    v = gguf_lookup(g, "array.10");
    T_OK(v && v->type == GGUF_U64 && v->n == 3);
    T_EQ(gguf_int(v, 2), 3);
    v = gguf_lookup(g, "empty");
    T_OK(v && v->is_array && v->n == 0);
}

static void test_round_trip(void)
{
    struct folder f;
    struct galley_err err = { 0 };
    struct gguf *g;
    char path[128];
    uint8_t data[256];
    data_bytes(data);
    folder_open(&f);
    snprintf(path, sizeof(path), "%s/x.gguf", f.path);
    if (write_all(path, &err) || gguf_open(&g, path, &err)) {
        T_FAIL("%s", err.msg);
    }
    check_keys(g);
    T_EQ(gguf_n_tensors(g), 3);
    const uint8_t *at = data;
    for (int i = 0; i < 3; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        T_EQ(t->offset % GGUF_ALIGNMENT, 0);
        T_OK(memcmp(t->view.data, at, (size_t)t->bytes) == 0);
        at += t->bytes;
    }
    const struct gguf_tensor *c = gguf_tensor_lookup(g, "c");
    T_EQ(c->view.n_dim, 4);
    for (int i = 0; i < 4; i++) {
        T_EQ(c->view.shape[i], shape_c[i]);
    }
    gguf_close(g);
    T_EQ(unlink(path), 0);
    folder_close(&f); /* nothing else is there */
}

/* All types have ggml's numbers: the reader knows them by number only. */
static void test_types(void)
{
    struct folder f;
    struct galley_err err = { 0 };
    struct gguf_writer *w;
    struct gguf *g;
    char path[128];
    const int64_t shape[] = { 256 };
    folder_open(&f);
    snprintf(path, sizeof(path), "%s/x.gguf", f.path);
    T_EQ(gguf_write_open(&w, path, &err), GALLEY_OK);
    for (int t = 0; t < DTYPE_COUNT; t++) {
        gguf_write_tensor(w, dtype_name((enum dtype)t), (enum dtype)t, 1, shape);
    }
    T_EQ(gguf_write_begin(w, &err), GALLEY_OK);
    static const uint8_t zeros[1024];
    for (int t = 0; t < DTYPE_COUNT; t++) {
        gguf_write_data(w, zeros, (size_t)dtype_row_bytes((enum dtype)t, 256));
    }
    T_EQ(gguf_write_close(w, &err), GALLEY_OK);
    if (gguf_open(&g, path, &err)) {
        T_FAIL("%s", err.msg);
    }
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const struct gguf_tensor *x = gguf_tensor_lookup(g, dtype_name((enum dtype)t));
        T_OK(x && x->known);
        T_EQ(x->view.dtype, t);
        T_STR(x->type, dtype_name((enum dtype)t));
    }
    gguf_close(g);
    T_EQ(unlink(path), 0);
    folder_close(&f);
}

static void test_bad_paths(void)
{
    struct galley_err err = { 0 };
    struct gguf_writer *w;
    T_EQ(gguf_write_open(&w, "/nowhere/at/all/x.gguf", &err), GALLEY_EIO);
    T_OK(w == NULL && strstr(err.msg, "/nowhere/at/all/x.gguf"));
    T_EQ(gguf_write_open(&w, "/dev/full", &err), GALLEY_EIO);
    T_EQ(gguf_write_open(&w, "/tmp", &err), GALLEY_EIO);
}

/* A limit on file sizes stands for a full disk. */
static void test_no_space(void)
{
    struct folder f;
    struct galley_err err = { 0 };
    char path[128];
    folder_open(&f);
    snprintf(path, sizeof(path), "%s/x.gguf", f.path);
    folder_text(&f, "x.gguf", "what was there before");
    struct rlimit old, small;
    T_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 700;
    signal(SIGXFSZ, SIG_IGN);
    T_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const enum galley_status rc = write_all(path, &err);
    T_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    T_EQ(rc, GALLEY_EIO);
    T_OK(strstr(err.msg, path));
    char *text;
    size_t n;
    T_EQ(file_read(path, 100, &text, &n, &err), GALLEY_OK);
    T_STR(text, "what was there before");
    mem_free(text);
    folder_close(&f);
}

static void test_no_memory(void)
{
    struct folder f;
    char path[128];
    folder_open(&f);
    snprintf(path, sizeof(path), "%s/x.gguf", f.path);
    mem_fail_at(0);
    struct galley_err err = { 0 };
    T_EQ(write_all(path, &err), GALLEY_OK);
    const long n = mem_count();
    T_EQ(unlink(path), 0);
    for (long i = 1; i <= n; i++) {
        mem_fail_at(i);
        const enum galley_status rc = write_all(path, &err);
        mem_fail_at(0);
        if (rc == GALLEY_OK || access(path, F_OK) == 0) {
            T_FAIL("allocation %ld failed, status %d", i, (int)rc);
        }
    }
    folder_close(&f);
}

int main(int argc, char **argv)
{
    static const struct t_case cases[] = {
        { "round_trip", test_round_trip }, { "types", test_types },
        { "bad_paths", test_bad_paths },   { "no_space", test_no_space },
        { "no_memory", test_no_memory },
    };
    return t_main(argc, argv, cases, COUNT(cases));
}
