"""blocks.py - the kinds of blocks a sample is made of: each draws itself and knows its Markdown."""
from typeset import Atom, break_lines, draw_line, list_atoms, list_truth, paragraph


class Heading:
    def __init__(self, level, text, style):
        self.level, self.text, self.style = level, text, style

    def atoms(self, width):
        return paragraph(self.text, self.style, width, tied=True)

    def truth(self):
        return '#' * self.level + ' ' + self.text


class Para:
    def __init__(self, text, style, tied=False, x_off=0):
        self.text, self.style, self.tied, self.x_off = text, style, tied, x_off

    def atoms(self, width):
        return paragraph(self.text, self.style, width, self.x_off, tied=self.tied)

    def truth(self):
        return self.text


class Lines:
    """An address, a signature, key/value lines: every line is its own."""

    def __init__(self, rows, style, tab=0, key_style=None, right=False):
        self.rows, self.style, self.tab = rows, style, tab
        self.key_style, self.right = key_style or style, right

    def _pair(self, row, width):
        """(key, value) set at a tab stop, or the value flush right."""
        key, value = row

        def draw(c, x, top):
            y = top - self.style.size
            draw_line(c, break_lines(key, self.key_style, width)[0], self.key_style, x, y)
            line = break_lines(value, self.style, width)[0]
            shift = width - sum(p.width() for w in line.words for p in w) if self.right else self.tab
            draw_line(c, line, self.style, x + shift, y)
        return draw

    def atoms(self, width):
        out = []
        for row in self.rows:
            if isinstance(row, tuple):
                out.append(Atom(self.style.leading, self._pair(row, width), tied=True))
            else:
                atoms = paragraph(row, self.style, width)
                assert len(atoms) == 1, row
                atoms[0].tied, atoms[0].before, atoms[0].after = True, 0, 0
                out += atoms
        out[0].before = self.style.before
        out[-1].tied, out[-1].after = False, self.style.after
        return out

    def truth(self):
        key = '**{}** {}' if self.key_style.bold and not self.style.bold else '{} {}'
        return '\n'.join(key.format(*r) if isinstance(r, tuple) else r for r in self.rows)


class List:
    def __init__(self, items, style):
        self.items, self.style = items, style

    def atoms(self, width):
        return list_atoms(self.items, self.style, width)

    def truth(self):
        return list_truth(self.items)


class TableBlock:
    def __init__(self, table, x_off=0):
        self.table, self.x_off = table, x_off

    def atoms(self, width):
        atom = self.table.atom()
        inner = atom.draw
        atom.draw = lambda c, x, top: inner(c, x + self.x_off, top)
        return [atom]

    def truth(self):
        return self.table.truth()


class Figure:
    """A drawing with its caption below; name is the file Galley gives the crop."""

    def __init__(self, name, height, draw, caption, style):
        self.name, self.height, self.draw = name, height, draw
        self.caption, self.style = caption, style

    def atoms(self, width):
        pic = Atom(self.height, lambda c, x, top: self.draw(c, x, top, width, self.height), before=6, tied=True)
        text = paragraph(self.caption, self.style, width)
        text[0].before = 6
        for a in text[:-1]:
            a.tied = True
        return [pic] + text

    def truth(self):
        return f'![]({self.name})\n\n{self.caption}'


def atoms_of(blocks, width):
    return [a for b in blocks for a in b.atoms(width)]


def truth_of(blocks):
    return '\n\n'.join(b.truth() for b in blocks)


def draw_at(c, blocks, x, top, width):
    """Sets blocks one below the other without breaking; returns the y below the last."""
    y, after = top, 0
    for i, a in enumerate(atoms_of(blocks, width)):
        if i:
            y -= max(after, a.before)
        a.draw(c, x, y)
        y -= a.height
        after = a.after
    return y
