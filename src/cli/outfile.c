/* outfile.c - naming and writing results. */
#include "src/cli/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/mem.h"
#include "src/base/path.h"
#include "src/cli/cli.h"

#define PATH_BYTES_MAX 8192

static const char *extension(enum galley_format format)
{
    static const char *const ext[] = { "md", "json", "html", "txt" };
    return ext[format];
}

bool make_dirs(const char *path)
{
    char *copy = mem_strdup(path);
    if (!copy) {
        complain("no memory");
        return false;
    }
    bool ok = true;
    for (char *p = copy + (copy[0] != '\0'); ok; p++) { /* "" is refused by mkdir */
        const char c = *p;
        if (c != '/' && c != '\0') {
            continue;
        }
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && !path_is_dir(copy)) {
            complain("%s: cannot create directory: %s", copy, strerror(errno));
            ok = false;
        }
        *p = c;
        if (c == '\0') {
            break;
        }
    }
    mem_free(copy);
    return ok;
}

static bool taken(const struct outfile *out, int n_planned, char **inputs, int n_inputs,
                  const char *path)
{
    for (int i = 0; i < n_planned; i++) {
        if (out[i].path && strcmp(out[i].path, path) == 0) {
            return true;
        }
    }
    struct stat there;
    const bool exists = stat(path, &there) == 0;
    for (int i = 0; i < n_inputs; i++) {
        struct stat in;
        if (strcmp(inputs[i], path) == 0 ||
            (exists && stat(inputs[i], &in) == 0 && in.st_dev == there.st_dev &&
             in.st_ino == there.st_ino)) {
            return true;
        }
    }
    return false;
}

/* dir/STEM.EXT of an input, with -2, -3 ... until nobody else has it. */
static char *name_for(const struct outfile *out, int n_planned, char **inputs, int n_inputs,
                      const char *dir, const char *input, const char *ext)
{
    const char *slash = strrchr(input, '/');
    const char *base = strcmp(input, "-") == 0 ? "stdin" : slash ? slash + 1 : input;
    const char *dot = strrchr(base, '.');
    const int stem = (int)(dot && dot > base ? (size_t)(dot - base) : strlen(base));
    const int lead = dir ? 0 : slash ? (int)(slash + 1 - input) : 0;
    for (int k = 1;; k++) {
        struct buf b;
        buf_init(&b, PATH_BYTES_MAX);
        if (dir) {
            buf_addf(&b, "%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/");
        }
        buf_addf(&b, "%.*s%.*s", lead, input, stem, base);
        if (k > 1) {
            buf_addf(&b, "-%d", k);
        }
        buf_addf(&b, ".%s", ext);
        char *path = buf_take(&b);
        if (!path || !taken(out, n_planned, inputs, n_inputs, path)) {
            return path;
        }
        mem_free(path);
    }
}

static bool plan_into(struct outfile *out, char **inputs, int n, const char *dir, const char *ext)
{
    for (int i = 0; i < n; i++) {
        out[i].path = name_for(out, i, inputs, n, dir, inputs[i], ext);
        if (!out[i].path) {
            complain("%s: its output's name is too long", inputs[i]);
            return false;
        }
    }
    return true;
}

static int plan_outputs(struct outfile *out, char **inputs, int n, const char *output,
                        enum galley_format format)
{
    if (output && strcmp(output, "-") == 0) {
        return EXIT_OK;
    }
    if (!output) {
        return n == 1 || plan_into(out, inputs, n, NULL, extension(format)) ? EXIT_OK : EXIT_USAGE;
    }
    const size_t len = strlen(output);
    if (len == 0) {
        return usage_error("convert", "--output cannot be \"\"");
    }
    if (output[len - 1] == '/' || path_is_dir(output)) {
        if (!make_dirs(output)) {
            return EXIT_INTERNAL;
        }
        return plan_into(out, inputs, n, output, extension(format)) ? EXIT_OK : EXIT_USAGE;
    }
    if (n > 1) {
        return usage_error("convert",
                           "%d inputs cannot go into one file; write -o %s/ for a directory", n,
                           output);
    }
    if (taken(out, 0, inputs, n, output)) {
        return usage_error("convert", "-o %s would overwrite the input", output);
    }
    out[0].path = mem_strdup(output);
    return out[0].path ? EXIT_OK : EXIT_LIMIT;
}

int outfiles_plan(struct outfile *out, char **inputs, int n, const struct cli_options *opt)
{
    for (int i = 0; i < n; i++) {
        out[i] = (struct outfile){ .input = inputs[i] };
    }
    const int code = plan_outputs(out, inputs, n, opt->output, opt->format);
    if (!code && opt->stats && strcmp(opt->stats, "-") != 0 &&
        taken(out, n, inputs, n, opt->stats)) {
        return usage_error("convert", "--stats %s would overwrite an input or a result",
                           opt->stats);
    }
    return code;
}

void outfiles_free(struct outfile *out, int n)
{
    for (int i = 0; i < n; i++) {
        mem_free(out[i].path);
    }
}

/* A new file beside `path`, with the mode that fopen would give. */
static FILE *open_beside(char *tmp)
{
    const int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    const mode_t mask = umask(0);
    umask(mask);
    FILE *f = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "wb") : NULL;
    if (!f) {
        close(fd);
        unlink(tmp);
    }
    return f;
}

bool writer_open(struct writer *w, const char *path)
{
    *w = (struct writer){ .f = stdout };
    if (!path) {
        return true;
    }
    struct stat st;
    w->path = mem_strdup(path);
    /* Devices and pipes are written to directly. */
    const bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    struct buf b;
    buf_init(&b, PATH_BYTES_MAX + 16);
    buf_addf(&b, "%s%s", path, special ? "" : ".XXXXXX");
    w->tmp = buf_take(&b);
    w->f = NULL;
    if (w->tmp && w->path) {
        w->f = special ? fopen(w->tmp, "wbe") : open_beside(w->tmp);
    }
    if (!w->f) {
        complain("%s: cannot create: %s", path, strerror(errno));
        mem_free(w->path);
        mem_free(w->tmp);
        return false;
    }
    return true;
}

void writer_add(struct writer *w, char *text)
{
    if (!text || (!w->failed && fputs(text, w->f) == EOF)) {
        w->failed = true;
    }
    galley_free(text);
    if (!w->path && fflush(w->f) != 0) {
        w->failed = true; /* standard output is read as it comes */
    }
}

void writer_abandon(struct writer *w)
{
    if (w->path) {
        fclose(w->f);
        if (strcmp(w->tmp, w->path) != 0) {
            unlink(w->tmp);
        }
        mem_free(w->path);
        mem_free(w->tmp);
    }
}

bool writer_close(struct writer *w)
{
    if (!w->path) {
        if (w->failed) {
            complain("cannot write to standard output");
        }
        return !w->failed;
    }
    if (fclose(w->f) != 0) {
        w->failed = true;
    }
    if (!w->failed && strcmp(w->tmp, w->path) != 0 && rename(w->tmp, w->path) != 0) {
        w->failed = true;
    }
    if (w->failed) {
        complain("%s: cannot write: %s", w->path, strerror(errno));
        if (strcmp(w->tmp, w->path) != 0) {
            unlink(w->tmp);
        }
    }
    mem_free(w->path);
    mem_free(w->tmp);
    return !w->failed;
}
