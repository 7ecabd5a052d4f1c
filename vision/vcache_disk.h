/* vcache_disk.h - the disk half of vcache.h: one file per key in one directory.
 *
 * A file is a head that follows from key and shape, the floats, and SHA-256 over both: reading it
 * is comparing, there is nothing to parse.  It is written under another name and renamed, so every
 * process sees all of it or nothing.  A file under a key's name that is anything else is removed.
 * Names that are not the cache's are never touched.  Thread-safe; several processes may share a
 * directory. */
#ifndef GALLEY_VISION_VCACHE_DISK_H
#define GALLEY_VISION_VCACHE_DISK_H

#include "vision/vcache.h"

struct vcache_disk;

/* Damage, a full disk and other trouble are each said once to the log, from whatever thread meets
 * them, and counted after that; log is copied.  Makes the directory (only its owner may enter) when
 * it is missing.  GALLEY_EIO with the reason; GALLEY_EUSAGE for a symbolic link, and for a
 * directory that others may write to: whoever can plant a file decides what an image says. */
GALLEY_MUST_USE enum galley_status vcache_disk_open(struct vcache_disk **out, const char *dir,
                                                    uint64_t max_bytes, const struct log *log,
                                                    struct galley_err *err);
void vcache_disk_close(struct vcache_disk *d); /* NULL is fine */

/* NULL: not there, damaged, or no memory.  A hit makes the file the most recently used. */
struct vembed *vcache_disk_read(struct vcache_disk *d, const uint8_t key[HASH_BYTES], int n_rows,
                                int width);
void vcache_disk_write(struct vcache_disk *d, const uint8_t key[HASH_BYTES],
                       const struct vembed *e);

/* Fills in what the disk knows of them. */
void vcache_disk_stats(const struct vcache_disk *d, struct vcache_stats *s);

#endif
