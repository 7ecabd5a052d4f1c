/* html_table.c - a white list for table markup. */
#include "src/document/html_table.h"

#include <stdbool.h>
#include <string.h>

#include "src/base/compiler.h"

static const char *const tag_names[] = { "table", "thead", "tbody", "tr", "th", "td", "br" };

/* Length of an attribute ` rowspan="12"` or ` colspan="3"` at s; 0 when it is none. */
static size_t span_attribute(const char *s)
{
    if (strncmp(s, " rowspan=\"", 10) != 0 && strncmp(s, " colspan=\"", 10) != 0) {
        return 0;
    }
    const size_t digits = strspn(s + 10, "0123456789");
    return digits > 0 && digits <= 4 && s[10 + digits] == '"' ? 11 + digits : 0;
}

/* Length of an allowed tag at s ('<'); 0 when it is not one of ours. */
static size_t allowed_tag(const char *s)
{
    const char *p = s + 1;
    if (*p == '/') {
        p++;
    }
    for (size_t i = 0; i < COUNT(tag_names); i++) {
        const size_t n = strlen(tag_names[i]);
        if (strncmp(p, tag_names[i], n) != 0) {
            continue;
        }
        const char *q = p + n;
        for (size_t a = span_attribute(q); a > 0; a = span_attribute(q)) {
            q += a;
        }
        if (*q == '>') {
            return (size_t)(q + 1 - s);
        }
    }
    return 0;
}

const char *html_table_end(const char *table)
{
    return strstr(table, "</table>") + strlen("</table>");
}

static bool harmless(const char *table, const char *end)
{
    for (const char *s = table; s < end;) {
        if (*s != '<') {
            s++;
            continue;
        }
        const size_t n = allowed_tag(s);
        if (n == 0) {
            return false;
        }
        s += n;
    }
    return true;
}

const char *html_table_find(const char *text)
{
    for (const char *s = strstr(text, "<table>"); s; s = strstr(s + 1, "<table>")) {
        const bool at_line = s == text || s[-1] == '\n';
        if (at_line && strstr(s, "</table>") && harmless(s, html_table_end(s))) {
            return s;
        }
    }
    return NULL;
}

static size_t add_entity(struct buf *out, const char *s)
{
    static const struct {
        const char *name;
        char c;
    } entities[] = { { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' } };
    for (size_t i = 0; i < COUNT(entities); i++) {
        const size_t n = strlen(entities[i].name);
        if (strncmp(s, entities[i].name, n) == 0) {
            buf_add_char(out, entities[i].c);
            return n;
        }
    }
    buf_add_char(out, '&');
    return 1;
}

void html_table_to_text(struct buf *out, const char *table, size_t n)
{
    bool first_cell = true;
    for (size_t i = 0; i < n;) {
        if (table[i] == '<') {
            const char *tag = table + i;
            if (strncmp(tag, "</tr", 4) == 0) {
                buf_add_char(out, '\n');
                first_cell = true;
            } else if (strncmp(tag, "<td", 3) == 0 || strncmp(tag, "<th>", 4) == 0 ||
                       strncmp(tag, "<th ", 4) == 0) {
                if (!first_cell) {
                    buf_add_char(out, '\t');
                }
                first_cell = false;
            } else if (strncmp(tag, "<br", 3) == 0) {
                buf_add_char(out, ' ');
            }
            i += allowed_tag(tag);
        } else if (table[i] == '&') {
            i += add_entity(out, table + i);
        } else {
            if (table[i] != '\n') {
                buf_add_char(out, table[i]);
            }
            i++;
        }
    }
}
