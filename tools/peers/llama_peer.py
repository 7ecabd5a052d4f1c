#!/usr/bin/env python3
"""One measurement of llama.cpp (as llama-cpp-python builds it for this CPU), as JSON on stdout.

    llama_peer.py MODEL.gguf --work start|decode|prefill|batch|vision|logits ... [--threads 2]

The engine is driven through its C interface; Python only fills batches, outside the clock where it
can.  Memory is the process's peak less what it held before the model was opened.
"""
import argparse
import ctypes
import json
import os
import re
import sys
import time

T0 = time.perf_counter()
import numpy as np  # noqa: E402

import llama_cpp as L  # noqa: E402


def status(key):
    with open("/proc/self/status") as f:
        return int(re.search(rf"{key}:\s+(\d+) kB", f.read()).group(1)) * 1024


@L.llama_log_callback
def quiet(level, text, user):
    pass


class Peer:
    def __init__(self, path, threads, n_ctx, n_seq=1, kv=None, flash=None):
        self.rss = status("VmRSS")
        self.begin = time.perf_counter()
        L.llama_backend_init()
        mp = L.llama_model_default_params()
        self.model = L.llama_model_load_from_file(path.encode(), mp)
        if not self.model:
            sys.exit(f"llama.cpp cannot open {path}")
        cp = L.llama_context_default_params()
        cp.n_ctx, cp.n_seq_max = n_ctx, n_seq
        cp.n_batch, cp.n_ubatch = max(512, n_seq), 512
        cp.n_threads = cp.n_threads_batch = threads
        if kv is not None:
            cp.type_k = cp.type_v = kv
        if flash is not None:
            cp.flash_attn_type = flash
        self.ctx = L.llama_init_from_model(self.model, cp)
        self.vocab = L.llama_model_get_vocab(self.model)
        self.n_vocab = L.llama_vocab_n_tokens(self.vocab)
        self.batch = L.llama_batch_init(max(512, n_seq), 0, 1)
        self.loaded = time.perf_counter()

    def rows(self, tokens, pos, seqs, want):
        b = self.batch
        b.n_tokens = len(tokens)
        for i, t in enumerate(tokens):
            b.token[i], b.pos[i], b.n_seq_id[i] = t, pos[i], 1
            b.seq_id[i][0], b.logits[i] = seqs[i], want[i]

    def decode(self):
        if L.llama_decode(self.ctx, self.batch) != 0:
            sys.exit("llama_decode failed")
        L.llama_synchronize(self.ctx)

    def prefill(self, tokens, seq=0):
        for at in range(0, len(tokens), 512):
            part = tokens[at:at + 512]
            last = at + len(part) == len(tokens)
            self.rows(part, range(at, at + len(part)), [seq] * len(part),
                      [0] * (len(part) - 1) + [int(last)])
            self.decode()

    def clear(self):
        L.llama_memory_clear(L.llama_get_memory(self.ctx), True)

    def logits(self, i=-1):
        p = L.llama_get_logits_ith(self.ctx, i)
        return np.ctypeslib.as_array(p, (self.n_vocab,))


def prompt(n, seed=1):
    return [int(t) for t in np.random.default_rng(seed).integers(1000, 30000, n)]


def work_start(a):
    p = Peer(a.model, a.threads, a.ctx or 2048)
    p.prefill(prompt(20))
    int(np.argmax(p.logits()))
    t = time.perf_counter()
    return {"first_token_s": t - p.begin, "load_s": p.loaded - p.begin,
            "python_s": p.begin - T0, "rss": status("VmHWM") - p.rss}


def work_decode(a):
    p = Peer(a.model, a.threads, a.ctx or 2048)
    p.prefill(prompt(a.n_prompt))
    times = []
    for i in range(a.n_output):
        p.rows([1000 + i], [a.n_prompt + i], [0], [1])
        t = time.perf_counter()
        p.decode()
        times.append(time.perf_counter() - t)
    return {"tokens_per_s": len(times) / sum(times), "rss": status("VmHWM") - p.rss}


def work_prefill(a):
    p = Peer(a.model, a.threads, max(a.ctx, a.n_prompt + 64))
    p.prefill(prompt(32, 2))
    p.clear()
    t = time.perf_counter()
    p.prefill(prompt(a.n_prompt))
    s = time.perf_counter() - t
    return {"tokens_per_s": a.n_prompt / s, "rss": status("VmHWM") - p.rss}


def work_batch(a):
    n = a.n_seqs
    p = Peer(a.model, a.threads, (a.n_prompt + a.n_output + 32) * n, n)
    for s in range(n):
        p.prefill(prompt(a.n_prompt, s), s)
    total = 0.0
    for i in range(a.n_output):
        p.rows([1000 + 7 * s + i for s in range(n)], [a.n_prompt + i] * n, range(n), [1] * n)
        t = time.perf_counter()
        p.decode()
        total += time.perf_counter() - t
    return {"tokens_per_s": n * a.n_output / total, "rss": status("VmHWM") - p.rss}


def work_curve(a):
    """Time of a step with m rows of one sequence (verification)."""
    p = Peer(a.model, a.threads, a.ctx or 2048)
    p.prefill(prompt(a.n_prompt))
    out = {}
    mem = L.llama_get_memory(p.ctx)
    for m in (1, 2, 4, 8, 16, 32, 64):
        best = []
        for _ in range(5):
            p.rows([1000 + i for i in range(m)], range(a.n_prompt, a.n_prompt + m), [0] * m, [1] * m)
            t = time.perf_counter()
            p.decode()
            best.append(time.perf_counter() - t)
            L.llama_memory_seq_rm(mem, 0, a.n_prompt, -1)
        out[m] = sorted(best)[len(best) // 2]
    return {"step_s": out}


def work_vision(a):
    import llama_cpp.mtmd_cpp as M
    p = Peer(a.model, a.threads, 4096)
    mp = M.mtmd_context_params_default()
    mp.use_gpu, mp.print_timings, mp.n_threads = False, False, a.threads
    mp.media_marker, mp.warmup = b"<__media__>", False
    v = M.mtmd_init_from_file(a.mmproj.encode(), p.model, mp)
    if not v:
        sys.exit(f"llama.cpp cannot open {a.mmproj}")
    w, h = (int(x) for x in a.image.split("x"))
    pixels = np.random.default_rng(3).integers(0, 256, (h, w, 3), dtype=np.uint8)
    bitmap = M.mtmd_bitmap_init(w, h, pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)))
    chunks = M.mtmd_input_chunks_init()
    text = M.mtmd_input_text()
    text.text, text.text_len = b"<__media__>", len(b"<__media__>")
    text.add_special, text.parse_special = False, True
    bitmaps = (M.mtmd_bitmap_p_ctypes * 1)(bitmap)
    if M.mtmd_tokenize(v, chunks, ctypes.byref(text), bitmaps, 1) != 0:
        sys.exit("mtmd_tokenize failed")
    for i in range(M.mtmd_input_chunks_size(chunks)):
        c = M.mtmd_input_chunks_get(chunks, i)
        if M.mtmd_input_chunk_get_type(c) == 1:
            n = M.mtmd_input_chunk_get_n_tokens(c)
            t = time.perf_counter()
            M.mtmd_encode_chunk(v, c)
            return {"encode_s": time.perf_counter() - t, "n_tokens": n,
                    "rss": status("VmHWM") - p.rss}
    sys.exit("no image chunk")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("--work", required=True)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--ctx", type=int, default=0)
    ap.add_argument("--n-prompt", type=int, default=128)
    ap.add_argument("--n-output", type=int, default=64)
    ap.add_argument("--n-seqs", type=int, default=8)
    ap.add_argument("--mmproj")
    ap.add_argument("--image", default="980x1330")
    a = ap.parse_args()
    L.llama_log_set(quiet, ctypes.c_void_p(0))
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the vision part logs by itself
    out = globals()[f"work_{a.work}"](a)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
