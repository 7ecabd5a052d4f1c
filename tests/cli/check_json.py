#!/usr/bin/env python3
"""check_json.py - holds `galley convert --format json` and --stats against their described shape.

    check_json.py document FILE SOURCE      the output of a conversion of SOURCE
    check_json.py stats FILE                a --stats file
    check_json.py regions EXACT PLAIN       every region that both read without a guard is equal

Prints what is wrong and exits 1.  src/cli/galley.1 describes the shape.
"""
import hashlib
import json
import math
import sys

PAGE_STATUSES = ('ok', 'blank', 'truncated', 'repetition', 'low_confidence', 'unverified', 'encrypted', 'corrupt',
                 'timeout', 'cancelled')
KINDS = ('heading', 'paragraph', 'list', 'table', 'figure', 'caption', 'formula', 'code', 'footnote', 'page_header',
         'page_footer', 'page_number')
SECONDS = ('parse', 'render', 'layout', 'ocr', 'encode', 'prefill', 'decode', 'first_page', 'total')
COUNTS = ('pages', 'regions', 'regions_verified', 'visual_tokens', 'prompt_tokens', 'output_tokens', 'target_steps',
          'forward_passes', 'drafted', 'accepted', 'peak_rss_bytes')
faults = []


def need(ok, where, what):
    if not ok:
        faults.append(f'{where}: {what}')
    return ok


def is_count(v):
    return isinstance(v, int) and not isinstance(v, bool) and v >= 0


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)


def has_keys(where, o, required, optional=()):
    if not need(isinstance(o, dict), where, f'is {type(o).__name__}, not an object'):
        return False
    missing, surplus = set(required) - set(o), set(o) - set(required) - set(optional)
    need(not missing, where, f'lacks {sorted(missing)}')
    need(not surplus, where, f'has undescribed {sorted(surplus)}')
    return not missing


def check_stats(s, where='stats'):
    if not has_keys(where, s, COUNTS + ('accept_length', 'seconds')):
        return
    for key in COUNTS:
        need(is_count(s[key]), where, f'{key} is {s[key]!r}')
    need(is_number(s['accept_length']) and s['accept_length'] >= 0, where, 'accept_length')
    need(s['accepted'] <= s['drafted'], where, f'{s["accepted"]} accepted of {s["drafted"]} drafted')
    need(s['peak_rss_bytes'] > 1 << 20, where, f'peak_rss_bytes is {s["peak_rss_bytes"]}')
    if s['target_steps']:
        # Four digits are printed.
        want = s['output_tokens'] / s['target_steps']
        need(abs(s['accept_length'] - want) < 1e-3, where, f'accept_length {s["accept_length"]}, not {want}')
    if has_keys(f'{where}.seconds', s['seconds'], SECONDS):
        for key, v in s['seconds'].items():
            need(is_number(v) and v >= 0, where, f'seconds.{key} is {v!r}')
        need(s['seconds']['first_page'] <= s['seconds']['total'], where, 'the first page came after the end')
        need(s['seconds']['total'] > 0, where, 'no time passed')


def check_box(where, box, size):
    ok = isinstance(box, list) and len(box) == 4 and all(is_number(v) for v in box)
    if need(ok, where, f'box is {box!r}'):
        x0, y0, x1, y1 = box
        need(x0 < x1 and y0 < y1, where, f'box {box} is empty')
        need(min(x0, y0) >= -1 and x1 <= size[0] + 1 and y1 <= size[1] + 1, where, f'box {box} leaves the page {size}')


def check_region(where, r, size):
    if not has_keys(where, r, ('kind', 'level', 'box', 'markdown', 'status', 'draft', 'accept', 'logprob'),
                    ('reason',)):
        return
    need(r['kind'] in KINDS, where, f'kind {r["kind"]!r}')
    level = r['level']
    need(is_count(level) and (1 <= level <= 6) == (r['kind'] == 'heading'), where, f'{r["kind"]} of level {level!r}')
    check_box(where, r['box'], size)
    need(isinstance(r['markdown'], str), where, 'markdown is no string')
    need(r['status'] in PAGE_STATUSES, where, f'status {r["status"]!r}')
    need((r['status'] in ('ok', 'blank')) != bool(r.get('reason')), where, f'{r["status"]} because {r.get("reason")!r}')
    if has_keys(f'{where}.draft', r['draft'], ('source', 'score', 'markdown')):
        need(r['draft']['source'] in ('text', 'ocr', 'none'), where, f'draft from {r["draft"]["source"]!r}')
        score = r['draft']['score']
        need(is_number(score) and 0 <= score <= 1, where, f'score {score!r}')
    a = r['accept']
    if has_keys(f'{where}.accept', a, ('rule', 'drafted', 'accepted', 'output_tokens', 'target_steps'), ('tau',)):
        need(a['rule'] in ('exact', 'tau', 'plain', 'unverified'), where, f'rule {a["rule"]!r}')
        need(('tau' in a) == (a['rule'] == 'tau'), where, f'rule {a["rule"]} with tau {a.get("tau")}')
        counts = ('drafted', 'accepted', 'output_tokens', 'target_steps')
        if need(all(is_count(a[k]) for k in counts), where, f'counts {a}'):
            need(a['accepted'] <= a['drafted'], where, f'{a["accepted"]} accepted of {a["drafted"]}')
            need((a['target_steps'] > 0) == (a['rule'] != 'unverified'), where, f'{a["rule"]} by {a["target_steps"]}')
    need(is_number(r['logprob']) and r['logprob'] <= 0, where, f'logprob {r["logprob"]!r}')


def check_page(where, p):
    if not has_keys(where, p, ('page', 'status', 'size', 'ocr', 'markdown', 'regions'), ('reason',)):
        return
    need(is_count(p['page']) and p['page'] > 0, where, f'number {p["page"]!r}')
    need(p['status'] in PAGE_STATUSES, where, f'status {p["status"]!r}')
    need((p['status'] in ('ok', 'blank')) != bool(p.get('reason')), where, f'{p["status"]} because {p.get("reason")!r}')
    need(isinstance(p['ocr'], bool), where, 'ocr')
    size = p['size']
    ok = isinstance(size, list) and len(size) == 2 and all(is_number(v) and v > 0 for v in size)
    if need(ok, where, f'size {size!r}'):
        for i, r in enumerate(p['regions']):
            check_region(f'{where} region {i + 1}', r, size)


def check_document(d, source):
    if not has_keys('document', d, ('source', 'pages', 'stats')):
        return
    with open(source, 'rb') as f:
        bytes_ = f.read()
    if has_keys('source', d['source'], ('name', 'sha256', 'bytes', 'pages')):
        s = d['source']
        need(s['name'] == source, 'source', f'name is {s["name"]!r}')
        need(s['sha256'] == hashlib.sha256(bytes_).hexdigest(), 'source', 'sha256 is not the file\'s')
        need(s['bytes'] == len(bytes_), 'source', f'{s["bytes"]} bytes, not {len(bytes_)}')
        n_pages = s.get('pages', len(d['pages']))
        need(is_count(n_pages) and n_pages >= len(d['pages']), 'source', f'pages {n_pages!r}')
    for i, p in enumerate(d['pages']):
        check_page(f'page {i + 1}', p)
    numbers = [p['page'] for p in d['pages']]
    need(numbers == sorted(set(numbers)), 'pages', f'are {numbers}')
    check_stats(d['stats'])
    regions = [r for p in d['pages'] for r in p['regions']]
    need(d['stats']['pages'] == len(d['pages']), 'stats', 'pages')
    need(d['stats']['regions'] == len(regions), 'stats', f'{d["stats"]["regions"]} regions, not {len(regions)}')
    for stat, key in (('drafted', 'drafted'), ('accepted', 'accepted'), ('output_tokens', 'output_tokens'),
                      ('target_steps', 'target_steps')):
        total = sum(r['accept'][key] for r in regions)
        need(d['stats'][stat] == total, 'stats', f'{stat} {d["stats"][stat]}, the regions have {total}')
    verified = sum(r['accept']['rule'] != 'unverified' for r in regions)
    need(d['stats']['regions_verified'] == verified, 'stats', f'regions_verified, not {verified}')


def check_regions(exact, plain):
    """The property of greedy verification: a draft changes how fast a region is read, never what is read."""
    n = 0
    need(len(exact['pages']) == len(plain['pages']), 'pages', 'differ in number')
    for a, b in zip(exact['pages'], plain['pages']):
        need(len(a['regions']) == len(b['regions']), f'page {a["page"]}', 'regions differ in number')
        for i, (ra, rb) in enumerate(zip(a['regions'], b['regions'])):
            where = f'page {a["page"]} region {i + 1}'
            need(ra['box'] == rb['box'], where, 'is another region')
            if ra['status'] != 'ok' or rb['status'] != 'ok' or rb['accept']['rule'] != 'plain':
                continue
            need(ra['accept']['rule'] in ('exact', 'plain'), where, f'rule {ra["accept"]["rule"]} under --accept exact')
            need(ra['markdown'] == rb['markdown'], where, f'{ra["markdown"]!r} from a draft, {rb["markdown"]!r} alone')
            need(ra['accept']['output_tokens'] == rb['accept']['output_tokens'], where, 'other tokens')
            n += 1
    print(n)


def load(path):
    with open(path, encoding='utf-8') as f:
        return json.load(f)


def main(what, *paths):
    if what == 'document':
        check_document(load(paths[0]), paths[1])
    elif what == 'stats':
        check_stats(load(paths[0]))
    elif what == 'regions':
        check_regions(load(paths[0]), load(paths[1]))
    else:
        sys.exit(__doc__)
    for f in faults:
        print(f, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == '__main__':
    main(*sys.argv[1:])
