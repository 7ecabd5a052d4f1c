/* tensor_place.h - where a tensor's data lie in a safetensors file. */
#ifndef GALLEY_TESTS_TENSOR_PLACE_H
#define GALLEY_TESTS_TENSOR_PLACE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"

/* The offset of a tensor's data in a safetensors file, and its bytes. */
static inline size_t tensor_place(const char *bytes, const char *tensor, size_t *n)
{
    uint64_t head = 0;
    memcpy(&head, bytes, sizeof(head));
    const char *name = strstr(bytes + 8, tensor);
    const char *offsets = name ? strstr(name, "data_offsets\":[") : NULL;
    T_OK(offsets);
    char *end;
    const size_t from = strtoul(offsets + strlen("data_offsets\":["), &end, 10);
    *n = strtoul(end + 1, NULL, 10) - from;
    return 8 + head + from;
}

#endif
