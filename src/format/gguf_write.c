/* gguf_write.c - see gguf_write.h. */
#include "src/format/gguf_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/format/gguf_impl.h"

#define HEADER_MAX   ((size_t)1 << 30)
#define FILE_VERSION 3

struct gguf_writer {
    char *path, *tmp; /* owned */
    int fd;
    struct buf keys, infos;
    uint64_t n_keys, n_tensors;
    uint64_t *sizes; /* [n_tensors] bytes of each tensor's data */
    size_t cap_sizes;
    uint64_t data_bytes;       /* of all tensors with padding */
    uint64_t size;             /* of the file */
    uint64_t i_tensor, at;     /* the tensor being written, bytes of it so far */
    enum galley_status status; /* the first failure, and errno where it was the system's */
    int code;
};

static void fail(struct gguf_writer *w, enum galley_status status, int code)
{
    if (!w->status) {
        w->status = status;
        w->code = code;
    }
}

static enum galley_status report(const struct gguf_writer *w, struct galley_err *err)
{
    if (w->status == GALLEY_EIO && w->size > 0) {
        return galley_err_set(err, GALLEY_EIO, "%s: cannot write the %.1f MB of it: %s", w->path,
                              (double)w->size / 1e6, strerror(w->code));
    }
    if (w->status == GALLEY_EIO) {
        return galley_err_set(err, GALLEY_EIO, "%s: cannot write: %s", w->path, strerror(w->code));
    }
    if (w->status) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for the header", w->path);
    }
    return GALLEY_OK;
}

static bool open_beside(struct gguf_writer *w, const char *path)
{
    struct buf b;
    buf_init(&b, 4096 + 16);
    buf_addf(&b, "%s.XXXXXX", path);
    w->tmp = buf_take(&b);
    w->path = mem_strdup(path);
    if (!w->tmp || !w->path) {
        errno = ENAMETOOLONG;
        return false;
    }
    w->fd = mkostemp(w->tmp, O_CLOEXEC);
    if (w->fd < 0) {
        mem_free(w->tmp);
        w->tmp = NULL;
        return false;
    }
    const mode_t mask = umask(0);
    umask(mask);
    return fchmod(w->fd, 0666 & ~mask) == 0;
}

enum galley_status gguf_write_open(struct gguf_writer **out, const char *path,
                                   struct galley_err *err)
{
    *out = NULL;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        return galley_err_set(err, GALLEY_EIO, "%s: cannot write: not a regular file", path);
    }
    struct gguf_writer *w = mem_new(struct gguf_writer);
    if (!w) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to write it", path);
    }
    w->fd = -1;
    buf_init(&w->keys, HEADER_MAX);
    buf_init(&w->infos, HEADER_MAX);
    if (!open_beside(w, path)) {
        const int code = errno;
        gguf_write_abandon(w);
        return galley_err_set(err, GALLEY_EIO, "%s: cannot create: %s", path, strerror(code));
    }
    *out = w;
    return GALLEY_OK;
}

/* Little-endian, as everything that this program runs on. */
static void add_u32(struct buf *b, uint32_t v)
{
    buf_add(b, &v, sizeof(v));
}

static void add_u64(struct buf *b, uint64_t v)
{
    buf_add(b, &v, sizeof(v));
}

static void add_text(struct buf *b, const char *s, size_t n)
{
    add_u64(b, n);
    buf_add(b, s, n);
}

void gguf_write_key(struct gguf_writer *w, const char *key, const struct gguf_value *v)
{
    assert(v->type == GGUF_STRING || gguf_value_bytes[v->type] > 0);
    assert(v->is_array || v->n == 1);
    struct buf *b = &w->keys;
    add_text(b, key, strlen(key));
    if (v->is_array) {
        add_u32(b, GGUF_ARRAY);
        add_u32(b, v->type);
        add_u64(b, v->n);
    } else {
        add_u32(b, v->type);
    }
    if (v->type == GGUF_STRING) {
        for (uint64_t i = 0; i < v->n; i++) {
            add_text(b, v->strings[i].text, v->strings[i].n);
        }
    } else {
        buf_add(b, v->data, (size_t)v->n * gguf_value_bytes[v->type]);
    }
    w->n_keys++;
}

static void write_scalar(struct gguf_writer *w, const char *key, enum gguf_type type, const void *p)
{
    const struct gguf_value v = { .type = type, .n = 1, .data = p };
    gguf_write_key(w, key, &v);
}

void gguf_write_u32(struct gguf_writer *w, const char *key, uint32_t v)
{
    write_scalar(w, key, GGUF_U32, &v);
}

void gguf_write_f32(struct gguf_writer *w, const char *key, float v)
{
    write_scalar(w, key, GGUF_F32, &v);
}

void gguf_write_bool(struct gguf_writer *w, const char *key, bool v)
{
    const uint8_t byte = v;
    write_scalar(w, key, GGUF_BOOL, &byte);
}

void gguf_write_string(struct gguf_writer *w, const char *key, const char *s)
{
    const struct gguf_string text = { s, strlen(s) };
    const struct gguf_value v = { .type = GGUF_STRING, .n = 1, .strings = &text };
    gguf_write_key(w, key, &v);
}

/* ggml's number of a type. */
static uint32_t type_number(enum dtype t)
{
    static const uint8_t numbers[DTYPE_COUNT] = {
        [DTYPE_F32] = 0,   [DTYPE_F16] = 1,     [DTYPE_BF16] = 30,   [DTYPE_Q4_0] = 2,
        [DTYPE_Q4_1] = 3,  [DTYPE_Q5_0] = 6,    [DTYPE_Q5_1] = 7,    [DTYPE_Q8_0] = 8,
        [DTYPE_Q2_K] = 10, [DTYPE_Q3_K] = 11,   [DTYPE_Q4_K] = 12,   [DTYPE_Q5_K] = 13,
        [DTYPE_Q6_K] = 14, [DTYPE_IQ4_NL] = 20, [DTYPE_IQ4_XS] = 23, [DTYPE_MXFP4] = 39,
    };
    assert(t < DTYPE_COUNT);
    return numbers[t];
}

static uint64_t align_up(uint64_t n)
{
    return (n + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

void gguf_write_tensor(struct gguf_writer *w, const char *name, enum dtype t, int n_dim,
                       const int64_t *shape)
{
    assert(n_dim >= 1 && n_dim <= 4);
    if (w->n_tensors == w->cap_sizes) {
        const size_t cap = w->cap_sizes ? 2 * w->cap_sizes : 64;
        uint64_t *sizes = mem_resize_array(w->sizes, cap, sizeof(*sizes));
        if (!sizes) {
            fail(w, GALLEY_ENOMEM, 0);
            return;
        }
        w->sizes = sizes;
        w->cap_sizes = cap;
    }
    uint64_t n_rows = 1;
    add_text(&w->infos, name, strlen(name));
    add_u32(&w->infos, (uint32_t)n_dim);
    for (int i = n_dim - 1; i >= 0; i--) { /* the file puts the fastest dimension first */
        add_u64(&w->infos, (uint64_t)shape[i]);
        n_rows *= i < n_dim - 1 ? (uint64_t)shape[i] : 1;
    }
    add_u32(&w->infos, type_number(t));
    add_u64(&w->infos, w->data_bytes);
    const uint64_t bytes = n_rows * dtype_row_bytes(t, (uint64_t)shape[n_dim - 1]);
    w->sizes[w->n_tensors++] = bytes;
    w->data_bytes += align_up(bytes);
}

static void write_bytes(struct gguf_writer *w, const void *bytes, size_t n)
{
    if (!w->status && !fd_write(w->fd, bytes, n)) {
        fail(w, GALLEY_EIO, errno);
    }
}

static void write_zeros(struct gguf_writer *w, uint64_t n)
{
    static const uint8_t zeros[GGUF_ALIGNMENT];
    assert(n < GGUF_ALIGNMENT);
    write_bytes(w, zeros, (size_t)n);
}

/* Empty tensors have no bytes to wait for. */
static void skip_empty(struct gguf_writer *w)
{
    while (w->i_tensor < w->n_tensors && w->sizes[w->i_tensor] == 0) {
        w->i_tensor++;
    }
}

enum galley_status gguf_write_begin(struct gguf_writer *w, struct galley_err *err)
{
    struct buf head;
    buf_init(&head, 64);
    buf_add(&head, "GGUF", 4);
    add_u32(&head, FILE_VERSION);
    add_u64(&head, w->n_tensors);
    add_u64(&head, w->n_keys);
    if (!buf_ok(&head) || !buf_ok(&w->keys) || !buf_ok(&w->infos)) {
        fail(w, GALLEY_ENOMEM, 0);
    } else {
        const uint64_t n = head.n + w->keys.n + w->infos.n;
        w->size = align_up(n) + w->data_bytes;
        /* Where the file system cannot reserve, writing will show. */
        if (fallocate(w->fd, 0, 0, (off_t)w->size) != 0 && (errno == ENOSPC || errno == EFBIG)) {
            fail(w, GALLEY_EIO, errno);
        }
        write_bytes(w, head.data, head.n);
        write_bytes(w, w->keys.data, w->keys.n);
        write_bytes(w, w->infos.data, w->infos.n);
        write_zeros(w, align_up(n) - n);
    }
    buf_deinit(&head);
    buf_deinit(&w->keys);
    buf_deinit(&w->infos);
    skip_empty(w);
    return report(w, err);
}

void gguf_write_data(struct gguf_writer *w, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n > 0) {
        assert(w->i_tensor < w->n_tensors);
        const uint64_t left = w->sizes[w->i_tensor] - w->at;
        const size_t part = n < left ? n : (size_t)left;
        write_bytes(w, p, part);
        p += part;
        n -= part;
        w->at += part;
        if (part == left) {
            write_zeros(w, align_up(w->at) - w->at);
            w->i_tensor++;
            w->at = 0;
            skip_empty(w);
        }
    }
}

bool gguf_write_failed(const struct gguf_writer *w)
{
    return w->status != GALLEY_OK;
}

uint64_t gguf_write_size(const struct gguf_writer *w)
{
    return w->size;
}

enum galley_status gguf_write_close(struct gguf_writer *w, struct galley_err *err)
{
    assert(w->status || w->i_tensor == w->n_tensors);
    if (!w->status) {
        const int fd = w->fd;
        w->fd = -1;
        if (close(fd) != 0 || rename(w->tmp, w->path) != 0) {
            fail(w, GALLEY_EIO, errno);
        } else {
            mem_free(w->tmp);
            w->tmp = NULL;
        }
    }
    const enum galley_status rc = report(w, err);
    gguf_write_abandon(w);
    return rc;
}

void gguf_write_abandon(struct gguf_writer *w)
{
    if (!w) {
        return;
    }
    if (w->fd >= 0) {
        close(w->fd);
    }
    if (w->tmp) {
        unlink(w->tmp);
    }
    buf_deinit(&w->keys);
    buf_deinit(&w->infos);
    mem_free(w->sizes);
    mem_free(w->path);
    mem_free(w->tmp);
    mem_free(w);
}
