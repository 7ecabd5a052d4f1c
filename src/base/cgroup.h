/* cgroup.h - what control groups allow this process: containers and services get less than the
 * machine has, and who takes more is killed or held up. */
#ifndef GALLEY_BASE_CGROUP_H
#define GALLEY_BASE_CGROUP_H

#include <stdint.h>

struct cgroup {
    uint64_t memory_bytes; /* 0: no limit */
    double cpus;           /* quota over period; 0: no limit */
};

/* The smallest limits on the way from this process's groups up to the root, of version 1 and 2.
 * What cannot be read is no limit. */
void cgroup_read(struct cgroup *out);
/* The same with other places than /proc/self/cgroup and /sys/fs/cgroup. */
void cgroup_read_at(struct cgroup *out, const char *list, const char *root);

#endif
