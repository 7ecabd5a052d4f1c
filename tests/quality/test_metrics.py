"""test_metrics.py - the metrics themselves: values known by hand or from a plain implementation."""
import random
import unittest

import metrics as m


def plain_levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
    return row[-1]


def plain_find(a, b):
    return min(plain_levenshtein(a, b[i:j]) for i in range(len(b) + 1) for j in range(i, len(b) + 1))


class Distance(unittest.TestCase):
    def test_known(self):
        for a, b, d in (('kitten', 'sitting', 3), ('flaw', 'lawn', 2), ('', 'abc', 3), ('abc', '', 3), ('', '', 0),
                        ('same', 'same', 0), ('intention', 'execution', 5)):
            self.assertEqual(m.levenshtein(a, b), d, (a, b))

    def test_against_plain(self):
        rng = random.Random(5)
        for _ in range(400):
            a = ''.join(rng.choice('abc') for _ in range(rng.randrange(90)))
            b = ''.join(rng.choice('abc') for _ in range(rng.randrange(90)))
            self.assertEqual(m.levenshtein(a, b), plain_levenshtein(a, b), (a, b))

    def test_find(self):
        self.assertEqual(m.find_fuzzy('abc', 'xxabcxxabc'), (0, [5, 10]))
        self.assertEqual(m.find_fuzzy('abcd', 'xxabxdxx')[0], 1)
        rng = random.Random(6)
        for _ in range(60):
            a = ''.join(rng.choice('abc') for _ in range(rng.randrange(1, 7)))
            b = ''.join(rng.choice('abc') for _ in range(rng.randrange(12)))
            self.assertEqual(m.find_fuzzy(a, b)[0], plain_find(a, b), (a, b))


class Text(unittest.TestCase):
    def test_markup_is_nothing(self):
        for md, plain in (('**bold** and *slanted*', 'bold and slanted'),
                          ('a [link](http://x.y/z_1) here', 'a link here'),
                          ('snake_case_name stays', 'snake_case_name stays'), ('_it_ goes', 'it goes'),
                          (r'5 \* 3 \| 2', '5 * 3 | 2'), ('mark[^1]', 'mark1'), ('x<sup>2</sup> &amp; y', 'x2 & y'),
                          ('2 * 3 * 4', '2 * 3 * 4'), ('`code` too', 'code too'), ('***both***', 'both'),
                          ('a < b > c', 'a < b > c')):
            self.assertEqual(m.strip_inline(md), plain)

    def test_lines_and_spaces_alike(self):
        self.assertEqual(m.text_distance('# A\n\none\ntwo  three\n', '## A\n\none two\nthree'), 0)
        self.assertEqual(m.text_distance('- one\n  - two\n', '* one\n* two\n'), 0)
        self.assertEqual(m.text_distance('| a | b |\n|---|---|\n| 1 | 2 |', 'a b 1 2'), 0)

    def test_composed(self):
        self.assertEqual(m.text_distance('caf\u00e9', 'cafe\u0301'), 0)

    def test_value(self):
        self.assertAlmostEqual(m.text_distance('abcdefghij', 'abcdefghiX'), 0.1)
        self.assertEqual(m.text_distance('abc', ''), 1)
        self.assertEqual(m.text_distance('', ''), 0)

    def test_ordered_marker_is_text(self):
        self.assertAlmostEqual(m.text_distance('1. abcdefg', '- abcdefg'), 3 / 10)


class Order(unittest.TestCase):
    blocks = ['The first paragraph speaks of type.', 'Then comes paper, in reams.', 'Ink is the third thing.',
              'Last of all the binder sews.']

    def distance(self, order):
        return m.order_distance('\n\n'.join(self.blocks), '\n\n'.join(self.blocks[i] for i in order))

    def test_exact(self):
        self.assertEqual(self.distance([0, 1, 2, 3]), 0)

    def test_swap_and_missing(self):
        self.assertEqual(self.distance([1, 0, 2, 3]), 2 / 4)
        self.assertEqual(self.distance([3, 0, 1, 2]), 2 / 4)
        self.assertEqual(self.distance([0, 2, 3]), 1 / 4)
        self.assertEqual(m.order_distance('\n\n'.join(self.blocks), ''), 1)

    def test_split_and_joined_blocks_do_not_count(self):
        got = self.blocks[0][:15] + '\n\n' + self.blocks[0][15:] + ' ' + ' '.join(self.blocks[1:])
        self.assertEqual(m.order_distance('\n\n'.join(self.blocks), got), 0)

    def test_misread_letters_do_not_count(self):
        got = '\n\n'.join(b.replace('e', 'c') for b in self.blocks)
        self.assertEqual(m.order_distance('\n\n'.join(self.blocks), got), 0)

    def test_short_text_is_found_as_its_own_block(self):
        truth = 'Invoice number: 17\n\n# Invoice\n\nPaper, sixty reams of it'
        self.assertEqual(m.order_distance(truth, truth), 0)
        moved = '# Invoice\n\nInvoice number: 17\n\nPaper, sixty reams of it'
        self.assertEqual(m.order_of(truth, moved)[0], [1, 0, 2])


GFM = '| a | b |\n|---|---|\n| one | two |\n| three | four |'
HTML = ('<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>one</td><td>two</td></tr>'
        '<tr><td>three</td><td>four</td></tr></tbody></table>')


class Tables(unittest.TestCase):
    def test_same(self):
        self.assertEqual(m.table_score(GFM, GFM), 1)
        self.assertEqual(m.table_score(GFM, HTML), 1)
        self.assertEqual(m.table_score(HTML, GFM.replace('one', '**one**')), 1)
        self.assertIsNone(m.table_score('text', 'text'))

    def test_values(self):
        size = 1 + 3 + 6
        self.assertAlmostEqual(m.table_score(GFM, GFM.replace('four', 'foul')), 1 - 0.25 / size)
        self.assertAlmostEqual(m.table_score(GFM, GFM.replace('\n| three | four |', '')), 1 - 3 / size)
        wide = '| a | b |  |\n|---|---|---|\n| one | two |  |\n| three | four |  |'
        self.assertAlmostEqual(m.table_score(GFM, wide), 1 - 3 / (size + 3))
        self.assertAlmostEqual(m.table_score(HTML, HTML.replace('<th>b', '<th colspan="2">b')), 1 - 1 / size)
        self.assertEqual(m.table_score(GFM, 'a b one two three four'), 0)

    def test_swapped_columns_cost_their_texts(self):
        want = '| x |\n|---|\n| aaaa |'
        self.assertAlmostEqual(m.table_score(want, '| x |\n|---|\n| bbbb |'), 1 - 1 / 5)

    def test_several(self):
        two = GFM + '\n\ntext\n\n' + GFM.replace('one', 'six')
        self.assertEqual(m.table_score(two, two), 1)
        self.assertAlmostEqual(m.table_score(two, GFM), 0.5)
        self.assertAlmostEqual(m.table_score(GFM, two), 0.5)

    def test_pipes_in_cells(self):
        rows = m.parse('| a \\| b | c |\n|:--|--:|\n| 1 | 2 |')[0].rows
        self.assertEqual([[t for t, _, _ in r] for r in rows], [['a | b', 'c'], ['1', '2']])


class Parsing(unittest.TestCase):
    def test_kinds(self):
        md = '# T\n\npara one\nstill\n\n- x\n- y\n\n![](f.png)\n\n' + GFM + \
            '\n\n[^1]: note\n\n```\ncode  here\n```\n\n---\n'
        self.assertEqual([(b.kind, b.text) for b in m.parse(md)],
                         [('heading', 'T'), ('paragraph', 'para one still'), ('paragraph', 'x'), ('paragraph', 'y'),
                          ('figure', ''), ('table', 'a b one two three four'), ('paragraph', '1 note'),
                          ('code', 'code here')])

    def test_unfinished_input(self):
        for md in ('<table><tr><td>a', '```\nx', '| a |\n|---|', '|', '\\', '[^1]:', '#', '**', '<table>'):
            m.parse(md)


if __name__ == '__main__':
    unittest.main()
