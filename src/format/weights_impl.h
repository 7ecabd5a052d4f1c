/* weights_impl.h - what weights.c and weights_gguf.c share.  Not for other modules. */
#ifndef GALLEY_FORMAT_WEIGHTS_IMPL_H
#define GALLEY_FORMAT_WEIGHTS_IMPL_H

#include "src/format/gguf.h"
#include "src/format/safetensors.h"
#include "src/format/weights.h"

struct shard {
    char *name; /* plain file name */
    struct safetensors *file;
};

struct weight {
    const char *name, *dtype;  /* lent by the file, or by `names` */
    const struct tensor *view; /* dtype DTYPE_COUNT: listed only */
    const char *file;          /* plain name of a shard, for sentences; NULL: the place says it */
    bool used;
};

struct weights {
    char *place;          /* directory, or GGUF file */
    struct shard *shards; /* of a directory */
    int n_shards;
    struct gguf *gguf; /* instead of shards */
    char **names;      /* [n_names] owned: GGUF tensors renamed */
    int n_names;
    struct tensor *made;  /* one tensor put together from others; owned with its data */
    struct weight *items; /* in name order */
    int n_items;
};

/* Puts the items in name order; two of one name are refused. */
GALLEY_MUST_USE enum galley_status weights_sort(struct weights *w, struct galley_err *err);

#endif
