/* replay.c - without libFuzzer: runs LLVMFuzzerTestOneInput over every file of a directory.
 *
 * A missing or empty directory is a failure: a corpus that got lost must not pass in silence. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/map.h"
#include "src/base/mem.h"

#define INPUT_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Through a block of the exact size, so that a sanitizer sees any read past the end. */
static int run_file(const char *path)
{
    struct galley_err err = { 0 };
    char *text;
    size_t n;
    if (file_read(path, INPUT_MAX, &text, &n, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact) {
        abort();
    }
    memcpy(exact, text, n);
    mem_free(text);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 0;
}

static int run_directory(const char *name, int *n_run)
{
    DIR *dir = opendir(name);
    if (!dir) {
        perror(name);
        return 1;
    }
    int rc = 0;
    const struct dirent *e;
    for (e = readdir(dir); e && !rc; e = readdir(dir)) {
        char path[1024];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", name, e->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
            rc = run_file(path);
            ++*n_run;
        }
    }
    closedir(dir);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    int n_run = 0;
    const int rc = run_directory(argv[1], &n_run);
    if (!rc && n_run == 0) {
        fprintf(stderr, "%s: no inputs\n", argv[1]);
        return 1;
    }
    fprintf(stderr, "%s: %d inputs\n", argv[1], n_run);
    return rc;
}
