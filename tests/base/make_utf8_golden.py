#!/usr/bin/env python3
"""make_utf8_golden.py - prints utf8_golden.h: what Python's decoder makes of the sequences that test_text.c
enumerates.  Python replaces maximal subparts, as the Unicode standard recommends (section 3.9)."""
import hashlib
import itertools

# Both sides of every boundary of table 3-7 of the Unicode standard.
BYTES = (0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
         0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff)


def main():
    scalars = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
    every = hashlib.sha256(''.join(map(chr, scalars)).encode('utf-8')).hexdigest()
    decoded = hashlib.sha256()
    n_valid = 0
    for t in itertools.product(BYTES, repeat=4):
        decoded.update(bytes(t).decode('utf-8', 'replace').encode('utf-32-le'))
        try:
            bytes(t).decode('utf-8')
            n_valid += 1
        except UnicodeDecodeError:
            pass
    print('/* Made by make_utf8_golden.py; see there. */')
    print('static const unsigned char edge_bytes[] = {\n    ' + ', '.join(f'{b:#04x}' for b in BYTES) + '\n};')
    print(f'static const char all_scalars_sha256[] =\n    "{every}";')
    print(f'static const char edge_decoded_sha256[] =\n    "{decoded.hexdigest()}";')
    print(f'enum {{ EDGE_N_VALID = {n_valid} }};')


main()
