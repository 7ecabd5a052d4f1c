#!/usr/bin/env python3
"""The figures README quotes, measured on this machine and written as CSV.

    python3 tests/bench/documents.py [--galley build/bin/galley] [--runs 5] [--out tests/bench/documents.csv]
    python3 tests/bench/documents.py --only stream

modes   report.pdf with --draft none, --accept exact and the default: target steps, seconds, whether
        exact is byte for byte what the model alone writes.  Medians of --runs runs, interleaved, so
        that a busy minute hits all modes alike.
letter  letter.png: seconds from process start to the first page, Tesseract's own time apart.
stream  200 pages (report.pdf over and over, joined by qpdf): resident memory of galley and
        galley-pdf at page 10 and at the end, and the peak.
"""
import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

MODES = (("none", ["--draft", "none"]), ("exact", ["--accept", "exact"]), ("default", []))


def run(galley, args, stats):
    start = time.monotonic()
    done = subprocess.run([galley, "convert", *args, "--quiet", "--stats", stats],
                          stdout=subprocess.PIPE, check=True)
    wall = time.monotonic() - start
    with open(stats) as f:
        return done.stdout, json.load(f), wall


def bench_modes(galley, runs, tmp):
    stats = os.path.join(tmp, "stats.json")
    seen = {name: [] for name, _ in MODES}
    text = {}
    for _ in range(runs):
        for name, options in MODES:
            out, s, wall = run(galley, ["samples/report.pdf", *options], stats)
            text.setdefault(name, out)
            assert text[name] == out, f"{name}: two runs differ"
            seen[name].append((s, wall))
    rows = []
    for name, _ in MODES:
        first = seen[name][0][0]
        med = lambda key: statistics.median(s["seconds"][key] for s, _ in seen[name])
        rows.append({"what": "report.pdf", "mode": name, "output_tokens": first["output_tokens"],
                     "target_steps": first["target_steps"], "forward_passes": first["forward_passes"],
                     "accept_length": round(first["accept_length"], 2),
                     "encode_s": round(med("encode"), 3), "prefill_s": round(med("prefill"), 3),
                     "decode_s": round(med("decode"), 3), "total_s": round(med("total"), 3),
                     "wall_s": round(statistics.median(w for _, w in seen[name]), 3)})
    none, exact, default = rows
    same = text["none"] == text["exact"]
    print(f"exact is byte for byte the model's own output: {'yes' if same else 'NO'}")
    for label, row in (("exact", exact), ("default", default)):
        print(f"{label} against none: {none['target_steps'] / row['target_steps']:.1f} times fewer "
              f"steps, {none['decode_s'] / row['decode_s']:.2f} times fewer decode seconds, "
              f"{none['total_s'] / row['total_s']:.2f} times fewer seconds in all")
    return rows, same


def bench_letter(galley, runs, tmp):
    stats = os.path.join(tmp, "stats.json")
    apart, ocr, walls = [], [], []
    for _ in range(runs):
        _, s, wall = run(galley, ["samples/letter.png"], stats)
        ocr.append(s["seconds"]["ocr"])
        walls.append(wall)
        apart.append(wall - s["seconds"]["ocr"])
    row = {"what": "letter.png", "mode": "default", "wall_s": round(statistics.median(walls), 3),
           "ocr_s": round(statistics.median(ocr), 3),
           "first_page_without_ocr_s": round(statistics.median(apart), 3)}
    print(f"letter: {row['wall_s']} s from start to page, {row['first_page_without_ocr_s']} s of it "
          "not Tesseract's")
    return [row]


def resident(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def rss_kib(pid):
    """Resident KiB of a process and of the galley-pdf it started."""
    total = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            parent = int(open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[1])
            if int(entry) == pid or parent == pid:
                total += resident(entry)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def bench_stream(galley, tmp, pages=200):
    pdf = os.path.join(tmp, "long.pdf")
    parts = ["samples/report.pdf"] * ((pages + 2) // 3)
    subprocess.run(["qpdf", "--empty", "--pages", *parts, "--", pdf], check=True)
    child = subprocess.Popen([galley, "convert", pdf, "--pages", f"1-{pages}", "-v", "-o",
                              os.path.join(tmp, "long.md")], stderr=subprocess.PIPE, text=True)
    start, rss = time.monotonic(), []
    for line in child.stderr:
        if ": page " in line:
            rss.append(rss_kib(child.pid))
    wall = time.monotonic() - start
    assert child.wait() == 0 and len(rss) == pages, f"exit {child.returncode}, {len(rss)} pages"
    mib = lambda k: round(k / 1024, 1)
    row = {"what": f"{pages} pages", "mode": "default", "wall_s": round(wall, 1),
           "rss_page10_mib": mib(rss[9]), "rss_end_mib": mib(rss[-2]), "rss_peak_mib": mib(max(rss))}
    print(f"stream: {pages} pages in {wall:.1f} s, resident {row['rss_page10_mib']} MiB at page 10, "
          f"{row['rss_end_mib']} at the end, peak {row['rss_peak_mib']}")
    return [row]


def machine():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return f"{line.split(':')[1].strip()}, {os.cpu_count()} CPUs"
    return platform.machine()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--galley", default="build/bin/galley")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--out", default="")
    p.add_argument("--only", choices=("modes", "letter", "stream"))
    a = p.parse_args()
    rows, same = [], True
    with tempfile.TemporaryDirectory() as tmp:
        if a.only in (None, "modes"):
            more, same = bench_modes(a.galley, a.runs, tmp)
            rows += more
        if a.only in (None, "letter"):
            rows += bench_letter(a.galley, a.runs, tmp)
        if a.only in (None, "stream"):
            rows += bench_stream(a.galley, tmp)
    if a.out:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True,
                                text=True).stdout.strip()
        keys = ["what", "mode"] + sorted({k for r in rows for k in r} - {"what", "mode"})
        with open(a.out, "w", newline="") as f:
            w = csv.DictWriter(f, ["machine", "commit", "runs"] + keys)
            w.writeheader()
            for r in rows:
                w.writerow({"machine": machine(), "commit": commit, "runs": a.runs, **r})
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
