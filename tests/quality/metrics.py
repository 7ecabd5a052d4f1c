"""metrics.py - how far a Markdown document is from the true one.

Three figures, each from 0 to 1: the edit distance of the text (0 is best), the distance of the
reading order (0 is best) and the likeness of the tables (TEDS, 1 is best).  Standard library only.
"""
import html
import re
import unicodedata

ORDER_FOUND = 0.4  # a block is found where at most this share of its characters differs


def levenshtein(a, b):
    """Edit distance of two sequences of hashable things: Myers' bit vectors, one big integer."""
    if not a:
        return len(b)
    return _myers(a, b, 1)[0]


def find_fuzzy(needle, text):
    """(distance, ends): the least edit distance of needle to any part of text, and where such parts
    end (exclusive)."""
    if not needle:
        return 0, [0]
    return _myers(needle, text, 0)[1:]


def _myers(a, b, carry):
    """carry 1: a against all of b; 0: a against any part of b.
    Returns (distance at the end, least distance, ends of the least)."""
    peq = {}
    for i, x in enumerate(a):
        peq[x] = peq.get(x, 0) | 1 << i
    mask, high = (1 << len(a)) - 1, 1 << (len(a) - 1)
    pv, mv, score = mask, 0, len(a)
    best, ends = score, [0]
    for i, x in enumerate(b):
        eq = peq.get(x, 0)
        xv = eq | mv
        xh = (((eq & pv) + pv) ^ pv) | eq
        ph = mv | (~(xh | pv) & mask)
        mh = pv & xh
        score += 1 if ph & high else -1 if mh & high else 0
        ph = (ph << 1 | carry) & mask
        mh = mh << 1 & mask
        pv = mh | (~(xv | ph) & mask)
        mv = ph & xv
        if score < best:
            best, ends = score, []
        if score == best:
            ends.append(i + 1)
    return score, best, ends


class Block:
    """A piece of a document: kind, plain text, and for tables the rows."""

    def __init__(self, kind, text, rows=None):
        self.kind, self.text, self.rows = kind, text, rows


def squeeze(text):
    """NFC, white space collapsed."""
    return ' '.join(unicodedata.normalize('NFC', text).split())


def strip_inline(md):
    """Inline Markdown -> the characters a reader sees."""
    kept = []  # escaped characters wait outside until the markup is gone

    def hide(m):
        kept.append(m[1])
        return f'\x00{len(kept) - 1}\x00'
    s = re.sub(r'\\([!-/:-@\[-`{-~])', hide, md)
    s = re.sub(r'!\[[^\]]*\]\([^)]*\)', '', s)
    s = re.sub(r'\[\^([^\]\s]+)\]:?', r'\1', s)
    s = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', s)
    s = re.sub(r'<br\s*/?>', ' ', s)
    s = re.sub(r'</?[a-zA-Z][^<>]*>', '', s)
    s = re.sub(r'`+([^`]*)`+', r'\1', s)
    for mark in (r'\*\*\*', r'\*\*', r'\*', r'~~'):
        s = re.sub(rf'{mark}(?=\S)(.+?)(?<=\S){mark}', r'\1', s)
    s = re.sub(r'(?<![\w])(_{1,2})(?=\S)(.+?)(?<=\S)\1(?![\w])', r'\2', s)
    s = re.sub('\x00(\\d+)\x00', lambda m: kept[int(m[1])], s)
    return squeeze(html.unescape(s))


def _pipe_row(line):
    body = line.strip()
    body = body[1:] if body.startswith('|') else body
    body = body[:-1] if body.endswith('|') and not body.endswith('\\|') else body
    return [(strip_inline(c), 1, 1) for c in re.split(r'(?<!\\)\|', body)]


def _html_rows(text):
    rows = []
    for row in re.findall(r'<tr\b[^>]*>(.*?)(?:</tr>|(?=<tr\b)|$)', text, re.S | re.I):
        cells = []
        for attrs, body in re.findall(r'<t[hd]\b([^>]*)>(.*?)(?:</t[hd]>|(?=<t[hd]\b)|$)', row, re.S | re.I):
            span = {k: int(v) for k, v in re.findall(r'(colspan|rowspan)\s*=\s*["\']?(\d+)', attrs, re.I)}
            cells.append((strip_inline(body), span.get('colspan', 1), span.get('rowspan', 1)))
        rows.append(cells)
    return rows


def _table(rows):
    return Block('table', squeeze(' '.join(t for r in rows for t, _, _ in r)), rows)


_list_item = re.compile(r'\s*(?:[-*+]|(\d{1,9}[.)]))\s+(.*)')
_delimiter = re.compile(r'\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$')


def parse(md):
    """Markdown -> blocks.  Lists yield a block per item, hard line breaks stay in one block."""
    out, lines, i = [], md.replace('\r\n', '\n').split('\n'), 0
    para = []

    def flush():
        if para:
            out.append(Block('paragraph', strip_inline('\n'.join(para))))
            para.clear()
    while i < len(lines):
        line = lines[i]
        item = _list_item.match(line)
        if not line.strip():
            flush()
        elif re.match(r'\s*(```|~~~)', line):
            flush()
            fence = line.strip()[:3]
            end = next((k for k in range(i + 1, len(lines)) if lines[k].strip().startswith(fence)), len(lines))
            out.append(Block('code', squeeze('\n'.join(lines[i + 1:end]))))
            i = end
        elif re.match(r'\s*<table\b', line, re.I):
            flush()
            end = next((k for k in range(i, len(lines)) if '</table>' in lines[k].lower()), len(lines) - 1)
            out.append(_table(_html_rows('\n'.join(lines[i:end + 1]))))
            i = end
        elif '|' in line and i + 1 < len(lines) and '|' in lines[i + 1] and _delimiter.match(lines[i + 1]):
            flush()
            rows = [_pipe_row(line)]
            i += 1
            while i + 1 < len(lines) and lines[i + 1].strip().startswith('|'):
                i += 1
                rows.append(_pipe_row(lines[i]))
            out.append(_table(rows))
        elif re.match(r'#{1,6}\s', line):
            flush()
            out.append(Block('heading', strip_inline(line.lstrip('#').rstrip('# '))))
        elif re.match(r'\s*([-*_])\s*(\1\s*){2,}$', line):
            flush()
        elif re.match(r'!\[[^\]]*\]\([^)]*\)\s*$', line):
            flush()
            out.append(Block('figure', ''))
        elif re.match(r'\[\^[^\]]+\]:', line):
            flush()
            para.append(line)
        elif item:
            flush()
            para.append((item[1] + ' ' if item[1] else '') + item[2])
        else:
            para.append(re.sub(r'^\s*>\s?', '', line.rstrip('\\')))
        i += 1
    flush()
    return out


def text_of(blocks):
    return squeeze(' '.join(b.text for b in blocks if b.text))


def text_distance(truth, got):
    """Normalised edit distance of the plain text."""
    a, b = text_of(parse(truth)), text_of(parse(got))
    return levenshtein(a, b) / max(len(a), len(b), 1)


def order_of(truth, got):
    """The true blocks' numbers in the order in which the output has them; missing ones left out."""
    blocks = [b for b in parse(truth) if b.text]
    out, edges = '', set()
    for b in parse(got):
        if b.text:
            out += (' ' if out else '') + b.text
            edges.add(len(out))
    found, last = [], 0
    for i, b in enumerate(blocks):
        dist, ends = find_fuzzy(b.text, out)
        if dist > ORDER_FOUND * len(b.text):
            continue
        # A short text occurs more than once: the one that is a block of its own, then the next one.
        whole = [e for e in ends if e in edges and (e == len(b.text) or e - len(b.text) - 1 in edges)]
        ends = whole or [e for e in ends if e in edges] or ends
        end = min(ends, key=lambda e: (e <= last, abs(e - last)))
        found.append((end, i))
        last = end
    return [i for _, i in sorted(found)], len(blocks)


def order_distance(truth, got):
    """Normalised edit distance of the sequence of blocks: 0 is the true order, all found."""
    seq, n = order_of(truth, got)
    return levenshtein(list(range(n)), seq) / n if n else 0.0


class _Node:
    def __init__(self, label, children=()):
        self.label, self.children = label, children


def _tree(rows):
    return _Node(('table',), [_Node(('tr',), [_Node(('td', c, r, t)) for t, c, r in row]) for row in rows])


def _postorder(tree):
    """(labels, leftmost leaf of each, key roots) for Zhang and Shasha's algorithm."""
    labels, left = [], []

    def walk(node):
        first = None
        for child in node.children:
            leaf = walk(child)
            first = leaf if first is None else first
        labels.append(node.label)
        left.append(len(labels) - 1 if first is None else first)
        return left[-1]
    walk(tree)
    roots = sorted({leaf: k for k, leaf in enumerate(left)}.values())
    return labels, left, roots


def _rename(a, b):
    if a[0] != b[0]:
        return 1.0
    if a[0] != 'td':
        return 0.0
    if a[1:3] != b[1:3]:
        return 1.0
    return levenshtein(a[3], b[3]) / max(len(a[3]), len(b[3]), 1)


def tree_distance(one, two):
    """Zhang-Shasha; insert and delete cost 1, rename as above."""
    la, a_left, a_roots = _postorder(one)
    lb, b_left, b_roots = _postorder(two)
    cost = [[_rename(x, y) for y in lb] for x in la]
    td = [[0.0] * len(lb) for _ in la]
    for i in a_roots:
        for j in b_roots:
            a0, b0 = a_left[i], b_left[j]
            fd = [[0.0] * (j - b0 + 2) for _ in range(i - a0 + 2)]
            for x in range(1, i - a0 + 2):
                fd[x][0] = x
            for y in range(1, j - b0 + 2):
                fd[0][y] = y
            for x in range(1, i - a0 + 2):
                for y in range(1, j - b0 + 2):
                    p, q = a0 + x - 1, b0 + y - 1
                    best = min(fd[x - 1][y], fd[x][y - 1]) + 1
                    if a_left[p] == a0 and b_left[q] == b0:
                        fd[x][y] = td[p][q] = min(best, fd[x - 1][y - 1] + cost[p][q])
                    else:
                        fd[x][y] = min(best, fd[a_left[p] - a0][b_left[q] - b0] + td[p][q])
    return td[-1][-1]


def teds(rows_a, rows_b):
    """Tree-edit-distance similarity of two tables given as rows of (text, colspan, rowspan)."""
    size = max(1 + sum(1 + len(r) for r in rows) for rows in (rows_a, rows_b))
    return 1 - tree_distance(_tree(rows_a), _tree(rows_b)) / size


def table_score(truth, got):
    """Mean TEDS over the document's tables; a missing or invented table counts 0.  None: no table."""
    want = [b.rows for b in parse(truth) if b.kind == 'table']
    have = [b.rows for b in parse(got) if b.kind == 'table']
    n = max(len(want), len(have))
    if n == 0:
        return None
    total, free = 0.0, list(range(len(have)))
    for w in want:
        scores = [(teds(w, have[k]), -k) for k in free]
        if scores:
            score, k = max(scores)
            total += score
            free.remove(-k)
    return total / n
