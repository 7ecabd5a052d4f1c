/* map.c - mapping, reading and writing whole files. */
#include "src/base/map.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/mem.h"

#define TEMPORARY_SUFFIX 48 /* bytes: dots, two numbers, the terminator */
#define TEMPORARY_TRIES  1000

static enum galley_status io_error(struct galley_err *err, const char *path, const char *verb)
{
    char text[128];
    const char *why = strerror_r(errno, text, sizeof(text));
    return galley_err_set(err, GALLEY_EIO, "%s: cannot %s: %s", path, verb, why);
}

enum galley_status map_open(struct map *m, const char *path, struct galley_err *err)
{
    *m = (struct map){ 0 };
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return io_error(err, path, "open");
    }
    enum galley_status rc = GALLEY_OK;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        rc = io_error(err, path, "stat");
    } else if (!S_ISREG(st.st_mode)) {
        rc = galley_err_set(err, GALLEY_EIO, "%s: not a regular file", path);
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED && errno == ENOMEM) { /* says nothing against the file */
            rc = galley_err_set(err, GALLEY_ENOMEM, "%s: no memory to map %lld bytes", path,
                                (long long)st.st_size);
        } else if (p == MAP_FAILED) {
            rc = io_error(err, path, "map");
        } else {
            m->base = p;
            m->n = (size_t)st.st_size;
            m->fd = fd;
        }
    }
    if (!m->base) {
        close(fd);
    }
    return rc;
}

void map_close(struct map *m)
{
    if (m->base) {
        munmap((void *)(uintptr_t)m->base, m->n);
        close(m->fd);
    }
    *m = (struct map){ 0 };
}

bool map_read(const struct map *m, void *to, const void *p, size_t n)
{
    char *at = to;
    off_t from = (const uint8_t *)p - m->base;
    assert(from >= 0 && (size_t)from <= m->n && n <= m->n - (size_t)from);
    while (n > 0) {
        const ssize_t got = pread(m->fd, at, n, from);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        from += got;
        n -= (size_t)got;
    }
    return true;
}

void map_drop(const void *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)p + page - 1) / page * page;
    const uintptr_t last = ((uintptr_t)p + n) / page * page;
    if (first < last) {
        /* advice: a refusal only means that the pages stay */
        (void)madvise((void *)first, last - first, MADV_DONTNEED);
    }
}

enum galley_status fd_read(int fd, const char *name, size_t max, char **out, size_t *n,
                           struct galley_err *err)
{
    *out = NULL;
    *n = 0;
    struct stat st;
    size_t cap = 65536;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if (st.st_size > 0 && (uint64_t)st.st_size > max) {
            return galley_err_set(err, GALLEY_ELIMIT, "%s: file has %lld bytes, limit %zu", name,
                                  (long long)st.st_size, max);
        }
        cap = (size_t)st.st_size + 1;
    }
    char *data = mem_alloc(cap + 1);
    size_t used = 0;
    while (data) {
        if (used == cap) {
            char *more = mem_resize_array(data, cap * 2 + 1, 1);
            if (!more) {
                break;
            }
            data = more;
            cap *= 2;
        }
        const ssize_t got = read(fd, data + used, cap - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            mem_free(data);
            return io_error(err, name, "read");
        }
        if (got == 0) {
            data[used] = '\0';
            *out = data;
            *n = used;
            return GALLEY_OK;
        }
        used += (size_t)got;
        if (used > max) {
            mem_free(data);
            return galley_err_set(err, GALLEY_ELIMIT, "%s: more than %zu bytes", name, max);
        }
    }
    mem_free(data);
    return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for %zu bytes", name, cap);
}

enum galley_status file_read(const char *path, size_t max, char **out, size_t *n,
                             struct galley_err *err)
{
    *out = NULL;
    *n = 0;
    /* O_NONBLOCK so that a FIFO without a writer is not a hang; reading a FIFO
     * by name is refused below, standard input goes through fd_read. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return io_error(err, path, "open");
    }
    struct stat st;
    enum galley_status rc;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        rc = galley_err_set(err, GALLEY_EIO, "%s: not a regular file", path);
    } else {
        rc = fd_read(fd, path, max, out, n, err);
    }
    close(fd);
    return rc;
}

bool fd_write(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        const ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        at += put;
        n -= (size_t)put;
    }
    return true;
}

char *path_join(const char *dir, const char *name)
{
    const size_t n_dir = strlen(dir), n_name = strlen(name);
    char *path = mem_alloc(n_dir + n_name + 2);
    if (path) {
        memcpy(path, dir, n_dir);
        path[n_dir] = '/';
        memcpy(path + n_dir + 1, name, n_name + 1);
    }
    return path;
}

/* Creates path plus a suffix nobody else uses: -1 with errno when that fails.  Not mkostemp, which
 * makes files private: only umask() would tell the mode wanted, and asking it changes it for all
 * threads. */
static int temporary_open(char *tmp, size_t size, const char *path)
{
    static atomic_uint serial; /* threads of this process; the pid parts processes */
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        const unsigned n = atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed);
        snprintf(tmp, size, "%s.%ld-%u.tmp", path, (long)getpid(), n);
        const int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

enum galley_status file_write(const char *path, const void *bytes, size_t n, struct galley_err *err)
{
    const size_t size = strlen(path) + TEMPORARY_SUFFIX;
    char *tmp = mem_alloc(size);
    if (!tmp) {
        return galley_err_set(err, GALLEY_ENOMEM, "%s: no memory for its name", path);
    }
    enum galley_status rc = GALLEY_OK;
    const int fd = temporary_open(tmp, size, path);
    if (fd < 0) {
        rc = io_error(err, path, "create");
        mem_free(tmp);
        return rc;
    }
    if (!fd_write(fd, bytes, n)) {
        rc = io_error(err, path, "write");
    }
    if (close(fd) != 0 && !rc) {
        rc = io_error(err, path, "write");
    }
    if (!rc && rename(tmp, path) != 0) {
        rc = io_error(err, path, "rename to");
    }
    if (rc) {
        unlink(tmp);
    }
    mem_free(tmp);
    return rc;
}
