#!/usr/bin/env python3
"""GGUF files with random weights in the shapes of real models, for speed comparisons.

    tools/peers/make_models.py DIR VOCAB.gguf [NAME...]

VOCAB.gguf lends its tokenizer (any Qwen2 file, e.g. fetch_models.py's coder-0.5b).  Quantised
blocks are random codes under scales that give the matrices the spread of trained ones, so that
activations stay finite and every kernel does its usual work.
"""
import pathlib
import sys

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFReader, GGUFValueType, GGUFWriter

SHAPES = {
    # name: hidden, layers, heads, kv heads, ffn, tied
    "0.5b": (896, 24, 14, 2, 4864, True),
    "1.5b": (1536, 28, 12, 2, 8960, True),
    "3b": (2048, 36, 16, 2, 11008, True),
}
N_VOCAB = 151936
FILES = {
    "qwen2.5-0.5b-q8_0": ("0.5b", "q8_0", False),
    "qwen2.5-1.5b-q4_k_m": ("1.5b", "q4_k_m", False),
    "qwen2.5-1.5b-q8_0": ("1.5b", "q8_0", False),
    "qwen2.5-vl-3b-q4_k_m": ("3b", "q4_k_m", True),
    "qwen2.5-vl-3b-q8_0": ("3b", "q8_0", True),
}
MMPROJ = {"mmproj-qwen2.5-vl-3b-f16": T.F16, "mmproj-qwen2.5-vl-3b-q8_0": T.Q8_0}
FFN_VISION = {T.F16: 3420, T.Q8_0: 3424}
rng = np.random.default_rng(7)


def f16_bytes(value, n):
    v = np.full(n, value, np.float16)
    return v.view(np.uint8).reshape(n, 2)


def blocks(kind, n, spread):
    """n random blocks whose decoded values have about the given standard deviation."""
    code = rng.integers(0, 256, (n, {T.Q4_K: 144, T.Q6_K: 210, T.Q5_0: 22, T.Q8_0: 34}[kind]),
                        dtype=np.uint8)
    if kind == T.Q4_K:  # d * sc * q - dmin * mn, sc and mn of 6 bits, q of 4
        d = spread / 250
        code[:, 0:2] = f16_bytes(d, n)
        code[:, 2:4] = f16_bytes(7.5 * d, n)
    elif kind == T.Q6_K:  # d * sc * (q - 32)
        code[:, 208:210] = f16_bytes(spread / 1360, n)
    elif kind == T.Q5_0:
        code[:, 0:2] = f16_bytes(spread / 9.2, n)
    else:
        code[:, 0:2] = f16_bytes(spread / 74, n)
    return code


def matrix(w, name, rows, cols, kind, spread=0.02):
    if kind in (T.F16, T.F32):
        a = (rng.standard_normal((rows, cols), np.float32) * spread)
        w.add_tensor(name, a.astype(np.float16 if kind == T.F16 else np.float32))
        return
    per = 256 if kind in (T.Q4_K, T.Q6_K) else 32
    a = blocks(kind, rows * cols // per, spread)
    w.add_tensor(name, a.reshape(rows, -1), raw_dtype=kind)


def vector(w, name, n, value=0.0, spread=0.0):
    w.add_tensor(name, (value + spread * rng.standard_normal(n)).astype(np.float32))


def copy_tokenizer(w, reader):
    for key, field in reader.fields.items():
        if key.startswith("tokenizer."):
            kind = field.types[0]
            w.add_key_value(key, field.contents(), kind,
                            sub_type=field.types[-1] if kind == GGUFValueType.ARRAY else None)


def more_bits(i, n):
    """Layers whose v and down matrices get more bits in a _M mix."""
    return i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2


def language(path, shape, mix, images, reader):
    hidden, n_layers, n_head, n_kv, ffn, tied = SHAPES[shape]
    arch = "qwen2vl" if images else "qwen2"
    w = GGUFWriter(path, arch)
    w.add_name(path.stem)
    w.add_context_length(32768)
    w.add_embedding_length(hidden)
    w.add_block_count(n_layers)
    w.add_feed_forward_length(ffn)
    w.add_head_count(n_head)
    w.add_head_count_kv(n_kv)
    w.add_rope_freq_base(1e6)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_file_type(15 if mix == "q4_k_m" else 7)
    if images:
        w.add_rope_dimension_sections([16, 24, 24, 0])
    copy_tokenizer(w, reader)
    low, high = (T.Q4_K, T.Q6_K) if mix == "q4_k_m" else (T.Q8_0, T.Q8_0)
    if mix == "q4_k_m" and hidden % 256:
        sys.exit("a K-quant needs widths that are multiples of 256")
    matrix(w, "token_embd.weight", N_VOCAB, hidden, high)
    vector(w, "output_norm.weight", hidden, 1.0, 0.05)
    kv = hidden // n_head * n_kv
    for i in range(n_layers):
        p = f"blk.{i}."
        vector(w, p + "attn_norm.weight", hidden, 1.0, 0.05)
        vector(w, p + "ffn_norm.weight", hidden, 1.0, 0.05)
        for part, rows in (("q", hidden), ("k", kv), ("v", kv)):
            kind = high if part == "v" and more_bits(i, n_layers) else low
            matrix(w, f"{p}attn_{part}.weight", rows, hidden, kind)
            vector(w, f"{p}attn_{part}.bias", rows, 0.0, 0.1)
        matrix(w, p + "attn_output.weight", hidden, hidden, low, 0.02 / (2 * n_layers) ** 0.5)
        matrix(w, p + "ffn_gate.weight", ffn, hidden, low)
        matrix(w, p + "ffn_up.weight", ffn, hidden, low)
        matrix(w, p + "ffn_down.weight", hidden, ffn, high if more_bits(i, n_layers) else low,
               0.02 / (2 * n_layers) ** 0.5)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def vision(path, kind):
    hidden, depth, n_head, out, ffn = 1280, 32, 16, 2048, FFN_VISION[kind]
    w = GGUFWriter(path, "clip")
    w.add_type("mmproj")
    w.add_bool("clip.has_vision_encoder", True)
    w.add_string("clip.projector_type", "qwen2.5vl_merger")
    w.add_bool("clip.use_silu", True)
    w.add_bool("clip.use_gelu", False)
    v = "clip.vision."
    for key, value in (("embedding_length", hidden), ("feed_forward_length", ffn),
                       ("block_count", depth), ("projection_dim", out),
                       ("attention.head_count", n_head), ("image_size", 560),
                       ("patch_size", 14), ("spatial_merge_size", 2), ("n_wa_pattern", 8),
                       ("window_size", 112)):
        w.add_uint32(v + key, value)
    w.add_float32(v + "attention.layer_norm_epsilon", 1e-6)
    w.add_array(v + "image_mean", [0.48145466, 0.4578275, 0.40821073])
    w.add_array(v + "image_std", [0.26862954, 0.26130258, 0.27577711])
    for name in ("v.patch_embd.weight", "v.patch_embd.weight.1"):
        w.add_tensor(name, (rng.standard_normal((hidden, 3, 14, 14), np.float32) * 0.02))
    for i in range(depth):
        p = f"v.blk.{i}."
        vector(w, p + "ln1.weight", hidden, 1.0, 0.05)
        vector(w, p + "ln2.weight", hidden, 1.0, 0.05)
        for part in ("q", "k", "v"):
            matrix(w, f"{p}attn_{part}.weight", hidden, hidden, kind)
            vector(w, f"{p}attn_{part}.bias", hidden, 0.0, 0.1)
        matrix(w, p + "attn_out.weight", hidden, hidden, kind, 0.003)
        vector(w, p + "attn_out.bias", hidden)
        for part in ("gate", "up"):
            matrix(w, f"{p}ffn_{part}.weight", ffn, hidden, kind)
            vector(w, f"{p}ffn_{part}.bias", ffn)
        matrix(w, p + "ffn_down.weight", hidden, ffn, kind, 0.003)
        vector(w, p + "ffn_down.bias", hidden)
    vector(w, "v.post_ln.weight", hidden, 1.0, 0.05)
    matrix(w, "mm.0.weight", 4 * hidden, 4 * hidden, kind)
    vector(w, "mm.0.bias", 4 * hidden)
    matrix(w, "mm.2.weight", out, 4 * hidden, kind)
    vector(w, "mm.2.bias", out)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, reader = pathlib.Path(sys.argv[1]), GGUFReader(sys.argv[2])
    for name in sys.argv[3:] or [*FILES, *MMPROJ]:
        path = folder / f"{name}.gguf"
        if path.exists():
            continue
        part = path.with_suffix(".tmp")
        if name in MMPROJ:
            vision(part, MMPROJ[name])
        else:
            shape, mix, images = FILES[name]
            language(part, shape, mix, images, reader)
        part.rename(path)
        print(f"{path}  {path.stat().st_size >> 20} MiB", flush=True)


if __name__ == "__main__":
    main()
