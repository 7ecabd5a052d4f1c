/* vcache_disk.c - see vcache_disk.h.
 *
 * The budget is kept by looking: a scan of the directory finds what all processes wrote and
 * removes the least recently used (hits touch the time of change).  Between scans a process counts
 * its own writes, and scans again after a sixteenth of the budget, so that n processes together
 * exceed it by n sixteenths at most. */
#include "vision/vcache_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/map.h"
#include "src/base/mem.h"

#define HEAD_BYTES    64
#define SUFFIX        ".vit"
#define NAME_BYTES    (HASH_HEX_BYTES + sizeof(SUFFIX) - 1) /* NUL included */
#define TEMP_PREFIX   "writing-"
#define TEMP_STALE    600 /* seconds after which its writer must be dead */
#define TEMP_BYTES    64
#define VERSION       1u
#define ORDER_MARK    0x01020304u
#define SCAN_FRACTION 16 /* of the budget is written between two scans */
#define KEEP_EIGHTHS  7  /* of the budget are left by a scan that removes */

struct vcache_disk {
    int dir;
    uint64_t max_bytes;
    uint64_t nonce; /* tells this process's temporary names from others' */
    struct log log;
    char *path; /* of dir, for the log */
    _Atomic uint64_t n_temp, n_damaged, n_errors, n_evicted;
    atomic_bool said_damaged, said_full, said_error;
    pthread_mutex_t lock; /* below; held through a scan */
    uint64_t used;        /* as last seen, own writes added */
    uint64_t unseen;      /* own writes since */
};

static void name_of(char out[NAME_BYTES], const uint8_t key[HASH_BYTES])
{
    hash_hex(key, out);
    memcpy(out + HASH_HEX_BYTES - 1, SUFFIX, sizeof(SUFFIX));
}

static uint64_t payload_bytes(int n_rows, int width)
{
    return (uint64_t)n_rows * (uint64_t)width * sizeof(float);
}

static uint64_t file_bytes(int n_rows, int width)
{
    return HEAD_BYTES + payload_bytes(n_rows, width) + HASH_BYTES;
}

/* In the machine's own byte order: a file from another kind of machine does not match. */
static void head_make(uint8_t head[HEAD_BYTES], const uint8_t key[HASH_BYTES], int n_rows,
                      int width)
{
    static const char magic[8] = "galleyve"; /* NUL dropped */
    const uint32_t words[6] = { VERSION, ORDER_MARK, (uint32_t)n_rows, (uint32_t)width, 0, 0 };
    memcpy(head, magic, sizeof(magic));
    memcpy(head + sizeof(magic), words, sizeof(words));
    memcpy(head + sizeof(magic) + sizeof(words), key, HASH_BYTES);
}

static void digest_make(uint8_t out[HASH_BYTES], const uint8_t head[HEAD_BYTES], const void *data,
                        size_t n)
{
    struct hash h;
    hash_init(&h);
    hash_add(&h, head, HEAD_BYTES);
    hash_add(&h, data, n);
    hash_finish(&h, out);
}

static void count(_Atomic uint64_t *n)
{
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed); /* orders nothing */
}

static void note_damage(struct vcache_disk *d)
{
    count(&d->n_damaged);
    if (!atomic_exchange_explicit(&d->said_damaged, true, memory_order_relaxed)) {
        log_line(&d->log, LOG_WARN, "vcache.damaged",
                 "a file in %s was not what it should be and is removed; further ones are counted",
                 d->path);
    }
}

static void note_trouble(struct vcache_disk *d, const char *what, int why)
{
    const bool full = why == ENOSPC || why == EDQUOT || why == EFBIG;
    count(&d->n_errors);
    if (!atomic_exchange_explicit(full ? &d->said_full : &d->said_error, true,
                                  memory_order_relaxed)) {
        log_line(&d->log, LOG_WARN, full ? "vcache.full" : "vcache.disk",
                 "cannot %s %s: %s; it goes on without, further ones are counted", what, d->path,
                 strerror(why));
    }
}

/* ---- reading ---- */

/* False at the end of the file and on errors. */
static bool read_all(int fd, void *bytes, size_t n)
{
    char *at = bytes;
    while (n > 0) {
        const ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool content_read(int fd, const uint8_t key[HASH_BYTES], struct vembed *e)
{
    uint8_t want[HEAD_BYTES], head[HEAD_BYTES], stored[HASH_BYTES], digest[HASH_BYTES];
    const size_t n = (size_t)payload_bytes(e->n_rows, e->width);
    head_make(want, key, e->n_rows, e->width);
    if (!read_all(fd, head, HEAD_BYTES) || memcmp(head, want, HEAD_BYTES) != 0 ||
        !read_all(fd, e->data, n) || !read_all(fd, stored, HASH_BYTES)) {
        return false;
    }
    digest_make(digest, head, e->data, n);
    return memcmp(digest, stored, HASH_BYTES) == 0;
}

/* Not what this cache writes: out with it. */
static void file_remove(struct vcache_disk *d, const char *name)
{
    note_damage(d);
    if (unlinkat(d->dir, name, 0) != 0 && errno != ENOENT) {
        note_trouble(d, "remove a file from", errno);
    }
}

struct vembed *vcache_disk_read(struct vcache_disk *d, const uint8_t key[HASH_BYTES], int n_rows,
                                int width)
{
    char name[NAME_BYTES];
    name_of(name, key);
    /* O_NONBLOCK: a FIFO must not hold us */
    const int fd = openat(d->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        if (errno == ELOOP || errno == ENXIO) { /* a link, a socket */
            file_remove(d, name);
        } else if (errno != ENOENT) {
            note_trouble(d, "read a file in", errno);
        }
        return NULL;
    }
    struct stat st;
    const bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                      (uint64_t)st.st_size == file_bytes(n_rows, width);
    struct vembed *e = fits ? vembed_new(n_rows, width) : NULL;
    const bool ok = e && content_read(fd, key, e);
    if (ok) {
        (void)futimens(fd, NULL); /* without it the file is only removed sooner */
    } else if (!fits || e) {
        file_remove(d, name);
    }
    close(fd);
    if (!ok) {
        vembed_unref(e);
        return NULL;
    }
    return e;
}

/* ---- the budget ---- */

struct found {
    struct timespec used;
    uint64_t bytes;
    char name[NAME_BYTES];
};

struct listing {
    struct found *file;
    size_t n, cap;
    uint64_t bytes;
};

static bool is_name(const char *s)
{
    const size_t n_hex = strspn(s, "0123456789abcdef");
    return n_hex == HASH_HEX_BYTES - 1 && strcmp(s + n_hex, SUFFIX) == 0;
}

static bool is_temp(const char *s)
{
    return strncmp(s, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0 && strlen(s) < TEMP_BYTES;
}

static bool listing_add(struct listing *l, const char *name, const struct stat *st)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 64;
        struct found *file = mem_resize_array(l->file, cap, sizeof(*file));
        if (!file) {
            return false;
        }
        l->file = file;
        l->cap = cap;
    }
    struct found *f = &l->file[l->n++];
    *f = (struct found){ .used = st->st_mtim, .bytes = (uint64_t)st->st_size };
    memcpy(f->name, name, NAME_BYTES);
    l->bytes += f->bytes;
    return true;
}

/* One name of the directory; the temporary file of a writer that was killed goes at once. */
static bool listing_see(struct vcache_disk *d, struct listing *l, const char *name)
{
    struct stat st;
    if ((!is_name(name) && !is_temp(name)) ||
        fstatat(d->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) {
        return true;
    }
    if (is_name(name)) {
        return listing_add(l, name, &st);
    }
    if (time(NULL) - st.st_mtim.tv_sec > TEMP_STALE) {
        unlinkat(d->dir, name, 0);
    } else {
        l->bytes += (uint64_t)st.st_size;
    }
    return true;
}

/* 0, or what failed, directory or memory, with what was seen so far. */
static int listing_read(struct vcache_disk *d, struct listing *l)
{
    const int fd = openat(d->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        const int why = errno;
        if (fd >= 0) {
            close(fd);
        }
        return why;
    }
    bool ok = true;
    for (struct dirent *e = readdir(dir); ok && e; e = readdir(dir)) {
        ok = listing_see(d, l, e->d_name);
    }
    closedir(dir);
    return ok ? 0 : ENOMEM;
}

static int oldest_first(const void *a, const void *b)
{
    const struct found *p = a, *q = b;
    if (p->used.tv_sec != q->used.tv_sec) {
        return p->used.tv_sec < q->used.tv_sec ? -1 : 1;
    }
    return p->used.tv_nsec < q->used.tv_nsec ? -1 : p->used.tv_nsec > q->used.tv_nsec;
}

/* With the lock held. */
static void budget_keep(struct vcache_disk *d)
{
    struct listing l = { 0 };
    const int why = listing_read(d, &l);
    if (why) {
        note_trouble(d, "list", why);
    }
    if (l.bytes > d->max_bytes) {
        qsort(l.file, l.n, sizeof(*l.file), oldest_first);
        for (size_t i = 0; i < l.n && l.bytes > d->max_bytes / 8 * KEEP_EIGHTHS; i++) {
            if (unlinkat(d->dir, l.file[i].name, 0) == 0) {
                count(&d->n_evicted);
            } else if (errno != ENOENT) {
                note_trouble(d, "remove a file from", errno);
                continue;
            }
            l.bytes -= l.file[i].bytes;
        }
    }
    d->used = l.bytes;
    d->unseen = 0;
    mem_free(l.file);
}

static void budget_add(struct vcache_disk *d, uint64_t bytes)
{
    pthread_mutex_lock(&d->lock);
    d->used += bytes;
    d->unseen += bytes;
    if (d->used > d->max_bytes || d->unseen > d->max_bytes / SCAN_FRACTION) {
        budget_keep(d);
    }
    pthread_mutex_unlock(&d->lock);
}

/* ---- writing ---- */

static bool content_write(int fd, const uint8_t key[HASH_BYTES], const struct vembed *e)
{
    uint8_t head[HEAD_BYTES], digest[HASH_BYTES];
    const size_t n = (size_t)payload_bytes(e->n_rows, e->width);
    head_make(head, key, e->n_rows, e->width);
    digest_make(digest, head, e->data, n);
    return fd_write(fd, head, HEAD_BYTES) && fd_write(fd, e->data, n) &&
           fd_write(fd, digest, HASH_BYTES);
}

/* Another process, or an earlier run, has been here. */
static bool file_is_there(struct vcache_disk *d, const char *name, uint64_t bytes)
{
    struct stat st;
    return fstatat(d->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == bytes;
}

void vcache_disk_write(struct vcache_disk *d, const uint8_t key[HASH_BYTES], const struct vembed *e)
{
    const uint64_t bytes = file_bytes(e->n_rows, e->width);
    char name[NAME_BYTES], temp[TEMP_BYTES];
    name_of(name, key);
    if (bytes > d->max_bytes || file_is_there(d, name, bytes)) {
        return;
    }
    const uint64_t i = atomic_fetch_add_explicit(&d->n_temp, 1, memory_order_relaxed);
    snprintf(temp, sizeof(temp), TEMP_PREFIX "%016llx-%llx", (unsigned long long)d->nonce,
             (unsigned long long)i);
    const int fd = openat(d->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        note_trouble(d, "make a file in", errno);
        return;
    }
    errno = 0;
    bool ok = content_write(fd, key, e);
    int why = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && renameat(d->dir, temp, d->dir, name) != 0) {
        ok = false;
        why = errno;
    }
    if (!ok) {
        unlinkat(d->dir, temp, 0);
        note_trouble(d, "write a file in", why);
        return;
    }
    budget_add(d, bytes);
}

/* ---- life ---- */

/* The directory and those above it; what exists stays as it is. */
static bool dirs_make(const char *dir)
{
    char *path = mem_strdup(dir);
    if (!path) {
        errno = ENOMEM;
        return false;
    }
    bool ok = true;
    for (char *at = path + 1; ok && *path && *at; at++) {
        if (*at == '/') {
            *at = '\0';
            ok = mkdir(path, 0700) == 0 || errno == EEXIST;
            *at = '/';
        }
    }
    ok = ok && (mkdir(path, 0700) == 0 || errno == EEXIST);
    const int saved = errno;
    mem_free(path);
    errno = saved;
    return ok;
}

static enum galley_status dir_open(int *out, const char *dir, struct galley_err *err)
{
    struct stat st;
    const bool made = dirs_make(dir);
    const int fd = made ? open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) != 0) {
        const int why = errno;
        if (fd >= 0) {
            close(fd);
        }
        if (made && (why == ENOTDIR || why == ELOOP) && lstat(dir, &st) == 0 &&
            S_ISLNK(st.st_mode)) {
            return galley_err_set(err, GALLEY_EUSAGE,
                                  "cache directory %s is a symbolic link: name its target", dir);
        }
        return galley_err_set(err, why == ENOMEM ? GALLEY_ENOMEM : GALLEY_EIO,
                              "cache directory %s: %s", dir, strerror(why));
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) ||
        (st.st_uid != geteuid() && st.st_uid != 0 && geteuid() != 0)) {
        close(fd);
        return galley_err_set(err, GALLEY_EUSAGE,
                              "cache directory %s may be written by others (mode %03o)", dir,
                              (unsigned)st.st_mode & 0777u);
    }
    *out = fd;
    return GALLEY_OK;
}

enum galley_status vcache_disk_open(struct vcache_disk **out, const char *dir, uint64_t max_bytes,
                                    const struct log *log, struct galley_err *err)
{
    *out = NULL;
    struct vcache_disk *d = mem_new(struct vcache_disk);
    char *path = mem_strdup(dir);
    enum galley_status rc = GALLEY_OK;
    if (!d || !path) {
        rc = galley_err_set(err, GALLEY_ENOMEM, "out of memory: the image cache");
    }
    rc = rc ? rc : dir_open(&d->dir, dir, err);
    if (rc) {
        mem_free(d);
        mem_free(path);
        return rc;
    }
    d->max_bytes = max_bytes;
    d->log = *log;
    d->path = path;
    if (getrandom(&d->nonce, sizeof(d->nonce), 0) != (ssize_t)sizeof(d->nonce)) {
        d->nonce = (uint64_t)getpid();
    }
    pthread_mutex_init(&d->lock, NULL);
    budget_keep(d); /* a smaller budget than last time takes effect now */
    *out = d;
    return GALLEY_OK;
}

void vcache_disk_close(struct vcache_disk *d)
{
    if (d) {
        close(d->dir);
        pthread_mutex_destroy(&d->lock);
        mem_free(d->path);
        mem_free(d);
    }
}

void vcache_disk_stats(const struct vcache_disk *d, struct vcache_stats *s)
{
    s->damaged = atomic_load_explicit(&d->n_damaged, memory_order_relaxed);
    s->disk_errors = atomic_load_explicit(&d->n_errors, memory_order_relaxed);
    s->disk_evicted = atomic_load_explicit(&d->n_evicted, memory_order_relaxed);
}
