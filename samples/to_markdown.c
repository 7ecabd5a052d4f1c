/* to_markdown.c - converts one document: Markdown on stdout, what became of each page on stderr.
 *
 *     to_markdown MODEL_DIRECTORY FILE */
#include <galley/galley.h>
#include <stdio.h>
#include <stdlib.h>

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    *n = 0;
    if (f && fseek(f, 0, SEEK_END) == 0 && ftell(f) > 0) {
        *n = (size_t)ftell(f);
        rewind(f);
        bytes = malloc(*n);
        *n = bytes ? fread(bytes, 1, *n, f) : 0;
    }
    if (f) {
        fclose(f);
    }
    return bytes;
}

/* Pages arrive in order as soon as they are read; the page is lent for the call. */
static void on_page(void *user, const struct galley_page *page)
{
    int *n_pages = user;
    char *text = galley_render_page(GALLEY_FORMAT_MD, page, (*n_pages)++, false);
    fputs(text ? text : "", stdout);
    galley_free(text);
    fprintf(stderr, "page %d: %s %s\n", page->number, galley_page_status_name(page->status),
            page->reason);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL_DIRECTORY FILE\n", argv[0]);
        return 2;
    }
    struct galley_source source = { .name = argv[2] };
    char *bytes = read_file(argv[2], &source.n_bytes);
    source.bytes = bytes;
    const struct galley_engine_config config = { .model_path = argv[1] };
    struct galley_engine *engine = NULL;
    struct galley_err err = { 0 };
    enum galley_status rc = galley_engine_open(&engine, &config, &err);
    if (!rc) {
        int n_pages = 0;
        const struct galley_convert_events events = { .user = &n_pages, .on_page = on_page };
        rc = galley_convert(engine, &source, NULL, &events, NULL, &err);
    }
    if (rc) {
        fprintf(stderr, "%s\n", err.msg);
    }
    galley_engine_close(engine);
    free(bytes);
    return rc ? 1 : 0;
}
