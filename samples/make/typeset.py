"""typeset.py - a small typesetter over reportlab for the sample documents.

A document is a list of blocks whose text is inline Markdown.  The same blocks are drawn on the page
and written as the document's true Markdown, so the two cannot drift apart.  Lines are broken here
(greedy, hyphenated), not by reportlab, because the truth depends on knowing every break.
"""
import re

import pyphen
from reportlab.lib.colors import HexColor
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

A4 = (595.28, 841.89)
FONT_DIR = '/usr/share/fonts/truetype'
FAMILIES = {  # name -> (regular, bold, italic, bold italic)
    'serif': [f'liberation2/LiberationSerif-{s}.ttf' for s in ('Regular', 'Bold', 'Italic', 'BoldItalic')],
    'sans': [f'liberation2/LiberationSans-{s}.ttf' for s in ('Regular', 'Bold', 'Italic', 'BoldItalic')],
    'carlito': [f'crosextra/Carlito-{s}.ttf' for s in ('Regular', 'Bold', 'Italic', 'BoldItalic')],
    'nanum': ['nanum/NanumGothic.ttf', 'nanum/NanumGothicBold.ttf'] * 2,
}
INK = HexColor('#1a1a1a')
LINK = HexColor('#1d4e89')
_hyphens = pyphen.Pyphen(lang='en_US', left=3, right=3)
_inline = re.compile(r'\*\*(?P<b>.+?)\*\*|\*(?P<i>.+?)\*|\[\^(?P<n>\d+)\]|\[(?P<t>[^\]]+)\]\((?P<u>[^)]+)\)')


def font_name(family, bold=False, italic=False):
    """The reportlab name of a face; registers it on first use."""
    face = (1 if bold else 0) + (2 if italic else 0)
    name = f'{family}-{face}'
    if name not in pdfmetrics.getRegisteredFontNames():
        pdfmetrics.registerFont(TTFont(name, f'{FONT_DIR}/{FAMILIES[family][face]}'))
    return name


class Style:
    """How a paragraph is set; sizes in points."""

    def __init__(self, family='serif', size=10, leading=None, align='justify', bold=False,
                 italic=False, indent=0, before=0, after=6, color=INK):
        self.family, self.size, self.align = family, size, align
        self.leading = leading or size * 1.25
        self.bold, self.italic, self.color = bold, italic, color
        self.indent, self.before, self.after = indent, before, after


class Piece:
    """A run of characters of one word in one face."""

    def __init__(self, text, font, size, rise=0, link=None, color=INK, note=None):
        self.text, self.font, self.size, self.rise = text, font, size, rise
        self.link, self.color, self.note = link, color, note

    def width(self):
        return pdfmetrics.stringWidth(self.text, self.font, self.size)


def _spans(md):
    at = 0
    for m in _inline.finditer(md):
        if m.start() > at:
            yield md[at:m.start()], {}
        if m['b']:
            yield m['b'], {'bold': True}
        elif m['i']:
            yield m['i'], {'italic': True}
        elif m['n']:
            yield m['n'], {'note': int(m['n'])}
        else:
            yield m['t'], {'link': m['u']}
        at = m.end()
    if at < len(md):
        yield md[at:], {}


def words_of(md, st):
    """Inline Markdown -> words, each a list of pieces."""
    words, glue = [], False
    for text, how in _spans(md):
        font = font_name(st.family, st.bold or how.get('bold', False), st.italic or how.get('italic', False))
        note = how.get('note')
        size = st.size * 0.66 if note else st.size
        color = LINK if how.get('link') else st.color
        for part in re.findall(r' +|[^ ]+', text):
            if part[0] == ' ':
                glue = False
                continue
            piece = Piece(part, font, size, st.size * 0.34 if note else 0, how.get('link'), color, note)
            if glue:
                words[-1].append(piece)
            else:
                words.append([piece])
            glue = True
    return words


def word_width(word):
    return sum(p.width() for p in word)


def _split(word, room):
    """Cuts a word so that its head with a hyphen fits in room; None when it cannot."""
    if len(word) != 1 or word[0].link or not re.fullmatch(r"[A-Za-z]{6,}[.,;:)]?", word[0].text):
        return None
    p = word[0]
    for head, tail in _hyphens.iterate(p.text):
        cut = Piece(head + '-', p.font, p.size, p.rise, p.link, p.color)
        if cut.width() <= room:
            return [cut], [Piece(tail, p.font, p.size, p.rise, p.link, p.color)]
    return None


class Line:
    def __init__(self, words, width, last, indent):
        self.words, self.width, self.last, self.indent = words, width, last, indent

    def notes(self):
        return [p.note for w in self.words for p in w if p.note]


def break_lines(md, st, width, hyphenate=None):
    """Paragraph -> lines."""
    hyphenate = st.align == 'justify' if hyphenate is None else hyphenate
    space = pdfmetrics.stringWidth(' ', font_name(st.family, st.bold, st.italic), st.size)
    lines, todo, run = [], words_of(md, st), 0
    while todo:
        indent = st.indent if not lines else 0
        row, used = [], indent
        while todo:
            need = word_width(todo[0]) + (space if row else 0)
            if used + need <= width + 0.01:
                row.append(todo.pop(0))
                used += need
                continue
            cut = _split(todo[0], width - used - space) if hyphenate and run < 2 and row else None
            # A loose line is worse than a hyphen, a hyphen worse than a slightly loose line.
            if cut and width - used > 2.2 * space:
                row.append(cut[0])
                todo[0] = cut[1]
            elif not row:
                row.append(todo.pop(0))
            break
        run = run + 1 if row[-1][0].text.endswith('-') and todo else 0
        lines.append(Line(row, width, not todo, indent))
    return lines


def draw_line(c, line, st, x, y):
    """Draws a line with its baseline at y."""
    space = pdfmetrics.stringWidth(' ', font_name(st.family, st.bold, st.italic), st.size)
    natural = sum(word_width(w) for w in line.words) + space * (len(line.words) - 1)
    slack = line.width - line.indent - natural
    x += line.indent
    if st.align == 'justify' and not line.last and len(line.words) > 1:
        space += slack / (len(line.words) - 1)
    elif st.align == 'right':
        x += slack
    elif st.align == 'center':
        x += slack / 2
    for i, word in enumerate(line.words):
        for j, p in enumerate(word):
            tail = ' ' if j == len(word) - 1 and i < len(line.words) - 1 else ''
            c.setFillColor(p.color)
            c.setFont(p.font, p.size)
            c.drawString(x, y + p.rise, p.text + tail)
            if p.link:
                c.linkURL(p.link, (x, y - 2, x + p.width(), y + p.size), relative=0)
            x += p.width()
        x += space


class Atom:
    """Something that cannot be broken: a line, a figure, a table."""

    def __init__(self, height, draw, before=0, tied=False, notes=()):
        self.height, self.draw, self.before, self.after = height, draw, before, 0
        self.tied = tied  # stays with the next atom
        self.notes = notes


def paragraph(md, st, width, x_off=0, tied=False):
    """Atoms of a paragraph: the first and the last two lines stay together."""
    lines, out = break_lines(md, st, width - x_off), []
    for i, line in enumerate(lines):
        last = i == len(lines) - 1
        pair = (i == 0 or i == len(lines) - 2) and not last

        def draw(c, x, top, line=line):
            draw_line(c, line, st, x + x_off, top - st.size)
        out.append(Atom(st.leading, draw, st.before if i == 0 else 0, pair or (tied and last), line.notes()))
    if out:
        out[-1].after = st.after
    return out


def list_atoms(items, st, width, depth=0):
    """items: (marker, text, [sub items]).  Markers hang in the margin of their level."""
    out, step = [], st.size * 1.5
    bullet = {'-': '\u2022' if depth == 0 else '\u2013'}
    for marker, text, sub in items:
        atoms = paragraph(text, st, width, step * (depth + 1))
        first = atoms[0].draw

        def draw(c, x, top, first=first, marker=marker):
            c.setFillColor(st.color)
            c.setFont(font_name(st.family), st.size)
            c.drawString(x + step * depth + 2, top - st.size, bullet.get(marker, marker))
            first(c, x, top)
        atoms[0].draw = draw
        out += atoms + list_atoms(sub, st, width, depth + 1)
    if depth == 0:
        out[-1].after = st.size * 0.7
    return out


def list_truth(items, indent=''):
    rows = []
    for marker, text, sub in items:
        rows.append(f'{indent}{marker} {text}')
        if sub:
            rows.append(list_truth(sub, indent + ' ' * (len(marker) + 1)))
    return '\n'.join(rows)


def fill(c, atoms, frames, notes=None):
    """Flows atoms into frames (x, top, bottom).  notes: number -> (height, draw): set at the foot of
    the frame where the mark falls.  Returns [] or the atoms that found no room; c None: measure."""
    todo, notes = list(atoms), notes or {}
    for x, top, bottom in frames:
        y, foot, after = top, bottom, 0
        here = []
        while todo:
            group = [todo[0]]
            while group[-1].tied and len(group) < len(todo):
                group.append(todo[len(group)])
            gaps = [max(after, group[0].before) if y < top else 0]
            gaps += [max(a.after, b.before) for a, b in zip(group, group[1:])]
            need = sum(gaps) + sum(a.height for a in group)
            marks = [n for a in group for n in a.notes]
            more = sum(notes[n][0] for n in marks)
            if y - need < foot + more - 0.01:
                break
            foot += more
            here += marks
            for a, gap in zip(group, gaps):
                y -= gap
                if c:
                    a.draw(c, x, y)
                y -= a.height
                todo.pop(0)
            after = group[-1].after
        base = bottom
        for n in reversed(here):
            if c:
                notes[n][1](c, x, base)
            base += notes[n][0]
    return todo


def fill_balanced(c, atoms, frames, notes=None):
    """As fill, but with the columns' feet as high as they can be; returns the lowest foot used."""
    low = max(b for _, _, b in frames)
    top = min(t for _, t, _ in frames)
    for foot in range(int(top), int(low) - 1, -1):
        cut = [(x, t, max(b, foot)) for x, t, b in frames]
        if not fill(None, atoms, cut, notes):
            assert not fill(c, atoms, cut, notes)
            return foot
    raise SystemExit(f'{len(atoms)} atoms do not fit: {len(fill(None, atoms, frames, notes))} remain')


def gfm_table(rows):
    """Rows of cells, the first the header -> a GFM table."""
    body = ['| ' + ' | '.join(r) + ' |' for r in rows]
    return '\n'.join([body[0], '|' + '---|' * len(rows[0])] + body[1:])
