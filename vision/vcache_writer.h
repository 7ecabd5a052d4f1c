/* vcache_writer.h - a thread that writes embeddings to disk, so that whoever encodes does not wait.
 *
 * The queue is short: when the disk does not keep up, what comes is not written (it stays in
 * memory, and whoever needs it later encodes it again).  Any thread. */
#ifndef GALLEY_VISION_VCACHE_WRITER_H
#define GALLEY_VISION_VCACHE_WRITER_H

#include "vision/vcache_disk.h"

#define WRITER_QUEUE_MAX   64
#define WRITER_QUEUE_BYTES (128u << 20) /* of embeddings held for the disk's sake */

struct vcache_writer;

/* disk is lent until vcache_writer_close. */
GALLEY_MUST_USE enum galley_status
vcache_writer_open(struct vcache_writer **out, struct vcache_disk *disk, struct galley_err *err);
/* Writes what is queued and ends the thread.  NULL is fine. */
void vcache_writer_close(struct vcache_writer *w);

/* Takes a reference of its own.  False: the queue is full. */
bool vcache_writer_add(struct vcache_writer *w, const uint8_t key[HASH_BYTES], struct vembed *e);
/* Waits until all that was queued is written, or was tried to. */
void vcache_writer_wait(struct vcache_writer *w);

#endif
