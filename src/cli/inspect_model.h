/* inspect_model.h - a model directory in words or JSON. */
#ifndef GALLEY_CLI_INSPECT_MODEL_H
#define GALLEY_CLI_INSPECT_MODEL_H

#include <stdbool.h>

/* Prints configuration, tensors, memory and card; the exit code. */
int inspect_model(const char *dir, bool json);

#endif
