/* test_files_gone.c - a model's files are needed only while it opens: cut to nothing under a
 * running engine (a mapped page would be a SIGBUS) they change no word; cut while it opens they are
 * an error with a name. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/format/bind.h"
#include "src/format/checkpoint.h"
#include "src/model/model.h"
#include "tests/engine/engine_t.h"
#include "vision/vision.h"

#define FILE_MOST ((size_t)64 << 20)

#define PLACE "/tmp/galley-files-XXXXXX"

static char place[] = PLACE;

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

static void cut_sentence(enum galley_status rc, const struct galley_err *err, const char *name)
{
    T_EQ(rc, GALLEY_EMODEL);
    if (!strstr(err->msg, name) || !strstr(err->msg, TENSOR_UNREADABLE)) {
        T_FAIL("%s", err->msg);
    }
}

static void files_may_be_cut_while_it_opens(void)
{
    struct checkpoint c;
    struct galley_err err = { 0 };
    struct model *m;
    struct vit *v;
    struct device *dev;
    memcpy(place, PLACE, sizeof(place));
    T_OK(mkdtemp(place) != NULL);
    each_file(true);
    T_EQ(device_open_cpu(&dev, NULL, 2, &err), GALLEY_OK);
    T_EQ(checkpoint_open(&c, place, NULL, CHECKPOINT_ALL, &err), GALLEY_OK);
    each_file(false);
    cut_sentence(model_open(&m, dev, &c.cfg, c.weights, &err), &err, "tensor ");
    cut_sentence(vit_open(&v, dev, &c.cfg, c.weights, &err), &err, "patch_embed");
    uint8_t hash[HASH_BYTES];
    cut_sentence(vit_hash(hash, &c.cfg, c.weights, &err), &err, "tensor ");
    cut_sentence(vit_hash_whole(hash, &c.cfg, c.weights, 2, &err), &err, "tensor ");
    struct binder b = { .dev = dev, .w = c.weights, .err = &err };
    T_OK(!bind_vector(&b, "model.norm.weight", c.cfg.text.hidden));
    cut_sentence(b.rc, &err, "model.norm.weight");
    b.rc = GALLEY_OK;
    T_OK(!bind_linear(&b, "model.layers.0.self_attn.q_proj.weight",
                      "model.layers.0.self_attn.q_proj.bias",
                      c.cfg.text.n_head * c.cfg.text.head_dim, c.cfg.text.hidden));
    cut_sentence(b.rc, &err, "q_proj.weight");
    checkpoint_close(&c);
    remove_files();
    device_close(dev);
}

static const struct t_case cases[] = {
    { "files_may_go_once_it_is_open", files_may_go_once_it_is_open },
    { "files_may_be_cut_while_it_opens", files_may_be_cut_while_it_opens },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
