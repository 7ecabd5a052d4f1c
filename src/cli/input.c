/* input.c - inputs and the engine. */
#include "src/cli/input.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/map.h"
#include "src/cli/cli.h"

enum galley_status input_read(const char *name, char **bytes, size_t *n, struct galley_err *err)
{
    if (strcmp(name, "-") == 0) {
        return fd_read(STDIN_FILENO, "standard input", INPUT_BYTES_MAX, bytes, n, err);
    }
    return file_read(name, INPUT_BYTES_MAX, bytes, n, err);
}

/* The log callback of --verbose. */
static void log_to_stderr(void *user, int level, const char *event, const char *text)
{
    (void)user;
    (void)level;
    complain("%s: %s", event, text);
}

int engine_for_cli(struct galley_engine **out, const struct cli_options *opt)
{
    char path[PATH_MAX];
    const char *model = opt->model;
    if (!model) {
        if (!find_model(path, sizeof(path))) {
            complain(
                "the built-in model is not there: neither models/galley-tiny beside the source "
                "tree nor share/galley/galley-tiny beside the program; use --model DIR or "
                "GALLEY_MODEL");
            return EXIT_MODEL;
        }
        model = path;
    }
    const struct galley_engine_config cfg = {
        .model_path = model,
        .cpu = getenv("GALLEY_CPU"),
        .threads = opt->threads,
        .max_seqs = opt->max_seqs,
        .log = opt->verbose ? log_to_stderr : NULL,
        .mmproj_path = opt->mmproj,
        .context = opt->context,
        .kv_type = opt->kv,
        .exact_linear = opt->exact_linear,
        .memory_bytes = opt->memory_bytes,
        .vision_cache_dir = opt->vision_cache,
    };
    struct galley_err err = { 0 };
    const enum galley_status rc = galley_engine_open(out, &cfg, &err);
    if (rc) {
        complain("%s", err.msg);
        /* A CPU that lacks the forced variant is a wrong use; everything else here is the model's.
         */
        return rc == GALLEY_ENOMEM || rc == GALLEY_ELIMIT ? EXIT_LIMIT
               : rc == GALLEY_EUSAGE                      ? EXIT_USAGE
                                                          : EXIT_MODEL;
    }
    if (!galley_engine_info(*out).has_vision) {
        complain("%s: the model has no vision tower, so it cannot read pages; that of a GGUF model "
                 "is a second file (--mmproj FILE)",
                 model);
        galley_engine_close(*out);
        *out = NULL;
        return EXIT_MODEL;
    }
    return EXIT_OK;
}
