#!/usr/bin/env python3
"""run_damaged.py - every damaged input ends with the right code, a sentence, and in time.

    run_damaged.py GALLEY DIR [--limit SECONDS] [FILE...]

DIR is made by make_damaged.py first.  A run fails when it is killed by a signal, runs over the
limit (in seconds of its own; on a busy machine the clock may show four times that), ends with another
code than DIR/expected.json allows, or refuses without a sentence that names the file.
`expected.json` may also ask for words in the message, page statuses and texts.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def pages_of(out):
    """The page objects of `--format json`, or []."""
    try:
        return json.loads(out).get('pages', [])
    except ValueError:
        return []


def check(row, rc, out, err):
    """What is wrong with a run: a list of sentences."""
    bad = []
    said = ' '.join(err.split())
    if rc < 0:
        return [f'killed by signal {-rc}: {said[-200:]}']
    if rc not in row['exit']:
        bad.append(f'exit {rc}, expected {" or ".join(map(str, row["exit"]))}: {said[-200:]}')
    if rc != 0 and row['file'] not in err:
        bad.append(f'the message does not name the file: "{said[-200:]}"')
    if rc != 0:
        bad += [f'the message lacks "{w}": "{said[-200:]}"' for w in row['words'] if w.lower() not in said.lower()]
    for mark in ('AddressSanitizer', 'UndefinedBehavior', 'runtime error:', 'ThreadSanitizer', 'Assertion'):
        if mark in err:
            bad.append(f'{mark} in stderr: {said[-300:]}')
    if row['statuses'] or row['texts']:
        pages = pages_of(out)
        have = [p.get('status') for p in pages]
        text = '\n'.join(p.get('markdown') or '' for p in pages)
        if row['statuses'] and have != row['statuses']:
            bad.append(f'page statuses {have}, expected {row["statuses"]}')
        bad += [f'the output lacks "{t}"' for t in row['texts'] if t not in text]
    return bad


def cpu_seconds():
    """What all programs run so far have used."""
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def run(galley, folder, row, limit):
    """Returns (seconds, exit code or None, what is wrong)."""
    cmd = [galley, 'convert', os.path.join(folder, row['file']), '--format', 'json', '-o', '-', *row['args']]
    start, used = time.monotonic(), cpu_seconds()
    try:
        p = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=4 * limit + 5)
    except subprocess.TimeoutExpired:
        return time.monotonic() - start, None, [f'still running after {4 * limit + 5:g} s: ended by the test']
    seconds = time.monotonic() - start
    bad = check(row, p.returncode, p.stdout.decode('utf-8', 'replace'), p.stderr.decode('utf-8', 'replace'))
    own = min(seconds, cpu_seconds() - used)
    if own > limit or seconds > 4 * limit:
        bad.append(f'took {seconds:.1f} s, {own:.1f} s of its own, limit {limit:g} s')
    return seconds, p.returncode, bad


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('galley')
    ap.add_argument('folder')
    ap.add_argument('files', nargs='*')
    ap.add_argument('--limit', type=float, default=5)
    args = ap.parse_intermixed_args()
    subprocess.run([sys.executable, os.path.join(HERE, 'make_damaged.py'), args.folder], check=True)
    with open(os.path.join(args.folder, 'expected.json'), encoding='utf-8') as f:
        rows = [r for r in json.load(f) if not args.files or r['file'] in args.files]
    failed = 0
    for row in rows:
        seconds, rc, bad = run(args.galley, args.folder, row, args.limit)
        print(f'{row["file"]:24} {seconds:6.2f} s  exit {rc}  {row["why"]}')
        for b in bad:
            print(f'    FAILED: {b}')
        failed += bool(bad)
    print(f'{failed} of {len(rows)} failed')
    return 1 if failed or not rows else 0


if __name__ == '__main__':
    sys.exit(main())
