"""Compares Galley's tokenizers from GGUF metadata with llama.cpp (pip install llama-cpp-python gguf).

  tokenizer_gguf.py compare GGUF TOK_DUMP [N]   ids and decoded text of about N strings (default 6000), special tokens on and off

Malformed UTF-8 is repaired before either side sees it; text that is not NFC counts apart (Galley follows tokenizer.json there, llama.cpp does not)."""
import sys
import unicodedata

from tokenizer import galley, strings


def llama_cpp(path):
    import llama_cpp
    m = llama_cpp.Llama(path, vocab_only=True, verbose=False)
    encode = lambda data, mode: m.tokenize(data, add_bos=False, special=mode == "special")
    def decode(ids):
        import ctypes
        buf = ctypes.create_string_buffer(1024)
        out = b""
        for i in ids:
            n = llama_cpp.llama_token_to_piece(m._model.vocab, i, buf, 1024, 0, True)
            out += buf.raw[:n]
        return out
    return encode, decode


def compare(path, tool, data):
    encode, decode = llama_cpp(path)
    data = list(dict.fromkeys(d.decode("utf-8", "replace").encode() for d in data))
    bad = nfc = 0
    for mode in ("plain", "special"):
        for d, (ids, text) in zip(data, galley(tool, path, data, mode), strict=True):
            want = encode(d, mode)
            if ids == want and text == decode(want): continue
            if unicodedata.normalize("NFC", d.decode()) != d.decode(): nfc += 1; continue
            bad += 1
            if bad <= 20: print(mode, repr(d.decode())[:200], "\n  galley   ", ids[:40], text[:60], "\n  llama.cpp", want[:40], decode(want)[:60])
    print(f"{path}: {2 * len(data)} encodings, {bad} differ, and {nfc} of text that is not NFC")
    return bad


if __name__ == "__main__":
    a = sys.argv[1:]
    if len(a) >= 3 and a[0] == "compare": sys.exit(1 if compare(a[1], a[2], strings(int(a[3]) if len(a) > 3 else 6000)) else 0)
    sys.exit(__doc__)
