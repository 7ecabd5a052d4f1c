/* cgroup.c - see cgroup.h; files as in cgroups(7) and the kernel's cgroup-v2 and cgroup-v1
 * documentation.
 *
 * A container may see its own group as the root of the tree while /proc/self/cgroup names it as the
 * host does: directories that are not there are passed over, and the root is always looked at. */
#include "src/base/cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIST_TEXT  16384
#define PATH_TEXT  4096
#define NO_LIMIT_1 (1ll << 60) /* version 1 writes a number of about 2^63 for none */

/* The beginning of a file as text, no heap: an answer must not depend on memory being short. */
static bool read_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    const ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The numbers in a small file, at most two; how many there are ("max" is none). */
static int numbers(const char *path, long long v[2])
{
    char text[64];
    const int n = read_text(path, text, sizeof(text)) ? sscanf(text, "%lld %lld", &v[0], &v[1]) : 0;
    return n < 0 ? 0 : n;
}

static int numbers_in(const char *dir, const char *name, long long v[2])
{
    char path[PATH_TEXT + 32];
    const int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    return n > 0 && n < (int)sizeof(path) ? numbers(path, v) : 0;
}

static void take_memory(struct cgroup *out, const char *dir, const char *name)
{
    long long v[2];
    if (numbers_in(dir, name, v) < 1 || v[0] <= 0 || v[0] >= NO_LIMIT_1) {
        return;
    }
    const uint64_t bytes = (uint64_t)v[0];
    if (out->memory_bytes == 0 || bytes < out->memory_bytes) {
        out->memory_bytes = bytes;
    }
}

static void take_cpus(struct cgroup *out, long long quota, long long period)
{
    const double cpus = quota > 0 && period > 0 ? (double)quota / (double)period : 0;
    if (cpus > 0 && (out->cpus == 0 || cpus < out->cpus)) {
        out->cpus = cpus;
    }
}

static void look(struct cgroup *out, const char *dir)
{
    long long v[2], w[2];
    take_memory(out, dir, "memory.max");
    take_memory(out, dir, "memory.limit_in_bytes");
    if (numbers_in(dir, "cpu.max", v) == 2) {
        take_cpus(out, v[0], v[1]);
    }
    if (numbers_in(dir, "cpu.cfs_quota_us", v) && numbers_in(dir, "cpu.cfs_period_us", w)) {
        take_cpus(out, v[0], w[0]); /* a quota of -1 is none */
    }
}

/* mount/group and all above it, down to mount itself. */
static void look_upwards(struct cgroup *out, const char *mount, const char *group)
{
    char dir[PATH_TEXT];
    const size_t n_mount = strlen(mount);
    const int n = snprintf(dir, sizeof(dir), "%s%s", mount, group);
    if (n < 0 || n >= (int)sizeof(dir)) {
        return;
    }
    for (char *end = dir + n; end; end = strrchr(dir + n_mount, '/')) {
        *end = '\0';
        look(out, dir);
    }
}

/* Whether name is one of the controllers, "cpu,cpuacct". */
static bool has(const char *controllers, const char *name)
{
    const size_t n = strlen(name);
    for (const char *c = controllers; *c; c += strcspn(c, ",") + (c[strcspn(c, ",")] == ',')) {
        if (strcspn(c, ",") == n && strncmp(c, name, n) == 0) {
            return true;
        }
    }
    return false;
}

/* "hierarchy:controllers:/group"; version 2 is hierarchy 0, without controllers. */
static void take_line(struct cgroup *out, const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group || group[1] != '/' || strstr(group, "/..")) {
        return;
    }
    *controllers++ = '\0';
    *group++ = '\0';
    group = strcmp(group, "/") == 0 ? "" : group;
    char mount[PATH_TEXT];
    if (!*controllers) {
        look_upwards(out, root, group);
        snprintf(mount, sizeof(mount), "%s/unified", root);
        look_upwards(out, mount, group);
    }
    const char *const wanted[] = { "memory", "cpu" };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        if (has(controllers, wanted[i])) {
            /* a link leads from cpu to cpu,cpuacct where they are one */
            snprintf(mount, sizeof(mount), "%s/%s", root, wanted[i]);
            look_upwards(out, mount, group);
        }
    }
}

void cgroup_read_at(struct cgroup *out, const char *list, const char *root)
{
    char text[LIST_TEXT], *rest;
    *out = (struct cgroup){ 0 };
    if (!read_text(list, text, sizeof(text))) {
        return;
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        take_line(out, root, line);
    }
}

void cgroup_read(struct cgroup *out)
{
    cgroup_read_at(out, "/proc/self/cgroup", "/sys/fs/cgroup");
}
