/* map.h - files as bytes: read-only mappings, bounded whole reads, whole writes. */
#ifndef GALLEY_BASE_MAP_H
#define GALLEY_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/compiler.h"
#include "src/base/err.h"

struct map {
    const uint8_t *base; /* NULL when the file is empty */
    size_t n;            /* bytes */
    int fd;              /* open while base is set */
};

/* Maps a regular file read-only.  Errors name the path and errno's reason.  Touching a page that
 * another process has cut off raises SIGBUS: only for the headers of model files while they are
 * opened, never for documents (those use file_read). */
GALLEY_MUST_USE enum galley_status map_open(struct map *m, const char *path,
                                            struct galley_err *err);
void map_close(struct map *m); /* closed or zeroed is fine */
/* Copies m->base's p[0..n) from the file itself: no page is touched (packing weights takes a
 * seventh less time so), and a file that has been shortened or fails is false.  Any thread may. */
GALLEY_MUST_USE bool map_read(const struct map *m, void *to, const void *p, size_t n);
/* Takes the whole pages inside p[0..n), a part of a mapping, out of memory; who looks again reads
 * them from the file again.  Never for other memory: its contents would be lost. */
void map_drop(const void *p, size_t n);

/* Reads a whole regular file into a NUL-terminated heap block, at most max bytes:
 * GALLEY_ELIMIT with both numbers above that.  *out is the caller's. */
GALLEY_MUST_USE enum galley_status file_read(const char *path, size_t max, char **out, size_t *n,
                                             struct galley_err *err);
/* The same from an open descriptor (a pipe as well), which stays open; `name` is for
 * errors. */
GALLEY_MUST_USE enum galley_status fd_read(int fd, const char *name, size_t max, char **out,
                                           size_t *n, struct galley_err *err);

/* dir/name on the heap; NULL without memory. */
char *path_join(const char *dir, const char *name);

/* Writes to a temporary name beside `path` and renames, so that a reader never
 * sees half a file.  The process's umask decides who may read it. */
GALLEY_MUST_USE enum galley_status file_write(const char *path, const void *bytes, size_t n,
                                              struct galley_err *err);
/* Writes all n bytes to an open descriptor; false, with errno set, when it cannot. */
GALLEY_MUST_USE bool fd_write(int fd, const void *bytes, size_t n);

#endif
