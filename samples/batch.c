/* batch.c - converts every document of a folder with one engine; FILE becomes OUT/FILE.json.
 *
 *     batch MODEL_DIRECTORY IN OUT
 *
 * A document that fails is named and the rest goes on; the exit status says whether one did. */
#include <dirent.h>
#include <galley/galley.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PATH_BYTES 4096
#define BYTES_MAX  (64u << 20)

struct result {
    FILE *f;
    const struct galley_source *source;
    int n_pages, n_bad;
};

static void put(FILE *f, char *text)
{
    fputs(text ? text : "", f); /* NULL: memory is short; the JSON will not be whole */
    galley_free(text);
}

static void on_page(void *user, const struct galley_page *page)
{
    struct result *r = user;
    if (r->n_pages == 0) {
        put(r->f, galley_render_begin(GALLEY_FORMAT_JSON, r->source, page->n_document_pages));
    }
    put(r->f, galley_render_page(GALLEY_FORMAT_JSON, page, r->n_pages++, false));
    if (page->status != GALLEY_PAGE_OK && page->status != GALLEY_PAGE_BLANK) {
        r->n_bad++;
        fprintf(stderr, "%s: page %d: %s: %s\n", r->source->name, page->number,
                galley_page_status_name(page->status), page->reason);
    }
}

/* True when the document gave a result. */
static bool convert(struct galley_engine *engine, const struct galley_source *source,
                    const char *path)
{
    struct result r = { .f = fopen(path, "wb"), .source = source };
    if (!r.f) {
        perror(path);
        return false;
    }
    const struct galley_convert_events events = { .user = &r, .on_page = on_page };
    struct galley_stats stats = { 0 };
    struct galley_err err = { 0 };
    const enum galley_status rc = galley_convert(engine, source, NULL, &events, &stats, &err);
    if (r.n_pages > 0) {
        put(r.f, galley_render_end(GALLEY_FORMAT_JSON, &stats));
    }
    if (rc) {
        fprintf(stderr, "%s (%s)\n", err.msg, galley_status_text(rc));
    } else {
        fprintf(stderr, "%s: %d pages, %d doubtful, %.1f s\n", source->name, r.n_pages, r.n_bad,
                stats.total_seconds);
    }
    if (fclose(r.f) != 0) {
        perror(path);
        return false;
    }
    if (r.n_pages == 0) {
        remove(path);
    }
    return rc == GALLEY_OK;
}

/* One file of the folder; true unless it is a document that failed. */
static bool convert_file(struct galley_engine *engine, const char *in, const char *out,
                         const char *name, char *bytes)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    struct stat st;
    snprintf(from, sizeof(from), "%s/%s", in, name);
    snprintf(to, sizeof(to), "%s/%s.json", out, name);
    if (stat(from, &st) == 0 && !S_ISREG(st.st_mode)) {
        return true;
    }
    FILE *f = fopen(from, "rb");
    if (!f) {
        perror(from);
        return false;
    }
    const struct galley_source source = { .name = from,
                                          .bytes = bytes,
                                          .n_bytes = fread(bytes, 1, BYTES_MAX, f) };
    fclose(f);
    return convert(engine, &source, to);
}

static int convert_folder(struct galley_engine *engine, const char *in, const char *out)
{
    DIR *dir = opendir(in);
    char *bytes = malloc(BYTES_MAX);
    if (!dir || !bytes) {
        perror(in);
        free(bytes);
        return 1;
    }
    int n_failed = 0;
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        n_failed += !convert_file(engine, in, out, e->d_name, bytes);
    }
    free(bytes);
    closedir(dir);
    return n_failed;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL_DIRECTORY IN OUT\n", argv[0]);
        return 2;
    }
    const struct galley_engine_config config = { .model_path = argv[1] };
    struct galley_engine *engine = NULL;
    struct galley_err err = { 0 };
    if (galley_engine_open(&engine, &config, &err) != GALLEY_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    const int n_failed = convert_folder(engine, argv[2], argv[3]);
    galley_engine_close(engine);
    return n_failed ? 1 : 0;
}
