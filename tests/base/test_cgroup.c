/* test_cgroup.c - limits of control groups, from trees as version 1 and 2 lay them out. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/cgroup.h"
#include "src/base/map.h"
#include "tests/t.h"

#define ROOT "/tmp/galley-cgroup-XXXXXX"

static char root[] = ROOT;

static void root_make(void)
{
    memcpy(root, ROOT, sizeof(root));
    T_OK(mkdtemp(root) != NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void root_remove(void)
{
    T_EQ(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A file below root, its directories too. */
static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *at = strchr(path + sizeof(root), '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path, 0700); /* maybe there */
        *at = '/';
    }
    T_EQ(file_write(path, text, strlen(text), NULL), GALLEY_OK);
}

static struct cgroup limits(const char *list)
{
    struct cgroup c;
    char path[512];
    put("list", list);
    snprintf(path, sizeof(path), "%s/list", root);
    cgroup_read_at(&c, path, root);
    return c;
}

static void trees(void)
{
    root_make();
    /* version 2: the nearest is not the smallest, "max" is none */
    put("a/b/memory.max", "max\n");
    put("a/b/cpu.max", "150000 100000\n");
    put("a/memory.max", "4294967296\n");
    put("a/cpu.max", "max 100000\n");
    struct cgroup c = limits("0::/a/b\n");
    T_EQ(c.memory_bytes, 4294967296u);
    T_OK(c.cpus == 1.5);
    put("a/b/memory.max", "1073741824\n");
    T_EQ(limits("0::/a/b\n").memory_bytes, 1073741824u);
    T_EQ(limits("0::/elsewhere/a\n").memory_bytes, 0); /* of another name space, no limit here */
    put("memory.max", "2147483648\n");                 /* a container's own, at the root */
    T_EQ(limits("0::/elsewhere/a\n").memory_bytes, 2147483648u);
    T_EQ(limits("0::/\n").memory_bytes, 2147483648u);
    /* version 1: controllers apart, -1 and huge numbers are none */
    put("memory/docker/x/memory.limit_in_bytes", "536870912\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("cpu/docker/x/cpu.cfs_quota_us", "50000\n");
    put("cpu/docker/x/cpu.cfs_period_us", "100000\n");
    put("cpu/cpu.cfs_quota_us", "-1\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    c = limits("4:memory:/docker/x\n3:cpuset:/\n2:cpu,cpuacct:/docker/x\n");
    T_EQ(c.memory_bytes, 536870912u);
    T_OK(c.cpus == 0.5);
    c = limits("4:memory:/\n2:cpuacct,cpu:/\n");
    T_EQ(c.memory_bytes, 0);
    T_OK(c.cpus == 0.0);
    root_remove();
}

static void nonsense(void)
{
    static const char *const lists[] = {
        "", "\n\n", "0:", "0::", "0::a", "0::/../../etc", ":::::", "4:memory", "x:y:z:/w"
    };
    root_make();
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        const struct cgroup c = limits(lists[i]);
        T_EQ(c.memory_bytes, 0);
        T_OK(c.cpus == 0.0);
    }
    put("bad/memory.max", "-5\n");
    put("bad/cpu.max", "many 100000\n");
    put("memory.max", "");
    T_EQ(limits("0::/bad\n").memory_bytes, 0);
    struct cgroup c;
    cgroup_read_at(&c, "/nowhere", root);
    T_EQ(c.memory_bytes, 0);
    root_remove();
    cgroup_read(&c); /* whatever this machine says */
    T_OK(c.cpus >= 0.0);
}

static const struct t_case cases[] = {
    { "trees", trees },
    { "nonsense", nonsense },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
