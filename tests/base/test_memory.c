/* test_memory.c - base: allocation and its faults, images, files. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/image.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "tests/t.h"

/* ---- mem ---- */

static void mem_checks_products(void)
{
    T_OK(mem_array(SIZE_MAX / 2, 3) == NULL);
    T_OK(mem_zero_array(SIZE_MAX, 2) == NULL);
    T_OK(mem_resize_array(NULL, SIZE_MAX / 4, 5) == NULL);
    T_OK(mem_aligned(SIZE_MAX) == NULL);
    T_OK(mem_aligned(SIZE_MAX - 62) == NULL);
    T_OK(mem_strndup("x", SIZE_MAX) == NULL);
    void *zero[] = { mem_alloc(0), mem_array(0, 8), mem_zero_array(8, 0), mem_aligned(0),
                     mem_resize_array(NULL, 0, 8) };
    for (size_t i = 0; i < COUNT(zero); i++) {
        T_OK(zero[i] != NULL);
        mem_free(zero[i]);
    }
    mem_free(NULL);
}

static void mem_gives_what_it_says(void)
{
    for (size_t n = 1; n < 5000; n = n * 2 + 1) {
        char *a = mem_aligned(n), *z = mem_zero_array(n, 3);
        T_EQ((uintptr_t)a % 64, 0);
        memset(a, 1, n); /* ASan watches the end */
        for (size_t i = 0; i < 3 * n; i++) {
            T_EQ(z[i], 0);
        }
        z[0] = 7;
        z = mem_resize_array(z, n, 6);
        T_EQ(z[0], 7);
        mem_free(a);
        mem_free(z);
    }
    char *s = mem_strndup("abcdef", 3), *t = mem_strdup("");
    T_STR(s, "abc");
    T_STR(t, "");
    mem_free(s);
    mem_free(t);
}

static void mem_fails_the_nth(void)
{
    for (long n = 1; n <= 6; n++) {
        mem_fail_at(n);
        void *p[6] = { mem_alloc(1),         mem_array(1, 1),
                       mem_zero_array(1, 1), mem_resize_array(NULL, 1, 1),
                       mem_aligned(1),       mem_strdup("") };
        for (long i = 0; i < 6; i++) {
            T_EQ(p[i] == NULL, i + 1 == n);
            mem_free(p[i]);
        }
        T_EQ(mem_count(), 6);
    }
    /* A failed resize leaves the block as it was. */
    char *kept = mem_strdup("kept");
    mem_fail_at(1);
    T_OK(mem_resize_array(kept, 100, 1) == NULL);
    mem_fail_at(0);
    T_STR(kept, "kept");
    mem_free(kept);
}

/* ---- image ---- */

static struct image *numbered(int w, int h)
{
    struct image *im = image_new(w, h);
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            uint8_t *p = im->rgb + (size_t)y * im->stride + (size_t)x * 3;
            p[0] = (uint8_t)x;
            p[1] = (uint8_t)y;
            p[2] = 99;
        }
    }
    return im;
}

static void image_crops_inside(void)
{
    struct image *im = numbered(7, 5);
    T_EQ(im->stride, 21);
    static const int box[][4] = {
        { 0, 0, 7, 5 }, { 2, 1, 4, 3 }, { -5, -5, 3, 2 }, { 6, 4, 99, 99 }, { -9, -9, 99, 99 }
    };
    static const int want[][4] = {
        { 0, 0, 7, 5 }, { 2, 1, 2, 2 }, { 0, 0, 3, 2 }, { 6, 4, 1, 1 }, { 0, 0, 7, 5 }
    };
    for (size_t i = 0; i < COUNT(box); i++) {
        struct image *c = image_crop(im, box[i][0], box[i][1], box[i][2], box[i][3]);
        T_EQ(c->width, want[i][2]);
        T_EQ(c->height, want[i][3]);
        const uint8_t *last =
            c->rgb + (size_t)(c->height - 1) * c->stride + (size_t)(c->width - 1) * 3;
        T_EQ(c->rgb[0], want[i][0]);
        T_EQ(c->rgb[1], want[i][1]);
        T_EQ(last[0], want[i][0] + want[i][2] - 1);
        T_EQ(last[1], want[i][1] + want[i][3] - 1);
        T_EQ(last[2], 99);
        image_unref(c);
    }
    T_OK(image_crop(im, 3, 3, 3, 5) == NULL);
    T_OK(image_crop(im, 4, 0, 2, 5) == NULL);
    T_OK(image_crop(im, 7, 0, 9, 5) == NULL);
    T_OK(image_crop(im, -9, 0, 0, 5) == NULL);
    image_unref(im);
}

static void image_knows_its_limits(void)
{
    static const int bad[][2] = { { 0, 1 }, { 1, 0 }, { -1, 5 }, { 1 << 30, 1 }, { 1, 1 << 30 } };
    for (size_t i = 0; i < COUNT(bad); i++) {
        T_OK(image_new(bad[i][0], bad[i][1]) == NULL);
    }
    for (long n = 1; n <= 2; n++) {
        mem_fail_at(n);
        T_OK(image_new(3, 3) == NULL);
    }
    mem_fail_at(0);
    image_unref(NULL);
}

static void *ref_and_drop(void *arg)
{
    struct image *im = arg;
    for (int i = 0; i < 10000; i++) {
        image_unref(image_ref(im));
    }
    image_unref(im);
    return NULL;
}

static void image_is_shared_by_threads(void)
{
    struct image *im = numbered(2, 2);
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
        image_ref(im);
        T_EQ(pthread_create(&t[i], NULL, ref_and_drop, im), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
    }
    T_EQ(atomic_load(&im->n_refs), 1);
    image_unref(im);
}

/* ---- files ---- */

static char dir[] = "/tmp/galley-test-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[2][512];
    static int k;
    k = !k;
    snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
    return path[k];
}

static void file_goes_round(void)
{
    struct galley_err err = { 0 };
    char *bytes;
    size_t n;
    static char data[200000];
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (char)(i * 7 + i / 251);
    }
    static const size_t sizes[] = { 0, 1, 4096, 65536, 65537, sizeof(data) };
    for (size_t k = 0; k < COUNT(sizes); k++) {
        T_EQ(file_write(in_dir("f"), data, sizes[k], &err), GALLEY_OK);
        T_EQ(file_read(in_dir("f"), sizes[k], &bytes, &n, &err), GALLEY_OK);
        T_EQ(n, sizes[k]);
        T_OK(memcmp(bytes, data, n) == 0);
        T_EQ(bytes[n], 0);
        mem_free(bytes);
        struct map m;
        T_EQ(map_open(&m, in_dir("f"), &err), GALLEY_OK);
        T_EQ(m.n, sizes[k]);
        T_OK(sizes[k] ? memcmp(m.base, data, m.n) == 0 : m.base == NULL);
        map_close(&m);
        map_close(&m);
        if (sizes[k]) {
            T_EQ(file_read(in_dir("f"), sizes[k] - 1, &bytes, &n, &err), GALLEY_ELIMIT);
            T_OK(bytes == NULL);
        }
    }
    T_OK(strstr(err.msg, "200000") && strstr(err.msg, "199999"));
    struct stat st;
    const mode_t mask = umask(022);
    T_EQ(file_write(in_dir("m"), "x", 1, &err), GALLEY_OK);
    umask(mask);
    T_EQ(stat(in_dir("m"), &st), 0);
    T_EQ(st.st_mode & 0777, 0644);
}

static void file_says_what_is_wrong(void)
{
    struct galley_err err = { 0 };
    char *bytes;
    size_t n;
    struct map m;
    T_EQ(file_read(in_dir("none"), 10, &bytes, &n, &err), GALLEY_EIO);
    T_OK(bytes == NULL && strstr(err.msg, "none: cannot open: No such file"));
    T_EQ(file_read(dir, 10, &bytes, &n, &err), GALLEY_EIO);
    T_OK(strstr(err.msg, "not a regular file"));
    T_EQ(map_open(&m, dir, &err), GALLEY_EIO);
    T_EQ(map_open(&m, in_dir("none"), &err), GALLEY_EIO);
    T_EQ(mkfifo(in_dir("fifo"), 0600), 0);
    T_EQ(file_read(in_dir("fifo"), 10, &bytes, &n, &err), GALLEY_EIO); /* and does not hang */
    T_EQ(map_open(&m, in_dir("fifo"), &err), GALLEY_EIO);
    T_EQ(file_write(in_dir("no/where"), "x", 1, &err), GALLEY_EIO);
    T_EQ(mkdir(in_dir("taken"), 0700), 0);
    T_EQ(file_write(in_dir("taken"), "x", 1, &err), GALLEY_EIO);
    T_EQ(access(in_dir("taken"), F_OK), 0);
    for (long k = 1; k <= 1; k++) {
        mem_fail_at(k);
        T_EQ(file_write(in_dir("f"), "x", 1, &err), GALLEY_ENOMEM);
        mem_fail_at(k);
        T_EQ(file_read(in_dir("f"), 1000000, &bytes, &n, &err), GALLEY_ENOMEM);
        T_OK(bytes == NULL);
    }
    mem_fail_at(0);
}

/* In a process of its own: no address space is left in it. */
static void mapping_without_memory_says_so(void)
{
    T_EQ(file_write(in_dir("f"), "x", 1, NULL), GALLEY_OK);
    const pid_t pid = fork();
    T_OK(pid >= 0);
    if (pid == 0) {
        struct galley_err err = { 0 };
        struct map m;
        const bool set = setrlimit(RLIMIT_AS, &(struct rlimit){ 1, 1 }) == 0;
        const bool said = map_open(&m, in_dir("f"), &err) == GALLEY_ENOMEM && !m.base &&
                          strstr(err.msg, "f: no memory to map 1 bytes");
        _exit(set && said ? 0 : 1);
    }
    int status;
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
}

static void pipe_is_read_to_its_end(void)
{
    struct galley_err err = { 0 };
    char *bytes;
    size_t n;
    int fd[2];
    T_EQ(pipe(fd), 0);
    T_EQ(write(fd[1], "0123456789", 10), 10);
    close(fd[1]);
    T_EQ(fd_read(fd[0], "standard input", 10, &bytes, &n, &err), GALLEY_OK);
    T_EQ(n, 10);
    T_STR(bytes, "0123456789");
    mem_free(bytes);
    close(fd[0]);
    T_EQ(pipe(fd), 0);
    T_EQ(write(fd[1], "0123456789", 10), 10);
    close(fd[1]);
    T_EQ(fd_read(fd[0], "standard input", 9, &bytes, &n, &err), GALLEY_ELIMIT);
    T_STR(err.msg, "standard input: more than 9 bytes");
    close(fd[0]);
    T_EQ(fd_read(-1, "nothing", 9, &bytes, &n, &err), GALLEY_EIO);
}

static const struct t_case cases[] = {
    { "mem_checks_products", mem_checks_products },
    { "mem_gives_what_it_says", mem_gives_what_it_says },
    { "mem_fails_the_nth", mem_fails_the_nth },
    { "image_crops_inside", image_crops_inside },
    { "image_knows_its_limits", image_knows_its_limits },
    { "image_is_shared_by_threads", image_is_shared_by_threads },
    { "file_goes_round", file_goes_round },
    { "file_says_what_is_wrong", file_says_what_is_wrong },
    { "mapping_without_memory_says_so", mapping_without_memory_says_so },
    { "pipe_is_read_to_its_end", pipe_is_read_to_its_end },
};

int main(int argc, char **argv)
{
    if (!mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    const int rc = t_main(argc, argv, cases, COUNT(cases));
    static const char *const left[] = { "f", "m", "fifo" };
    for (size_t i = 0; i < COUNT(left); i++) {
        unlink(in_dir(left[i]));
    }
    rmdir(in_dir("taken"));
    if (rmdir(dir) != 0) { /* a temporary file of file_write would be in the way */
        perror(dir);
        return 1;
    }
    return rc;
}
