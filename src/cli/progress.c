/* progress.c - the progress line. */
#include "src/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/cli/cli.h"

#define BAR 12

void progress_init(struct progress *p, bool quiet, int n_files)
{
    *p = (struct progress){ .on = !quiet && isatty(STDERR_FILENO), .name = "", .n_files = n_files };
}

static int columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* Pages done plus the share of the regions known so far. */
static double share(const struct galley_progress *g)
{
    const double pages = g->n_pages ? (double)g->n_pages_done / g->n_pages : 0;
    if (g->n_pages == 1 && g->n_regions > 0) {
        return (double)g->n_regions_done / g->n_regions;
    }
    return pages;
}

void progress_draw(struct progress *p, const struct galley_progress *g)
{
    if (!p->on) {
        return;
    }
    char bar[BAR + 1];
    const int full = (int)(share(g) * BAR + 0.5);
    for (int i = 0; i < BAR; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[BAR] = '\0';
    char files[32] = "";
    if (p->n_files > 1) {
        snprintf(files, sizeof(files), "[%d/%d] ", p->i_file + 1, p->n_files);
    }
    const char *slash = strrchr(p->name, '/');
    char line[512];
    snprintf(line, sizeof(line), "%s%.24s %s page %d/%d, region %d/%d, %.0f tok/s, accept %.1f",
             files, slash ? slash + 1 : p->name, bar, g->n_pages_done, g->n_pages,
             g->n_regions_done, g->n_regions, g->seconds > 0 ? (double)g->n_output / g->seconds : 0,
             g->accept_length);
    make_printable(line);
    fprintf(stderr, "\r%.*s\033[K", columns() - 1, line);
    fflush(stderr);
    p->drawn = true;
}

void progress_clear(struct progress *p)
{
    if (p->on && p->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        p->drawn = false;
    }
}
