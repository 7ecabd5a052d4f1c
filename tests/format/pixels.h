/* pixels.h - fixtures of pictures: files and the true pixels of golden.txt. */
#ifndef GALLEY_TESTS_PIXELS_H
#define GALLEY_TESTS_PIXELS_H

#include <stdint.h>

#include "src/base/image.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "tests/t.h"

#define FIXTURES "tests/format/fixtures/"

struct bytes {
    uint8_t *p;
    size_t n;
};

static inline struct bytes file_of(const char *folder, const char *name)
{
    char path[256];
    struct galley_err err = { 0 };
    struct bytes b;
    char *text;
    snprintf(path, sizeof(path), FIXTURES "%s/%s", folder, name);
    if (file_read(path, 1 << 24, &text, &b.n, &err)) {
        T_FAIL("%s", err.msg);
    }
    b.p = (uint8_t *)text;
    return b;
}

static inline int hex_digit(int c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Largest difference between the picture and the hex digits of a golden line. */
static inline int pixels_differ(const struct image *im, const char *hex)
{
    int worst = 0;
    for (int y = 0; y < im->height; y++) {
        for (int x = 0; x < im->width * 3; x++, hex += 2) {
            const int want = hex_digit(hex[0]) * 16 + hex_digit(hex[1]);
            const int d = abs(im->rgb[(size_t)y * im->stride + (size_t)x] - want);
            worst = d > worst ? d : worst;
        }
    }
    return worst;
}

/* Calls check(name, file, width, height, hex) for every golden line; returns how many. */
typedef void golden_fn(const char *name, struct bytes file, int width, int height, const char *hex);
static inline int golden_each(const char *folder, golden_fn *check)
{
    struct bytes golden = file_of(folder, "golden.txt");
    int n = 0;
    for (char *line = (char *)golden.p; *line; n++) {
        char *end = strchr(line, '\n');
        char name[64];
        int width, height, at;
        T_OK(end);
        *end = '\0';
        T_EQ(sscanf(line, "%63s %d %d %n", name, &width, &height, &at), 3);
        T_EQ(strlen(line + at), (size_t)width * (size_t)height * 6);
        struct bytes file = file_of(folder, name);
        check(name, file, width, height, line + at);
        mem_free(file.p);
        line = end + 1;
    }
    mem_free(golden.p);
    return n;
}

#endif
