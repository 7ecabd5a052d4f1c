/* inspect_gguf.h - a GGUF file's metadata and tensors in words or JSON. */
#ifndef GALLEY_CLI_INSPECT_GGUF_H
#define GALLEY_CLI_INSPECT_GGUF_H

#include <cjson/cJSON.h>

#include "src/format/gguf.h"

void gguf_print_metadata(const struct gguf *g);
void gguf_print_tensors(const struct gguf *g);
/* Objects for print_json's tree; NULL without memory. */
cJSON *gguf_json_metadata(const struct gguf *g);
cJSON *gguf_json_tensors(const struct gguf *g);

#endif
