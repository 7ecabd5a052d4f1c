#!/usr/bin/env python3
"""Writes tests/format/fixtures: small JPEG, PNG and model files with their true values.

    pip install pillow numpy safetensors==0.8.0 transformers==5.24.0
    python3 tests/format/make_fixtures.py

golden.txt beside the pictures has one line each: NAME WIDTH HEIGHT RGB-as-hex.  JPEG values come
from Pillow (CMYK and YCCK from its raw planes, converted here in floating point), PNG values from
the arrays the files were made of; Pillow must agree where it can read the kind.
"""
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).resolve().parent / "fixtures"


def scene(w, h):
    """Smooth, and different in every corner, so that no flip goes unseen."""
    y, x = np.mgrid[0:h, 0:w].astype(float)
    r = 255 * x / max(w - 1, 1)
    g = 255 * y / max(h - 1, 1)
    b = 127 + 120 * np.sin(x / 5 + y / 3)
    return np.clip(np.stack([r, g, b], -1), 0, 255).round().astype(np.uint8)


class Golden:
    def __init__(self, folder):
        self.folder, self.lines = HERE / folder, []

    def add(self, name, data, rgb):
        (self.folder / name).write_bytes(data)
        h, w, _ = rgb.shape
        self.lines.append(f"{name} {w} {h} {rgb.astype(np.uint8).tobytes().hex()}\n")

    def write(self):
        (self.folder / "golden.txt").write_text("".join(self.lines))


# ---- JPEG

def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def decoded(data):
    return Image.open(io.BytesIO(data))


def segments(data):
    """(offset, marker, length with marker) of every segment before the first scan."""
    at = 2
    while data[at + 1] != 0xDA:
        n = 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
        yield at, data[at + 1], n
        at += n


def without_adobe(data):
    for at, marker, n in segments(data):
        if marker == 0xEE:
            return data[:at] + data[at + n:]
    raise ValueError("no Adobe marker")


def with_transform(data, value):
    for at, marker, n in segments(data):
        if marker == 0xEE:
            return data[:at + n - 1] + bytes([value]) + data[at + n:]
    raise ValueError("no Adobe marker")


def ink_to_rgb(ink):
    ink = ink.astype(float)
    return np.floor((255 - ink[..., :3]) * (255 - ink[..., 3:]) / 255 + 0.5)


def ycc_to_rgb(ycc):
    y, cb, cr = (ycc[..., i].astype(float) for i in range(3))
    rgb = np.stack([y + 1.402 * (cr - 128), y - 0.344136 * (cb - 128) - 0.714136 * (cr - 128),
                    y + 1.772 * (cb - 128)], -1)
    return np.clip(np.floor(rgb + 0.5), 0, 255)


def exif_little(o):
    entry = struct.pack("<HHIHH", 0x0112, 3, 1, o, 0)
    body = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + entry + struct.pack("<I", 0)
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body


def make_jpeg():
    g = Golden("jpeg")

    def plain(name, data):
        g.add(name, data, np.asarray(decoded(data).convert("RGB")))

    im = Image.fromarray(scene(37, 29))
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        plain(f"ycc{name}.jpg", jpeg(im, quality=85, subsampling=subsampling))
        plain(f"ycc{name}_progressive.jpg",
              jpeg(im, quality=85, subsampling=subsampling, progressive=True))
    plain("restart.jpg", jpeg(im, quality=85, restart_marker_blocks=2))
    plain("low.jpg", jpeg(im, quality=5))
    plain("one.jpg", jpeg(Image.fromarray(scene(1, 1)), quality=90))
    plain("gray.jpg", jpeg(im.convert("L"), quality=85))
    plain("gray_progressive.jpg", jpeg(im.convert("L"), quality=85, progressive=True))
    rgb = jpeg(im, quality=85, keep_rgb=True)
    plain("rgb_adobe.jpg", rgb)
    plain("rgb_ids.jpg", without_adobe(rgb))

    planes = np.dstack([scene(32, 24), scene(32, 24)[::-1, ::-1, 0] // 2])
    cmyk = jpeg(Image.fromarray(planes, "CMYK"), quality=90)
    # Pillow inverts on reading whatever the marker says: its raw planes are ink for Adobe files.
    ink = np.asarray(decoded(cmyk))
    g.add("cmyk_adobe.jpg", cmyk, ink_to_rgb(ink))
    g.add("cmyk_plain.jpg", without_adobe(cmyk), ink_to_rgb(255 - ink))
    # The same samples read as Y, Cb, Cr, K: libjpeg's CMYK is then 255 - RGB, stored inverted.
    stored = 255 - ink
    paper = np.dstack([255 - ycc_to_rgb(stored[..., :3]), stored[..., 3]])
    g.add("ycck_adobe.jpg", with_transform(cmyk, 2), ink_to_rgb(255 - paper))

    small = Image.fromarray(scene(24, 10))
    for o in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = o
        data = jpeg(small, quality=85, subsampling=0, exif=exif)
        upright = ImageOps.exif_transpose(decoded(data))
        g.add(f"exif{o}.jpg", data, np.asarray(upright))
        bare = jpeg(small, quality=85, subsampling=0)
        g.add(f"exif{o}_little.jpg", bare[:2] + exif_little(o) + bare[2:], np.asarray(upright))
    g.write()


# ---- PNG

ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2))


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def pack_rows(a, depth):
    """Filter byte 0 and the samples of [h][w][channels], packed."""
    out = bytearray()
    for row in a.reshape(a.shape[0], -1):
        out.append(0)
        if depth == 16:
            out += row.astype(">u2").tobytes()
        elif depth == 8:
            out += row.astype(np.uint8).tobytes()
        else:
            bits = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, 8 - depth:]
            out += np.packbits(bits.ravel()).tobytes()
    return bytes(out)


def png(a, depth, colour, adam7=False, extra=b""):
    h, w = a.shape[:2]
    if adam7:
        parts = [a[y0::dy, x0::dx] for x0, y0, dx, dy in ADAM7]
        raw = b"".join(pack_rows(p, depth) for p in parts if p.size)
    else:
        raw = pack_rows(a, depth)
    header = struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, int(adam7))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra +
            chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def to8(a, depth):
    return np.floor(a.astype(float) * 255 / (2**depth - 1) + 0.5)


def over_white(rgb, alpha):
    return np.floor((rgb * alpha + 255 * (255 - alpha)) / 255 + 0.5)


def samples(w, h, channels, depth):
    base = np.dstack([scene(w, h), scene(w, h)[:, ::-1, 2]]).astype(float)[..., :channels]
    if depth == 16:  # low bytes that matter for rounding
        return (base * 256 + (np.arange(w) * 37 % 256)[None, :, None]).astype(np.uint16)
    return np.floor(base * (2**depth - 1) / 255 + 0.5).astype(np.uint16)


def make_png():
    g = Golden("png")
    w, h = 21, 13

    def add(name, data, rgb, pillow=True):
        if pillow:
            seen = decoded(data).convert("RGBA")
            white = Image.new("RGBA", seen.size, "white")
            seen = np.asarray(Image.alpha_composite(white, seen).convert("RGB")).astype(int)
            assert np.abs(seen - rgb).max() <= 1, name
        g.add(name, data, rgb)

    for adam7 in (False, True):
        tail = "_adam7" if adam7 else ""
        for depth in (1, 2, 4, 8, 16):
            a = samples(w, h, 1, depth)
            gray = to8(a, depth).repeat(3, 2)
            add(f"gray{depth}{tail}.png", png(a, depth, 0, adam7), gray, depth < 16)
            key = int(a[5, 7, 0])
            keyed = np.where(a == key, 255, gray)
            add(f"gray{depth}_trns{tail}.png",
                png(a, depth, 0, adam7, chunk(b"tRNS", struct.pack(">H", key))), keyed, False)
        for depth in (8, 16):
            a = samples(w, h, 3, depth)
            add(f"rgb{depth}{tail}.png", png(a, depth, 2, adam7), to8(a, depth), depth == 8)
            key = a[3, 4]
            keyed = np.where((a == key).all(-1, keepdims=True), 255, to8(a, depth))
            add(f"rgb{depth}_trns{tail}.png",
                png(a, depth, 2, adam7, chunk(b"tRNS", struct.pack(">3H", *key))), keyed, False)
            a = samples(w, h, 4, depth)
            v = to8(a, depth)
            add(f"rgba{depth}{tail}.png", png(a, depth, 6, adam7),
                over_white(v[..., :3], v[..., 3:]), depth == 8)
            a = a[..., 2:]
            v = to8(a, depth)
            add(f"graya{depth}{tail}.png", png(a, depth, 4, adam7),
                over_white(v[..., :1].repeat(3, 2), v[..., 1:]), depth == 8)
        for depth in (1, 2, 4, 8):
            n = min(2**depth, 40)
            palette = scene(8, 5).reshape(-1, 3)[:n]
            a = (np.add.outer(np.arange(h) * 3, np.arange(w)) % n)[..., None]
            plte = chunk(b"PLTE", palette.tobytes())
            add(f"palette{depth}{tail}.png", png(a, depth, 3, adam7, plte),
                palette[a[..., 0]].astype(float))
            alpha = (np.arange(n // 2 + 1) * 255 // (n // 2 + 1)).astype(np.uint8)
            full = np.full(n, 255.0)
            full[:len(alpha)] = alpha
            add(f"palette{depth}_trns{tail}.png",
                png(a, depth, 3, adam7, plte + chunk(b"tRNS", alpha.tobytes())),
                over_white(palette[a[..., 0]].astype(float), full[a[..., 0]][..., None]))
    out = io.BytesIO()
    Image.fromarray(scene(w, h)).save(out, "PNG", optimize=True)  # every row filter
    add("filters.png", out.getvalue(), scene(w, h).astype(float))
    gamma = chunk(b"gAMA", struct.pack(">I", 100000))
    a = samples(w, h, 3, 8)
    add("gamma.png", png(a, 8, 2, False, gamma), to8(a, 8))
    g.write()


# ---- models

def make_model():
    import json

    from safetensors import TensorSpec, serialize
    from transformers import Qwen2_5_VLConfig, Qwen2VLConfig

    out = HERE / "model"
    f32 = np.arange(6, dtype="<f4").reshape(2, 3) / 4
    f16 = np.arange(4, dtype="<f2") - 1.5
    bf16 = (np.arange(8, dtype="<f4") * 3).view("<u4") >> 16
    arrays = {  # kept alive: TensorSpec holds bare addresses
        "b.weight": ("float32", f32.shape, f32),
        "a.bias": ("float16", f16.shape, f16),
        "c.kernel": ("bfloat16", (2, 1, 2, 1, 2), bf16.astype("<u2")),
        "ids": ("int64", (2,), np.array([1, 2], "<i8")),
        "scalar": ("float32", (), np.array(0.5, "<f4")),
    }
    specs = {name: TensorSpec(dtype=dtype, shape=list(shape), data_ptr=a.ctypes.data,
                              data_len=a.nbytes) for name, (dtype, shape, a) in arrays.items()}
    (out / "five.safetensors").write_bytes(serialize(specs, {"format": "pt"}))

    text = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                intermediate_size=96, vocab_size=500, max_position_embeddings=1024,
                rms_norm_eps=1e-6, tie_word_embeddings=True, bos_token_id=480, eos_token_id=481,
                rope_parameters={"rope_type": "default", "rope_theta": 5000.0,
                                 "mrope_section": [2, 3, 3]})
    ids = dict(vision_start_token_id=490, vision_end_token_id=491, image_token_id=492,
               video_token_id=493, tie_word_embeddings=True)
    new = {
        "qwen2_vl_new.json": Qwen2VLConfig(
            text_config=dict(text), **ids,
            vision_config=dict(depth=5, embed_dim=48, num_heads=3, mlp_ratio=3, hidden_size=64,
                               patch_size=12)),
        "qwen2_5_vl_new.json": Qwen2_5_VLConfig(
            text_config=dict(text), **ids,
            vision_config=dict(depth=4, hidden_size=32, num_heads=2, intermediate_size=80,
                               out_hidden_size=64, window_size=84, fullatt_block_indexes=[1, 3])),
    }
    for name, config in new.items():
        (out / name).write_text(json.dumps(config.to_dict(), indent=1, default=str) + "\n")


if __name__ == "__main__":
    make_jpeg()
    make_png()
    make_model()
