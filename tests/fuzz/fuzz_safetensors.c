/* fuzz_safetensors.c - claims: every view lies inside the file and has the bytes of its shape,
 * names are unique and sorted, no two tensors share a byte; every refusal has a sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/format/safetensors.h"

#define CLAIM(cond)  \
    do {             \
        if (!(cond)) \
            abort(); \
    } while (0)

static void check_entry(const struct st_entry *e, const uint8_t *data, size_t n)
{
    CLAIM(e->begin <= e->end && e->end <= n - 8);
    if (!e->usable) {
        return;
    }
    const struct tensor *t = &e->view;
    uint64_t bytes = dtype_bytes(t->dtype);
    CLAIM(t->n_dim >= 0 && t->n_dim <= TENSOR_DIM_MAX);
    for (int i = 0; i < t->n_dim; i++) {
        CLAIM(t->shape[i] >= 0);
        bytes *= (uint64_t)t->shape[i];
    }
    const uint8_t *from = t->data;
    CLAIM(from >= data + 8 && from <= data + n);
    CLAIM(bytes == e->end - e->begin && bytes <= (uint64_t)(data + n - from));
}

static void check_pair(const struct st_entry *a, const struct st_entry *b)
{
    CLAIM(a->end <= b->begin || b->end <= a->begin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct galley_err err = { 0 };
    struct safetensors *s;
    const enum galley_status rc = safetensors_open_memory(&s, "input", data, n, &err);
    CLAIM((rc == GALLEY_OK) == (s != NULL));
    if (rc) {
        CLAIM(rc == GALLEY_EMODEL && err.status == rc && strncmp(err.msg, "input: ", 7) == 0);
        return 0;
    }
    const int count = safetensors_count(s);
    for (int i = 0; i < count; i++) {
        check_entry(safetensors_at(s, i), data, n);
        if (i > 0) {
            CLAIM(strcmp(safetensors_at(s, i - 1)->name, safetensors_at(s, i)->name) < 0);
        }
        for (int k = 0; k < i && k < 50; k++) {
            check_pair(safetensors_at(s, k), safetensors_at(s, i));
        }
    }
    safetensors_close(s);
    return 0;
}
