/* npy.h - the .npy arrays of tests/golden: little-endian f4 and i4, C order, up to 3 dimensions.
 * A file that is anything else fails the case. */
#ifndef GALLEY_TESTS_NPY_H
#define GALLEY_TESTS_NPY_H

#include <stdint.h>

#include "src/base/map.h"
#include "src/base/mem.h"
#include "tests/t.h"

struct npy {
    char *file;       /* owned */
    const float *f;   /* f4 data, or NULL */
    const int32_t *i; /* i4 data, or NULL */
    int64_t dim[3];   /* unused ones are 1 */
    int64_t n;
};

static inline struct npy npy_open(const char *dir, const char *name)
{
    char path[512];
    struct npy a = { .dim = { 1, 1, 1 }, .n = 1 };
    struct galley_err err = { 0 };
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/%s.npy", dir, name);
    if (file_read(path, (size_t)1 << 26, &a.file, &n, &err)) {
        T_FAIL("%s", err.msg);
    }
    T_OK(n > 10 && memcmp(a.file, "\x93NUMPY\x01", 7) == 0);
    const size_t head = 10 + (uint8_t)a.file[8] + 256u * (uint8_t)a.file[9];
    T_OK(head <= n);
    a.file[head - 1] = 0; /* the newline that ends the header */
    T_OK(strstr(a.file + 10, "'fortran_order': False"));
    const char *shape = strstr(a.file + 10, "'shape': (");
    T_OK(shape);
    shape += strlen("'shape': (");
    for (int i = 0; i < 3 && *shape >= '0' && *shape <= '9'; i++) {
        char *end;
        a.dim[i] = strtol(shape, &end, 10);
        a.n *= a.dim[i];
        shape = end + strspn(end, ", ");
    }
    T_OK(*shape == ')');
    T_EQ(n - head, 4 * a.n);
    if (strstr(a.file + 10, "'<f4'")) {
        a.f = (const float *)(const void *)(a.file + head); /* heads are multiples of 64 */
    } else {
        T_OK(strstr(a.file + 10, "'<i4'"));
        a.i = (const int32_t *)(const void *)(a.file + head);
    }
    return a;
}

static inline void npy_close(struct npy *a)
{
    mem_free(a->file);
    *a = (struct npy){ 0 };
}

/* Largest difference over the largest magnitude of the reference. */
static inline double npy_distance(const float *got, const float *want, int64_t n)
{
    double top = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        const double w = want[i] < 0 ? -want[i] : want[i];
        const double d = got[i] < want[i] ? want[i] - got[i] : got[i] - want[i];
        top = w > top ? w : top;
        worst = d <= worst ? worst : d; /* a NaN counts as worst */
    }
    return worst / top;
}

#endif
