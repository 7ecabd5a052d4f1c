/* test_caches.c - what is kept between requests: images' embeddings, in memory and on disk, and the
 * blocks of prompts. */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/engine/core.h"
#include "tests/engine/engine_t.h"
#include "tests/tensor_place.h"

/* Requests that hold the same image: one encoding; later ones find it. */
static void an_image_is_encoded_once(void)
{
    struct engine *e = open_with((struct engine_config){ .max_seqs = 8, .no_prefix_cache = true });
    struct inbox b;
    inbox_init(&b);
    for (int i = 0; i < 6; i++) {
        submit(e, &b, i, golden[1].image, NULL, 1);
        if (i == 4) {
            wait_for(&b, 5);
        }
    }
    wait_for(&b, 6);
    const struct engine_totals t = engine_totals(e);
    T_EQ(t.n_images, 6);
    T_EQ(t.n_images_cached, 5);
    T_EQ(b.slot[0].r.n_images_cached, 0);
    T_EQ(b.slot[5].r.n_images_cached, 1);
    T_OK(b.slot[5].r.encode_seconds == 0 && b.slot[0].r.encode_seconds > 0);
    engine_close(e);
    inbox_deinit(&b);
}

/* The same size is not the same image: another answer, nothing shared beyond the frame. */
static void other_pixels_are_another_image(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    struct image *im =
        image_crop(golden[0].image, 0, 0, golden[0].image->width, golden[0].image->height);
    T_OK(im);
    submit(e, &b, 0, golden[0].image, NULL, 1);
    wait_for(&b, 1);
    submit(e, &b, 1, im, NULL, 1); /* a copy: all of it is there */
    wait_for(&b, 2);
    T_STR(b.slot[1].text, golden[0].text);
    T_OK(b.slot[1].r.n_cached >= (b.slot[1].r.n_prompt - 1) / KV_BLOCK * KV_BLOCK);
    T_EQ(b.slot[1].r.n_images_cached, 1);
    im->rgb[3 * (im->width / 2)] ^= 0x80; /* one value of one pixel of the first row */
    submit(e, &b, 2, im, NULL, 1);
    wait_for(&b, 3);
    T_EQ(b.slot[2].r.n_cached, 0);
    T_EQ(b.slot[2].r.n_images_cached, 0);
    image_unref(im);
    engine_close(e);
    inbox_deinit(&b);
}

/* The next turn of a conversation finds the last one's keys, its answer's too. */
static void the_next_turn_finds_the_last(void)
{
    enum { N_FIRST = 40, N_ANSWER = 64, N_MORE = 5 };
    static int32_t ids[N_FIRST + N_ANSWER + N_MORE];
    for (int i = 0; i < N_FIRST + N_ANSWER + N_MORE; i++) {
        ids[i] = 300 + i * 31 % 1500;
    }
    struct engine *e = open_with((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    for (int i = 0; i < 2; i++) {
        struct ask a;
        ask_ids(&a, ids, i == 0 ? N_FIRST : N_FIRST + N_ANSWER + N_MORE, N_ANSWER, &b.slot[i]);
        submit_request(e, &a.r);
        wait_for(&b, i + 1);
        if (i == 0) {
            T_EQ(b.slot[0].n_tokens, N_ANSWER);
            memcpy(ids + N_FIRST, b.slot[0].tokens, N_ANSWER * sizeof(*ids));
        }
    }
    /* The last token of the answer had no keys yet. */
    T_EQ(b.slot[1].r.n_cached, (N_FIRST + N_ANSWER - 1) / KV_BLOCK * KV_BLOCK);
    engine_close(e);
    inbox_deinit(&b);
}

/* Requests with the same long prompt, all at once: those behind wait for the first one's blocks. */
static void a_long_beginning_is_computed_once(void)
{
    struct engine *e = open_with((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    char *text = long_text(8);
    for (int i = 0; i < 6; i++) {
        struct ask a;
        ask_text(&a, text, 8, &b.slot[i]);
        a.r.sampling = (struct sample_params){ .temperature = 1, .seed = (uint64_t)i };
        submit_request(e, &a.r);
    }
    wait_for(&b, 6);
    const int whole = (b.slot[0].r.n_prompt - 1) / KV_BLOCK * KV_BLOCK;
    T_OK(whole > 100);
    int n_computed = 0;
    for (int i = 0; i < 6; i++) {
        n_computed += b.slot[i].r.n_prompt - b.slot[i].r.n_cached;
    }
    T_OK(n_computed < b.slot[0].r.n_prompt + 6 * 2 * KV_BLOCK);
    engine_close(e);
    inbox_deinit(&b);
    mem_free(text);
}

/* ---- on disk ---- */

static char cache_dir[64];

static struct engine *open_cached(struct engine_config cfg)
{
    cfg.vision_cache_dir = cache_dir;
    return open_with(cfg);
}

static void dir_make(void)
{
    snprintf(cache_dir, sizeof(cache_dir), "/tmp/galley-caches-XXXXXX");
    T_OK(mkdtemp(cache_dir));
}

/* Calls fn with the path of every file; how many there are. */
static int dir_each(void (*fn)(const char *path))
{
    DIR *d = opendir(cache_dir);
    int n = 0;
    T_OK(d);
    for (struct dirent *x = readdir(d); x; x = readdir(d)) {
        if (x->d_name[0] != '.') {
            char path[400];
            snprintf(path, sizeof(path), "%s/%s", cache_dir, x->d_name);
            fn(path);
            n++;
        }
    }
    closedir(d);
    return n;
}

static void file_remove(const char *path)
{
    T_EQ(unlink(path), 0);
}

static void dir_remove(void)
{
    dir_each(file_remove);
    T_EQ(rmdir(cache_dir), 0);
}

/* One request for each image, one after the other. */
static void fill_dir(void)
{
    struct engine *e = open_cached((struct engine_config){ 0 });
    struct inbox b;
    inbox_init(&b);
    for (int i = 0; i < N_IMAGES; i++) {
        submit(e, &b, i, golden[i].image, NULL, 1);
    }
    wait_for(&b, N_IMAGES);
    for (int i = 0; i < N_IMAGES; i++) {
        T_EQ(b.slot[i].r.n_images_cached, 0);
        T_STR(b.slot[i].text, golden[i].text);
    }
    engine_close(e);
    inbox_deinit(&b);
}

/* Embeddings are read while a request is handed over, not by the engine's thread: when the files go
 * while it waits, it has them. */
static void a_known_image_is_read_on_the_way_in(void)
{
    dir_make();
    fill_dir();
    struct engine *e = open_cached((struct engine_config){ .max_seqs = 1 });
    struct inbox b;
    inbox_init(&b);
    struct ask a;
    ask_text(&a, "x", 1500, &b.slot[0]);
    const request_id id = submit_request(e, &a.r);
    wait_for_tokens(&b.slot[0], 1); /* it has the only place */
    for (int i = 0; i < N_IMAGES; i++) {
        submit(e, &b, 1 + i, golden[i].image, NULL, 1);
    }
    T_EQ(dir_each(file_remove), N_IMAGES);
    engine_cancel(e, id);
    wait_for(&b, 1 + N_IMAGES);
    for (int i = 0; i < N_IMAGES; i++) {
        T_EQ(b.slot[1 + i].r.n_images_cached, 1);
        T_STR(b.slot[1 + i].text, golden[i].text);
    }
    engine_close(e);
    inbox_deinit(&b);
    dir_remove();
}

static char said[4096];

static void hear(void *user, enum log_level level, const char *event, const char *text)
{
    (void)user;
    (void)text;
    const size_t n = strlen(said);
    if (level == LOG_WARN) {
        snprintf(said + n, sizeof(said) - n, "%s ", event);
    }
}

static void file_damage(const char *path)
{
    char *bytes;
    size_t n;
    T_EQ(file_read(path, 1 << 24, &bytes, &n, NULL), GALLEY_OK);
    bytes[n / 2] ^= 1;
    T_EQ(file_write(path, bytes, n, NULL), GALLEY_OK);
    mem_free(bytes);
}

/* What the cache met is in the engine's totals; the log hears of the first. */
static void totals_tell_of_the_image_cache(void)
{
    dir_make();
    fill_dir();
    T_EQ(dir_each(file_damage), N_IMAGES);
    said[0] = '\0';
    struct engine *e = open_cached((struct engine_config){ .log = { .fn = hear } });
    struct inbox b;
    inbox_init(&b);
    for (int i = 0; i < 2 * N_IMAGES; i++) {
        submit(e, &b, i, golden[i % N_IMAGES].image, NULL, 1);
        wait_for(&b, i + 1);
        T_STR(b.slot[i].text, golden[i % N_IMAGES].text);
    }
    const struct vcache_stats s = engine_totals(e).vision;
    T_EQ(s.damaged, N_IMAGES);
    T_EQ(s.misses, N_IMAGES);
    T_EQ(s.disk_hits + s.disk_errors + s.evicted + s.disk_evicted + s.unwritten, 0);
    T_OK(s.memory_bytes > 0);
    T_STR(said, "vcache.damaged ");
    engine_close(e);
    e = open_cached((struct engine_config){ .no_prefix_cache = true });
    submit(e, &b, 2 * N_IMAGES, golden[0].image, NULL, 1);
    wait_for(&b, 2 * N_IMAGES + 1);
    T_EQ(engine_totals(e).vision.disk_hits, 1); /* written again */
    T_EQ(engine_totals(e).vision.hits, 1);
    engine_close(e);
    inbox_deinit(&b);
    dir_remove();
}

/* ---- what keys are made of ---- */

/* A copy of the model with one bit of the tensor changed, that many eighths into it. */
static void model_change(const char *dir, const char *tensor, int eighths)
{
    char from[400], to[400], real[PATH_MAX], *bytes;
    size_t n, n_data;
    DIR *d = opendir(MODEL);
    T_OK(d);
    for (struct dirent *x = readdir(d); x; x = readdir(d)) {
        snprintf(from, sizeof(from), MODEL "/%.99s", x->d_name);
        snprintf(to, sizeof(to), "%s/%.99s", dir, x->d_name);
        if (x->d_name[0] != '.' && strcmp(x->d_name, "model.safetensors") != 0) {
            T_OK(realpath(from, real) && symlink(real, to) == 0);
        }
    }
    closedir(d);
    snprintf(to, sizeof(to), "%s/model.safetensors", dir);
    T_EQ(file_read(MODEL "/model.safetensors", 1 << 30, &bytes, &n, NULL), GALLEY_OK);
    const size_t at = tensor_place(bytes, tensor, &n_data);
    bytes[at + n_data * (size_t)eighths / 8] ^= 1;
    T_EQ(file_write(to, bytes, n, NULL), GALLEY_OK);
    mem_free(bytes);
}

/* The key an engine gives a block of nothing but zeros. */
static struct prefix_key key_of(const char *path, struct engine_config cfg)
{
    struct engine *e;
    struct prefix_key key;
    const struct prefix_row rows[KV_BLOCK] = { 0 };
    cfg.model_path = path;
    T_EQ(engine_open(&e, &cfg, NULL), GALLEY_OK);
    prefix_keys(e->prefix, &key, rows, KV_BLOCK);
    engine_close(e);
    return key;
}

static void keys_name_the_model(void)
{
    char dir[] = "/tmp/galley-caches-XXXXXX";
    T_OK(mkdtemp(dir));
    model_change(dir, "model.norm.weight", 0);
    const struct prefix_key key[] = {
        key_of(MODEL, (struct engine_config){ 0 }),
        key_of(dir, (struct engine_config){ 0 }),
        key_of(MODEL, (struct engine_config){ .kv_type = KV_F16 }),
        key_of(MODEL, (struct engine_config){ .exact_linear = true }),
    };
    for (size_t i = 0; i < COUNT(key); i++) {
        for (size_t k = 0; k < i; k++) {
            T_OK(memcmp(&key[i], &key[k], sizeof(*key)) != 0);
        }
    }
    const struct prefix_key same = key_of(MODEL, (struct engine_config){ .max_seqs = 3 });
    T_OK(memcmp(&key[0], &same, sizeof(same)) == 0);
    memcpy(cache_dir, dir, sizeof(dir));
    dir_remove();
}

/* Two models that differ in one value of the tower share a directory: neither takes the other's
 * embeddings for its own. */
static void a_fine_tuning_is_another_model(void)
{
    char dir[] = "/tmp/galley-caches-XXXXXX";
    T_OK(mkdtemp(dir));
    model_change(dir, "visual.blocks.0.attn.qkv.weight", 2); /* between what tensor_hash takes */
    dir_make();
    fill_dir();
    struct engine_config cfg = { .model_path = dir, .vision_cache_dir = cache_dir };
    struct engine *e;
    struct inbox b;
    inbox_init(&b);
    T_EQ(engine_open(&e, &cfg, NULL), GALLEY_OK);
    submit(e, &b, 0, golden[0].image, NULL, 1);
    wait_for(&b, 1);
    T_EQ(engine_totals(e).vision.disk_hits, 0);
    T_EQ(b.slot[0].r.n_images_cached, 0);
    engine_close(e);
    inbox_deinit(&b);
    dir_remove();
    memcpy(cache_dir, dir, sizeof(dir));
    dir_remove();
}

static const struct t_case cases[] = {
    { "an_image_is_encoded_once", an_image_is_encoded_once },
    { "other_pixels_are_another_image", other_pixels_are_another_image },
    { "the_next_turn_finds_the_last", the_next_turn_finds_the_last },
    { "a_long_beginning_is_computed_once", a_long_beginning_is_computed_once },
    { "keys_name_the_model", keys_name_the_model },
    { "a_fine_tuning_is_another_model", a_fine_tuning_is_another_model },
    { "a_known_image_is_read_on_the_way_in", a_known_image_is_read_on_the_way_in },
    { "totals_tell_of_the_image_cache", totals_tell_of_the_image_cache },
};

int main(int argc, char **argv)
{
    return engine_tests(argc, argv, cases, COUNT(cases));
}
