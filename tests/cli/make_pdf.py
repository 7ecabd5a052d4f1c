#!/usr/bin/env python3
"""make_pdf.py - writes a PDF of N short pages, for tests that need time to interfere.

    make_pdf.py N FILE

Each page ends with a paragraph of its own that holds the word "sentinel".
"""
import sys

WORDS = ('The compositor sets the line and the reader reads it against the copy', 'A proof is pulled on cheap paper',
         'nobody minds when it is covered with ink', 'The mark in the margin names the fault',
         'and the stroke in the text shows its place')


def content(n):
    out = [f'BT /F1 18 Tf 72 760 Td (Chapter {n}) Tj ET']
    for i in range(12):
        gap = 40 if i >= 6 else 0
        out.append(f'BT /F1 11 Tf 72 {720 - 14 * i - gap} Td ({WORDS[(n + i) % len(WORDS)]}) Tj ET')
    out.append(f'BT /F1 11 Tf 72 460 Td (Here ends page {n} with its sentinel.) Tj ET')
    return '\n'.join(out)


def main(n, path):
    bodies = ['<</Type/Catalog/Pages 2 0 R>>',
              f'<</Type/Pages/Count {n}/Kids[{" ".join(f"{4 + 2 * i} 0 R" for i in range(n))}]>>',
              '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>']
    for i in range(n):
        stream = content(i + 1)
        bodies.append('<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>'
                      f'/Contents {5 + 2 * i} 0 R>>')
        bodies.append(f'<</Length {len(stream)}>>stream\n{stream}\nendstream')
    data, at = b'%PDF-1.4\n', []
    for i, body in enumerate(bodies):
        at.append(len(data))
        data += f'{i + 1} 0 obj\n{body}\nendobj\n'.encode()
    xref = ''.join(f'{a:010} 00000 n \n' for a in at)
    data += (f'xref\n0 {len(at) + 1}\n0000000000 65535 f \n{xref}trailer\n<</Size {len(at) + 1}/Root 1 0 R>>\n'
             f'startxref\n{len(data)}\n%%EOF\n').encode()
    with open(path, 'wb') as f:
        f.write(data)


if __name__ == '__main__':
    main(int(sys.argv[1]), sys.argv[2])
