/* test_table.c - ruled and unruled tables, and what must not become one. */
#include "tests/layout/page_builder.h"
#include "tests/t.h"

static void expect(struct builder *b, const char *want)
{
    char *md = builder_markdown(b);
    const bool same = strcmp(md, want) == 0;
    if (!same) {
        fprintf(stderr, "got:\n%s\nwant:\n%s\n", md, want);
    }
    mem_free(md);
    T_OK(same);
}

static void set_rows(struct builder *b, const char *const *cells, int rows, int cols, float x,
                     float y, float w, float h)
{
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) {
            if (*cells[r * cols + c]) {
                builder_line(b, x + 5 + w * (float)c, y + h * (float)r, 9, cells[r * cols + c]);
            }
        }
    }
}

static const char *const grid_cells[] = { "Press",  "Hours",    "Sheets", "Platen", "310",
                                          "96,000", "Cylinder", "",       "5|2" };
static const char grid_markdown[] = "| Press | Hours | Sheets |\n|---|---|---|\n"
                                    "| Platen | 310 | 96,000 |\n| Cylinder |  | 5\\|2 |";

static void case_full_grid(void)
{
    struct builder b = builder_new(595, 842);
    builder_grid(&b, 60, 100, 100, 20, 3, 3);
    set_rows(&b, grid_cells, 3, 3, 60, 114, 100, 20);
    expect(&b, grid_markdown);
}

static void case_grid_without_outer_verticals(void)
{
    struct builder b = builder_new(595, 842);
    for (int r = 0; r <= 3; r++) {
        builder_rule(&b, 60, 100 + 20 * (float)r, 360, 100.5f + 20 * (float)r);
    }
    for (int c = 1; c < 3; c++) {
        builder_rule(&b, 60 + 100 * (float)c, 100, 60.5f + 100 * (float)c, 160);
    }
    set_rows(&b, grid_cells, 3, 3, 60, 114, 100, 20);
    expect(&b, grid_markdown);
}

static void case_double_rules(void)
{
    struct builder b = builder_new(595, 842);
    builder_grid(&b, 60, 100, 100, 20, 3, 3);
    builder_rule(&b, 60, 104, 360, 104.5f); /* a second line under the top */
    set_rows(&b, grid_cells, 3, 3, 60, 116, 100, 20);
    expect(&b, grid_markdown);
}

static void case_spans_become_html(void)
{
    struct builder b = builder_new(595, 842);
    /* Two rows, three columns; the first row's last two cells are one. */
    for (int r = 0; r <= 2; r++) {
        builder_rule(&b, 60, 100 + 20 * (float)r, 360, 100.5f + 20 * (float)r);
    }
    builder_rule(&b, 60, 100, 60.5f, 140);
    builder_rule(&b, 160, 100, 160.5f, 140);
    builder_rule(&b, 260, 120, 260.5f, 140);
    builder_rule(&b, 360, 100, 360.5f, 140);
    builder_line(&b, 65, 114, 9, "Press");
    builder_line(&b, 230, 114, 9, "Both <years>");
    builder_line(&b, 65, 134, 9, "Platen");
    builder_line(&b, 165, 134, 9, "1");
    builder_line(&b, 265, 134, 9, "2");
    expect(&b, "<table>\n<tr><th>Press</th><th colspan=\"2\">Both &lt;years&gt;</th></tr>\n"
               "<tr><td>Platen</td><td>1</td><td>2</td></tr>\n</table>");
}

static void case_wrapped_cell(void)
{
    struct builder b = builder_new(595, 842);
    builder_grid(&b, 60, 100, 100, 30, 2, 2);
    builder_line(&b, 65, 112, 9, "Key");
    builder_line(&b, 165, 112, 9, "Value");
    builder_line(&b, 65, 142, 9, "one");
    builder_line(&b, 165, 142, 9, "a cell of two");
    builder_line(&b, 165, 153, 9, "lines of text");
    expect(&b, "| Key | Value |\n|---|---|\n| one | a cell of two lines of text |");
}

static void case_frame_is_no_table(void)
{
    struct builder b = builder_new(595, 842);
    builder_grid(&b, 60, 100, 400, 60, 1, 1);
    builder_line(&b, 65, 130, 10, "Only boxed text in here, nothing more than that.");
    expect(&b, "Only boxed text in here, nothing more than that.");
}

static const char *const stream_cells[] = {
    "Kind",     "Jobs", "Lines", "Books",      "23", "188,400",
    "Journals", "36",   "9,250", "Programmes", "58", "(21,900)",
};
static const char stream_markdown[] = "| Kind | Jobs | Lines |\n|---|---|---|\n"
                                      "| Books | 23 | 188,400 |\n| Journals | 36 | 9,250 |\n"
                                      "| Programmes | 58 | (21,900) |";

static void case_unruled(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 460, 10, true, builder_prose);
    set_rows(&b, stream_cells, 4, 3, 60, 180, 120, 14);
    builder_para(&b, 60, 260, 460, 10, true, builder_prose);
    char want[2000];
    snprintf(want, sizeof(want), "%s\n\n%s\n\n%s", builder_prose, stream_markdown, builder_prose);
    expect(&b, want);
}

static void case_booktabs(void)
{
    struct builder b = builder_new(595, 842);
    builder_rule(&b, 62, 168, 420, 169);
    builder_rule(&b, 62, 185, 420, 185.5f);
    builder_rule(&b, 62, 229, 420, 230);
    set_rows(&b, stream_cells, 4, 3, 60, 180, 120, 14);
    expect(&b, stream_markdown);
}

static void case_table_inside_a_column(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 230, 10, true, builder_prose);
    set_rows(&b, stream_cells, 4, 3, 55, 220, 75, 14);
    builder_para(&b, 60, 300, 230, 10, true, builder_prose);
    builder_para(&b, 315, 100, 230, 10, true, builder_prose);
    builder_para(&b, 315, 210, 230, 10, true, builder_prose);
    builder_para(&b, 315, 320, 230, 10, true, builder_prose);
    char *md = builder_markdown(&b);
    const bool good = strstr(md, stream_markdown) != NULL;
    if (!good) {
        fprintf(stderr, "%s\n", md);
    }
    mem_free(md);
    T_OK(good);
}

/* Two columns one em apart; the table at the head of the right one stands beside prose. */
static void case_table_beside_prose(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 72, 100, 220, 10, true, builder_prose);
    builder_para(&b, 72, 200, 220, 10, true, builder_prose);
    builder_rule(&b, 305, 88, 530, 89);
    builder_rule(&b, 305, 105, 530, 105.5f);
    builder_rule(&b, 305, 146, 530, 147);
    set_rows(&b, stream_cells, 4, 3, 300, 100, 75, 13);
    builder_para(&b, 305, 180, 220, 10, true, builder_prose);
    char *md = builder_markdown(&b);
    char want[2000];
    snprintf(want, sizeof(want), "%s\n\n%s\n\n%s\n\n%s", builder_prose, builder_prose,
             stream_markdown, builder_prose);
    const bool good = strcmp(md, want) == 0;
    if (!good) {
        fprintf(stderr, "%s\n", md);
    }
    mem_free(md);
    T_OK(good);
}

/* Spreadsheets leave less than a word space between columns; a date's words are no columns. */
static void case_tight_columns(void)
{
    struct builder b = builder_new(595, 842);
    struct buf want;
    buf_init(&want, 4096);
    buf_add_str(&want, "| Due | Code | To | Net | Gross |\n|---|---|---|---|---|");
    static const char *const head[] = { "Due", "Code", "To", "Net", "Gross" };
    static const char *const to[] = { "Leeds", "Northern Oil", "Ann Lee" };
    static const float x[] = { 60, 89, 140, 300, 338 };
    for (int c = 0; c < 5; c++) {
        builder_line(&b, x[c], 100, 9, head[c]);
    }
    for (int r = 0; r < 10; r++) {
        char due[16], code[16], net[16], gross[16];
        snprintf(due, sizeof(due), "%02d May", 11 + r);
        snprintf(code, sizeof(code), "R%d", 10233 + 7 * r);
        snprintf(net, sizeof(net), "%d.%02d", 72000 + 317 * r * r, 11 + r);
        snprintf(gross, sizeof(gross), "%d.%02d", 18100 + 791 * r * r, 12 + 3 * r);
        const float y = 112 + 12 * (float)r;
        builder_line(&b, 60, y, 9, due);
        builder_line(&b, 89, y, 9, code);
        builder_line(&b, 140, y, 9, to[r % 3]);
        builder_line(&b, 336 - builder_width(net, 9), y, 9, net);
        builder_line(&b, 374 - builder_width(gross, 9), y, 9, gross);
        buf_addf(&want, "\n| %s | %s | %s | %s | %s |", due, code, to[r % 3], net, gross);
    }
    char *markdown = buf_take(&want);
    T_OK(markdown);
    expect(&b, markdown);
    mem_free(markdown);
}

static void case_columns_of_prose_are_no_table(void)
{
    struct builder b = builder_new(595, 842);
    builder_para(&b, 60, 100, 225, 10, false, builder_prose);
    builder_para(&b, 310, 100, 225, 10, false, builder_prose);
    struct page_layout *out = builder_layout(&b);
    int n_tables = 0;
    for (int i = 0; i < out->n_regions; i++) {
        n_tables += out->regions[i].kind == REGION_TABLE;
    }
    page_layout_free(out);
    page_free(b.page);
    T_EQ(n_tables, 0);
}

static void case_form_is_no_table(void)
{
    struct builder b = builder_new(595, 842);
    static const char *const cells[] = {
        "Name:", "Ann Lee", "Date:", "3 March", "Place:", "Leeds"
    };
    set_rows(&b, cells, 3, 2, 60, 100, 120, 14);
    expect(&b, "Name: Ann Lee\nDate: 3 March\nPlace: Leeds");
}

static void case_rows_carry_their_bytes(void)
{
    struct builder b = builder_new(595, 842);
    builder_grid(&b, 60, 100, 100, 20, 3, 3);
    set_rows(&b, grid_cells, 3, 3, 60, 114, 100, 20);
    struct page_layout *out = builder_layout(&b);
    const struct region *r = &out->regions[0];
    const bool good = r->n_lines == 3 && r->n_header_rows == 1 &&
                      strncmp(r->draft.plain + r->lines[1].plain_from, "| Platen", 8) == 0 &&
                      strncmp(r->draft.plain + r->lines[2].plain_from, "| Cylinder", 10) == 0 &&
                      r->lines[2].plain_to == (int)strlen(r->draft.plain);
    page_layout_free(out);
    page_free(b.page);
    T_OK(good);
}

static const struct t_case cases[] = {
    { "full_grid", case_full_grid },
    { "grid_without_outer_verticals", case_grid_without_outer_verticals },
    { "double_rules", case_double_rules },
    { "spans_become_html", case_spans_become_html },
    { "wrapped_cell", case_wrapped_cell },
    { "frame_is_no_table", case_frame_is_no_table },
    { "unruled", case_unruled },
    { "booktabs", case_booktabs },
    { "table_inside_a_column", case_table_inside_a_column },
    { "table_beside_prose", case_table_beside_prose },
    { "tight_columns", case_tight_columns },
    { "columns_of_prose_are_no_table", case_columns_of_prose_are_no_table },
    { "form_is_no_table", case_form_is_no_table },
    { "rows_carry_their_bytes", case_rows_carry_their_bytes },
};

int main(int argc, char **argv)
{
    return t_main(argc, argv, cases, COUNT(cases));
}
