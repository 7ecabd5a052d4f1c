/* regions.c - prints the regions of a document with their boxes and drafts.  No model is loaded:
 * galley_convert without an engine is the light parser alone.
 *
 *     regions FILE */
#include <galley/galley.h>
#include <stdio.h>
#include <stdlib.h>

/* Documents above this are cut, and refused as damaged. */
#define BYTES_MAX (64u << 20)

static void on_page(void *user, const struct galley_page *page)
{
    (void)user;
    printf("page %d, %.0f x %.0f pt, %s\n", page->number, (double)page->width, (double)page->height,
           galley_page_status_name(page->status));
    for (int i = 0; i < page->n_regions; i++) {
        const struct galley_region *r = &page->regions[i];
        printf("%3d %-11s [%6.1f %6.1f %6.1f %6.1f] %s %.2f  ", i + 1, r->kind, (double)r->box.x0,
               (double)r->box.y0, (double)r->box.x1, (double)r->box.y1, r->draft_source,
               (double)r->draft_score);
        for (const char *s = r->draft; *s; s++) {
            putchar(*s == '\n' ? ' ' : *s);
        }
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    char *bytes = f ? malloc(BYTES_MAX) : NULL;
    if (!bytes) {
        fprintf(stderr, f ? "no memory\n" : "usage: %s FILE (that can be read)\n", argv[0]);
        return 2;
    }
    const struct galley_source source = { .name = argv[1],
                                          .bytes = bytes,
                                          .n_bytes = fread(bytes, 1, BYTES_MAX, f) };
    const struct galley_convert_events events = { .on_page = on_page };
    struct galley_err err = { 0 };
    const enum galley_status rc = galley_convert(NULL, &source, NULL, &events, NULL, &err);
    if (rc) {
        fprintf(stderr, "%s\n", err.msg);
    }
    fclose(f);
    free(bytes);
    return rc ? 1 : 0;
}
