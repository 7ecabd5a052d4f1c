#!/usr/bin/python3
"""Makes the documents of samples/ and their true Markdown.

    /usr/bin/python3 samples/make_samples.py [NAME...]

The results are committed; this is only needed to change them, with Debian's own Python and python3-reportlab
python3-pil python3-numpy python3-pyphen hyphen-en-us fonts-liberation2 fonts-crosextra-carlito
fonts-nanum poppler-utils.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, 'make'))
sys.dont_write_bytecode = True

import importlib  # noqa: E402

SAMPLES = {  # file -> (module, function)
    'report.pdf': ('report', 'make'),
    'invoice.pdf': ('invoice', 'make'),
    'letter.png': ('letters', 'make_scan'),
    'letter-photo.jpg': ('letters', 'make_photo'),
    'tables.pdf': ('tables', 'make'),
    'korean.pdf': ('korean', 'make'),
}


def main():
    wanted = sys.argv[1:] or list(SAMPLES)
    for name in wanted:
        module, function = SAMPLES[name]
        path = os.path.join(HERE, name)
        truth = getattr(importlib.import_module(module), function)(path)
        with open(os.path.splitext(path)[0] + '.truth.md', 'w', encoding='utf-8') as f:
            f.write(truth.rstrip('\n') + '\n')
        print(f'{name}: {os.path.getsize(path)} bytes, truth {len(truth)} characters')


if __name__ == '__main__':
    main()
