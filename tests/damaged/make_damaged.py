#!/usr/bin/env python3
"""make_damaged.py - writes a folder of damaged and hostile inputs, and what each must lead to.

    make_damaged.py DIR

DIR/expected.json: one entry per file with the exit codes allowed (src/cli/galley.1), words the
message must hold, and for documents that still yield pages the statuses and texts to be found.
Nothing here is random; standard library only.
"""
import hashlib
import json
import os
import struct
import sys
import zlib

SAMPLES = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'samples'))


# --- PNG and JPEG ---------------------------------------------------------------------------------

def chunk(kind, data, crc=None):
    crc = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', crc)


def png(width, height, raw=None, depth=8, color=0, extra=b'', interlace=0):
    """A gray PNG; raw None: white paper with a dark bar, so that the page is not blank."""
    row_bytes = (width * depth * (3 if color == 2 else 1) + 7) // 8
    if raw is None:
        raw = b''.join(b'\0' + (b'\x20' if 4 < y < height - 4 and y % 9 < 4 else b'\xff') * row_bytes
                       for y in range(height))
    head = chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, depth, color, 0, 0, interlace))
    return b'\x89PNG\r\n\x1a\n' + head + extra + chunk(b'IDAT', zlib.compress(raw, 9)) + chunk(b'IEND', b'')


def deflate_zeros(n):
    """A zlib stream of n zero bytes, made in pieces."""
    z, out, piece = zlib.compressobj(9), [], bytes(1 << 20)
    for _ in range(n >> 20):
        out.append(z.compress(piece))
    return b''.join(out + [z.compress(bytes(n & 0xfffff)), z.flush()])


def png_of_stream(width, height, depth, stream):
    head = chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, depth, 0, 0, 0, 0))
    return b'\x89PNG\r\n\x1a\n' + head + chunk(b'IDAT', stream) + chunk(b'IEND', b'')


def jpeg_header(width, height):
    """A baseline JPEG that ends where its picture should begin."""
    sof = struct.pack('>BHHB', 8, height, width, 1) + b'\x01\x11\x00'
    dqt = b'\0' + bytes([16] * 64)
    return (b'\xff\xd8\xff\xdb' + struct.pack('>H', 2 + len(dqt)) + dqt +
            b'\xff\xc0' + struct.pack('>H', 2 + len(sof)) + sof +
            b'\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00' + b'\0' * 40)


# --- PDF ------------------------------------------------------------------------------------------

class Pdf:
    """Numbered objects in order, with a correct xref; bodies are bytes."""

    def __init__(self):
        self.objects = {}

    def add(self, number, body):
        self.objects[number] = body.encode('latin-1') if isinstance(body, str) else body

    def stream(self, number, data, entries=''):
        data = data.encode('latin-1') if isinstance(data, str) else data
        self.add(number, f'<<{entries}/Length {len(data)}>>\nstream\n'.encode() + data + b'\nendstream')

    def bytes(self, trailer='', root=1):
        out, at = b'%PDF-1.7\n%\xe2\xe3\xcf\xd3\n', {}
        for n in sorted(self.objects):
            at[n] = len(out)
            out += f'{n} 0 obj\n'.encode() + self.objects[n] + b'\nendobj\n'
        start, size = len(out), max(self.objects) + 1
        out += f'xref\n0 {size}\n0000000000 65535 f \n'.encode()
        for n in range(1, size):
            out += f'{at[n]:010} 00000 n \n'.encode() if n in at else b'0000000000 00001 f \n'
        return out + f'trailer\n<</Size {size}/Root {root} 0 R{trailer}>>\nstartxref\n{start}\n%%EOF\n'.encode()


FONT = '<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>'


def text_at(text, y=700):
    return f'BT /F1 14 Tf 72 {y} Td ({text}) Tj ET\n'


def pdf_pages(contents, box='0 0 595 842', count=None, kids=None, more=None):
    """Pages with the given content streams; objects 1 catalog, 2 page tree, 3 font, 10+2i page."""
    p = Pdf()
    refs = kids or ' '.join(f'{10 + 2 * i} 0 R' for i in range(len(contents)))
    p.add(1, '<</Type/Catalog/Pages 2 0 R>>')
    p.add(2, f'<</Type/Pages/Kids[{refs}]/Count {count or len(contents)}>>')
    p.add(3, FONT)
    forms = ''.join(f'/X{n} {n} 0 R' for n in (more or {}))
    for i, content in enumerate(contents):
        p.add(10 + 2 * i, f'<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents {11 + 2 * i} 0 R'
                          f'/Resources<</Font<</F1 3 0 R>>/XObject<<{forms}>>>>>>')
        p.stream(11 + 2 * i, content)
    for n, (content, names) in (more or {}).items():
        inner = ''.join(f'/X{k} {k} 0 R' for k in names)
        p.stream(n, content, f'/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<<{inner}>>>>')
    return p


def exponential_forms(depth):
    """Form k draws form k+1 twice: 2^depth paints out of a few hundred bytes."""
    more = {}
    for k in range(depth):
        n = 1000 + k
        more[n] = (f'/X{n + 1} Do /X{n + 1} Do', [n + 1])
    more[1000 + depth] = ('0 0 10 10 re f', [])
    return more


def rc4(key, data):
    s, j, out = list(range(256)), 0, bytearray()
    for i in range(256):
        j = (j + s[i] + key[i % len(key)]) & 255
        s[i], s[j] = s[j], s[i]
    i = j = 0
    for b in data:
        i = (i + 1) & 255
        j = (j + s[i]) & 255
        s[i], s[j] = s[j], s[i]
        out.append(b ^ s[(s[i] + s[j]) & 255])
    return bytes(out)


def encrypted_pdf(password):
    """PDF 1.7 section 7.6, revision 2 (40-bit RC4): old, and still what scanners write."""
    pad = bytes.fromhex('28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A')
    padded = (password.encode() + pad)[:32]
    owner = rc4(hashlib.md5((b'owner' + pad)[:32]).digest()[:5], padded)
    ident, rights = bytes(range(16)), -4
    key = hashlib.md5(padded + owner + struct.pack('<i', rights) + ident).digest()[:5]
    user = rc4(key, pad)
    p = pdf_pages([text_at('The quick proof is read twice before it is printed.')])
    content = text_at('The quick proof is read twice before it is printed.').encode()
    obj_key = hashlib.md5(key + struct.pack('<I', 11)[:3] + b'\0\0').digest()[:10]
    p.stream(11, rc4(obj_key, content))
    return p.bytes(f'/Encrypt<</Filter/Standard/V 1/R 2/O<{owner.hex()}>/U<{user.hex()}>/P {rights}>>'
                   f'/ID[<{ident.hex()}><{ident.hex()}>]')


# --- the folder -----------------------------------------------------------------------------------

class Folder:
    def __init__(self, path):
        self.path, self.rows = path, []

    def put(self, name, data, exits, words=(), args=(), statuses=(), texts=(), why=''):
        full = os.path.join(self.path, name)
        if data is not None:
            with open(full, 'wb') as f:
                f.write(data)
        self.rows.append({'file': name, 'args': list(args), 'exit': list(exits), 'words': list(words),
                          'statuses': list(statuses), 'texts': list(texts), 'why': why})


def put_files(d):
    """Empty, cut short, misnamed, not a document at all."""
    sample = {n: open(os.path.join(SAMPLES, n), 'rb').read() for n in ('report.pdf', 'letter.png', 'letter-photo.jpg')}
    for ext in ('pdf', 'png', 'jpg'):
        d.put(f'empty.{ext}', b'', [4], ['empty'], why='no bytes at all')
    for share in (1, 20, 50):
        d.put(f'cut-{share}.png', sample['letter.png'][:len(sample['letter.png']) * share // 100], [4], why='cut short')
    d.put('cut-header.png', sample['letter.png'][:20], [4], why='cut inside IHDR')
    d.put('cut-header.jpg', sample['letter-photo.jpg'][:200], [4], why='cut before the frame header')
    photo = sample['letter-photo.jpg']
    d.put('cut-30.jpg', photo[:len(photo) * 3 // 10], [0, 7],
          why='a JPEG cut short still shows a part of its picture')
    d.put('cut-1.pdf', sample['report.pdf'][:1300], [4], why='header and one object')
    d.put('cut-50.pdf', sample['report.pdf'][:len(sample['report.pdf']) // 2], [4, 7],
          why='the page tree stood in the half that is gone')
    d.put('header-only.pdf', b'%PDF-1.7\n', [4], why='nine bytes of PDF')
    d.put('text.pdf', b'This is a plain text file with the wrong name.\n' * 40, [4], why='text named pdf')
    d.put('html.pdf', b'<!DOCTYPE html><html><body>Error 404</body></html>\n', [4], why='an error page saved as pdf')
    d.put('noise.jpg', bytes((i * 197 + i // 7) & 255 for i in range(5000)), [4], why='noise')
    tiny = pdf_pages([text_at('A small page with one line of text.')]).bytes()
    d.put('pdf-named.png', tiny, [0], texts=['A small page with one line of text.'], why='bytes decide, not the name')
    d.put('png-named.pdf', png(200, 120, b''.join(b'\0' + b'\xff' * 200 for _ in range(120))), [0],
          statuses=['blank'], why='bytes decide; white paper is blank')
    d.put('junk-before.pdf', b'\n' * 300 + tiny, [0, 4], why='offsets shifted by 300 bytes')
    d.put('webp.webp', b'RIFF\x24\0\0\0WEBPVP8 ' + b'\0' * 40, [4], ['WebP'], why='named in the refusal')
    d.put('heic.heic', b'\0\0\0\x18ftypheic\0\0\0\0mif1heic' + b'\0' * 40, [4], ['HEIC'], why='named in the refusal')
    d.put('tiff.tif', b'II*\0\x08\0\0\0' + b'\0' * 40, [4], ['TIFF'], why='named in the refusal')
    d.put('gif.gif', b'GIF89a\x01\0\x01\0\0\0\0;', [4], ['GIF'], why='named in the refusal')
    d.put('docx.docx', b'PK\x03\x04\x14\0\0\0\x08\0' + b'\0' * 20 + b'[Content_Types].xml' + b'\0' * 60, [4],
          why='a zip')


def put_pictures(d):
    """Pictures that claim too much, or too little."""
    d.put('bomb-header.png', png(60000, 60000, b'\0' * 100), [6], ['60000'], why='3,600 Mpixel claimed')
    d.put('bomb-pixels.png', png_of_stream(20000, 20000, 1, deflate_zeros(20000 * 2501)), [6], ['20000'],
          why='400 Mpixel that really follow, in 50 kB')
    d.put('bomb-idat.png', png_of_stream(100, 100, 8, deflate_zeros(300 << 20)), [0, 4],
          why='300 MB inflate behind a picture of 10 kB')
    ztxt = chunk(b'zTXt', b'Comment\0\0' + deflate_zeros(200 << 20))
    d.put('bomb-ztxt.png', png(100, 100, extra=ztxt), [0, 4], why='200 MB in a comment')
    d.put('bomb.jpg', jpeg_header(65500, 65500), [6], ['65500'], why='4,290 Mpixel claimed')
    d.put('zero-width.png', png(0, 100, b''), [4], why='no width')
    d.put('zero-height.jpg', jpeg_header(100, 0), [4], why='no height')
    d.put('pixel.png', png(1, 1, b'\0\0'), [0, 4, 6], ['1'], why='one pixel: blown up or refused, with the numbers')
    d.put('ribbon.png', png(20000, 10), [4, 6], ['20000'], why='aspect 2000')
    good = png(300, 200)
    d.put('crc.png', good[:40] + bytes([good[40] ^ 1]) + good[41:], [0, 4], why='one bit flipped')
    d.put('bad-type.png', png(100, 100, color=5), [4], why='colour type 5 does not exist')
    d.put('interlace-cut.png', png(400, 400, b'\0' * 900, interlace=1), [4], why='Adam7, most rows missing')


def put_pdfs(d):
    """PDFs whose structure is a trap."""
    one = text_at('The first page is sound.')
    p = pdf_pages([one], kids='2 0 R', count=1)
    d.put('loop-tree.pdf', p.bytes(), [4, 7], why='the page tree is its own child')
    d.put('loop-parent.pdf', pdf_pages([one], kids='10 0 R 2 0 R', count=2).bytes(), [0, 4, 7],
          why='a page, then the tree again')
    d.put('claims-100000.pdf', pdf_pages([one], count=100000).bytes(), [0, 4, 6, 7],
          why='100,000 pages claimed, one there')
    d.put('no-pages.pdf', pdf_pages([], kids=' ', count=0).bytes(), [0, 4, 7], why='no page')
    d.put('huge-box.pdf', pdf_pages([one], box='0 0 1000000000 1000000000').bytes(), [0, 4, 6, 7],
          why='a page of 350,000 km')
    d.put('nan-box.pdf', pdf_pages([one], box='0 0 -5 0').bytes(), [0, 4, 6, 7], why='a page without area')
    nested = pdf_pages([one])
    nested.add(5, b'[' * 200000 + b']' * 200000)
    nested.add(10, nested.objects[10][:-2] + b'/Junk 5 0 R/Deep' + b'[' * 20000 + b']' * 20000 + b'>>')
    d.put('nested-arrays.pdf', nested.bytes(), [0, 4, 7], why='arrays 200,000 deep')
    q = 'q ' * 200000 + 'Q ' * 200000
    d.put('nested-q.pdf', pdf_pages([q + one]).bytes(), [0, 7], why='graphics states 200,000 deep')
    self_form = {1000: ('/X1000 Do', [1000])}
    d.put('form-loop.pdf', pdf_pages([one + '/X1000 Do'], more=self_form).bytes(), [0, 7],
          why='a form that draws itself')
    three = text_at('The third page is sound.')
    slow = pdf_pages([one, text_at('Second.') + '/X1000 Do', three], more=exponential_forms(40))
    d.put('form-exponential.pdf', slow.bytes(), [0, 7],
          texts=['The first page is sound.', 'The third page is sound.'],
          why='2^40 paints on page 2: costs that page and no other')
    z = pdf_pages([one])
    zeros = deflate_zeros(400 << 20)
    z.add(11, b'<</Filter/FlateDecode/Length %d>>\nstream\n' % len(zeros) + zeros + b'\nendstream')
    d.put('flate-bomb.pdf', z.bytes(), [0, 4, 6, 7], why='a content stream of 400 MB zeros')
    image = pdf_pages([one + 'q 500 0 0 500 0 0 cm /X1000 Do Q'], more={1000: ('', [])})
    data = deflate_zeros(30 << 20)
    image.add(1000, b'<</Type/XObject/Subtype/Image/Width 60000/Height 60000/ColorSpace/DeviceRGB/BitsPerComponent 8'
                    b'/Filter/FlateDecode/Length %d>>\nstream\n' % len(data) + data + b'\nendstream')
    d.put('image-bomb.pdf', image.bytes(), [0, 4, 6, 7], why='an image of 10 GB on a small page')
    xref = pdf_pages([one]).bytes()
    d.put('no-xref.pdf', xref[:xref.rindex(b'xref\n0')], [0, 4], why='no table: rebuilt or refused')
    d.put('prev-loop.pdf', pdf_pages([one]).bytes('/Prev 15'), [0, 4], why='the older table lies inside an object')
    d.put('bad-page.pdf', pdf_pages([one, '<< ( [ \xff\xfe ) 1 2 3 Tj BT', three]).bytes(), [0, 7],
          texts=['The first page is sound.', 'The third page is sound.'], why='a content stream of nonsense')
    d.put('locked.pdf', encrypted_pdf('galley'), [5], ['password'], why='no password given')
    d.put('locked-wrong.pdf', encrypted_pdf('galley'), [5], ['password'],
          args=['--password', 'tray'], why='a wrong one')
    d.put('locked-right.pdf', encrypted_pdf('galley'), [0], args=['--password', 'galley'],
          texts=['The quick proof is read twice before it is printed.'], why='the right one')


def put_paths(d):
    """Paths that are no files."""
    os.makedirs(os.path.join(d.path, 'folder.pdf'), exist_ok=True)
    d.put('folder.pdf', None, [2, 4], why='a directory with the name of a file')
    d.put('missing.pdf', None, [4], why='not there')
    for name, target in (('dangling.pdf', 'nowhere.pdf'), ('circle.pdf', 'circle.pdf'), ('endless.png', '/dev/zero')):
        full = os.path.join(d.path, name)
        if not os.path.islink(full):
            os.symlink(target, full)
    d.put('dangling.pdf', None, [4], why='a link to nothing')
    d.put('circle.pdf', None, [4], why='a link to itself')
    d.put('endless.png', None, [4, 6], why='a device that never ends')
    if os.geteuid() != 0:
        d.put('forbidden.pdf', pdf_pages([text_at('secret')]).bytes(), [4], why='not readable by us')
        os.chmod(os.path.join(d.path, 'forbidden.pdf'), 0)


def main():
    d = Folder(sys.argv[1])
    os.makedirs(d.path, exist_ok=True)
    for put in (put_files, put_pictures, put_pdfs, put_paths):
        put(d)
    with open(os.path.join(d.path, 'expected.json'), 'w', encoding='utf-8') as f:
        json.dump(d.rows, f, indent=1)
    print(f'{len(d.rows)} damaged inputs in {d.path}')


if __name__ == '__main__':
    main()
