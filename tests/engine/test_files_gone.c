/* test_files_gone.c - a model's files are needed only while it opens: cut to nothing under a
 * running engine (a mapped page would be a SIGBUS) they change no word. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/engine/engine_t.h"

#define FILE_MOST ((size_t)64 << 20)

static char place[] = "/tmp/galley-files-XXXXXX";

/* Each file of the built-in model: copied when `copy`, else cut to no bytes. */
static void each_file(bool copy)
{
    DIR *d = opendir(MODEL);
    T_OK(d != NULL);
    const struct dirent *e;
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.') {
            continue;
        }
        char *from = path_join(MODEL, e->d_name), *to = path_join(place, e->d_name), *bytes;
        size_t n;
        if (copy) {
            T_EQ(file_read(from, FILE_MOST, &bytes, &n, NULL), GALLEY_OK);
            T_EQ(file_write(to, bytes, n, NULL), GALLEY_OK);
            mem_free(bytes);
        } else {
            T_EQ(truncate(to, 0), 0);
        }
        mem_free(from);
        mem_free(to);
    }
    closedir(d);
}

static void remove_files(void)
{
    DIR *d = opendir(place);
    const struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        char *path = path_join(place, e->d_name);
        (void)unlink(path); /* "." and ".." refuse */
        mem_free(path);
    }
    if (d) {
        closedir(d);
    }
    T_EQ(rmdir(place), 0);
}

static void files_may_go_once_it_is_open(void)
{
    struct engine_config cfg = { .model_path = place };
    struct engine *e;
    struct galley_err err = { 0 };
    static struct inbox b;
    T_OK(mkdtemp(place) != NULL);
    each_file(true);
    load_golden();
    inbox_init(&b);
    if (engine_open(&e, &cfg, &err)) {
        T_FAIL("open: %s", err.msg);
    }
    each_file(false);
    for (int i = 0; i < N_IMAGES; i++) {
        submit(e, &b, i, golden[i].image, NULL, 0);
    }
    wait_for(&b, N_IMAGES);
    for (int i = 0; i < N_IMAGES; i++) {
        T_STR(b.slot[i].text, golden[i].text);
    }
    engine_close(e);
    if (engine_open(&e, &cfg, &err) != GALLEY_EMODEL) {
        T_FAIL("a model of empty files opened");
    }
    inbox_deinit(&b);
    free_golden();
    remove_files();
}

static const struct t_case cases[] = {
    { "files_may_go_once_it_is_open", files_may_go_once_it_is_open },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
