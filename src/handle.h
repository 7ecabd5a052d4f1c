/* handle.h - the inside of struct galley_engine, shared by galley.c and generate.c. */
#ifndef GALLEY_HANDLE_H
#define GALLEY_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/engine/engine.h"
#include "src/galley.h"

struct galley_engine {
    struct engine *engine;
    galley_log_fn *log;
    void *log_user;
    atomic_bool closing; /* polled by the conversions that use this engine */
    pthread_mutex_t lock;
    pthread_cond_t left; /* a conversion has ended */
    int n_conversions;   /* under lock */
};

/* "q8" -> KV_Q8; NULL and "auto": *is_auto. */
enum galley_status handle_kv_type(enum kv_type *out, bool *is_auto, const char *name,
                                  struct galley_err *err);

#endif
