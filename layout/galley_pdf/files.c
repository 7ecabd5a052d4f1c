/* files.c - preopened fonts and CMaps, and the open/fopen that serve them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later (galley-pdf is linked with Poppler)
 *
 * This program defines open, open64, fopen, fopen64, fstat and fstat64 itself; the program comes
 * first in symbol lookup, so the calls of the shared libraries arrive here.  They do not protect
 * anything (the filter does): they keep font look-up working without any system call that takes a
 * path. */
#include "layout/galley_pdf/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fontconfig/fontconfig.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/mem.h"

#define FILES_MAX 20000
#define DEPTH_MAX 4

struct file {
    char *path;
    int fd;
};

static struct file *files; /* sorted by path once sealed */
static int n_files;
static bool sealed;

static int file_compare(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

static int open_path(const char *path, int flags, mode_t mode)
{
    if (!sealed) {
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    }
    if ((flags & O_ACCMODE) != O_RDONLY) {
        errno = EACCES;
        return -1;
    }
    const struct file key = { (char *)path, 0 };
    const struct file *f =
        n_files ? bsearch(&key, files, (size_t)n_files, sizeof *files, file_compare) : NULL;
    if (!f) {
        errno = ENOENT;
        return -1;
    }
    const int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 5);
    if (fd >= 0) {
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

static void file_add(const char *path)
{
    if (n_files == FILES_MAX) {
        return;
    }
    const int fd = open_path(path, O_RDONLY | O_CLOEXEC, 0);
    char *copy = fd < 0 ? NULL : mem_strdup(path);
    if (!copy) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    files[n_files++] = (struct file){ copy, fd };
}

static void folder_add(const char *path, int depth)
{
    DIR *dir = opendir(path);
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        char below[1024];
        const int n = snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (e->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof below) {
            continue;
        }
        if (e->d_type == DT_DIR && depth < DEPTH_MAX) {
            folder_add(below, depth + 1);
        } else if (e->d_type == DT_REG || e->d_type == DT_LNK) {
            file_add(below);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Descriptors are numbers only: as many as the hard limit gives. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        const rlim_t want = FILES_MAX + 256;
        limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int files_preopen(const char *poppler_data)
{
    raise_descriptor_limit();
    files = mem_many(struct file, FILES_MAX);
    if (!files) {
        return 0;
    }
    folder_add(poppler_data, 0);
    FcConfig *config = FcConfigGetCurrent();
    if (!config) {
        return n_files;
    }
    /* It would look at the clock and then stat every folder again. */
    FcConfigSetRescanInterval(config, 0);
    const FcFontSet *set = FcConfigGetFonts(config, FcSetSystem);
    for (int i = 0; set && i < set->nfont; i++) {
        FcChar8 *path;
        if (FcPatternGetString(set->fonts[i], FC_FILE, 0, &path) == FcResultMatch) {
            file_add((const char *)path);
        }
    }
    return n_files;
}

void files_seal(void)
{
    if (n_files) {
        qsort(files, (size_t)n_files, sizeof *files, file_compare);
    }
    sealed = true;
}

/* --- what the libraries call --- */

static bool mode_follows(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = mode_follows(flags) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open_path(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = mode_follows(flags) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open_path(path, flags, mode);
}

static FILE *fopen_path(const char *path, const char *mode)
{
    int flags = O_RDONLY;
    if (mode[0] != 'r') {
        flags = O_WRONLY | O_CREAT | (mode[0] == 'a' ? O_APPEND : O_TRUNC);
    }
    if (strchr(mode, '+')) {
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    }
    const int fd = open_path(path, flags | O_CLOEXEC, 0666);
    FILE *f = fd < 0 ? NULL : fdopen(fd, mode);
    if (fd >= 0 && !f) {
        close(fd);
    }
    return f;
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    return fopen_path(path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    return fopen_path(path, mode);
}

/* glibc's own go through a call that takes a path as well, which the filter cannot tell apart. */
int fstat(int fd, struct stat *st)
{
    return (int)syscall(SYS_fstat, fd, st);
}

int fstat64(int fd, struct stat64 *st)
{
    return (int)syscall(SYS_fstat, fd, st);
}
