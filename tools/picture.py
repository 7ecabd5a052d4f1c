#!/usr/bin/python3
"""picture.py - makes docs/picture.png: a page with its regions beside its Markdown.

    tools/picture.py GALLEY [--page N] [--out FILE] [DOCUMENT]

Runs `galley inspect DOCUMENT --regions` and `galley convert DOCUMENT --format json` and
sets the page and its text side by side.  Needs Debian's python3-pil and fonts-liberation2.
"""
import argparse
import glob
import json
import os
import subprocess
import tempfile
import textwrap

from PIL import Image, ImageDraw, ImageFont

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
FONTS = '/usr/share/fonts/truetype/liberation2/Liberation'
PAGE_WIDTH, TEXT_WIDTH, GAP, EDGE, INSET = 1000, 1000, 60, 40, 30
PAPER, INK, FAINT, BACK = '#ffffff', '#1f2328', '#59636e', '#f3f1ec'
HEAD, ACCENT = '#0b3d91', '#8c3b2e'


def font(name, size):
    return ImageFont.truetype(f'{FONTS}{name}.ttf', size)


def regions_of(galley, document, page, folder):
    """The page with its regions drawn on it."""
    out = os.path.join(folder, 'regions.png')
    subprocess.run([galley, 'inspect', document, '--regions', out], check=True, stdout=subprocess.DEVNULL)
    made = sorted(glob.glob(os.path.join(folder, 'regions*.png')), key=lambda p: (len(p), p))
    return Image.open(made[min(page, len(made)) - 1]).convert('RGB')


def markdown_of(galley, document, page):
    cmd = [galley, 'convert', document, '--format', 'json', '--quiet', '-o', '-']
    out = subprocess.run(cmd, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)['pages'][page - 1]['markdown']


def set_lines(md, columns):
    """Markdown -> (text, font name, colour) per printed line."""
    out = []
    for line in md.rstrip('\n').split('\n'):
        name, color = 'Mono-Regular', INK
        if line.startswith('#'):
            name, color = 'Mono-Bold', HEAD
        elif line.startswith(('|', '![', '[^', '<')):
            color = ACCENT
        hang = ' ' * (len(line) - len(line.lstrip(' -*0123456789.'))) if line[:1] in ' -*0123456789' else ''
        for part in textwrap.wrap(line, columns, subsequent_indent=hang[:6], break_long_words=False,
                                  break_on_hyphens=False) or ['']:
            out.append((part, name, color))
    return out


def compose(page, md):
    """The two sides on one sheet."""
    height = page.height * PAGE_WIDTH // page.width
    page = page.resize((PAGE_WIDTH, height), Image.LANCZOS)
    sheet = Image.new('RGB', (2 * EDGE + PAGE_WIDTH + GAP + TEXT_WIDTH, height + 2 * EDGE), BACK)
    draw = ImageDraw.Draw(sheet)
    sheet.paste(page, (EDGE, EDGE))
    left = EDGE + PAGE_WIDTH + GAP
    for x, w in ((EDGE, PAGE_WIDTH), (left, TEXT_WIDTH)):
        draw.rectangle([x - 1, EDGE - 1, x + w, EDGE + height], outline='#c9c5bb')
    draw.rectangle([left, EDGE, left + TEXT_WIDTH - 1, EDGE + height - 1], fill=PAPER)
    for size in (18, 17, 16, 15, 14):  # as large as the page allows
        step = size * 1.27
        lines, room = set_lines(md, int((TEXT_WIDTH - 2 * INSET) / (size * 0.6))), int((height - 2 * INSET) / step)
        if len(lines) <= room:
            break
    else:
        lines = lines[:room - 1] + [('...', 'Mono-Regular', FAINT)]
    y = EDGE + INSET
    for text, name, color in lines:
        draw.text((left + INSET, y), text, font=font(name, size), fill=color)
        y += step
    return sheet


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('galley')
    ap.add_argument('document', nargs='?', default=os.path.join(ROOT, 'samples', 'report.pdf'))
    ap.add_argument('--page', type=int, default=1)
    ap.add_argument('--out', default=os.path.join(ROOT, 'docs', 'picture.png'))
    args = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = regions_of(args.galley, args.document, args.page, folder)
    sheet = compose(page, markdown_of(args.galley, args.document, args.page))
    sheet.quantize(128, dither=Image.Dither.NONE).save(args.out, optimize=True)
    print(f'{args.out}: {sheet.width} x {sheet.height}, {os.path.getsize(args.out)} bytes')


if __name__ == '__main__':
    main()
