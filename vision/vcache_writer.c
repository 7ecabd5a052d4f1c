/* vcache_writer.c - see vcache_writer.h. */
#include "vision/vcache_writer.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "src/base/mem.h"

struct item {
    uint8_t key[HASH_BYTES];
    struct vembed *e; /* a reference */
};

struct vcache_writer {
    struct vcache_disk *disk;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* below */
    pthread_cond_t changed;
    struct item
        item[WRITER_QUEUE_MAX]; /* [n] from first on, in a ring; the first is being written */
    int first, n;
    uint64_t bytes; /* of them all */
    bool quit;
};

static uint64_t item_bytes(const struct vembed *e)
{
    return (uint64_t)e->n_rows * (uint64_t)e->width * sizeof(float);
}

/* Under the lock, which is open while a file is written. */
static void write_first(struct vcache_writer *w)
{
    const struct item *x = &w->item[w->first]; /* stays: nobody else takes out */
    pthread_mutex_unlock(&w->lock);
    vcache_disk_write(w->disk, x->key, x->e);
    pthread_mutex_lock(&w->lock);
    w->bytes -= item_bytes(x->e);
    vembed_unref(x->e);
    w->first = (w->first + 1) % WRITER_QUEUE_MAX;
    w->n--;
    pthread_cond_broadcast(&w->changed);
}

static void *writer_thread(void *arg)
{
    struct vcache_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    while (w->n > 0 || !w->quit) {
        if (w->n > 0) {
            write_first(w);
        } else {
            pthread_cond_wait(&w->changed, &w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

enum galley_status vcache_writer_open(struct vcache_writer **out, struct vcache_disk *disk,
                                      struct galley_err *err)
{
    *out = NULL;
    struct vcache_writer *w = mem_new(struct vcache_writer);
    if (!w) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: the image cache's writer");
    }
    w->disk = disk;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->started = pthread_create(&w->thread, NULL, writer_thread, w) == 0;
    if (!w->started) {
        vcache_writer_close(w);
        return galley_err_set(err, GALLEY_ENOMEM, "cannot start the image cache's writer");
    }
    *out = w;
    return GALLEY_OK;
}

void vcache_writer_close(struct vcache_writer *w)
{
    if (!w) {
        return;
    }
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        w->quit = true;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    assert(w->n == 0 && w->bytes == 0);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
}

bool vcache_writer_add(struct vcache_writer *w, const uint8_t key[HASH_BYTES], struct vembed *e)
{
    const uint64_t bytes = item_bytes(e);
    pthread_mutex_lock(&w->lock);
    /* One that is larger than the bound goes alone. */
    const bool room = w->n == 0 || (w->n < WRITER_QUEUE_MAX && w->bytes <= WRITER_QUEUE_BYTES &&
                                    bytes <= WRITER_QUEUE_BYTES - w->bytes);
    if (room) {
        struct item *x = &w->item[(w->first + w->n) % WRITER_QUEUE_MAX];
        memcpy(x->key, key, HASH_BYTES);
        x->e = vembed_ref(e);
        w->n++;
        w->bytes += bytes;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return room;
}

void vcache_writer_wait(struct vcache_writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->n > 0) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}
