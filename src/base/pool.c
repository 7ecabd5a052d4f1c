/* pool.c - parallel loops.
 *
 * A loop is one word, `left`: how many indices nobody has taken yet.  Whoever takes one off it owns
 * that index; whoever has done some adds them to `done`, and the loop is over when that reaches n.
 * So the caller waits for indices, never for threads: a worker that sleeps, or that the hypervisor
 * has put aside before it took anything, costs nothing.
 *
 * A decode step runs some hundred short loops, so both sides spin for a while before they sleep.
 * The spin is bounded by the clock: an idle engine burns nothing, and a thread that was put aside
 * is waited for asleep.  Where there are more threads than CPUs nobody spins, as the one waited for
 * needs the CPU. */
#include "src/base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "src/base/cgroup.h"
#include "src/base/clock.h"
#include "src/base/mem.h"

#define SPIN_SECONDS 50e-6
#define SPIN_ROUNDS  16 /* pauses between two looks at the clock */
#define CACHE_LINE   64

struct worker {
    struct pool *pool;
    pthread_t thread;
    int id; /* 1.. ; the caller of pool_run is 0 */
};

struct pool {
    int n_threads;
    int n_started;
    struct worker *workers;
    double spin_seconds;
    pthread_mutex_t lock; /* taken only to sleep and to wake */
    pthread_cond_t wake, done_all;
    /* The loop: written by the caller before it stores `left`, read by those who took an index. */
    pool_fn *fn;
    void *arg;
    int n;
    _Alignas(CACHE_LINE) _Atomic int left;
    _Alignas(CACHE_LINE) _Atomic int done;
    /* The two words of a handshake: a sleeper announces itself and then looks at left (or done)
     * again, the other side changes left (or done) and then looks for sleepers.  All four are
     * sequentially consistent, so that one of the two sees the other. */
    _Alignas(CACHE_LINE) _Atomic int n_asleep;
    _Atomic bool caller_asleep;
    _Atomic bool quit;
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Takes an index of the current loop; -1 when none is left.  Acquire pairs with the store of left
 * in pool_run (or with a later taking, which carries it on): the loop's fields are there. */
static int take(struct pool *p)
{
    int left = atomic_load_explicit(&p->left, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(&p->left, &left, left - 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return p->n - left; /* p->n stays until this index is done */
        }
    }
    return -1;
}

/* Works on the current loop as long as it has indices.  Returns how many it has done. */
static int drain(struct pool *p, int id)
{
    int n_done = 0;
    for (int i = take(p); i >= 0; i = take(p)) {
        p->fn(p->arg, i, id);
        n_done++;
    }
    return n_done;
}

#define ANY_LEFT (-1)

/* Spins until *word is `want`, or above 0 for ANY_LEFT; false when it takes too long. */
static bool spin_until(const struct pool *p, const _Atomic int *word, int want)
{
    if (p->spin_seconds <= 0.0) {
        return false;
    }
    const double end = clock_seconds() + p->spin_seconds;
    do {
        for (int k = 0; k < SPIN_ROUNDS; k++) {
            const int now = atomic_load_explicit(word, memory_order_acquire);
            if (want == ANY_LEFT ? now > 0 : now == want) {
                return true;
            }
            relax();
        }
    } while (clock_seconds() < end);
    return false;
}

static void worker_sleep(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->n_asleep, 1);
    while (atomic_load(&p->left) == 0 && !atomic_load(&p->quit)) {
        pthread_cond_wait(&p->wake, &p->lock);
    }
    atomic_fetch_sub(&p->n_asleep, 1);
    pthread_mutex_unlock(&p->lock);
}

/* Tells the caller of indices done, and wakes it when they were the last. */
static void report(struct pool *p, int n_done)
{
    const int n = p->n; /* another loop may begin as soon as done is raised */
    /* Release: what was written is seen by the caller, which acquires done. */
    if (atomic_fetch_add(&p->done, n_done) + n_done == n && atomic_load(&p->caller_asleep)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_signal(&p->done_all);
        pthread_mutex_unlock(&p->lock);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    while (!atomic_load_explicit(&p->quit, memory_order_relaxed)) {
        if (!spin_until(p, &p->left, ANY_LEFT)) {
            worker_sleep(p);
        }
        const int n_done = drain(p, w->id);
        if (n_done > 0) {
            report(p, n_done);
        }
    }
    return NULL;
}

int pool_n_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 1;
    }
    struct cgroup group;
    cgroup_read(&group);
    int n = CPU_COUNT(&set);
    if (group.cpus > 0 && group.cpus < n) {
        n = (int)group.cpus;
    }
    return n < 1 ? 1 : n;
}

enum galley_status pool_open(struct pool **out, int n_threads, struct galley_err *err)
{
    *out = NULL;
    if (n_threads < 0 || n_threads > POOL_THREADS_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d threads asked for, limit %d", n_threads,
                              POOL_THREADS_MAX);
    }
    struct pool *p = mem_aligned(sizeof(*p));
    if (!p) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a thread pool");
    }
    *p = (struct pool){ 0 };
    const int n_cpus = pool_n_cpus(); /* which reads files */
    p->n_threads = n_threads ? n_threads : n_cpus;
    if (p->n_threads > POOL_THREADS_MAX) {
        p->n_threads = POOL_THREADS_MAX;
    }
    p->spin_seconds = p->n_threads <= n_cpus ? SPIN_SECONDS : 0.0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done_all, NULL);
    p->workers = mem_many(struct worker, (size_t)p->n_threads);
    const int n_wanted = p->n_threads; /* n_threads may be 0 */
    if (!p->workers) {
        pool_close(p);
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for %d threads", n_wanted);
    }
    for (int i = 1; i < n_wanted; i++) {
        struct worker *w = &p->workers[i];
        *w = (struct worker){ .pool = p, .id = i };
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            pool_close(p);
            return galley_err_set(err, GALLEY_ENOMEM, "cannot start thread %d of %d", i, n_wanted);
        }
        p->n_started++;
    }
    *out = p;
    return GALLEY_OK;
}

void pool_close(struct pool *p)
{
    if (!p) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->quit, true);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i <= p->n_started; i++) {
        pthread_join(p->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done_all);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->workers);
    mem_free(p);
}

int pool_n_threads(const struct pool *p)
{
    return p->n_threads;
}

/* Wakes as many sleepers as there is work for. */
static void workers_wake(struct pool *p, int n_useful)
{
    int n = atomic_load(&p->n_asleep);
    if (n == 0) {
        return;
    }
    n = n < n_useful ? n : n_useful;
    pthread_mutex_lock(&p->lock);
    if (n >= p->n_threads - 1) {
        pthread_cond_broadcast(&p->wake);
    } else {
        for (int i = 0; i < n; i++) {
            pthread_cond_signal(&p->wake);
        }
    }
    pthread_mutex_unlock(&p->lock);
}

static void caller_sleep(struct pool *p, int n)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_asleep, true);
    while (atomic_load(&p->done) < n) {
        pthread_cond_wait(&p->done_all, &p->lock);
    }
    atomic_store(&p->caller_asleep, false);
    pthread_mutex_unlock(&p->lock);
}

void pool_run(struct pool *p, pool_fn *fn, void *arg, int n)
{
    assert(n >= 0);
    if (p->n_threads == 1 || n <= 1) {
        for (int i = 0; i < n; i++) {
            fn(arg, i, 0);
        }
        return;
    }
    /* Nobody is inside: the loop before ended when its last index was done. */
    p->fn = fn;
    p->arg = arg;
    p->n = n;
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    atomic_store(&p->left, n); /* release: the fields above; and see n_asleep */
    workers_wake(p, n - 1);
    const int mine = drain(p, 0);
    if (atomic_fetch_add(&p->done, mine) + mine < n && !spin_until(p, &p->done, n)) {
        caller_sleep(p, n);
    }
}
