"""Golden blocks for tests/kernels/check_quant.c (pip install gguf llama-cpp-python).

  quants.py fixture OUT     x, importance; per type: random blocks and what gguf-py decodes them to,
                            and ggml's own encoding of x, without and with the importance
  quants.py compare LIB     wide comparison with LIB, kernels/ref/quant*.c as a shared library: decoding of random
                            blocks bit for bit, then the ratio of RMS errors of the two encoders and their speed

LIB: gcc -std=c17 -D_GNU_SOURCE -O3 -ffp-contract=off -fPIC -shared -I. -o LIB kernels/ref/quant*.c
     kernels/ref/widen.c src/base/half.c -lm"""
import ctypes
import pathlib
import struct
import sys
import time

import gguf
import llama_cpp
import numpy as np
from gguf.quants import dequantize

NAMES = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4".split()  # enum dtype
# Where the f16 scales lie in a block: random ones must be finite.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []}
TYPES = gguf.GGMLQuantizationType

ggml = ctypes.CDLL(str(pathlib.Path(llama_cpp.__file__).parent / "lib" / "libggml-base.so"))
ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]


def pointer(a):
    return None if a is None else a.ctypes.data_as(ctypes.c_void_p)


def random_blocks(rng, name, n):
    block, size = gguf.GGML_QUANT_SIZES[TYPES[name]]
    b = rng.integers(0, 256, (n // block, size), dtype=np.uint8)
    for at in SCALES[name]:
        h = b[:, at:at + 2].copy().view(np.uint16)
        b[:, at:at + 2] = np.where((h & 0x7c00) == 0x7c00, h ^ 0x4000, h).astype(np.uint16).view(np.uint8)
    if name == "MXFP4":
        b[:, 0] = np.minimum(b[:, 0], 250)  # no overflow to infinity
    return b


def ggml_encode(name, x, importance):
    block, size = gguf.GGML_QUANT_SIZES[TYPES[name]]
    out = np.zeros((x.shape[0], x.shape[1] // block * size), np.uint8)
    ggml.ggml_quantize_chunk(int(TYPES[name]), pointer(x), pointer(out), 0, x.shape[0], x.shape[1], pointer(importance))
    return out


def fixture(path):
    rng = np.random.default_rng(11)
    n = 1024
    x = (rng.standard_t(5, (1, n)) * 0.03).astype(np.float32)
    importance = (rng.standard_normal(n) ** 2 + 0.01).astype(np.float32)
    with open(path, "wb") as f:
        f.write(struct.pack("<II", len(SCALES), n) + x.tobytes() + importance.tobytes())
        for name in SCALES:
            blocks = random_blocks(rng, name, n)
            f.write(name.encode().ljust(8, b"\0") + blocks.tobytes() + dequantize(blocks, TYPES[name]).tobytes())
            f.write(ggml_encode(name, x, None).tobytes() + ggml_encode(name, x, importance).tobytes())


def compare_decoding(lib, rng):
    for i, name in enumerate(NAMES[3:], 3):
        n = 4_194_304
        blocks = random_blocks(rng, name, n)
        y = np.empty(n, np.float32)
        lib.quant_decode(pointer(y), pointer(blocks), i, ctypes.c_size_t(n))
        differ = np.count_nonzero(y.view(np.uint32) != dequantize(blocks, TYPES[name]).ravel().view(np.uint32))
        print(f"decode {name}: {differ} of {n} elements differ")


def compare_encoding(lib, kind, x, importance):
    for i, name in enumerate(NAMES[3:], 3):
        block, size = gguf.GGML_QUANT_SIZES[TYPES[name]]
        for label, w in (("plain", None), ("imatrix", importance)):
            ours = np.zeros((x.shape[0], x.shape[1] // block * size), np.uint8)
            t0 = time.process_time()
            for row, out in zip(x, ours):
                lib.quant_encode(pointer(out), pointer(row), pointer(w), i, ctypes.c_size_t(x.shape[1]))
            t1 = time.process_time()
            theirs = ggml_encode(name, x, w)
            t2 = time.process_time()
            rms = [np.sqrt((np.square(dequantize(b, TYPES[name]) - x, dtype=np.float64) * (1 if w is None else w)).mean())
                   for b in (ours, theirs)]
            print(f"{kind:8} {name:7} {label:8} RMS error {rms[0]:.6g}, ratio {rms[0] / rms[1]:.4f}; "
                  f"{x.size / (t1 - t0) / 1e6:.1f} and {x.size / (t2 - t1) / 1e6:.1f} M/s; bytes equal: {np.array_equal(ours, theirs)}")


def compare(path):
    lib = ctypes.CDLL(path)
    rng = np.random.default_rng(3)
    compare_decoding(lib, rng)
    shape = (512, 1024)
    importance = (rng.standard_normal(shape[1]) ** 2 + 0.01).astype(np.float32)
    for kind, x in (("gauss", rng.standard_normal(shape)), ("laplace", rng.laplace(size=shape)), ("t4", rng.standard_t(4, shape))):
        compare_encoding(lib, kind, (x * 0.02).astype(np.float32), importance)


if __name__ == "__main__":
    {"fixture": fixture, "compare": compare}[sys.argv[1]](sys.argv[2])
