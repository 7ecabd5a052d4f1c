"""Compares Galley's tokenizer with Hugging Face `tokenizers` (pip install tokenizers).

  tokenizer.py compare TOKENIZER_JSON TOK_DUMP [N]    ids and decoded text of about N strings (default 6000)
  tokenizer.py points TOKENIZER_JSON TOK_DUMP         every code point in eight contexts: splits and normalisation
  tokenizer.py fixture TOKENIZER_JSON OUT [N]         strings and ids for tests/format/test_tokenizer.c
  tokenizer.py qwen2 TIKTOKEN OUT_JSON                Qwen2's tokenizer.json from qwen.tiktoken (in the dashscope package)
  tokenizer.py mixed OUT_JSON KIND [SIZE]             a small vocabulary of many scripts with every kind of added token;
                                                      KIND is qwen2 (Split pattern), gpt2 (ByteLevel's own), whole (ignore_merges)
                                                      or gap (a pattern with empty matches that leaves text out)
  tokenizer.py probe TOKENIZER_JSON OUT_JSON OUT_TXT  a vocabulary that shows every split, and ids for telling code points

TOK_DUMP is the program tests/format/tok_dump.c.  A fixture line is: mode, hex bytes (or -), ids."""
import base64
import json
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

QWEN2_PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2_SPECIAL = ("endoftext im_start im_end object_ref_start object_ref_end box_start box_end quad_start quad_end "
                 "vision_start vision_end vision_pad image_pad video_pad").split()
QWEN2_ADDED = ["<tool_call>", "</tool_call>"] + [f"<|{n}|>" for n in "fim_prefix fim_middle fim_suffix fim_pad repo_name file_sep".split()]

SEEDS = {
    "english": "The quick brown fox jumps over the lazy dog. It's 3 o'clock; they'll say we've WON'T, I'D, YOU'RE, 'S 'LL \u2019s don\u2019t.",
    "korean": "\ubb38\uc11c\ub97c \ub9c8\ud06c\ub2e4\uc6b4\uc73c\ub85c \ubc14\uafc9\ub2c8\ub2e4. \ud45c\uc640 \uc218\uc2dd, \uadf8\ub9bc 3\uac1c\uac00 \uc788\uc2b5\ub2c8\ub2e4!",
    "jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af \u3131\u3134 \uac00\u11a8 \u1100\u1161\u11a8",
    "chinese": "\u5c06\u6587\u6863\u8f6c\u6362\u4e3aMarkdown\u3002\u7b2c\u4e09\u7ae0\uff1a\u7ed3\u679c\u4e0e\u8ba8\u8bba\uff0c\u89c1\u88681\u3002\u7e41\u9ad4\u5b57 \U00020000\U0002a6d6",
    "compat": "\uf900\uf90a\u2f81A\ufb01\u212b\u2126\u1e9b\u0323 \u00bd\u2460\uff11\uff21",
    "japanese": "\u6587\u66f8\u3092\u30de\u30fc\u30af\u30c0\u30a6\u30f3\u306b\u5909\u63db\u3057\u307e\u3059\u3002\u304b\u3099\u30cf\u309a \uff8a\uff9f \u6771\u4eac23\u533a",
    "arabic": "\u064a\u062d\u0648\u0644 \u0627\u0644\u0645\u0633\u062a\u0646\u062f\u0627\u062a \u0625\u0644\u0649 \u0646\u0635\u0651\u064f \u0663\u0664\u0665 \u0627\u0653\u0644\u0652",
    "hebrew": "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd \ufb2a \u05d1\u05bc\u05b0",
    "indic": "\u0926\u0938\u094d\u0924\u093e\u0935\u0947\u091c\u093c \u0915\u094b \u092c\u0926\u0932\u0947\u0902 \u0967\u0968\u0969 \u0b9a\u0bcb\u0bb4\u0bb0\u0bcd \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd \u2764\ufe0f \U0001f1f0\U0001f1f7\U0001f1ef\U0001f1f5 1\ufe0f\u20e3 \U0001fae8",
    "marks": "e\u0301 a\u0323\u0302 o\u0308\u0304 Z\u0351\u036b\u0343\u036a\u0302 \u0344 \u1e69 s\u0307\u0323 q\u0323\u0307",
    "latin": "Z\u00fcrich na\u00efve \u0152uvre \u0130stanbul stra\u00dfe \u017fo '\u017f \u00c5ngstr\u00f6m \u0141\u00f3d\u017a \u01c4 \ua77d",
    "cyrillic": "\u041f\u0440\u0435\u043e\u0431\u0440\u0430\u0437\u043e\u0432\u0430\u043d\u0438\u0435 \u0438\u0306 \u0451 \u0394\u03bf\u03ba\u03b9\u03bc\u03ae \u03c2",
    "code": "static int f(const char *s)\n{\n\treturn s[0] == '\\0' ? 0x1F : -1; /* it's */\n}\n\n#define A(x) ((x)->y)\r\n  if a != b and not c:\n        pass\n",
    "markdown": "| a | Price |\n|---|---:|\n| x | $1,234.50 |\n\n- item\n  1. `code` **bold** ~~no~~\n# Heading\n",
    "numbers": "1234567890 3.14159 1,000,000 12:30 2026-01-31 +82-10-1234-5678 \u0661\u0662 \u2167 \u00b2\u00b3 10^-8",
    "space": "  a\t\tb \n \n\n c\r\n\r\n  \r d\x0b\x0ce \u00a0f\u2003g\u3000h\u2028i\u0085j\u180ek\u200bl   ",
    "special": "<|im_start|>user\nhi<|im_end|>\n<|vision_start|><|image_pad|><|image_pad|><|vision_end|><tool_call>{}</tool_call><|endoftext|><|im_start "
               "\u0085<|image_pad|>\u3000\u0085 it\u2028 pass\u180epass cafe\u0301 caf\u00e9 <|im_end|>x <|im_start|>1",
    "controls": "\x00\x01\x1b[0m\x7f\x80\x9f\u00ad\ufeff\u200e\u202e\ufffd\uffff\U0010ffff",
}


def random_point(r):
    while True:
        c = r.choice([r.randrange(0x80), r.randrange(0x800), r.randrange(0x10000), r.randrange(0x110000), r.randrange(0x300, 0x370)])
        if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) != "Cn":
            return chr(c)


def strings(n, seed=20):
    """Byte strings: every seed, seeds cut and mixed at random, malformed UTF-8, long words."""
    r = random.Random(seed)
    seeds = list(SEEDS.values())
    out = [b""] + [s.encode() for s in seeds]
    out += [w.encode() for s in seeds for w in s.split(" ") if w]
    out += [b"a" * 5000, b"ab" * 3000, b" " * 3000 + b"x", b"\n" * 2000, "\u00e9".encode() * 2000, "\u5b57".encode() * 1500, b"0123456789" * 200,
            ("e" + "\u0301\u0323" * 500).encode(), "\u1100".encode() * 300, bytes(range(256)), b"\xff" * 50, b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"]
    while len(out) < n:
        kind = r.random()
        if kind < .45:      # windows of one seed
            s = r.choice(seeds); i = r.randrange(len(s)); text = s[i:i + r.randrange(1, 60)]
        elif kind < .75:    # windows of several
            text = ""
            for _ in range(r.randrange(2, 8)):
                s = r.choice(seeds); i = r.randrange(len(s)); text += s[i:i + r.randrange(1, 12)]
        elif kind < .9:     # any assigned characters
            text = "".join(random_point(r) if r.random() < .7 else r.choice(" \n\t'sS1") for _ in range(r.randrange(1, 30)))
        else:               # ASCII soup
            text = "".join(chr(r.randrange(1, 127)) if r.random() < .5 else r.choice("  \n\n\r\t''aez09.,|-#") for _ in range(r.randrange(1, 80)))
        b = text.encode()
        if r.random() < .12:  # break it
            k = r.randrange(4)
            i = r.randrange(len(b) + 1)
            if k == 0: b = b[:i]
            elif k == 1: b = b[i:]
            elif k == 2: b = b[:i] + bytes(r.randrange(128, 256) for _ in range(r.randrange(1, 5))) + b[i:]
            elif b: b = b[:i] + b[i + 1:]
        out.append(b)
    return out


def hugging_face(path):
    import tokenizers
    t = tokenizers.Tokenizer.from_file(path)
    t.no_truncation(); t.no_padding()
    def encode(data, mode):
        t.encode_special_tokens = mode == "plain"
        return t.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids
    added = {i: a.content for i, a in t.get_added_tokens_decoder().items()}
    def decode(ids):  # HF sends added tokens through the byte-level decoder as well, which spoils those outside of ASCII; here they are plain text
        text, run = "", []
        for i in ids + [None]:
            if i is None or i in added: text += t.decode(run, skip_special_tokens=False) + added.get(i, ""); run = []
            else: run.append(i)
        return text
    return encode, decode


def galley(tool, path, data, mode):
    records = b"".join(struct.pack("<I", len(d)) + d for d in data)
    p = subprocess.run([tool, path, mode], input=records, stdout=subprocess.PIPE, check=True)
    for line in p.stdout.decode().split("\n")[:-1]:
        ids, text = line.split("\t")
        yield [int(i) for i in ids.split()], bytes.fromhex(text)


def compare(path, tool, data, show=10):
    encode, decode = hugging_face(path)
    bad = 0
    for mode in ("plain", "special"):
        wrong_ids = wrong_text = n_ids = n = 0
        for d, (ids, text) in zip(data, galley(tool, path, data, mode), strict=True):
            want = encode(d, mode)
            n += 1; n_ids += len(want)
            if ids != want:
                wrong_ids += 1
                if wrong_ids <= show: print(f"  {mode} {d[:80]!r}\n    here {ids[:24]}\n    HF   {want[:24]}")
            elif text.decode("utf-8", "replace") != decode(want):
                wrong_text += 1
                if wrong_text <= show: print(f"  {mode} decode {d[:60]!r}\n    here {text[:60]!r}\n    HF   {decode(want)[:60]!r}")
        print(f"{mode}: {n} strings, {n_ids} ids, {wrong_ids} strings with other ids, {wrong_text} with other text")
        bad += wrong_ids + wrong_text
    return bad


def probe(path, out):
    """The same normalizer and pattern with a vocabulary that shows every split: x, 1, ', space and newline merge with any byte beside them."""
    d = json.load(open(path)); u = list(byte_alphabet().values()); spell = byte_alphabet()
    merges = [m for c in b"x1' \n" for b in u for m in ((spell[c], b), (b, spell[c]))]
    merges = list(dict.fromkeys(merges))
    tokens = dict.fromkeys(u + [a + b for a, b in merges])
    d["model"].update(vocab={t: i for i, t in enumerate(tokens)}, merges=[" ".join(m) for m in merges])
    d["added_tokens"] = []
    json.dump(d, open(out, "w"), ensure_ascii=False, separators=(",", ":"))


CONTEXTS = ("x{}x", "1{}1", " {}", "{} ", "  {}", "'{}x", "{}\n", "e{}\u0301\u0323x")
TELLING = [*range(0x00, 0x100), 0x17F, 0x2BC, 0x300, 0x345, 0x660, 0x1680, 0x180E, *range(0x2000, 0x2010), 0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x2160, 0x212A, 0x3000, 0x3007,
           0xAC00, 0x1100, 0x4E00, 0xFEFF, 0xFF11, 0xFFFD, 0x1D7CE, 0x20000, 0x1F600]


def probe_fixture(path, out, out_text):
    probe(path, out)
    encode, _ = hugging_face(out)
    with open(out_text, "w") as f:
        for c in TELLING:
            d = "|".join(make.replace("{}", chr(c)) for make in CONTEXTS).encode()
            f.write(f"plain {d.hex()} {' '.join(map(str, encode(d, 'plain')))}\n")


def points(path, tool):
    """Reports the code points that split or normalise differently, as ranges."""
    all_points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        probe(path, f.name)
        encode, _ = hugging_face(f.name)
        differ = {}
        for make in CONTEXTS:
            data = [make.replace("{}", chr(c)).encode() for c in all_points]
            for c, d, (ids, _) in zip(all_points, data, galley(tool, f.name, data, "plain"), strict=True):
                if ids != encode(d, "plain"): differ.setdefault(c, []).append(make)
    print(f"{len(all_points)} code points in 8 contexts, {len(differ)} differ")
    ranges = []
    for c in sorted(differ):
        if ranges and ranges[-1][1] == c - 1 and differ[c] == differ[ranges[-1][0]]: ranges[-1][1] = c
        else: ranges.append([c, c])
    for a, b in ranges: print(f"  U+{a:04X}..U+{b:04X} {unicodedata.category(chr(a))} {unicodedata.name(chr(a), '?')} {differ[a]}")


def fixture(path, out, n):
    encode, _ = hugging_face(path)
    data = [d for d in strings(n, seed=7) if len(d) <= 600]
    with open(out, "w") as f:
        for d in data:
            for mode in ("plain", "special"):
                if mode == "special" and b"<" not in d: continue
                f.write(f"{mode} {d.hex() or '-'} {' '.join(map(str, encode(d, mode)))}\n")


def byte_alphabet():
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    other = [b for b in range(256) if b not in keep]
    return {**{b: chr(b) for b in keep}, **{b: chr(256 + i) for i, b in enumerate(other)}}


def qwen2(tiktoken, out):
    ranks = {base64.b64decode(a): int(b) for a, b in (l.split() for l in open(tiktoken) if l.strip())}
    u = byte_alphabet(); spell = lambda b: "".join(u[x] for x in b)
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda kv: kv[1]):
        parts = [token[i:i + 1] for i in range(len(token))]
        while len(parts) > 2:  # BPE with the earlier merges only
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], 1 << 30))
            assert ranks.get(parts[best] + parts[best + 1], 1 << 30) < rank
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        if len(parts) == 2: merges.append([spell(parts[0]), spell(parts[1])])
    added = [f"<|{n}|>" for n in QWEN2_SPECIAL] + QWEN2_ADDED
    byte_level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
    json.dump(dict(version="1.0", truncation=None, padding=None,
                   added_tokens=[dict(id=len(ranks) + i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False, special=i < len(QWEN2_SPECIAL)) for i, c in enumerate(added)],
                   normalizer=dict(type="NFC"),
                   pre_tokenizer=dict(type="Sequence", pretokenizers=[dict(type="Split", pattern=dict(Regex=QWEN2_PATTERN), behavior="Isolated", invert=False), byte_level]),
                   post_processor=byte_level, decoder=byte_level,
                   model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False, byte_fallback=False, ignore_merges=False,
                              vocab={spell(t): r for t, r in ranks.items()}, merges=merges)), open(out, "w"), ensure_ascii=False)
    print(len(ranks), "tokens", len(merges), "merges")


def mixed(out, kind, size):
    import tokenizers as hf
    t = hf.Tokenizer(hf.models.BPE(ignore_merges=kind == "whole"))
    if kind != "gpt2": t.normalizer = hf.normalizers.NFC()
    byte_level = hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind == "gpt2")
    split = hf.pre_tokenizers.Split(hf.Regex(r"\p{L}+|(?=[1x])|\s$" if kind == "gap" else QWEN2_PATTERN), "isolated")
    t.pre_tokenizer = byte_level if kind == "gpt2" else hf.pre_tokenizers.Sequence([split, byte_level])
    t.decoder = hf.decoders.ByteLevel()
    seeds = list(SEEDS.values())
    trainer = hf.trainers.BpeTrainer(vocab_size=size, initial_alphabet=list(byte_alphabet().values()), show_progress=False)
    t.train_from_iterator((s[i:] for s in seeds for i in range(0, len(s), 3)), trainer)
    if kind == "whole":  # words that merging does not reach
        d = json.loads(t.to_str()); v = d["model"]["vocab"]; spell = byte_alphabet()
        for w in (" brown", "dog", " \ud45c\uc640", "1234"): v.setdefault("".join(spell[b] for b in w.encode()), len(v))
        t = hf.Tokenizer.from_str(json.dumps(d))
    add = lambda c, **k: hf.AddedToken(c, **{**dict(normalized=False), **k})
    t.add_special_tokens([add("<|im_start|>", special=True), add("<|im_end|>", special=True), add("<|image_pad|>", special=True, lstrip=True, rstrip=True)])
    t.add_tokens([add("<tool_call>"), add("<tool"), add("fox", single_word=True), add("na\u00efve", normalized=True), add("pass", lstrip=True), add("it", rstrip=True),
                  add("hi<|"), add("t|>1"), add("cafe\u0301", normalized=True), add("\u5b57", normalized=True, single_word=True)])
    t.save(out, pretty=False)


if __name__ == "__main__":
    a = sys.argv[1:]
    if len(a) >= 3 and a[0] == "compare": sys.exit(1 if compare(a[1], a[2], strings(int(a[3]) if len(a) > 3 else 6000)) else 0)
    elif len(a) == 3 and a[0] == "points": points(a[1], a[2])
    elif len(a) >= 3 and a[0] == "fixture": fixture(a[1], a[2], int(a[3]) if len(a) > 3 else 400)
    elif len(a) == 4 and a[0] == "probe": probe_fixture(a[1], a[2], a[3])
    elif len(a) == 3 and a[0] == "qwen2": qwen2(a[1], a[2])
    elif len(a) >= 3 and a[0] == "mixed": mixed(a[1], a[2], int(a[3]) if len(a) > 3 else 900)
    else: sys.exit(__doc__)
