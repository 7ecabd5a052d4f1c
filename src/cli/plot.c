/* plot.c - see plot.h.  One series, points labelled with their concurrency. */
#include "src/cli/plot.h"

#include <math.h>

#define WIDTH  720
#define HEIGHT 440
#define LEFT   70
#define RIGHT  24
#define TOP    54
#define BOTTOM 60

/* A step of 1, 2 or 5 times a power of ten that cuts `range` into 4 to 8. */
static double nice_step(double range)
{
    const double rough = range / 5, base = pow(10, floor(log10(rough)));
    const double m = rough / base;
    return base * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}

static double axis_end(double most)
{
    const double step = nice_step(most > 0 ? most : 1);
    return ceil((most > 0 ? most : 1) * 1.05 / step) * step;
}

static double at_x(double v, double end)
{
    return LEFT + v / end * (WIDTH - LEFT - RIGHT);
}

static double at_y(double v, double end)
{
    return HEIGHT - BOTTOM - v / end * (HEIGHT - TOP - BOTTOM);
}

static void write_escaped(FILE *f, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '<':
            fputs("&lt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc((unsigned char)*s < 0x20 ? ' ' : *s, f);
        }
    }
}

static void write_axes(FILE *f, double x_end, double y_end)
{
    for (double v = 0, step = nice_step(y_end); v <= y_end * 1.0001; v += step) {
        const double y = at_y(v, y_end);
        fprintf(f, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>", LEFT, y, WIDTH - RIGHT);
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4, v);
    }
    for (double v = 0, step = nice_step(x_end); v <= x_end * 1.0001; v += step) {
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", at_x(v, x_end),
                HEIGHT - BOTTOM + 20, v);
    }
    fprintf(f, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#333\"/>\n", LEFT, TOP,
            HEIGHT - BOTTOM, WIDTH - RIGHT);
    fprintf(
        f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">time to first token, median, s</text>\n",
        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16);
    fprintf(f,
            "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">output tokens "
            "per second, all sequences</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2);
}

void plot_write(FILE *f, const struct bench_report *r, const char *machine)
{
    double x_most = 0, y_most = 0;
    for (int i = 0; i < r->n_rows; i++) {
        x_most = fmax(x_most, r->rows[i].ttft);
        y_most = fmax(y_most, r->rows[i].output_rate);
    }
    const double x_end = axis_end(x_most), y_end = axis_end(y_most);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#333\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"24\" "
            "font-size=\"16\">",
            WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    write_escaped(f, r->model);
    fprintf(f, "</text>\n<text x=\"%d\" y=\"42\" fill=\"#777\">", LEFT);
    write_escaped(f, machine);
    fprintf(f, ", %d threads, %d + %d tokens</text>\n", r->threads, r->n_prompt, r->n_output);
    write_axes(f, x_end, y_end);
    fputs("<polyline fill=\"none\" stroke=\"#0b6bcb\" stroke-width=\"2\" points=\"", f);
    for (int i = 0; i < r->n_rows; i++) {
        fprintf(f, "%.1f,%.1f ", at_x(r->rows[i].ttft, x_end), at_y(r->rows[i].output_rate, y_end));
    }
    fputs("\"/>\n", f);
    for (int i = 0; i < r->n_rows; i++) {
        const double x = at_x(r->rows[i].ttft, x_end), y = at_y(r->rows[i].output_rate, y_end);
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#0b6bcb\"/>", x, y);
        fprintf(f, "<text x=\"%.1f\" y=\"%.1f\">%d</text>\n", x + 7, y - 7, r->rows[i].concurrency);
    }
    fputs("</svg>\n", f);
}
