#!/usr/bin/env python3
"""quality.py - converts every sample and holds the result against the true Markdown.

    quality.py GALLEY [--draft none] [--keep DIR] [NAME...]     run GALLEY on samples/NAME
    quality.py --have DIR [NAME...]                             judge DIR/STEM.md instead

Exit 0 when every bound of BOUNDS holds.  With --draft none (the model alone) the figures are
printed and nothing is asserted: that page is reported, not hidden.
"""
import argparse
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import metrics  # noqa: E402

SAMPLES = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'samples'))
BORN_DIGITAL = (0.02, 0.0, 0.95)  # text distance at most, order distance at most, TEDS at least
SCAN = (0.08, 0.0, None)
BOUNDS = {
    'report.pdf': BORN_DIGITAL,
    'invoice.pdf': BORN_DIGITAL,
    'tables.pdf': BORN_DIGITAL,
    'korean.pdf': BORN_DIGITAL,
    'letter.png': SCAN,
    'letter-photo.jpg': SCAN,
}
TIME_LIMIT = 300  # seconds per document; sanitizer builds are slow


def stem(name):
    return os.path.splitext(name)[0]


def read(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.read()


def convert(args, name):
    """Runs the program; returns (Markdown, seconds, exit code, last line of stderr)."""
    cmd = [args.galley, 'convert', os.path.join(SAMPLES, name), '-o', '-']
    cmd += ['--draft', args.draft] if args.draft else []
    start = time.monotonic()
    try:
        p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return '', time.monotonic() - start, 'timeout', f'more than {TIME_LIMIT} s'
    said = p.stderr.decode('utf-8', 'replace').strip().splitlines()
    return p.stdout.decode('utf-8', 'replace'), time.monotonic() - start, p.returncode, said[-1] if said else ''


def judge(truth, got, bounds):
    """Returns (text, order, teds, [what is out of bounds])."""
    text, order = metrics.text_distance(truth, got), metrics.order_distance(truth, got)
    table = metrics.table_score(truth, got)
    bad = [f'text distance {text:.4f} > {bounds[0]}'] if text > bounds[0] else []
    if order > bounds[1]:
        seq, n = metrics.order_of(truth, got)
        blocks = [b.text for b in metrics.parse(truth) if b.text]
        lost = ', '.join(f'"{blocks[i][:30]}"' for i in sorted(set(range(n)) - set(seq)))
        bad.append(f'order distance {order:.4f} > {bounds[1]}' + (f', not found: {lost}' if lost else f': {seq}'))
    if bounds[2] is not None and table is not None and table < bounds[2]:
        bad.append(f'TEDS {table:.4f} < {bounds[2]}')
    return text, order, table, bad


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('galley', nargs='?')
    ap.add_argument('names', nargs='*')
    ap.add_argument('--draft')
    ap.add_argument('--have')
    ap.add_argument('--keep')
    args = ap.parse_intermixed_args()
    if args.have and args.galley:
        args.names.insert(0, args.galley)
    elif not args.have and not args.galley:
        ap.error('the program to test is missing')
    assert_bounds, failed = args.draft != 'none', 0
    print(f'{"document":18} {"text":>7} {"order":>7} {"TEDS":>7} {"s":>6}')
    for name in args.names or BOUNDS:
        truth = read(os.path.join(SAMPLES, stem(name) + '.truth.md'))
        if args.have:
            got, seconds, rc, said = read(os.path.join(args.have, stem(name) + '.md')), 0.0, 0, ''
        else:
            got, seconds, rc, said = convert(args, name)
        if args.keep:
            os.makedirs(args.keep, exist_ok=True)
            with open(os.path.join(args.keep, stem(name) + '.md'), 'w', encoding='utf-8') as f:
                f.write(got)
        text, order, table, bad = judge(truth, got, BOUNDS[name])
        print(f'{name:18} {text:7.4f} {order:7.4f} {"-" if table is None else f"{table:.4f}":>7} {seconds:6.1f}')
        if rc != 0:
            bad.insert(0, f'exit {rc}: {said}')
        for b in bad:
            print(f'    {"OUT OF BOUNDS: " if assert_bounds else ""}{b}')
        failed += bool(bad) and assert_bounds
    if failed:
        print(f'{failed} of {len(args.names or BOUNDS)} documents out of bounds', file=sys.stderr)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
