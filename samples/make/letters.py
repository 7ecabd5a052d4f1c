"""letters.py - two business letters: one scanned askew, one photographed."""
import os
import subprocess
import tempfile

import numpy as np
from PIL import Image, ImageFilter
from reportlab.pdfgen import canvas

from blocks import Heading, Lines, List, Para, draw_at, truth_of
from typeset import A4, Style

W, H = A4
LEFT, RIGHT = 76, W - 76
WIDTH = RIGHT - LEFT


def styles(family, size=11.5):
    text = Style(family, size, size * 1.32, 'left', after=9)
    return text, Style(family, size * 1.55, size * 1.9, 'left', bold=True, after=1), \
        Style(family, size, size * 1.32, 'left', after=3)


def scan_letter():
    text, name, item = styles('serif')
    subject = Style('serif', 11.5, 15.2, 'left', bold=True, after=10)
    return [
        Heading(1, 'Quayside Paper Merchants', name),
        Lines(['27 Tanner Row, Bristol BS1 4QT', 'Telephone 0117 555 0199'],
              Style('serif', 10.5, 13.6, 'left', after=26)),
        Lines(['Ms Helen Okafor', 'Harbour Lane Press', '9 Harbour Lane', 'Whitby YO21 3PU'],
              Style('serif', 11.5, 15.2, 'left', after=20)),
        Lines(['3 March 2026'], Style('serif', 11.5, 15.2, 'left', after=16)),
        Lines(['Your order of 20 February: laid paper, 120 grams'], subject),
        Para('Dear Ms Okafor,', text),
        Para('Thank you for your order. The first two pallets left our warehouse this morning and should reach '
             'you on Thursday between nine and twelve. The driver will telephone half an hour before he arrives, '
             'since the lane is too narrow for him to wait there.', text),
        Para('The third pallet is delayed. The mill has found that the last making was slightly too blue, and we '
             'did not wish to send you a shade that would not match the sheets you already hold. You can choose '
             'between these possibilities:', text),
        List([('1.', 'to wait for the new making, which is promised for 24 March;', []),
              ('2.', 'to accept the bluer sheets at a reduction of 15 per cent;', []),
              ('3.', 'to cancel the remainder, at no cost to you.', [])], item),
        Para('If we do not hear from you by Friday, 13 March, we shall assume that you prefer to wait. Two sheets of '
             'the bluer paper are enclosed, so that you can judge for yourself; please hold them beside the old '
             'stock in daylight, not under the lamp.', text),
        Para('Our invoice for the first part, 1,846.50 pounds, will follow by separate post.', text),
        Lines(['Yours sincerely,'], Style('serif', 11.5, 15.2, 'left', after=34)),
        Lines(['Daniel Hargreave', 'Sales office'], Style('serif', 11.5, 15.2, 'left', after=16)),
        Lines(['Enclosed: two sample sheets'], Style('serif', 10.5, 13.6, 'left')),
    ]


def photo_letter():
    text, name, item = styles('sans', 11)
    subject = Style('sans', 11, 14.5, 'left', bold=True, after=10)
    return [
        Heading(1, 'The Reading Room Society', name),
        Lines(['5 Mill Bank, Hebden Bridge HX7 8AB'], Style('sans', 10, 13, 'left', after=28)),
        Lines(['Mr Jonas Lindqvist', '61 Crossley Terrace', 'Leeds LS6 2EB'],
              Style('sans', 11, 14.5, 'left', after=20)),
        Lines(['19 October 2026'], Style('sans', 11, 14.5, 'left', after=16)),
        Lines(['Your talk on 12 November'], subject),
        Para('Dear Mr Lindqvist,', text),
        Para('We are delighted that you can come. The evening begins at half past seven in the upper room of the '
             'library, and we expect about forty people, most of whom have set type by hand at least once. There '
             'is a projector, a blackboard and, if you should want it, a small proofing press that still works.', text),
        Para('As agreed, the Society pays your fare and a fee of 150 pounds. Would you kindly let us know before '
             'the end of the month:', text),
        List([('-', 'the title of your talk, for the printed card;', []),
              ('-', 'whether you will need a room for the night;', []),
              ('-', 'anything that you would rather not eat.', [])], item),
        Para('The last train to Leeds leaves at 22:47. The walk from the library to the station takes twelve minutes '
             'and is downhill, and one of us will be glad to carry your samples.', text),
        Para('Members have asked whether they may bring their own misprints. I told them that they should, but only '
             'one each, and that the speaker must not be asked to guess the year.', text),
        Lines(['With kind regards,'], Style('sans', 11, 14.5, 'left', after=32)),
        Lines(['Margaret Ashby', 'Honorary Secretary'], Style('sans', 11, 14.5, 'left')),
    ]


def render(blocks, dpi):
    """Blocks -> an RGB page as an array."""
    with tempfile.TemporaryDirectory() as tmp:
        pdf = os.path.join(tmp, 'letter.pdf')
        c = canvas.Canvas(pdf, pagesize=A4, invariant=1)
        draw_at(c, blocks, LEFT, H - 64, WIDTH)
        c.save()
        subprocess.run(['pdftoppm', '-r', str(dpi), '-png', '-singlefile', pdf, os.path.join(tmp, 'page')], check=True)
        return Image.open(os.path.join(tmp, 'page.png')).convert('RGB')


def make_scan(path):
    """Gray, 150 dpi, turned by 1.3 degrees, with the grain of a flatbed scanner."""
    blocks = scan_letter()
    page = render(blocks, 300).convert('L')
    page = page.rotate(1.3, Image.BICUBIC, fillcolor=255)
    page = page.resize((1240, 1754), Image.LANCZOS).filter(ImageFilter.GaussianBlur(0.55))
    rng = np.random.default_rng(7)
    a = np.asarray(page, float) * 0.86 + 24 + rng.normal(0, 5, (1754, 1240))
    a = np.where(a > 232, 244, a)  # the white point of a scanner swallows most grain
    a = np.round(np.clip(a, 0, 255) / 8) * 8
    Image.fromarray(np.clip(a, 0, 255).astype('uint8')).save(path, optimize=True, dpi=(150, 150))
    return truth_of(blocks)


def make_photo(path):
    """Colour, uneven light, turned by 2 degrees, JPEG; stored lying on its side (orientation 6)."""
    blocks = photo_letter()
    page = render(blocks, 240).rotate(-2, Image.BICUBIC, fillcolor=(255, 255, 255))
    page = page.resize((1488, 2105), Image.LANCZOS).filter(ImageFilter.GaussianBlur(0.7))
    h, w = 2105, 1488
    yy, xx = np.mgrid[0:h, 0:w]
    light = 0.97 - 0.30 * (xx / w) - 0.16 * (yy / h) ** 2
    a = np.asarray(page, float) * light[..., None] * np.array([1.0, 0.965, 0.90])
    a = 14 + a * 0.92 + np.random.default_rng(11).normal(0, 3.5, (h, w, 1))
    photo = Image.fromarray(np.clip(a, 0, 255).astype('uint8')).rotate(90, expand=True)
    exif = Image.Exif()
    exif[0x0112] = 6  # show it turned by 90 degrees clockwise
    photo.save(path, quality=62, exif=exif.tobytes())
    return truth_of(blocks)
