/* vcache.c - see vcache.h; the disk half is vcache_disk.c, written to by vcache_writer.c's thread.
 *
 * One lock over the table in memory; hashing and files are outside it, so a slow disk delays only
 * who waits for it. */
#include "vision/vcache.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "src/base/mem.h"
#include "vision/vcache_writer.h"

#define N_CHAINS 1024 /* a power of two */

struct entry {
    uint8_t key[HASH_BYTES];
    struct vembed *e;   /* one reference */
    struct entry *next; /* in its chain */
    struct entry *older, *newer;
};

struct vcache {
    uint64_t max_bytes;
    struct vcache_disk *disk;     /* NULL: none */
    struct vcache_writer *writer; /* of disk */
    pthread_mutex_t lock;         /* below */
    struct entry *chain[N_CHAINS];
    struct entry *oldest, *newest;
    struct vcache_stats stats; /* but the disk's */
};

/* ---- embeddings ---- */

struct vembed *vembed_new(int n_rows, int width)
{
    assert(n_rows > 0 && width > 0);
    struct vembed *e = mem_new(struct vembed);
    float *data = mem_array((size_t)n_rows * (size_t)width, sizeof(float));
    if (!e || !data) {
        mem_free(e);
        mem_free(data);
        return NULL;
    }
    e->data = data;
    e->n_rows = n_rows;
    e->width = width;
    atomic_init(&e->n_refs, 1);
    return e;
}

struct vembed *vembed_ref(struct vembed *e)
{
    atomic_fetch_add_explicit(&e->n_refs, 1, memory_order_relaxed); /* the caller holds one */
    return e;
}

void vembed_unref(struct vembed *e)
{
    /* What others did with the data happens before it is freed. */
    if (e && atomic_fetch_sub_explicit(&e->n_refs, 1, memory_order_acq_rel) == 1) {
        mem_free(e->data);
        mem_free(e);
    }
}

/* What keeping it takes. */
static uint64_t embed_bytes(int n_rows, int width)
{
    return sizeof(struct entry) + sizeof(struct vembed) +
           (uint64_t)n_rows * (uint64_t)width * sizeof(float);
}

/* ---- keys ---- */

static void add_u32(struct hash *h, uint32_t v)
{
    const unsigned char bytes[4] = { (unsigned char)v, (unsigned char)(v >> 8),
                                     (unsigned char)(v >> 16), (unsigned char)(v >> 24) };
    hash_add(h, bytes, sizeof(bytes));
}

void vcache_key(uint8_t key[HASH_BYTES], const uint8_t model[HASH_BYTES], const struct image *im,
                const struct vision_grid *g)
{
    struct hash h;
    hash_init(&h);
    hash_add(&h, model, HASH_BYTES);
    const int numbers[] = { g->t, g->h, g->w, im->width, im->height };
    for (size_t i = 0; i < COUNT(numbers); i++) {
        add_u32(&h, (uint32_t)numbers[i]);
    }
    for (int y = 0; y < im->height; y++) {
        hash_add(&h, im->rgb + (size_t)y * im->stride, 3 * (size_t)im->width);
    }
    hash_finish(&h, key);
}

/* ---- the table, under the lock ---- */

static struct entry **chain_of(struct vcache *c, const uint8_t key[HASH_BYTES])
{
    uint32_t u;
    memcpy(&u, key, sizeof(u));
    return &c->chain[u & (N_CHAINS - 1)];
}

static struct entry *entry_find(struct vcache *c, const uint8_t key[HASH_BYTES])
{
    struct entry *x = *chain_of(c, key);
    while (x && memcmp(x->key, key, HASH_BYTES) != 0) {
        x = x->next;
    }
    return x;
}

static void list_remove(struct vcache *c, struct entry *x)
{
    *(x->older ? &x->older->newer : &c->oldest) = x->newer;
    *(x->newer ? &x->newer->older : &c->newest) = x->older;
}

static void list_append(struct vcache *c, struct entry *x)
{
    x->older = c->newest;
    x->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = x;
    c->newest = x;
}

static void entry_drop(struct vcache *c, struct entry *x)
{
    struct entry **at = chain_of(c, x->key);
    while (*at != x) {
        at = &(*at)->next;
    }
    *at = x->next;
    list_remove(c, x);
    c->stats.memory_bytes -= embed_bytes(x->e->n_rows, x->e->width);
    vembed_unref(x->e);
    mem_free(x);
}

/* x: a spare record, NULL without memory; given back when it is not used. */
static struct entry *entry_keep(struct vcache *c, struct entry *x, const uint8_t key[HASH_BYTES],
                                struct vembed *e)
{
    struct entry *known = entry_find(c, key);
    if (known) {
        list_remove(c, known);
        list_append(c, known);
        return x;
    }
    const uint64_t bytes = embed_bytes(e->n_rows, e->width);
    if (!x || bytes > c->max_bytes) {
        return x;
    }
    while (c->stats.memory_bytes > c->max_bytes - bytes) {
        entry_drop(c, c->oldest);
        c->stats.evicted++;
    }
    struct entry **chain = chain_of(c, key);
    *x = (struct entry){ .e = vembed_ref(e), .next = *chain };
    memcpy(x->key, key, HASH_BYTES);
    *chain = x;
    list_append(c, x);
    c->stats.memory_bytes += bytes;
    return NULL;
}

/* ---- use ---- */

static void memory_add(struct vcache *c, const uint8_t key[HASH_BYTES], struct vembed *e)
{
    if (c->max_bytes == 0) {
        return;
    }
    struct entry *x = mem_new(struct entry);
    pthread_mutex_lock(&c->lock);
    x = entry_keep(c, x, key, e);
    pthread_mutex_unlock(&c->lock);
    mem_free(x);
}

/* A reference; NULL when it is not in memory. */
static struct vembed *memory_find(struct vcache *c, const uint8_t key[HASH_BYTES], int n_rows,
                                  int width)
{
    struct vembed *e = NULL;
    pthread_mutex_lock(&c->lock);
    struct entry *x = entry_find(c, key);
    if (x && x->e->n_rows == n_rows && x->e->width == width) {
        list_remove(c, x);
        list_append(c, x);
        e = vembed_ref(x->e);
        c->stats.hits++;
    }
    pthread_mutex_unlock(&c->lock);
    return e;
}

static void count(struct vcache *c, uint64_t *n)
{
    pthread_mutex_lock(&c->lock);
    *n += 1;
    pthread_mutex_unlock(&c->lock);
}

/* A reference to what is on disk, in memory from now on. */
static struct vembed *disk_find(struct vcache *c, const uint8_t key[HASH_BYTES], int n_rows,
                                int width)
{
    struct vembed *e = c->disk ? vcache_disk_read(c->disk, key, n_rows, width) : NULL;
    if (e) {
        count(c, &c->stats.disk_hits);
        memory_add(c, key, e);
    }
    return e;
}

struct vembed *vcache_find(struct vcache *c, const uint8_t key[HASH_BYTES], int n_rows, int width)
{
    struct vembed *e = memory_find(c, key, n_rows, width);
    if (e) {
        return e;
    }
    e = disk_find(c, key, n_rows, width);
    if (!e) {
        count(c, &c->stats.misses);
    }
    return e;
}

void vcache_warm(struct vcache *c, const uint8_t key[HASH_BYTES], int n_rows, int width)
{
    if (!c->disk || embed_bytes(n_rows, width) > c->max_bytes) {
        return;
    }
    pthread_mutex_lock(&c->lock);
    const bool known = entry_find(c, key) != NULL;
    pthread_mutex_unlock(&c->lock);
    if (!known) {
        vembed_unref(disk_find(c, key, n_rows, width));
    }
}

void vcache_add(struct vcache *c, const uint8_t key[HASH_BYTES], struct vembed *e)
{
    memory_add(c, key, e);
    if (c->writer && !vcache_writer_add(c->writer, key, e)) {
        count(c, &c->stats.unwritten);
    }
}

void vcache_sync(struct vcache *c)
{
    if (c->writer) {
        vcache_writer_wait(c->writer);
    }
}

struct vcache_stats vcache_stats(struct vcache *c)
{
    pthread_mutex_lock(&c->lock);
    struct vcache_stats s = c->stats;
    pthread_mutex_unlock(&c->lock);
    if (c->disk) {
        vcache_disk_stats(c->disk, &s);
    }
    return s;
}

/* ---- life ---- */

enum galley_status vcache_open(struct vcache **out, const struct vcache_config *cfg,
                               struct galley_err *err)
{
    *out = NULL;
    struct vcache *c = mem_new(struct vcache);
    if (!c) {
        return galley_err_set(err, GALLEY_ENOMEM, "out of memory: the image cache");
    }
    c->max_bytes = cfg->memory_bytes;
    const uint64_t disk_bytes = cfg->disk_bytes ? cfg->disk_bytes : (uint64_t)1 << 30;
    pthread_mutex_init(&c->lock, NULL);
    enum galley_status rc = GALLEY_OK;
    if (cfg->dir) {
        rc = vcache_disk_open(&c->disk, cfg->dir, disk_bytes, &cfg->log, err);
        rc = rc ? rc : vcache_writer_open(&c->writer, c->disk, err);
    }
    if (rc) {
        vcache_close(c);
        return rc;
    }
    *out = c;
    return GALLEY_OK;
}

void vcache_close(struct vcache *c)
{
    if (!c) {
        return;
    }
    while (c->oldest) {
        entry_drop(c, c->oldest);
    }
    vcache_writer_close(c->writer);
    vcache_disk_close(c->disk);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}
