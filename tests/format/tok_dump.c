/* tok_dump.c - encodes strings from standard input, for tools/reference/tokenizer.py.
 *
 * tok_dump TOKENIZER_JSON|GGUF plain|special: every record in is a 4-byte little-endian length and
 * that many bytes; every line out is "id id ...", a tab, and the decoded bytes in hex. */
#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/format/gguf.h"
#include "src/format/tokenizer.h"

/* Opens either; *seconds is what the tokenizer alone took. */
static enum galley_status open_any(struct tokenizer **t, const char *path, double *seconds,
                                   struct galley_err *err)
{
    struct gguf *g = NULL;
    const bool gguf = gguf_is_file(path);
    enum galley_status rc = gguf ? gguf_open(&g, path, err) : GALLEY_OK;
    const double t0 = clock_seconds();
    if (!rc) {
        rc = gguf ? tokenizer_open_gguf(t, g, err) : tokenizer_open(t, path, err);
    }
    *seconds = clock_seconds() - t0;
    gguf_close(g);
    return rc;
}

static int dump_one(const struct tokenizer *t, const char *s, size_t n, bool special)
{
    struct galley_err err = { 0 };
    int32_t *ids;
    int n_ids;
    if (tokenizer_encode(t, s, n, special, &ids, &n_ids, &err)) {
        fprintf(stderr, "tok_dump: %s\n", err.msg);
        return 1;
    }
    struct buf text;
    buf_init(&text, (size_t)256 << 20);
    for (int i = 0; i < n_ids; i++) {
        printf("%s%d", i ? " " : "", (int)ids[i]);
        tokenizer_decode(t, ids[i], true, &text);
    }
    putchar('\t');
    for (size_t i = 0; i < text.n; i++) {
        printf("%02x", (unsigned char)text.data[i]);
    }
    putchar('\n');
    buf_deinit(&text);
    mem_free(ids);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: tok_dump TOKENIZER_JSON|GGUF plain|special < records\n");
        return 2;
    }
    struct galley_err err = { 0 };
    struct tokenizer *t;
    double open_seconds;
    if (open_any(&t, argv[1], &open_seconds, &err)) {
        fprintf(stderr, "tok_dump: %s\n", err.msg);
        return 1;
    }
    const double t1 = clock_seconds();
    unsigned char head[4];
    int rc = 0;
    size_t bytes = 0;
    while (!rc && fread(head, 1, 4, stdin) == 4) {
        const size_t n =
            head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        char *s = mem_array(n + 1, 1);
        rc = !s || fread(s, 1, n, stdin) != n || dump_one(t, s, n, strcmp(argv[2], "special") == 0);
        bytes += n;
        mem_free(s);
    }
    fprintf(stderr, "tok_dump: open %.1f ms, %zu bytes in %.1f ms\n", open_seconds * 1e3, bytes,
            (clock_seconds() - t1) * 1e3);
    tokenizer_close(t);
    return rc;
}
