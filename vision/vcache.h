/* vcache.h - embeddings of images already encoded, by content.
 *
 * The key is SHA-256 over the vision model's hash, the patch grid and the pixel bytes as decoded,
 * so a hit is what encoding would give, bit for bit.  In memory: least recently used out first, a
 * budget in bytes.  On disk (optional): one file per key in a directory, header, checksum, written
 * aside and renamed, so several processes may share it and a kill leaves no torn file; damaged
 * files are deleted and count as misses; the oldest go first when the directory is over its budget.
 * Thread-safe. */
#ifndef GALLEY_VISION_VCACHE_H
#define GALLEY_VISION_VCACHE_H

#include <stdatomic.h>

#include "src/base/hash.h"
#include "src/base/image.h"
#include "src/base/log.h"
#include "vision/vision.h"

struct vcache;

struct vcache_config {
    uint64_t memory_bytes; /* 0: nothing is kept in memory */
    const char *dir;       /* NULL: no disk.  Made (mode 0700) when missing; lent to vcache_open */
    uint64_t disk_bytes;   /* 0: 1 GiB */
    struct log log;        /* called by any thread: the first damaged file, the first full disk */
};

GALLEY_MUST_USE enum galley_status vcache_open(struct vcache **out, const struct vcache_config *cfg,
                                               struct galley_err *err);
void vcache_close(struct vcache *c); /* writes what was added; NULL is fine */

/* model: hash of the vision weights and preprocessing (vit_hash).  Also the image's identity in
 * prefix.h. */
void vcache_key(uint8_t key[HASH_BYTES], const uint8_t model[HASH_BYTES], const struct image *im,
                const struct vision_grid *g);

/* Shared embeddings [n_rows][width]; refcounted, read-only. */
struct vembed {
    float *data;
    int n_rows, width;
    _Atomic int n_refs; /* vembed_ref / vembed_unref only */
};
struct vembed *vembed_new(int n_rows, int width); /* NULL without memory; one reference */
struct vembed *vembed_ref(struct vembed *e);
void vembed_unref(struct vembed *e); /* NULL is fine */

/* A reference, or NULL when it is in neither place. */
struct vembed *vcache_find(struct vcache *c, const uint8_t key[HASH_BYTES], int n_rows, int width);
/* Reads what is on disk into memory, so that a later vcache_find does not: for threads that may
 * wait.
 */
void vcache_warm(struct vcache *c, const uint8_t key[HASH_BYTES], int n_rows, int width);
/* Keeps it (takes its own reference): in memory at once, on disk soon, by a thread of the cache's
 * own.  Disk trouble is counted, never fatal. */
void vcache_add(struct vcache *c, const uint8_t key[HASH_BYTES], struct vembed *e);
void vcache_sync(struct vcache *c); /* waits for the disk */

struct vcache_stats {
    uint64_t hits; /* in memory */
    uint64_t disk_hits, misses;
    uint64_t evicted, disk_evicted; /* to make room */
    uint64_t damaged;               /* files that were not what they should be, removed */
    uint64_t disk_errors;           /* disk full, permissions ...: the cache went on without */
    uint64_t unwritten;             /* added faster than the disk takes it: in memory only */
    uint64_t memory_bytes;          /* held now */
};
struct vcache_stats vcache_stats(struct vcache *c);

#endif
