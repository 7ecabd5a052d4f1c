/* folder.h - a temporary directory for tests of readers of model directories. */
#ifndef GALLEY_TESTS_FOLDER_H
#define GALLEY_TESTS_FOLDER_H

#include <unistd.h>

#include "src/base/map.h"
#include "tests/t.h"

struct folder {
    char path[64];
    char names[16][64];
    int n;
};

static inline void folder_open(struct folder *f)
{
    memset(f, 0, sizeof(*f));
    snprintf(f->path, sizeof(f->path), "/tmp/galley-test-XXXXXX");
    T_OK(mkdtemp(f->path));
}

static inline void folder_write(struct folder *f, const char *name, const void *bytes, size_t n)
{
    char path[160];
    struct galley_err err = { 0 };
    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    if (file_write(path, bytes, n, &err)) {
        T_FAIL("%s", err.msg);
    }
    T_OK(f->n < (int)COUNT(f->names));
    snprintf(f->names[f->n++], sizeof(f->names[0]), "%s", name);
}

static inline void folder_text(struct folder *f, const char *name, const char *text)
{
    folder_write(f, name, text, strlen(text));
}

/* Names written twice are removed twice: only the last call must succeed. */
static inline void folder_close(struct folder *f)
{
    char path[160];
    for (int i = 0; i < f->n; i++) {
        snprintf(path, sizeof(path), "%s/%s", f->path, f->names[i]);
        unlink(path);
    }
    T_EQ(rmdir(f->path), 0);
}

#endif
