#!/usr/bin/env python3
"""Galley and llama.cpp side by side: same file, same threads, alternating processes, medians.

    compare.py MODELS_DIR [--galley build/bin/galley] [--threads 2] [--runs 5] [--only WORK ...]
               [--csv FILE]

MODELS_DIR is what fetch_models.py and make_models.py filled.  Each run is a fresh process of each
engine, one after the other, so that whatever else the machine does meets both; the figure is the
median over the runs, the ratio Galley / llama.cpp (above 1 is better for rates, below 1 for
seconds and bytes).  llama.cpp is asked for raw speed: no sampling, logits only where needed.
"""
import argparse
import csv
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
RAND = "rand/"
# work, model file, goal, better is higher
DECODE = ["coder-0.5b-Q4_K_M", "coder-1.5b-Q4_K_M", RAND + "qwen2.5-vl-3b-q4_k_m",
          RAND + "qwen2.5-0.5b-q8_0", RAND + "qwen2.5-1.5b-q8_0", "SmolLM2-135M-Q4_1",
          "gemma-3-270m-Q4_K_M"]
SUITE = (
    [("decode", m, ">= 1.15") for m in DECODE]
    + [("prefill512", m, ">= 2.0") for m in DECODE[:3]]
    + [("prefill4096", m, ">= 2.0") for m in DECODE[:2]]
    + [("batch8", m, ">= 1.3") for m in DECODE[:3]]
    + [("batch32", m, ">= 1.3") for m in DECODE[:3]]
    + [("rss", m, "<= 1.0") for m in DECODE[:3]]
    + [("start", m, "<= 0.7") for m in DECODE]
    + [("vision", RAND + "qwen2.5-vl-3b-q4_k_m", ">= 2.0")]
)


def run(command):
    """What the last line of a process says, and the seconds from its start to that line."""
    t = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        last, seconds = "", 0.0
        for line in p.stdout:
            last, seconds = line, time.perf_counter() - t
        errors = p.stderr.read()
    if p.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{errors[-2000:]}")
    return json.loads(last), seconds


TOUCH = """
import ctypes, mmap, sys
for _ in range(2):
    block = mmap.mmap(-1, int(sys.argv[1]), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.madvise(mmap.MADV_HUGEPAGE)
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(block)), 1, len(block))
    del block
"""


def warm(model):
    """A process touches and frees as much memory as either engine will want.  A virtual machine may
    hand free memory back to its host within a second; the next touch then runs at 0.5 GB/s here
    instead of 7, which says nothing about an engine."""
    n = pathlib.Path(model).stat().st_size + (512 << 20)
    subprocess.run([sys.executable, "-c", TOUCH, str(n)], check=True)


class Both:
    def __init__(self, a):
        self.a = a
        self.commit = ""  # of the Galley that was measured

    def galley(self, model, **kw):
        command = [self.a.galley, "bench", "--model", model, "--threads", str(self.a.threads),
                   "--json", "-q", "--kv", "f16"]
        for key, value in kw.items():
            command += [f"--{key}", str(value)]
        out, seconds = run(command)
        self.commit = out["commit"]
        return out, seconds

    def llama(self, model, work, **kw):
        command = [self.a.python, HERE / "llama_peer.py", model, "--work", work, "--threads",
                   str(self.a.threads)]
        for key, value in kw.items():
            command += [f"--{key.replace('_', '-')}", str(value)]
        return run([str(x) for x in command])[0]

    def measure(self, work, model):
        """(Galley's figure, llama.cpp's, unit)"""
        mm = str(self.a.models / (RAND + f"mmproj-qwen2.5-vl-3b-{self.a.mmproj}.gguf"))
        none = {"mmproj": "none"} if "vl-3b" in model and work != "vision" else {}
        if work == "decode":
            g, _ = self.galley(model, concurrency=1, requests=2, prompt=128, output=64, **none)
            return g["levels"][0]["decode_per_s"], self.llama(model, "decode")["tokens_per_s"], "t/s"
        if work.startswith("prefill"):
            n = int(work[7:])
            g, _ = self.galley(model, concurrency=1, requests=2, prompt=n, output=1, **none)
            return (n / g["levels"][0]["ttft_s"],
                    self.llama(model, "prefill", n_prompt=n)["tokens_per_s"], "t/s")
        if work.startswith("batch"):
            n = int(work[5:])
            g, _ = self.galley(model, concurrency=n, requests=n + 0, prompt=32, output=24, **none)
            return (g["levels"][0]["decode_per_s"],
                    self.llama(model, "batch", n_seqs=n, n_prompt=32, n_output=12)["tokens_per_s"],
                    "t/s")
        if work == "rss":
            g, _ = self.galley(model, concurrency=1, requests=1, prompt=512, output=16, ctx=2048,
                               **none)
            return (g["peak_rss"], self.llama(model, "decode", n_prompt=512, n_output=16,
                                              ctx=2048)["rss"], "B")
        if work == "start":
            warm(model)
            _, s = self.galley(model, concurrency=1, requests=1, prompt=20, output=1, ctx=2048,
                               **none)
            warm(model)
            return s, self.llama(model, "start", ctx=2048)["first_token_s"], "s"
        if work == "vision":
            g, _ = self.galley(model, concurrency=1, requests=1, prompt=8, output=1,
                               image="980x1330", mmproj=mm)
            return (1 / g["levels"][0]["encode_s"],
                    1 / self.llama(model, "vision", mmproj=mm)["encode_s"], "pages/s")
        raise SystemExit(f"no work {work}")


def machine():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("models", type=pathlib.Path)
    ap.add_argument("--galley", default="build/bin/galley")
    ap.add_argument("--python", default=sys.executable)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--runs", type=int, default=5)
    ap.add_argument("--only", nargs="*")
    ap.add_argument("--match", default="", help="only models whose name holds this")
    ap.add_argument("--mmproj", default="f16", choices=("f16", "q8_0"))
    ap.add_argument("--csv")
    a = ap.parse_args()
    both, rows = Both(a), []
    print(f"{machine()}, {a.threads} threads, median of {a.runs}")
    print(f"{'work':12} {'model':32} {'galley':>12} {'llama.cpp':>12} {'ratio':>7}  goal")
    for work, name, goal in SUITE:
        if a.only and not any(work.startswith(o) for o in a.only) or a.match not in name:
            continue
        model = str(a.models / f"{name}.gguf")
        pairs = [both.measure(work, model) for _ in range(a.runs)]
        g = statistics.median(p[0] for p in pairs)
        p = statistics.median(p[1] for p in pairs)
        ratio = statistics.median(x[0] / x[1] for x in pairs)
        op, limit = goal.split()
        met = ratio >= float(limit) if op == ">=" else ratio <= float(limit)
        print(f"{work:12} {name:32} {g:12.4g} {p:12.4g} {ratio:7.2f}  {goal} "
              f"{'met' if met else 'NOT met'} ({pairs[0][2]})", flush=True)
        rows.append([machine(), both.commit, a.threads, a.runs, work, name, f"{g:.6g}", f"{p:.6g}",
                     pairs[0][2], f"{ratio:.3f}", goal, met])
    if a.csv:
        with open(a.csv, "w", newline="") as f:
            w = csv.writer(f)
            w.writerow("machine commit threads runs work model galley llama_cpp unit ratio goal "
                       "met".split())
            w.writerows(rows)


if __name__ == "__main__":
    main()
