/* test_vcache.c - the image cache: keys, the memory budget, files of every kind of damage, failing
 * disks, processes and threads that share a directory, and processes killed while they write. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/t.h"
#include "vision/vcache.h"

enum { ROWS = 5, WIDTH = 40, FILE_BYTES = 64 + 4 * ROWS * WIDTH + 32 };

/* ---- a directory of our own ---- */

static char root[64];

static const char *dir_new(void)
{
    snprintf(root, sizeof(root), "/tmp/galley-vcache-XXXXXX");
    if (!mkdtemp(root)) {
        T_FAIL("mkdtemp: %s", strerror(errno));
    }
    return root;
}

/* Names in the directory that begin with `prefix`, their sizes added up. */
static int dir_count(const char *dir, const char *prefix, uint64_t *bytes)
{
    DIR *d = opendir(dir);
    int n = 0;
    T_OK(d);
    *bytes = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char path[400];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
            lstat(path, &st) == 0) {
            *bytes += (uint64_t)st.st_size;
            n++;
        }
    }
    closedir(d);
    return n;
}

static void dir_remove(const char *dir)
{
    DIR *d = opendir(dir);
    T_OK(d && strncmp(dir, "/tmp/galley-vcache-", 19) == 0);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(dirfd(d), e->d_name, 0) != 0) {
            unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
        }
    }
    closedir(d);
    T_EQ(rmdir(dir), 0);
}

/* ---- values that follow from their number ---- */

static void key_of(uint8_t key[HASH_BYTES], int i)
{
    struct hash h;
    hash_init(&h);
    hash_add(&h, &i, sizeof(i));
    hash_finish(&h, key);
}

static float value_of(int i, int k)
{
    return (float)rng_uniform((uint64_t)i, (uint64_t)k);
}

static struct vembed *embed_of(int i)
{
    struct vembed *e = vembed_new(ROWS, WIDTH);
    for (int k = 0; e && k < ROWS * WIDTH; k++) {
        e->data[k] = value_of(i, k);
    }
    return e;
}

static bool embed_is(const struct vembed *e, int i)
{
    bool same = e->n_rows == ROWS && e->width == WIDTH;
    for (int k = 0; k < ROWS * WIDTH; k++) {
        same = same && e->data[k] == value_of(i, k);
    }
    return same;
}

static void put(struct vcache *c, int i)
{
    uint8_t key[HASH_BYTES];
    struct vembed *e = embed_of(i);
    T_OK(e);
    key_of(key, i);
    vcache_add(c, key, e);
    vembed_unref(e);
    vcache_sync(c);
}

/* Whether it is there; what is there is right. */
static bool has(struct vcache *c, int i)
{
    uint8_t key[HASH_BYTES];
    key_of(key, i);
    struct vembed *e = vcache_find(c, key, ROWS, WIDTH);
    if (e && !embed_is(e, i)) {
        T_FAIL("embeddings %d are somebody else's", i);
    }
    vembed_unref(e);
    return e != NULL;
}

/* Lines of the log, one after the other; any thread. */
static char said[4096];
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

static void hear(void *user, enum log_level level, const char *event, const char *text)
{
    (void)user;
    pthread_mutex_lock(&said_lock);
    const size_t n = strlen(said);
    snprintf(said + n, sizeof(said) - n, "%d %s %s\n", (int)level, event, text);
    pthread_mutex_unlock(&said_lock);
}

static int n_said(const char *words)
{
    int n = 0;
    for (const char *s = said; (s = strstr(s, words)) != NULL; s++) {
        n++;
    }
    return n;
}

static struct vcache *cache_open(const char *dir, uint64_t memory_bytes, uint64_t disk_bytes)
{
    const struct vcache_config cfg = { memory_bytes, dir, disk_bytes, { .fn = hear } };
    said[0] = '\0';
    struct galley_err err = { 0 };
    struct vcache *c = NULL;
    if (vcache_open(&c, &cfg, &err)) {
        T_FAIL("%s", err.msg);
    }
    return c;
}

static void path_of(char path[300], const char *dir, int i)
{
    uint8_t key[HASH_BYTES];
    char hex[HASH_HEX_BYTES];
    key_of(key, i);
    hash_hex(key, hex);
    snprintf(path, 300, "%s/%s.vit", dir, hex);
}

/* ---- keys and memory ---- */

static void keys_tell_apart(void)
{
    static const uint8_t model[2][HASH_BYTES] = { "a", "b" };
    uint8_t plain[HASH_BYTES], other[HASH_BYTES];
    struct vision_grid g = { 1, 4, 6 };
    struct image *im = image_new(6, 4), *wide = image_new(4, 6);
    T_OK(im && wide);
    memset(im->rgb, 7, im->stride * 4);
    memset(wide->rgb, 7, wide->stride * 6);
    vcache_key(plain, model[0], im, &g);
    vcache_key(other, model[0], im, &g);
    T_OK(memcmp(plain, other, HASH_BYTES) == 0);
    vcache_key(other, model[1], im, &g);
    T_OK(memcmp(plain, other, HASH_BYTES) != 0);
    vcache_key(other, model[0], wide, &g); /* the same bytes in another shape */
    T_OK(memcmp(plain, other, HASH_BYTES) != 0);
    g.w = 8;
    vcache_key(other, model[0], im, &g);
    T_OK(memcmp(plain, other, HASH_BYTES) != 0);
    g.w = 6;
    im->rgb[3 * im->stride + 17]++; /* the very last byte */
    vcache_key(other, model[0], im, &g);
    T_OK(memcmp(plain, other, HASH_BYTES) != 0);
    im->rgb[3 * im->stride + 17]--;
    struct image padded = { .width = 6, .height = 4, .stride = 40 }; /* padding does not count */
    uint8_t bytes[160];
    memset(bytes, 99, sizeof(bytes));
    for (int y = 0; y < 4; y++) {
        memset(bytes + 40 * y, 7, 18);
    }
    padded.rgb = bytes;
    vcache_key(other, model[0], &padded, &g);
    T_OK(memcmp(plain, other, HASH_BYTES) == 0);
    image_unref(im);
    image_unref(wide);
}

static void memory_keeps_the_recent(void)
{
    struct vcache *c = cache_open(NULL, 1 << 20, 0);
    put(c, 0);
    const uint64_t one = vcache_stats(c).memory_bytes;
    T_OK(one >= 4 * ROWS * WIDTH && one < 4 * ROWS * WIDTH + 300);
    vcache_close(c);
    c = cache_open(NULL, 3 * one + one / 2, 0);
    for (int i = 0; i < 3; i++) {
        put(c, i);
    }
    T_OK(has(c, 0)); /* 1 is the oldest now */
    put(c, 3);
    T_OK(!has(c, 1) && has(c, 2) && has(c, 0) && has(c, 3));
    put(c, 2); /* known: only used */
    put(c, 4);
    T_OK(!has(c, 0) && has(c, 2));
    T_EQ(vcache_stats(c).memory_bytes, 3 * one);
    T_EQ(vcache_stats(c).evicted, 2);
    T_EQ(vcache_stats(c).hits, 5);
    T_EQ(vcache_stats(c).misses, 2);

    uint8_t key[HASH_BYTES];
    key_of(key, 2);
    struct vembed *held = vcache_find(c, key, ROWS, WIDTH);
    T_OK(held && !vcache_find(c, key, ROWS + 1, WIDTH) && !vcache_find(c, key, ROWS, WIDTH / 2));
    for (int i = 10; i < 20; i++) {
        put(c, i);
    }
    vcache_close(c);
    T_OK(embed_is(held, 2)); /* outlives its place in the cache, and the cache */
    vembed_unref(held);

    c = cache_open(NULL, one - 1, 0); /* too small for any */
    put(c, 0);
    T_OK(!has(c, 0) && vcache_stats(c).memory_bytes == 0);
    vcache_close(c);
    vcache_close(NULL);
    vembed_unref(NULL);
}

static void no_memory(void)
{
    struct galley_err err = { 0 };
    const struct vcache_config cfg = { .memory_bytes = 1 << 20, .dir = dir_new() };
    struct vcache *c = NULL;
    int n = 1;
    for (; !c; n++) {
        mem_fail_at(n);
        const enum galley_status rc = vcache_open(&c, &cfg, &err);
        mem_fail_at(0);
        T_OK(n < 20 && rc == (c ? GALLEY_OK : GALLEY_ENOMEM));
    }
    T_OK(n > 3);
    put(c, 1);
    vcache_close(c);
    c = cache_open(root, 0, 0);
    for (n = 1; n <= 2; n++) { /* a hit on disk that has no room in memory is a miss, not damage */
        mem_fail_at(n);
        T_OK(!has(c, 1));
        mem_fail_at(0);
    }
    T_OK(has(c, 1) && vcache_stats(c).damaged == 0);
    mem_fail_at(1);
    T_OK(!vembed_new(2, 2));
    mem_fail_at(0);
    vcache_close(c);
    c = cache_open(NULL, 1 << 20, 0);
    struct vembed *e = embed_of(3);
    uint8_t key[HASH_BYTES];
    key_of(key, 3);
    mem_fail_at(1);
    vcache_add(c, key, e);
    mem_fail_at(0);
    T_OK(!has(c, 3));
    vembed_unref(e);
    vcache_close(c);
    dir_remove(root);
}

/* ---- disk ---- */

static void disk_outlives_the_process(void)
{
    char deep[200];
    snprintf(deep, sizeof(deep), "%s/a/b", dir_new());
    struct vcache *c = cache_open(deep, 0, 0);
    struct stat st;
    T_OK(stat(deep, &st) == 0 && (st.st_mode & 0777) == 0700);
    put(c, 1);
    put(c, 1);
    T_OK(has(c, 1) && !has(c, 2));
    vcache_close(c);
    c = cache_open(deep, 1 << 20, 0);
    T_OK(has(c, 1) && has(c, 1));
    T_EQ(vcache_stats(c).disk_hits, 1); /* the second was in memory */
    T_EQ(vcache_stats(c).hits, 1);
    uint8_t key[HASH_BYTES];
    key_of(key, 1);
    char path[300];
    path_of(path, deep, 1);
    T_OK(stat(path, &st) == 0 && st.st_size == FILE_BYTES && (st.st_mode & 0777) == 0600);
    T_EQ(vcache_stats(c).damaged + vcache_stats(c).disk_errors, 0);
    vcache_close(c);
    unlink(path);
    rmdir(deep);
    snprintf(deep, sizeof(deep), "%s/a", root);
    rmdir(deep);
    dir_remove(root);
}

/* Replaces file 1 of the directory by what `how` says. */
static void file_damage(const char *dir, int how)
{
    char path[300], other[300], *bytes = NULL;
    size_t n = 0;
    path_of(path, dir, 1);
    path_of(other, dir, 2);
    T_EQ(file_read(path, 1 << 20, &bytes, &n, NULL), GALLEY_OK);
    T_EQ(n, FILE_BYTES);
    T_EQ(unlink(path), 0);
    bytes = mem_resize_array(bytes, n + 1, 1);
    T_OK(bytes);
    if (how < FILE_BYTES) { /* any byte of it */
        bytes[how] ^= 0x20;
        T_EQ(file_write(path, bytes, n, NULL), GALLEY_OK);
    } else if (how == FILE_BYTES) { /* cut short, three ways */
        T_EQ(file_write(path, bytes, n - 1, NULL), GALLEY_OK);
    } else if (how == FILE_BYTES + 1) {
        T_EQ(file_write(path, bytes, 63, NULL), GALLEY_OK);
    } else if (how == FILE_BYTES + 2) {
        T_EQ(file_write(path, bytes, 0, NULL), GALLEY_OK);
    } else if (how == FILE_BYTES + 3) { /* too long */
        T_EQ(file_write(path, bytes, n + 1, NULL), GALLEY_OK);
    } else if (how == FILE_BYTES + 4) { /* a good file under another key's name */
        T_EQ(link(other, path), 0);
    } else if (how == FILE_BYTES + 5) { /* a link to a good file */
        T_EQ(file_write(other, bytes, n, NULL), GALLEY_OK);
        T_EQ(symlink(other, path), 0);
    } else { /* something to wait on */
        T_EQ(mkfifo(path, 0600), 0);
    }
    mem_free(bytes);
}

static void damaged_files_go(void)
{
    const char *dir = dir_new();
    struct vcache *c = cache_open(dir, 0, 0);
    char path[300];
    struct stat st;
    path_of(path, dir, 1);
    uint64_t n = 0;
    for (int how = 0; how <= FILE_BYTES + 6; how++) {
        put(c, 1);
        put(c, 2);
        T_OK(has(c, 1));
        file_damage(dir, how);
        T_OK(!has(c, 1));
        T_EQ(vcache_stats(c).damaged, ++n);
        T_OK(lstat(path, &st) != 0 && errno == ENOENT);
        T_OK(!has(c, 1) && vcache_stats(c).damaged == n);
    }
    T_EQ(vcache_stats(c).disk_errors, 0);
    T_EQ(n_said("\n"), 1); /* the first of hundreds */
    T_OK(n_said("2 vcache.damaged") == 1 && n_said(dir) == 1);
    put(c, 1);
    T_OK(has(c, 1));
    unlink(path);
    T_EQ(mkdir(path, 0700), 0); /* cannot be removed like a file: an error, no hit, no crash */
    T_OK(!has(c, 1));
    T_EQ(vcache_stats(c).disk_errors, 1);
    put(c, 1);
    T_EQ(vcache_stats(c).disk_errors, 2);
    T_EQ(n_said("2 vcache.disk"), 1);
    vcache_close(c);
    dir_remove(dir);
}

static void budget_keeps_the_recent(void)
{
    const char *dir = dir_new();
    uint64_t bytes;
    char path[300], foreign[200];
    struct vcache *c = cache_open(dir, 0, 16 * FILE_BYTES);
    snprintf(foreign, sizeof(foreign), "%s/notes.txt", dir);
    T_EQ(file_write(foreign, "mine", 4, NULL), GALLEY_OK);
    const struct timespec ages[2] = { { 1000, 0 }, { 1000, 0 } };
    for (int i = 0; i < 14; i++) {
        put(c, i);
        path_of(path, dir, i);
        const struct timespec t[2] = { { 2000 + i, 0 }, { 2000 + i, 0 } };
        T_EQ(utimensat(AT_FDCWD, path, t, 0), 0);
    }
    T_EQ(utimensat(AT_FDCWD, foreign, ages, 0), 0);
    T_OK(has(c, 0) && has(c, 3)); /* used now */
    for (int i = 14; i < 17; i++) {
        put(c, i);
    }
    T_EQ(dir_count(dir, "", &bytes), 1 + 14); /* one over: down to seven eighths */
    T_EQ(vcache_stats(c).disk_evicted, 3);
    T_OK(bytes <= 14 * FILE_BYTES + 4);
    T_OK(has(c, 0) && !has(c, 1) && !has(c, 2) && has(c, 3) && !has(c, 4) && has(c, 5));
    T_OK(has(c, 16));
    vcache_close(c);

    /* What killed writers left: old ones go at once, fresh ones may still be written. */
    char stale[200], fresh[200];
    snprintf(stale, sizeof(stale), "%s/writing-00-1", dir);
    snprintf(fresh, sizeof(fresh), "%s/writing-00-2", dir);
    T_EQ(file_write(stale, "half", 4, NULL), GALLEY_OK);
    T_EQ(file_write(fresh, "half", 4, NULL), GALLEY_OK);
    T_EQ(utimensat(AT_FDCWD, stale, ages, 0), 0);
    c = cache_open(dir, 0, 4 * FILE_BYTES); /* a smaller budget */
    T_EQ(dir_count(dir, "writing-", &bytes), 1);
    T_EQ(dir_count(dir, "", &bytes), 1 + 1 + 3);
    T_OK(access(foreign, F_OK) == 0 && access(fresh, F_OK) == 0);
    put(c, 90);
    T_EQ(vcache_stats(c).disk_errors + vcache_stats(c).damaged, 0);
    vcache_close(c);
    c = cache_open(dir, 0, FILE_BYTES - 1); /* too small for any: nothing is written */
    put(c, 91);
    T_EQ(dir_count(dir, "", &bytes), 2);
    T_EQ(vcache_stats(c).disk_errors, 0);
    vcache_close(c);
    dir_remove(dir);
}

static void refuses_unsafe_directories(void)
{
    const char *dir = dir_new();
    char path[300];
    struct galley_err err = { 0 };
    struct vcache *c = NULL;
    struct vcache_config cfg = { .dir = path };
    T_EQ(chmod(dir, 0777), 0);
    cfg.dir = dir;
    T_EQ(vcache_open(&c, &cfg, &err), GALLEY_EUSAGE);
    T_OK(!c && strstr(err.msg, "may be written by others (mode 777)"));
    T_EQ(chmod(dir, 0700), 0);
    cfg.dir = path;
    snprintf(path, sizeof(path), "%s/link", dir);
    T_EQ(symlink(dir, path), 0);
    T_EQ(vcache_open(&c, &cfg, &err), GALLEY_EUSAGE);
    T_OK(strstr(err.msg, "symbolic link"));
    snprintf(path, sizeof(path), "%s/file", dir);
    T_EQ(file_write(path, "x", 1, NULL), GALLEY_OK);
    T_EQ(vcache_open(&c, &cfg, &err), GALLEY_EIO);
    T_OK(strstr(err.msg, "/file: Not a directory"));
    snprintf(path, sizeof(path), "%s/file/below", dir);
    T_EQ(vcache_open(&c, &cfg, &err), GALLEY_EIO);
    path[0] = '\0';
    T_EQ(vcache_open(&c, &cfg, &err), GALLEY_EIO);
    dir_remove(dir);
}

/* ---- in processes of their own ---- */

/* Runs fn in a child; its exit status is 0 when all went well there. */
static pid_t child_start(int (*fn)(int arg), int arg)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(setjmp(t_jump) ? 1 : fn(arg));
    }
    T_OK(pid > 0);
    return pid;
}

static void child_join(pid_t pid)
{
    int status = -1;
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
}

/* A disk that takes a file of this size and no more. */
static int full_disk(int arg)
{
    const struct rlimit limit = { (rlim_t)arg, (rlim_t)arg };
    signal(SIGXFSZ, SIG_IGN);
    struct vcache *c = cache_open(root, 1 << 20, 0);
    T_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    put(c, 1);
    T_EQ(vcache_stats(c).disk_errors, arg < FILE_BYTES);
    put(c, 2);
    T_EQ(n_said("2 vcache.full"), arg < FILE_BYTES);
    T_EQ(n_said("\n"), arg < FILE_BYTES);
    T_OK(has(c, 1) && vcache_stats(c).hits == 1); /* memory still works */
    vcache_close(c);
    uint64_t bytes;
    T_EQ(dir_count(root, "", &bytes), arg >= FILE_BYTES ? 2 : 0); /* no half file stays */
    return 0;
}

static void disk_trouble_is_counted(void)
{
    static const int limits[] = { 0, 1, 64, 500, FILE_BYTES - 1, FILE_BYTES };
    dir_new();
    for (size_t i = 0; i < COUNT(limits); i++) {
        child_join(child_start(full_disk, limits[i]));
    }
    struct vcache *c = cache_open(root, 0, 0);
    T_OK(has(c, 1));
    dir_remove(root); /* pulled away under it */
    put(c, 2);
    T_OK(!has(c, 2) && !has(c, 1));
    T_OK(vcache_stats(c).disk_errors >= 1);
    vcache_close(c);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whoever adds neither hashes nor writes; closing writes all that was taken; what the queue had no
 * room for is counted. */
static void adding_does_not_wait(void)
{
    enum { N = 200, BIG_ROWS = 256, BIG_WIDTH = 1024 };
    struct vcache *c = cache_open(dir_new(), 4 << 20, 0);
    struct vembed *e = vembed_new(BIG_ROWS, BIG_WIDTH);
    uint8_t key[HASH_BYTES];
    const size_t n_bytes = sizeof(float) * BIG_ROWS * BIG_WIDTH;
    T_OK(e);
    memset(e->data, 0, n_bytes);
    double start = cpu_seconds();
    for (int i = 0; i < N / 10; i++) {
        struct hash h;
        hash_init(&h);
        hash_add(&h, e->data, n_bytes);
        hash_finish(&h, key);
    }
    const double hashing = (cpu_seconds() - start) * 10;
    start = cpu_seconds();
    for (int i = 0; i < N; i++) {
        key_of(key, i);
        vcache_add(c, key, e);
    }
    T_OK(cpu_seconds() - start < hashing / 10);
    const uint64_t n_unwritten = vcache_stats(c).unwritten;
    T_OK(n_unwritten > 0 && n_unwritten < N - 32);
    vcache_close(c);
    uint64_t bytes;
    T_EQ(dir_count(root, "writing-", &bytes), 0);
    T_EQ(dir_count(root, "", &bytes), N - (int)n_unwritten);
    T_EQ(bytes, (N - n_unwritten) * (n_bytes + 96));
    T_EQ(atomic_load(&e->n_refs), 1);
    c = cache_open(root, 0, 0);
    key_of(key, 0);
    struct vembed *first = vcache_find(c, key, BIG_ROWS, BIG_WIDTH);
    T_OK(first && memcmp(first->data, e->data, n_bytes) == 0);
    vembed_unref(first);
    vembed_unref(e);
    vcache_sync(c); /* nothing to wait for */
    vcache_close(c);
    dir_remove(root);
}

/* What was read ahead needs no disk any more, and counts once. */
static void warm_is_found_in_memory(void)
{
    uint8_t key[HASH_BYTES];
    char path[300];
    struct vcache *c = cache_open(dir_new(), 1 << 20, 0);
    put(c, 1);
    put(c, 2);
    vcache_close(c);
    c = cache_open(root, 1 << 20, 0);
    for (int i = 1; i <= 3; i++) {
        key_of(key, i);
        vcache_warm(c, key, ROWS, WIDTH);
        vcache_warm(c, key, ROWS, WIDTH);
    }
    struct vcache_stats s = vcache_stats(c);
    T_OK(s.disk_hits == 2 && s.hits == 0 && s.misses == 0);
    path_of(path, root, 1);
    T_EQ(unlink(path), 0);
    T_OK(has(c, 1) && has(c, 2) && !has(c, 3));
    s = vcache_stats(c);
    T_OK(s.disk_hits == 2 && s.hits == 2 && s.misses == 1);
    vcache_close(c);
    c = cache_open(root, 0, 0); /* no memory to read into: nothing is read */
    key_of(key, 2);
    vcache_warm(c, key, ROWS, WIDTH);
    T_EQ(vcache_stats(c).disk_hits, 0);
    T_OK(has(c, 2));
    vcache_close(c);
    dir_remove(root);
}

enum { N_KEYS = 24, N_STEPS = 600 };

/* Finds and adds at random, in a directory that holds half of the keys. */
static int hammer(int arg)
{
    struct vcache *c = cache_open(root, 3 * 4 * ROWS * WIDTH, N_KEYS / 2 * FILE_BYTES);
    int n_hits = 0;
    for (int i = 0; i < N_STEPS; i++) {
        const int key = (int)(rng_uniform((uint64_t)arg, (uint64_t)i) * N_KEYS);
        if (has(c, key)) {
            n_hits++;
        } else {
            put(c, key);
        }
    }
    const struct vcache_stats s = vcache_stats(c);
    T_EQ(s.damaged, 0);
    T_EQ(s.disk_errors, 0);
    T_OK(n_hits > N_STEPS / 8 && s.disk_hits > 20 && s.misses > 20);
    vcache_close(c);
    return 0;
}

static void processes_share_a_directory(void)
{
    enum { N = 4 };
    pid_t pid[N];
    uint64_t bytes;
    dir_new();
    for (int i = 0; i < N; i++) {
        pid[i] = child_start(hammer, i);
    }
    for (int i = 0; i < N; i++) {
        child_join(pid[i]);
    }
    T_EQ(dir_count(root, "writing-", &bytes), 0);
    T_OK(dir_count(root, "", &bytes) > 0);
    T_OK(bytes <= (N_KEYS / 2 + N * (N_KEYS / 32 + 1)) * FILE_BYTES);
    dir_remove(root);
}

static int write_for_ever(int arg)
{
    struct vcache *c = cache_open(root, 0, 1 << 20);
    for (int i = arg;; i = (i + 1) % 500) {
        put(c, i);
        uint8_t key[HASH_BYTES];
        char path[300];
        key_of(key, i);
        path_of(path, root, (i + 250) % 500);
        unlink(path); /* so that there is always something to write */
    }
    return 0;
}

/* Killed at any moment, a writer leaves whole files, or files under names nobody reads. */
static void killed_writers_leave_no_torn_file(void)
{
    dir_new();
    for (int i = 0; i < 40; i++) {
        const pid_t pid = child_start(write_for_ever, 13 * i);
        int status;
        usleep((useconds_t)(2000 + 300 * i));
        kill(pid, SIGKILL);
        T_EQ(waitpid(pid, &status, 0), pid);
        T_OK(WIFSIGNALED(status));
    }
    struct vcache *c = cache_open(root, 0, 1 << 20);
    int n = 0;
    for (int i = 0; i < 500; i++) {
        n += has(c, i);
    }
    T_OK(n > 10);
    T_EQ(vcache_stats(c).damaged, 0);
    vcache_close(c);
    dir_remove(root);
}

/* ---- threads ---- */

static struct vcache *shared;

static void *thread_hammer(void *arg)
{
    const uint64_t stream = (uint64_t)(uintptr_t)arg;
    int n_wrong = 0;
    for (int i = 0; i < N_STEPS; i++) {
        const int k = (int)(rng_uniform(stream, (uint64_t)i) * N_KEYS);
        uint8_t key[HASH_BYTES];
        key_of(key, k);
        struct vembed *e = vcache_find(shared, key, ROWS, WIDTH);
        if (!e) {
            e = embed_of(k);
            vcache_add(shared, key, e);
        }
        n_wrong += !embed_is(e, k);
        vembed_unref(e);
        n_wrong += i % 50 == 0 && vcache_stats(shared).memory_bytes > 5 * 4 * ROWS * WIDTH;
    }
    return (void *)(uintptr_t)n_wrong;
}

static void threads_share_a_cache(void)
{
    pthread_t thread[4];
    shared = cache_open(dir_new(), 5 * 4 * ROWS * WIDTH, N_KEYS / 2 * FILE_BYTES);
    for (uintptr_t i = 0; i < COUNT(thread); i++) {
        T_EQ(pthread_create(&thread[i], NULL, thread_hammer, (void *)(100 + i)), 0);
    }
    uintptr_t n_wrong = 0;
    for (size_t i = 0; i < COUNT(thread); i++) {
        void *n;
        T_EQ(pthread_join(thread[i], &n), 0);
        n_wrong += (uintptr_t)n;
    }
    T_EQ(n_wrong, 0);
    const struct vcache_stats s = vcache_stats(shared);
    T_EQ(s.damaged + s.disk_errors, 0);
    T_EQ(s.hits + s.disk_hits + s.misses, COUNT(thread) * N_STEPS);
    vcache_close(shared);
    dir_remove(root);
}

static const struct t_case cases[] = {
    { "keys_tell_apart", keys_tell_apart },
    { "memory_keeps_the_recent", memory_keeps_the_recent },
    { "no_memory", no_memory },
    { "disk_outlives_the_process", disk_outlives_the_process },
    { "damaged_files_go", damaged_files_go },
    { "budget_keeps_the_recent", budget_keeps_the_recent },
    { "refuses_unsafe_directories", refuses_unsafe_directories },
    { "disk_trouble_is_counted", disk_trouble_is_counted },
    { "adding_does_not_wait", adding_does_not_wait },
    { "warm_is_found_in_memory", warm_is_found_in_memory },
    { "processes_share_a_directory", processes_share_a_directory },
    { "killed_writers_leave_no_torn_file", killed_writers_leave_no_torn_file },
    { "threads_share_a_cache", threads_share_a_cache },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
