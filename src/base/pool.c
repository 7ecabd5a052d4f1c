/* pool.c - parallel loops.
 *
 * Workers spin briefly for the next loop (a decode step runs some hundred short
 * loops), then sleep on a condition.  The spin is bounded because a guest's
 * second CPU may be descheduled. */
#include "src/base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "src/base/mem.h"

#define SPIN_ROUNDS   2000
#define N_THREADS_MAX 256

struct worker {
    struct pool *pool;
    pthread_t thread;
    int id; /* 1.. ; the caller of pool_run is 0 */
};

struct pool {
    int n_threads;
    int n_started;
    struct worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    /* Under lock for writing; workers poll `epoch` without it while spinning. */
    _Atomic unsigned epoch;
    bool quit;
    int n_inside; /* workers that still look at the current loop */
    pool_fn *fn;
    void *arg;
    int n;
    _Atomic int next;
};

static void drain(struct pool *p, int id)
{
    for (;;) {
        /* Relaxed: indices are only handed out; data is ordered by the lock. */
        const int i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= p->n) {
            return;
        }
        p->fn(p->arg, i, id);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    unsigned seen = 0;
    for (;;) {
        for (int k = 0; k < SPIN_ROUNDS; k++) {
            /* Acquire pairs with the release in pool_run; the lock below orders the rest. */
            if (atomic_load_explicit(&p->epoch, memory_order_acquire) != seen) {
                break;
            }
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        pthread_mutex_lock(&p->lock);
        while (atomic_load_explicit(&p->epoch, memory_order_relaxed) == seen && !p->quit) {
            pthread_cond_wait(&p->wake, &p->lock);
        }
        if (p->quit) {
            pthread_mutex_unlock(&p->lock);
            return NULL;
        }
        seen = atomic_load_explicit(&p->epoch, memory_order_relaxed);
        pthread_mutex_unlock(&p->lock);
        drain(p, w->id);
        pthread_mutex_lock(&p->lock);
        p->n_inside--;
        if (p->n_inside == 0) {
            pthread_cond_signal(&p->done);
        }
        pthread_mutex_unlock(&p->lock);
    }
}

int pool_n_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 1;
    }
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n;
}

enum galley_status pool_open(struct pool **out, int n_threads, struct galley_err *err)
{
    *out = NULL;
    if (n_threads < 0 || n_threads > N_THREADS_MAX) {
        return galley_err_set(err, GALLEY_EUSAGE, "%d threads asked for, limit %d", n_threads,
                              N_THREADS_MAX);
    }
    struct pool *p = mem_new(struct pool);
    if (!p) {
        return galley_err_set(err, GALLEY_ENOMEM, "no memory for a thread pool");
    }
    p->n_threads = n_threads ? n_threads : pool_n_cpus();
    if (p->n_threads > N_THREADS_MAX) {
        p->n_threads = N_THREADS_MAX;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
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
    p->quit = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i <= p->n_started; i++) {
        pthread_join(p->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->workers);
    mem_free(p);
}

int pool_n_threads(const struct pool *p)
{
    return p->n_threads;
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
    pthread_mutex_lock(&p->lock);
    assert(p->n_inside == 0);
    p->fn = fn;
    p->arg = arg;
    p->n = n;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->n_inside = p->n_threads - 1;
    atomic_fetch_add_explicit(&p->epoch, 1, memory_order_release);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    drain(p, 0);
    pthread_mutex_lock(&p->lock);
    while (p->n_inside > 0) {
        pthread_cond_wait(&p->done, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}
