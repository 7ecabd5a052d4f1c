"""grid.py - tables of the sample documents: one description drawn and written as Markdown."""
from reportlab.lib.colors import HexColor

from typeset import Atom, Style, break_lines, draw_line, gfm_table

RULE = HexColor('#404040')
TINT = HexColor('#ececec')


class Cell:
    def __init__(self, text, colspan=1, rowspan=1, head=False):
        self.text, self.colspan, self.rowspan, self.head = text, colspan, rowspan, head


class Table:
    """cols: (width in points, 'left' | 'right' | 'center').  rows: lists of str or Cell, the first
    n_head of them headers; a cell covered by a span above or to the left is left out.
    rules: 'all', 'booktabs', 'rows' (horizontal only) or 'none'."""

    def __init__(self, cols, rows, rules='all', n_head=1, size=9, family='sans', tint=False, pad=4,
                 bold_head=True):
        self.cols, self.rules, self.n_head, self.tint, self.pad = cols, rules, n_head, tint, pad
        self.rows = [[c if isinstance(c, Cell) else Cell(c) for c in r] for r in rows]
        self.family, self.size, self.bold_head = family, size, bold_head
        self._place()

    def _place(self):
        """Gives each cell its column and measures the rows."""
        taken, self.at = set(), []
        for i, row in enumerate(self.rows):
            j = 0
            for cell in row:
                while (i, j) in taken:
                    j += 1
                taken |= {(i + a, j + b) for a in range(cell.rowspan) for b in range(cell.colspan)}
                self.at.append((i, j, cell, self._lines(i, j, cell)))
            assert len([1 for a, b in taken if a == i]) == len(self.cols), (i, row)
        self.heights = []
        for i in range(len(self.rows)):
            n = max([len(ls) for a, _, c, ls in self.at if a == i and c.rowspan == 1] or [1])
            self.heights.append(n * self.size * 1.22 + 2 * self.pad)

    def _style(self, i, j, cell):
        head = i < self.n_head or cell.head
        align = self.cols[j][1] if cell.colspan == 1 else 'center'
        return Style(self.family, self.size, self.size * 1.22, align, bold=head and self.bold_head)

    def _width(self, j, cell):
        return sum(w for w, _ in self.cols[j:j + cell.colspan])

    def _lines(self, i, j, cell):
        if not cell.text:
            return []
        return break_lines(cell.text, self._style(i, j, cell), self._width(j, cell) - 2 * self.pad - 2, False)

    def height(self):
        return sum(self.heights)

    def draw(self, c, x, top):
        xs = [x + sum(w for w, _ in self.cols[:j]) for j in range(len(self.cols) + 1)]
        ys = [top - sum(self.heights[:i]) for i in range(len(self.rows) + 1)]
        c.saveState()
        if self.tint:
            c.setFillColor(TINT)
            c.rect(x, ys[self.n_head], xs[-1] - x, top - ys[self.n_head], stroke=0, fill=1)
        for i, j, cell, lines in self.at:
            st = self._style(i, j, cell)
            room = ys[i] - ys[i + cell.rowspan]
            y = ys[i] - (room - len(lines) * st.leading) / 2
            for line in lines:
                draw_line(c, line, st, xs[j] + self.pad + 1, y - st.size * 1.02)
                y -= st.leading
            if self.rules == 'all':
                c.setStrokeColor(RULE)
                c.setLineWidth(0.6)
                c.rect(xs[j], ys[i + cell.rowspan], self._width(j, cell), room, stroke=1, fill=0)
        self._rules(c, xs, ys)
        c.restoreState()

    def _rules(self, c, xs, ys):
        weights = {}
        if self.rules == 'booktabs':
            weights = {0: 1.1, self.n_head: 0.6, len(self.rows): 1.1}
        elif self.rules == 'rows':
            weights = {i: 0.5 for i in range(1, len(self.rows) + 1)} | {0: 1, self.n_head: 1}
        c.setStrokeColor(RULE)
        for i, w in weights.items():
            c.setLineWidth(w)
            c.line(xs[0], ys[i], xs[-1], ys[i])

    def atom(self, before=4, after=10):
        a = Atom(self.height(), self.draw, before)
        a.after = after
        return a

    def truth(self):
        """GFM when every cell is its own; HTML when cells span."""
        if all(c.colspan == c.rowspan == 1 for r in self.rows for c in r):
            return gfm_table([[c.text for c in r] for r in self.rows])
        out = ['<table>']
        for i, row in enumerate(self.rows):
            cells = ''
            for cell in row:
                tag = 'th' if i < self.n_head or cell.head else 'td'
                span = f' colspan="{cell.colspan}"' if cell.colspan > 1 else ''
                span += f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else ''
                cells += f'<{tag}{span}>{cell.text}</{tag}>'
            out.append(f'<tr>{cells}</tr>')
        return '\n'.join(out + ['</table>'])
