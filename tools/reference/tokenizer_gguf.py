"""Tokenizers from GGUF metadata against Hugging Face `tokenizers` and llama.cpp (pip install tokenizers gguf llama-cpp-python sentencepiece).

  tokenizer_gguf.py compare GGUF TOK_DUMP [N]   ids of about N strings (default 6000), special tokens on and off, and the decoded text
  tokenizer_gguf.py written JSON GGUF TOK_DUMP [N]   the same of a tokenizer.json and the file that galley quantize wrote of its directory
  tokenizer_gguf.py fixtures OUT [N]            small vocabularies of every kind and N golden lines each, for tests/format/test_tokenizer_gguf.c
  tokenizer_gguf.py json GGUFS OUT [N]          some of these as tokenizer.json, in the forms of Gemma 3, Llama 2 and SmolLM2

The Hugging Face side is put together here from the same metadata, as the families' tokenizer.json are.  llama.cpp differs where it must:
it does not normalise to NFC (so it gets text that is), does not merge across a byte that has no token, and takes the longer of two added
tokens that overlap."""
import pathlib
import sys
import unicodedata

import gguf
import tokenizers as hf
from tokenizer import QWEN2_PATTERN, SEEDS, byte_alphabet, galley, strings

LLAMA3 = QWEN2_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
QWEN35 = QWEN2_PATTERN.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
O200K = "|".join((r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"))
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")
P = hf.pre_tokenizers
LAST = P.ByteLevel(add_prefix_space=False, use_regex=False)
split = lambda r: P.Split(hf.Regex(r), "isolated")
PRES = {
    "gpt-2": lambda: P.ByteLevel(add_prefix_space=False, use_regex=True),
    "smollm": lambda: P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False, use_regex=True)]),
    "qwen2": lambda: P.Sequence([split(QWEN2_PATTERN), LAST]),
    "qwen35": lambda: P.Sequence([split(QWEN35), LAST]),
    "llama-bpe": lambda: P.Sequence([split(LLAMA3), LAST]),
    "gpt-4o": lambda: P.Sequence([split(O200K), LAST]),
    "deepseek-v3": lambda: P.Sequence([split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK3), LAST]),
}
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)


def metadata(path):
    return {k: f.contents() for k, f in gguf.GGUFReader(path).fields.items() if k.startswith("tokenizer.")}


def merges_of(tokens, scores, types):
    """Every pair whose union is a token, best union first: what SentencePiece's search by score does, spelled as merges."""
    usable = {t for t, k in zip(tokens, types) if k == NORMAL}
    out = []
    for i, t in enumerate(tokens):
        if types[i] != NORMAL: continue
        for k in range(1, len(t)):
            if t[:k] in usable and t[k:] in usable: out.append((-scores[i], i, (t[:k], t[k:])))
    return [m for *_, m in sorted(out)]


def hugging_face(path):
    t = build(path)
    def encode(data, mode):
        t.encode_special_tokens = mode == "plain"
        return t.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids
    return encode


def build(path):
    m = metadata(path)
    tokens = m["tokenizer.ggml.tokens"]; types = m.get("tokenizer.ggml.token_type", [NORMAL] * len(tokens))
    vocab = {t: i for i, t in enumerate(tokens)}
    if m["tokenizer.ggml.model"] == "gpt2":
        pre = m["tokenizer.ggml.pre"]
        t = hf.Tokenizer(hf.models.BPE(vocab, [tuple(x.split(" ")) for x in m["tokenizer.ggml.merges"]], ignore_merges=pre == "llama-bpe"))
        t.pre_tokenizer = PRES[pre](); t.decoder = hf.decoders.ByteLevel()
        if pre in ("qwen2", "qwen35"): t.normalizer = hf.normalizers.NFC()
    else:
        unk = tokens[m.get("tokenizer.ggml.unknown_token_id", 0)]
        t = hf.Tokenizer(hf.models.BPE(vocab, merges_of(tokens, m["tokenizer.ggml.scores"], types), unk_token=unk, fuse_unk=True, byte_fallback=BYTE in types))
        replace = hf.normalizers.Replace(" ", "\u2581")
        t.normalizer = hf.normalizers.Sequence([hf.normalizers.Prepend("\u2581"), replace]) if m.get("tokenizer.ggml.add_space_prefix", True) else replace
    for kind, special in ((CONTROL, True), (UNKNOWN, True), (USER, False)):
        add = [hf.AddedToken(x, normalized=False, special=special) for x, k in zip(tokens, types) if k == kind]
        (t.add_special_tokens if special else t.add_tokens)(add)
    assert t.get_vocab_size() == len(tokens)
    return t


def llama_cpp(path):
    import ctypes
    import llama_cpp
    m = llama_cpp.Llama(path, vocab_only=True, verbose=False)
    encode = lambda data, mode: m.tokenize(data, add_bos=False, special=mode == "special")
    buf = ctypes.create_string_buffer(1024)
    def piece(i):
        n = llama_cpp.llama_token_to_piece(m._model.vocab, i, buf, 1024, 0, True)
        return buf.raw[:n]
    decode = lambda ids: b"".join(map(piece, ids))
    return encode, decode


def compare(path, tool, data):
    peer, decode = llama_cpp(path)
    reference = hugging_face(path)
    nfc = metadata(path).get("tokenizer.ggml.pre") in ("qwen2", "qwen35")
    bad_hf = bad_peer = bad_text = 0
    for mode in ("plain", "special"):
        for d, (ids, text) in zip(data, galley(tool, path, data, mode), strict=True):
            clean = d.decode("utf-8", "replace")
            want, theirs = reference(d, mode), peer((unicodedata.normalize("NFC", clean) if nfc else clean).encode(), mode)
            bad_hf += ids != want; bad_peer += ids != theirs; bad_text += text != decode(ids)
            if ids != want and bad_hf <= 10: print(f"  {mode} {clean[:80]!r}\n    here {ids[:24]}\n    HF   {want[:24]}")
            elif ids != theirs and bad_peer <= 5: print(f"  {mode} {clean[:80]!r}\n    here      {ids[:24]}\n    llama.cpp {theirs[:24]}")
            elif text != decode(ids) and bad_text <= 5: print(f"  {mode} {ids}\n    here      {text}\n    llama.cpp {decode(ids)}")
    print(f"{path}: {2 * len(data)} encodings; other ids than Hugging Face {bad_hf}, than llama.cpp {bad_peer}; other text {bad_text}")
    return bad_hf


def written(source, path, tool, data):
    """Hugging Face on tokenizer.json, Galley on it and on the GGUF file, llama.cpp on that: all must agree."""
    peer, _ = llama_cpp(path)
    reference = hf.Tokenizer.from_file(source)
    bad = [0, 0, 0, 0]
    for mode in ("plain", "special"):
        reference.encode_special_tokens = mode == "plain"
        for d, ours, theirs in zip(data, galley(tool, source, data, mode), galley(tool, path, data, mode), strict=True):
            clean = d.decode("utf-8", "replace")
            want = reference.encode(clean, add_special_tokens=False).ids
            differ = ours[0] != want, theirs[0] != want, peer(clean.encode(), mode) != want, ours[1] != theirs[1]
            bad = [n + x for n, x in zip(bad, differ)]
            if any(differ) and sum(bad) <= 10: print(f"  {mode} {clean[:80]!r}: {differ}")
    print(f"{path}: {2 * len(data)} encodings; other ids than Hugging Face: tokenizer.json {bad[0]}, GGUF {bad[1]}, llama.cpp {bad[2]}; other text {bad[3]}")
    return sum(bad)


def corpus():
    return [s[i:] for name, s in SEEDS.items() if name != "special" for i in range(0, len(s), 3)]


def write(path, model, pre, tokens, types, more):
    w = gguf.GGUFWriter(path, "llama")
    w.add_tokenizer_model(model)
    if pre: w.add_tokenizer_pre(pre)
    w.add_token_list(tokens); w.add_token_types(types)
    more(w)
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()


ADDED = [("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<|image_pad|>", CONTROL), ("<tool_call>", USER), ("</tool_call>", USER),
         ("hi<|", USER), ("\n\n\n", USER), ("caf\u00e9", USER), ("[PAD0]", UNUSED)]


def byte_level(path, pre, size=620):
    """Learned without any splitting, so that merges reach across words and each wrong split shows."""
    t = hf.Tokenizer(hf.models.BPE()); t.pre_tokenizer = P.ByteLevel(add_prefix_space=False, use_regex=False)
    t.train_from_iterator(corpus(), hf.trainers.BpeTrainer(vocab_size=size, initial_alphabet=list(byte_alphabet().values()), show_progress=False))
    import json
    model = json.loads(t.to_str())["model"]
    tokens = [x for x, _ in sorted(model["vocab"].items(), key=lambda kv: kv[1])]
    merges = [x if isinstance(x, str) else " ".join(x) for x in model["merges"]]
    if pre == "smollm":  # as the real one: some bytes have no token
        drop = {byte_alphabet()[b] for b in (4, 19, 192, 193, 255)}
        assert not any(d in m for m in merges for d in drop)
        tokens = [x for x in tokens if x not in drop]
    if pre == "llama-bpe":  # words that merging does not reach
        spell = byte_alphabet()
        tokens += [x for w in (" brown", "dog", " \ud45c\uc640", "123") if (x := "".join(spell[b] for b in w.encode())) not in tokens]
    first = len(tokens)
    types = [NORMAL] * first + [k for _, k in ADDED]
    def more(w):
        w.add_token_merges(merges)
        w.add_bos_token_id(first); w.add_eos_token_id(first + 2)
    write(path, "gpt2", pre, tokens + [x for x, _ in ADDED], types, more)


def sentencepiece_model(path, prefix, fallback, size=700):
    import io
    import sentencepiece as sp
    out = io.BytesIO()
    sp.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=out, model_type="bpe", vocab_size=size, byte_fallback=fallback, character_coverage=0.98,
                                  normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=prefix, minloglevel=2, num_threads=1,
                                  user_defined_symbols=["<tool_call>", "hi<|", "\n", "\n\n", "\n\n\n", "\t"], control_symbols=["<|im_start|>", "<|im_end|>", "<|image_pad|>"])
    m = sp.SentencePieceProcessor(model_proto=out.getvalue())
    kind = lambda i: UNKNOWN if m.is_unknown(i) else CONTROL if m.is_control(i) else BYTE if m.is_byte(i) else UNUSED if m.is_unused(i) else NORMAL
    tokens = [m.id_to_piece(i) for i in range(len(m))]
    types = [USER if t in ("<tool_call>", "hi<|", "\n", "\n\n", "\n\n\n", "\t") else kind(i) for i, t in enumerate(tokens)]
    def more(w):
        w.add_token_scores([m.get_score(i) for i in range(len(m))])
        w.add_bos_token_id(1); w.add_eos_token_id(2); w.add_unk_token_id(0)
        if not prefix: w.add_add_space_prefix(False)
    write(path, "llama", None, tokens, types, more)
    return m


def golden_lines(path, encode, data):
    with open(path, "w") as f:
        for d in data:
            for mode in ("plain", "special"):
                if mode == "special" and b"<" not in d: continue
                f.write(f"{mode} {d.hex() or '-'} {' '.join(map(str, encode(d, mode)))}\n")


def texts_of(n):
    return [d for d in strings(4 * n, seed=9) if len(d) <= 300][::3][:n] + [s.encode() for s in SEEDS.values()]


def as_json(ggufs, out, n):
    D = hf.decoders
    chars = [D.Replace("\u2581", " "), D.ByteFallback(), D.Fuse()]
    for name, source in dict(gemma="sp_plain", llama2="sp", metaspace="sp", unknown="sp_unknown", digits="smollm").items():
        t = build(f"{ggufs}/{source}.gguf")
        if name != "digits":
            t.decoder = D.Sequence(chars + [D.Strip(" ", 1, 0)] * (name != "gemma"))
            t.post_processor = hf.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
        if name == "gemma": t.pre_tokenizer = P.Split(" ", "merged_with_previous")
        if name == "metaspace": t.normalizer = None; t.pre_tokenizer = P.Metaspace("\u2581", prepend_scheme="first", split=False)
        path = f"{out}/{name}.json"
        t.save(path, pretty=False)
        t = hf.Tokenizer.from_file(path)
        def encode(data, mode):
            t.encode_special_tokens = mode == "plain"
            return t.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids
        golden_lines(f"{out}/{name}.txt", encode, texts_of(n))


def fixtures(out, n):
    data = texts_of(n)
    kinds = {p: None for p in PRES} | {"sp": (True, True), "sp_plain": (False, True), "sp_unknown": (True, False)}
    for name, kind in kinds.items():
        path = str(pathlib.Path(out) / f"{name}.gguf")
        spm = sentencepiece_model(path, *kind) if kind else byte_level(path, name)
        encode = hugging_face(path)
        if spm:  # SentencePiece itself: its prefix does not come back after a symbol of its own
            texts = [d.decode("utf-8", "replace") for d in data]
            texts = [t for t in texts if not kind[0] or not any(c in t for c in "\n\t") and "<tool" not in t and "hi<" not in t]
            print(name, len(texts), "texts,", sum(spm.encode(t) != encode(t.encode(), "plain") for t in texts), "unlike SentencePiece")
        golden_lines(pathlib.Path(out) / f"{name}.txt", encode, data)


if __name__ == "__main__":
    a = sys.argv[1:]
    if len(a) >= 3 and a[0] == "compare": sys.exit(1 if compare(a[1], a[2], strings(int(a[3]) if len(a) > 3 else 6000)) else 0)
    if len(a) >= 4 and a[0] == "written": sys.exit(1 if written(a[1], a[2], a[3], strings(int(a[4]) if len(a) > 4 else 2000)) else 0)
    if len(a) >= 2 and a[0] == "fixtures": sys.exit(fixtures(a[1], int(a[2]) if len(a) > 2 else 160))
    if len(a) >= 3 and a[0] == "json": sys.exit(as_json(a[1], a[2], int(a[3]) if len(a) > 3 else 160))
    sys.exit(__doc__)
