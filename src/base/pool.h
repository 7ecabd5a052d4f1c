/* pool.h - a fixed set of threads for parallel loops.
 *
 * One owner at a time calls pool_run; it takes part in the work itself and
 * returns when every index is done.  Which thread does which index is free:
 * results must not depend on it. */
#ifndef GALLEY_BASE_POOL_H
#define GALLEY_BASE_POOL_H

#include "src/base/compiler.h"
#include "src/base/err.h"

#define POOL_THREADS_MAX 256

struct pool;
typedef void pool_fn(void *arg, int i, int i_thread); /* i_thread: 0..pool_n_threads-1 */

/* n_threads >= 1 counts the caller; 0 is one per CPU this process may use. */
GALLEY_MUST_USE enum galley_status pool_open(struct pool **out, int n_threads,
                                             struct galley_err *err);
void pool_close(struct pool *p); /* NULL is fine */
int pool_n_threads(const struct pool *p);
/* fn(arg, i, thread) for i in 0..n-1, each once.  Not reentrant. */
void pool_run(struct pool *p, pool_fn *fn, void *arg, int n);
/* CPUs in this process's affinity mask, or whole ones of its control groups' quota when that is
 * less (a thread more would be held up in every loop, and all wait for it); at least 1. */
int pool_n_cpus(void);

#endif
