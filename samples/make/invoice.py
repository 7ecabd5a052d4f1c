"""invoice.py - one page of business: addresses, key/value lines, an item table without vertical
rules, totals flush right."""
from reportlab.lib.colors import HexColor
from reportlab.pdfgen import canvas

from blocks import Heading, Lines, Para, TableBlock, draw_at, truth_of
from grid import Table
from typeset import A4, Style

W, H = A4
LEFT, RIGHT = 62, W - 62
WIDTH = RIGHT - LEFT
TEXT = Style('carlito', 10.5, 14, 'left', after=8)
KEY = Style('carlito', 10.5, 14, 'left', bold=True)
NAME = Style('carlito', 19, 23, 'left', bold=True, color=HexColor('#23425f'))
TITLE = Style('carlito', 16, 20, 'left', bold=True)

SENDER = [Heading(1, 'Marlow & Finch', NAME),
          Lines(['Printers and Bookbinders', '18 Saddler Street, Durham DH1 3NP',
                 'Telephone 0191 555 0142, office@marlowfinch.example'], TEXT)]
BILL_TO = [Para('**Bill to**', TEXT),
           Lines(['Andr\u00e9 Villiers', 'Northgate Museum of Maps', '4 Observatory Rise',
                  'Hexham NE46 1QA'], TEXT)]
META = [Lines([('Invoice number:', '2026-0417'), ('Invoice date:', '14 May 2026'),
               ('Order reference:', 'NMM/PUB/118'), ('Customer number:', '30512'),
               ('Payment due:', '13 June 2026')], TEXT, tab=104, key_style=KEY)]
ITEMS = [('Exhibition catalogue, 96 pages, sewn', '450', '6.85'), ('Slipcase in grey board, blocked', '450', '2.10'),
         ('Poster A2, four colours', '200', '1.42'), ('Invitation card with envelope', '1,200', '0.38'),
         ('Proof-reading, per hour', '14', '39.00'), ('Additional proofs, per set', '3', '24.50'),
         ('Delivery to Hexham', '1', '65.00')]
THANKS = [Heading(3, 'Terms of payment', Style('carlito', 12, 15, 'left', bold=True, after=4)),
          Para('Payment is due within 30 days of the invoice date, without deduction. Please quote the '
               'invoice number with your transfer. Goods remain our property until they have been paid '
               'for in full; claims concerning quantity or finish can be accepted within ten days of '
               'delivery.', TEXT),
          Lines([('Account holder:', 'Marlow & Finch Ltd'), ('IBAN:', 'GB00 TEST 1234 5678 9012 34'),
                 ('BIC:', 'TESTGB2LXXX'), ('VAT registration:', 'GB 000 1234 56')], TEXT, tab=104,
                key_style=KEY),
          Para('Thank you for your order. The plates of the catalogue will be kept for two years.', TEXT)]


def money(x):
    return f'{x:,.2f}'


def number(text):
    return float(text.replace(',', ''))


def item_table():
    rows = [['Pos.', 'Description', 'Quantity', 'Unit price', 'Amount']]
    total = 0
    for i, (what, n, price) in enumerate(ITEMS):
        amount = number(n) * number(price)
        total += amount
        rows.append([str(i + 1), what, n, price, money(amount)])
    cols = [(34, 'left'), (214, 'left'), (66, 'right'), (74, 'right'), (WIDTH - 388, 'right')]
    return Table(cols, rows, 'rows', size=10, family='carlito', pad=4.5), total


def totals(net):
    vat = round(net * 0.2, 2)
    bold = Style('carlito', 11.5, 17, 'left', bold=True)
    return [Lines([('Subtotal', money(net)), ('VAT 20 %', money(vat))], Style('carlito', 10.5, 15, 'left', after=2),
                  right=True),
            Lines([('Total GBP', money(net + vat))], bold, right=True)]


def make(path):
    """Draws the invoice; returns its true Markdown."""
    c = canvas.Canvas(path, pagesize=A4, invariant=1)
    c.setTitle('Invoice 2026-0417')
    y = draw_at(c, SENDER, LEFT, H - 52, WIDTH)
    c.setStrokeColor(HexColor('#23425f'))
    c.setLineWidth(1.2)
    c.line(LEFT, y - 8, RIGHT, y - 8)
    top = y - 36
    y = draw_at(c, BILL_TO, LEFT, top, 200)
    draw_at(c, META, LEFT + 268, top, 204)
    title = [Heading(2, 'Invoice', TITLE)]
    y = draw_at(c, title, LEFT, y - 30, WIDTH) - 8
    table, net = item_table()
    y = draw_at(c, [TableBlock(table)], LEFT, y, WIDTH) - 22
    sums = totals(net)
    y = draw_at(c, sums, RIGHT - 176, y, 171) - 34
    draw_at(c, THANKS, LEFT, y, WIDTH)
    c.save()
    sums = '\n'.join(truth_of([s]) for s in sums)
    return '\n\n'.join([truth_of(SENDER), truth_of(BILL_TO), truth_of(META), truth_of(title),
                        truth_of([TableBlock(table)]), sums, truth_of(THANKS)])
