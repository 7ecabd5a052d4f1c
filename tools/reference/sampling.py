#!/usr/bin/env python3
"""sampling.py - what Hugging Face's logits processors keep, for tests/model/test_sample.c.

    tools/reference/sampling.py tests/golden/sampling

Writes logits.npy [2][n_vocab] f4, params.npy [n_cases][6] f4 (row, temperature, top_k, top_p,
min_p, repetition), seen.npy i4, probs.npy [n_cases][n_vocab] f4: the softmax of what is left
after RepetitionPenalty, TopK, Temperature, TopP and MinP, in this order; and draws.npy
[n_cases][N_DRAWS] i4: the token where the cumulative sum by id passes Philox's number of (seed
SEED + case, position).  Needs torch and transformers."""
import sys
from pathlib import Path

import numpy as np
import torch
from transformers.generation import logits_process as lp

N_VOCAB = 900
N_DRAWS = 60
SEED = 0x123456789ABCDEF0
# row, temperature, top_k, top_p, min_p, repetition
CASES = [
    (0, 1.0, 0, 0, 0, 0),
    (0, 0.7, 40, 0, 0, 0),
    (0, 1.3, 0, 0.9, 0, 0),
    (0, 1.0, 0, 0, 0.05, 0),
    (0, 0.8, 50, 0.95, 0.02, 0),
    (0, 2.5, 200, 0.5, 0, 0),
    (0, 1.0, 3, 0, 0, 1.3),
    (0, 0.1, 20, 0.001, 0.05, 1.05),
    (0, 5.0, 0, 0.999, 0.001, 0.8),
    (1, 1.0, 0, 0, 0, 0),
    (1, 0.7, 5, 0, 0, 1.1),
    (1, 1.5, 0, 0.99, 0, 1.2),
    (1, 1.0, 800, 0.3, 0, 0),
    (1, 1.0, 0, 0.7, 0.2, 0),
    (1, 3.0, 100, 0.8, 0.6, 1.5),
]


def probs_of(logits, seen, case):
    row, temperature, top_k, top_p, min_p, repetition = case
    ids = torch.tensor([seen])
    scores = torch.from_numpy(logits[row][None].copy())
    if repetition:
        scores = lp.RepetitionPenaltyLogitsProcessor(repetition)(ids, scores)
    if top_k:
        scores = lp.TopKLogitsWarper(top_k)(ids, scores)
    scores = lp.TemperatureLogitsWarper(temperature)(ids, scores)
    if top_p:
        scores = lp.TopPLogitsWarper(top_p)(ids, scores)
    if min_p:
        scores = lp.MinPLogitsWarper(min_p)(ids, scores)
    return torch.softmax(scores.double(), -1)[0].numpy()


def philox(key, counter):
    """Philox4x32-10: four words."""
    c = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniform(key, n):
    w = philox(key, n // 2)[2 * (n % 2):]
    return ((w[1] << 32 | w[0]) >> 11) / 2**53


def draws_of(probs, seed):
    sums = np.cumsum(probs)
    return [int(np.searchsorted(sums, uniform(seed, n) * sums[-1], side="right"))
            for n in range(N_DRAWS)]


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20261129)
    flat = rng.normal(0, 1.5, N_VOCAB)  # no clear winner
    peaked = np.sort(rng.gumbel(0, 3.0, N_VOCAB))[rng.permutation(N_VOCAB)]
    logits = np.stack([flat, peaked]).astype("<f4")
    assert all(len(np.unique(row)) == N_VOCAB for row in logits)  # ties are ours to decide
    best = np.argsort(-logits, axis=1)[:, :6].ravel()
    seen = np.concatenate([best, rng.integers(0, N_VOCAB, 60), best[:3]]).astype("<i4")
    np.save(out / "logits.npy", logits)
    np.save(out / "seen.npy", seen)
    np.save(out / "params.npy", np.array(CASES, "<f4"))
    probs = [probs_of(logits, seen.tolist(), c) for c in CASES]
    np.save(out / "probs.npy", np.stack(probs).astype("<f4"))
    draws = [draws_of(p, SEED + i) for i, p in enumerate(probs)]
    np.save(out / "draws.npy", np.array(draws, "<i4"))


main()
