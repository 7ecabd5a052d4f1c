"""tables.py - five tables: ruled, booktabs, no rules, spanning cells, signed numbers."""
from reportlab.pdfgen import canvas

from blocks import Heading, Para, TableBlock, atoms_of, truth_of
from grid import Cell, Table
from typeset import A4, Style, fill, font_name

W, H = A4
LEFT, RIGHT, TOP, FOOT = 64, W - 64, H - 70, 60
WIDTH = RIGHT - LEFT
TITLE = Style('serif', 19, 23, 'left', bold=True, after=6)
H2 = Style('serif', 13, 16, 'left', bold=True, before=16, after=4)
TEXT = Style('serif', 10.5, 13.6, 'justify', after=7)
CAPTION = Style('serif', 9.5, 12, 'left', italic=True, before=4, after=3)

RULED = Table([(96, 'left'), (84, 'left'), (70, 'right'), (76, 'right'), (141, 'left')],
              [['Paper', 'Surface', 'Weight', 'Sheets', 'Used for'],
               ['Whitby Laid', 'laid', '120 g', '4,200', 'letterheads and cards'],
               ['Tanner Bulk', 'rough', '90 g', '18,650', 'novels and other long texts'],
               ['Coast Matt', 'coated', '135 g', '7,040', 'catalogues with photographs'],
               ['Proofing No. 2', 'smooth', '70 g', '31,500', 'galley proofs'],
               ['Wool Wrapper', 'felt', '240 g', '860', '']], 'all')
BOOKTABS = Table([(150, 'left'), (79, 'right'), (79, 'right'), (79, 'right'), (80, 'right')],
                 [['Typeface', 'Size', 'Leading', 'Measure', 'Characters'],
                  ['Liberation Serif', '10.0 pt', '12.5 pt', '21 pica', '58'],
                  ['Liberation Sans', '9.5 pt', '12.5 pt', '21 pica', '55'],
                  ['Carlito', '10.5 pt', '13.0 pt', '24 pica', '66'],
                  ['DejaVu Serif', '9.0 pt', '12.0 pt', '24 pica', '52']], 'booktabs', family='serif', size=10)
PLAIN = Table([(140, 'left'), (90, 'left'), (90, 'left'), (80, 'right')],
              [['Reader', 'Morning', 'Afternoon', 'Pages'],
               ['Helen Okafor', 'Journals', 'Books', '212'],
               ['Jonas Lindqvist', 'Price lists', 'Queries', '147'],
               ['Margaret Ashby', 'Books', 'Books', '305'],
               ['Tom\u00e1s Weir', 'Programmes', 'Price lists', '178']], 'none', family='serif', size=10)
SPANS = Table([(117, 'left'), (58, 'right'), (58, 'right'), (58, 'right'), (58, 'right'), (118, 'left')],
              [[Cell('Press', rowspan=2), Cell('First half', colspan=2), Cell('Second half', colspan=2),
                Cell('Remark', rowspan=2)],
               ['Hours', 'Sheets', 'Hours', 'Sheets'],
               ['Platen', '310', '96,000', '284', '88,400', 'new rollers in May'],
               ['Cylinder', '642', '512,700', '655', '530,100', ''],
               [Cell('Proofing press', rowspan=1), '118', '9,350', Cell('under repair', colspan=2), 'back in service'],
               ['All presses', '1,070', '618,050', '939', '618,500', '']], 'all', n_head=2)
SIGNED = Table([(127, 'left'), (85, 'right'), (85, 'right'), (85, 'right'), (85, 'right')],
               [['Department', '2024', '2025', 'Change', 'Per cent'],
                ['Composing', '48,200', '51,930', '+3,730', '+7.7 %'],
                ['Printing', '121,450', '117,080', '-4,370', '-3.6 %'],
                ['Binding', '33,900', '33,900', '0', '0.0 %'],
                ['Paper', '(12,600)', '(9,815)', '+2,785', '+22.1 %'],
                ['Total', '190,950', '193,095', '+2,145', '+1.1 %']], 'booktabs', size=9.5)

PAGE1 = [
    Heading(1, 'Five Tables from a Printing House', TITLE),
    Para('The tables below hold the same kind of matter in five ways of setting it. The first has all its rules, '
         'the second only three, the third none; the fourth has cells that reach across columns and rows, and the '
         'fifth has numbers with signs.', TEXT),
    Heading(2, 'Stock of paper', H2),
    Para('Stock is counted on the last working day of the month. The remark for the wrapper is missing because '
         'nobody remembers what it was bought for.', TEXT),
    Para('Table 1. Paper in the warehouse at the end of June.', CAPTION, tied=True),
    TableBlock(RULED),
    Heading(2, 'House settings', H2),
    Para('Text is set to a measure of between 50 and 70 characters. Shorter lines are torn apart by their spaces, '
         'and in longer ones the eye does not find the way back.', TEXT),
    Para('Table 2. Settings that need no further approval.', CAPTION, tied=True),
    TableBlock(BOOKTABS),
    Heading(2, 'Who reads when', H2),
    Para('The roster changes every quarter. Pages are counted when the slip is signed.', TEXT),
    Para('Table 3. The roster of the reading room for the third quarter.', CAPTION, tied=True),
    TableBlock(PLAIN),
]
PAGE2 = [
    Heading(2, 'Hours and sheets', H2),
    Para('The proofing press stood still from August onwards, and its hours were made up by the platen. Sheets are '
         'counted as delivered, without the ones that were spoiled while the press was being made ready.', TEXT),
    Para('Table 4. Use of the presses in the two halves of the year.', CAPTION, tied=True),
    TableBlock(SPANS),
    Heading(2, 'Results of the departments', H2),
    Para('Amounts are in pounds. A loss is put in brackets, a change has its sign in front, and no change is '
         'written as a bare zero.', TEXT),
    Para('Table 5. Results of two years and the difference between them.', CAPTION, tied=True),
    TableBlock(SIGNED),
    Para('The loss of the paper department has shrunk for the third year in a row. It will not disappear, since the '
         'warehouse must keep what customers may order at short notice.', TEXT),
]


def make(path):
    """Draws the tables; returns the true Markdown."""
    c = canvas.Canvas(path, pagesize=A4, invariant=1)
    c.setTitle('Five Tables from a Printing House')
    for n, blocks in enumerate((PAGE1, PAGE2), 1):
        c.setFont(font_name('serif'), 9)
        c.drawCentredString(W / 2, 36, f'- {n} -')
        rest = fill(c, atoms_of(blocks, WIDTH), [(LEFT, TOP, FOOT)])
        assert not rest, len(rest)
        c.showPage()
    c.save()
    return truth_of(PAGE1 + PAGE2)
