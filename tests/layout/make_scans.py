#!/usr/bin/env python3
"""make_scans.py - draws the page images of test_ocr.c and test_raster.c.

Needs Pillow and the Debian fonts fonts-dejavu-core and fonts-nanum.  Every random choice is
seeded.  Writes tests/layout/scans/*.png|jpg and NAME.txt, the words that were drawn.

    python3 tests/layout/make_scans.py
"""
import os
import random

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scans")
SERIF = "/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf"
SANS = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
BOLD = "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf"
HANGUL = "/usr/share/fonts/truetype/nanum/NanumGothic.ttf"

TITLE = "The harbour in winter"
LINES = [
    "Most of the boats were pulled up on the shingle by the",
    "first week of November, and the few that stayed afloat lay",
    "double moored behind the northern wall. Nobody expected a",
    "gentle season. The old keeper wrote in his journal that the",
    "glass had fallen to 973 and was falling still, and that the",
    "lamp would burn through forty nights without a pause.",
    "",
    "Repairs began in January. A new rope cost 14 shillings, a",
    "barrel of tar twice as much, and the carpenter asked to be",
    "paid before he touched the quay. The council agreed, though",
    "three members voted against it and one left the room. By",
    "spring the gap was closed, the stones were level again, and",
    "the ferry could land its passengers on both tides.",
]
LIST = [
    "Before the ferry left I told them what to bring:",
    "\u2022 the title of the talk, printed on a card;",
    "\u2022 a lamp, in case the evening is long;",
    "\u2022 nothing that would spoil in the rain.",
]
KOREAN = [
    "겨울 항구에는 배가 거의 없었다.",
    "등대지기는 날마다 일기를 썼다.",
    "봄이 오면 사람들이 돌아올 것이다.",
]


def font(path, pt, dpi):
    return ImageFont.truetype(path, round(pt * dpi / 72))


def page(w_in, h_in, dpi, paper=255):
    return Image.new("L", (round(w_in * dpi), round(h_in * dpi)), paper)


def text_block(im, dpi, x, y, lines, face=SERIF, pt=11, pitch=15, ink=0):
    draw = ImageDraw.Draw(im)
    f = font(face, pt, dpi)
    for line in lines:
        draw.text((x * dpi / 72, y * dpi / 72), line, font=f, fill=ink)
        y += pitch
    return y


def plain(dpi=150, size=(5.5, 4.2)):
    im = page(*size, dpi)
    text_block(im, dpi, 36, 30, [TITLE], BOLD, 16)
    text_block(im, dpi, 36, 66, LINES)
    return im


def save(im, name, words=None, colors=16, dpi=150, **kw):
    if name.endswith(".png"):
        im = im.quantize(colors) if im.mode == "L" and colors < 256 else im
        im.save(os.path.join(OUT, name), optimize=True, dpi=(dpi, dpi))
    else:
        im.save(os.path.join(OUT, name), dpi=(dpi, dpi), **kw)
    if words is not None:
        with open(os.path.join(OUT, name.rsplit(".", 1)[0] + ".txt"), "w", encoding="utf-8") as f:
            f.write("\n".join(w for w in words if w) + "\n")


def table(dpi=150):
    im = page(5.5, 3.2, dpi)
    draw = ImageDraw.Draw(im)
    rows = [["Item", "Count", "Price"], ["Rope", "12", "14.50"], ["Tar", "3", "28.00"],
            ["Timber", "40", "7.25"], ["Nails", "900", "0.02"]]
    xs = [40, 180, 270, 360]
    ys = [40 + 24 * i for i in range(6)]
    p = lambda v: round(v * dpi / 72)
    for y in ys:  # hairlines, one pixel
        draw.line([(p(xs[0]), p(y)), (p(xs[-1]), p(y))], fill=90, width=1)
    for x in xs:
        draw.line([(p(x), p(ys[0])), (p(x), p(ys[-1]))], fill=90, width=1)
    for x in range(p(xs[0]) + 37, p(xs[-1]), 97):  # a scanner loses a pixel here and there
        im.putpixel((x, p(ys[2])), 255)
    for r, row in enumerate(rows):
        text_block(im, dpi, xs[0] + 6, ys[r] + 5, [row[0]], SANS, 11)
        text_block(im, dpi, xs[1] + 6, ys[r] + 5, [row[1]], SANS, 11)
        text_block(im, dpi, xs[2] + 6, ys[r] + 5, [row[2]], SANS, 11)
    text_block(im, dpi, 40, 178, ["Prices are in shillings, delivery is not included."], SERIF, 10)
    return im, rows


def noise(size, sigma, seed):
    random.seed(seed)
    n = Image.new("L", size)
    n.putdata([max(0, min(255, round(random.gauss(128, sigma)))) for _ in range(size[0] * size[1])])
    return n


def photo(dpi=150):
    """A page under a lamp: bright on one side, dim and yellowish on the other, blurred, noisy."""
    im = plain(dpi)
    w, h = im.size
    light = Image.new("L", (16, 16))
    light.putdata([round(250 - 7.5 * x - 3 * y) for y in range(16) for x in range(16)])
    light = light.resize((w, h), Image.BICUBIC)
    im = ImageChops.multiply(im.point(lambda v: 28 + v * 227 // 255), light)
    im = im.filter(ImageFilter.GaussianBlur(0.6))
    im = ImageChops.add(im, noise((w, h), 5, 3), 1, -128)
    return Image.merge("RGB", (im, im.point(lambda v: v * 97 // 100), im.point(lambda v: v * 86 // 100)))


def blank(dpi=100):
    """An empty sheet as scanners deliver it: grain, specks, punch holes, a shadow along an edge."""
    im = page(8.27, 11.69, dpi, 246)
    w, h = im.size
    im = ImageChops.add(im, noise((w, h), 4, 5), 1, -128)
    draw = ImageDraw.Draw(im)
    random.seed(9)
    for _ in range(60):
        x, y = random.randrange(w), random.randrange(h)
        draw.rectangle([x, y, x + random.randrange(2), y + random.randrange(2)], fill=120)
    for y in (0.36, 0.64):
        cx, cy, r = 0.45 * dpi, y * h, 0.12 * dpi
        draw.ellipse([cx - r, cy - r, cx + r, cy + r], fill=30)
    for x in range(round(0.12 * dpi)):
        draw.line([(w - 1 - x, 0), (w - 1 - x, h)], fill=40 + 14 * x)
    return im


def figure(dpi=150):
    """Two lines of text, a photograph-like patch, and a line drawing."""
    im = page(5.5, 4.5, dpi)
    text_block(im, dpi, 36, 30, LINES[:2])
    patch = noise((40, 30), 60, 11).resize((round(150 * dpi / 72), round(110 * dpi / 72)), Image.BICUBIC)
    im.paste(patch, (round(40 * dpi / 72), round(80 * dpi / 72)))
    draw = ImageDraw.Draw(im)
    p = lambda *v: [round(a * dpi / 72) for a in v]
    draw.ellipse(p(240, 90, 340, 180), outline=0, width=2)
    draw.line(p(230, 185, 290, 100, 350, 170), fill=0, width=2)
    text_block(im, dpi, 36, 215, ["Figure 1. The wall before and after the storm."], SERIF, 10)
    return im


def main():
    os.makedirs(OUT, exist_ok=True)
    words = [TITLE] + LINES
    im = plain()
    save(im, "plain.png", words)
    save(im.rotate(3, Image.BICUBIC, fillcolor=255), "skew3.png")  # counter-clockwise
    save(im.transpose(Image.ROTATE_90), "turn90.png")  # counter-clockwise: needs 90 clockwise
    save(im.transpose(Image.ROTATE_180), "turn180.png")
    save(im.transpose(Image.ROTATE_270), "turn270.png")
    save(plain(100), "small.png", dpi=100)
    save(im.point(lambda v: 255 - v), "inverted.png")
    tab, rows = table()
    save(tab, "table.png", [" ".join(r) for r in rows]
         + ["Prices are in shillings, delivery is not included."])
    save(photo(), "photo.jpg", quality=60)
    save(blank(), "blank.png", colors=8, dpi=100)
    save(figure(), "figure.png", LINES[:2] + ["Figure 1. The wall before and after the storm."],
         colors=32)
    ls = page(5.5, 1.8, 150)
    text_block(ls, 150, 36, 24, LIST, SANS, 11, 18)
    save(ls, "list.png", LIST)
    ko = page(5.5, 1.6, 150)
    text_block(ko, 150, 36, 24, KOREAN, HANGUL, 12, 20)
    save(ko, "korean.png", KOREAN)


main()
