"""Fixtures of tests/format/test_gguf*.c, written with gguf-py (pip install gguf llama-cpp-python).

  gguf_files.py OUT     OUT is tests/format/fixtures/gguf

kinds.gguf            every type of metadata value, and arrays of it
types.gguf            one tensor of every type gguf-py can size; types.txt lists what it says about them
names.txt             gguf-py's table of tensor names, for the families Galley reads
qwen2 qwen3 llama gemma3 .gguf    metadata of each family, with the tensors that metadata depends on
split-0000N-of-00003.gguf         one file in three parts
vl.gguf               a language model with a whole byte-level vocabulary; q25_text.mmproj.gguf fits it
run_llama, run_gemma3             small random models with what llama.cpp makes of them: ids and logits
q25_text, q2_full                 tests/golden/hf as converters write them: language model and mmproj"""
import json
import pathlib
import struct
import sys

import gguf
import numpy as np

T = gguf.GGMLQuantizationType
GOLDEN = pathlib.Path(__file__).parents[2] / "tests/golden/hf"


def writer(path, arch):
    return gguf.GGUFWriter(path, arch)


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def f32(*shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def kinds(out):
    w = writer(out / "kinds.gguf", "kinds")
    V = gguf.GGUFValueType
    rows = [("u8", V.UINT8, 200), ("i8", V.INT8, -100), ("u16", V.UINT16, 60000), ("i16", V.INT16, -30000),
            ("u32", V.UINT32, 4000000000), ("i32", V.INT32, -2000000000), ("f32", V.FLOAT32, 0.5),
            ("bool", V.BOOL, True), ("u64", V.UINT64, 2**63 + 1), ("i64", V.INT64, -2**62), ("f64", V.FLOAT64, 1e300)]
    for name, kind, value in rows:
        w.add_key_value(f"one.{name}", value, kind)
        w.add_key_value(f"many.{name}", [value, value if kind != V.BOOL else False], V.ARRAY, sub_type=kind)
    w.add_string("one.string", "a\u00e9\0b")
    w.add_array("many.string", ["", "x", "yy"])
    w.add_custom_alignment(64)
    w.add_tensor("a", f32(3))
    w.add_tensor("b", f32(2, 3, 4))
    finish(w)


def types(out):
    w = writer(out / "types.gguf", "types")
    rng = np.random.default_rng(1)
    lines = []
    for t, (block, size) in gguf.GGML_QUANT_SIZES.items():
        if t.name in ("Q8_1", "Q1_0"):  # never stored; newer than the format we read
            continue
        data = rng.integers(0, 256, (2, 2 * size), dtype=np.uint8)
        w.add_tensor(t.name, data, raw_shape=data.shape, raw_dtype=t)
        lines.append(f"{int(t)} {t.name} {2 * block} {data.size} {data[0, 0]} {data[1, -1]}\n")
    finish(w)
    (out / "types.txt").write_text("".join(lines))


def names(out):
    """What the converters' own table makes of Hugging Face's names."""
    lines = []
    A = gguf.MODEL_ARCH
    stems = ["model.embed_tokens", "model.norm", "lm_head"]
    layer = ["input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
             "self_attn.q_norm", "self_attn.k_norm", "post_attention_layernorm", "pre_feedforward_layernorm",
             "post_feedforward_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
    tower = ["norm1", "norm2", "attn.q", "attn.k", "attn.v", "attn.proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
             "mlp.fc1", "mlp.fc2"]
    for arch in (A.QWEN2, A.QWEN2VL, A.QWEN3, A.LLAMA, A.GEMMA3):
        table = gguf.get_tensor_name_map(arch, 20)
        hf = stems + [f"model.layers.{i}.{s}" for i in (0, 17) for s in layer]
        for name in hf:
            there = table.get_name(name)
            if there:
                lines.append(f"{gguf.MODEL_ARCH_NAMES[arch]} {there} {name}\n")
    table = gguf.get_tensor_name_map(A.MMPROJ, 20)
    hf = ["visual.patch_embed.proj", "visual.merger.ln_q", "visual.merger.mlp.0", "visual.merger.mlp.2"]
    hf += [f"visual.blocks.{i}.{s}" for i in (0, 19) for s in tower]
    for name in hf:
        kind = "qwen2vl_merger" if ".fc" in name else "qwen2.5vl_merger"
        lines.append(f"{kind} {table.get_name(name)} {name}\n")
    (out / "names.txt").write_text("".join(lines))


def base(path, arch, hidden=64, layers=3, heads=4, kv=2, ffn=96, vocab=12, context=256, tokens=None):
    w = writer(path, arch)
    w.add_context_length(context)
    w.add_embedding_length(hidden)
    w.add_block_count(layers)
    w.add_feed_forward_length(ffn)
    w.add_head_count(heads)
    w.add_head_count_kv(kv)
    w.add_layer_norm_rms_eps(1e-6)
    if tokens:
        w.add_tokenizer_model("gpt2")
        w.add_token_list(tokens)
        vocab = len(tokens)
    w.add_tensor("token_embd.weight", f32(vocab, hidden).astype(np.float16))
    return w


def llama3_divisors(theta, head_dim, factor, low, high, context):
    freqs = 1.0 / theta ** (np.arange(0, head_dim, 2, dtype=np.float32) / head_dim)
    out = []
    for f in freqs:
        length = 2 * np.pi / f
        if length < context / high:
            out.append(1)
        elif length > context / low:
            out.append(factor)
        else:
            s = (context / length - low) / (high - low)
            out.append(1 / ((1 - s) / factor + s))
    return np.array(out, dtype=np.float32)


def families(out):
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    w = base(out / "qwen2.gguf", "qwen2", tokens=["a", "<|endoftext|>", "<|im_end|>", "b"])
    w.add_rope_freq_base(1e6)
    w.add_eos_token_id(2)
    w.add_tensor("output.weight", f32(4, 64))
    finish(w)
    w = base(out / "qwen3.gguf", "qwen3", tokens=["a", "<|im_end|>"] + marks)
    w.add_key_length(32)
    w.add_value_length(32)
    w.add_eos_token_id(1)
    w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(2.5)
    finish(w)
    w = base(out / "llama.gguf", "llama", hidden=64, heads=1, kv=1)
    w.add_rope_dimension_count(64)
    w.add_rope_freq_base(500000.0)
    w.add_eos_token_id(7)
    w.add_eot_token_id(9)
    w.add_tensor("rope_freqs.weight", llama3_divisors(500000.0, 64, 32.0, 1.0, 4.0, 8192))
    finish(w)
    w = base(out / "llama_other.gguf", "llama", hidden=64, heads=1, kv=1)
    w.add_rope_freq_base(10000.0)
    w.add_eos_token_id(7)
    w.add_tensor("rope_freqs.weight", llama3_divisors(10000.0, 64, 8.0, 1.5, 5.0, 512))
    finish(w)
    w = base(out / "llama_odd.gguf", "llama", hidden=64, heads=1, kv=1)
    w.add_eos_token_id(7)
    w.add_tensor("rope_freqs.weight", np.linspace(1, 7, 32, dtype=np.float32) ** 2)
    finish(w)
    w = base(out / "gemma3.gguf", "gemma3", layers=12, tokens=["<eos>", "<end_of_turn>", "c"])
    w.add_key_length(32)
    w.add_value_length(32)
    w.add_sliding_window(512)
    w.add_rope_freq_base(1e6)
    w.add_eos_token_id(0)
    finish(w)


def bytes_as_text():
    """GPT-2's printable stand-ins of the 256 bytes, in byte order."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + others.index(b)) for b in range(256)]


def vl(out):
    special = ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokens = bytes_as_text() + ["he", "ll"] + special
    w = base(out / "vl.gguf", "qwen2vl", hidden=32, heads=4, kv=1, tokens=tokens)
    w.add_tokenizer_pre("qwen2")
    w.add_token_types([1] * 258 + [3] * len(special))
    w.add_token_merges(["h e", "l l"])
    w.add_rope_dimension_sections([1, 1, 2, 0])
    w.add_eos_token_id(259)
    w.add_chat_template("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                        "<|im_start|>assistant\n")
    finish(w)


N_RUN, N_VOCAB_RUN, N_LAST = 40, 40, 8


def run_file(path, arch, c, dtype):
    """A random model whose matrices fit F16, stored as dtype."""
    rng = np.random.default_rng(5)

    def matrix(name, *shape, scale=0.15):
        w.add_tensor(name, (rng.standard_normal(shape) * scale).astype(np.float16).astype(dtype))

    def norm(name, n):
        w.add_tensor(name, (1 + 0.15 * rng.standard_normal(n)).astype(np.float32))

    w = writer(path, arch)
    w.add_context_length(256)
    w.add_embedding_length(c["hidden"])
    w.add_block_count(c["layers"])
    w.add_feed_forward_length(c["ffn"])
    w.add_head_count(2)
    w.add_head_count_kv(1)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_key_length(c["head"])
    w.add_value_length(c["head"])
    w.add_rope_dimension_count(c["head"])
    w.add_rope_freq_base(1e4)
    w.add_vocab_size(N_VOCAB_RUN)
    w.add_tokenizer_model("none")
    w.add_eos_token_id(N_VOCAB_RUN - 1)
    gemma = arch == "gemma3"
    if gemma:
        w.add_sliding_window(16)
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(8.0)
    else:
        w.add_tensor("rope_freqs.weight", llama3_divisors(1e4, c["head"], 8.0, 1.0, 4.0, 128))
    matrix("token_embd.weight", N_VOCAB_RUN, c["hidden"], scale=0.6)
    norm("output_norm.weight", c["hidden"])
    for i in range(c["layers"]):
        p = f"blk.{i}."
        for name in ("attn_norm", "ffn_norm") + (("post_attention_norm", "post_ffw_norm") if gemma else ()):
            norm(f"{p}{name}.weight", c["hidden"])
        for name in ("attn_q_norm", "attn_k_norm") if gemma else ():
            norm(f"{p}{name}.weight", c["head"])
        matrix(p + "attn_q.weight", 2 * c["head"], c["hidden"])
        matrix(p + "attn_k.weight", c["head"], c["hidden"])
        matrix(p + "attn_v.weight", c["head"], c["hidden"])
        matrix(p + "attn_output.weight", c["hidden"], 2 * c["head"])
        matrix(p + "ffn_gate.weight", c["ffn"], c["hidden"])
        matrix(p + "ffn_up.weight", c["ffn"], c["hidden"])
        matrix(p + "ffn_down.weight", c["hidden"], c["ffn"])
    finish(w)


def run(out):
    """llama.cpp gets the same values in F32: with F16 matrices it rounds activations."""
    import llama_cpp
    wide = out / "wide.gguf"
    for arch, c in (("llama", dict(layers=1, hidden=32, head=16, ffn=16)), ("gemma3", dict(layers=7, hidden=16, head=8, ffn=8))):
        run_file(out / f"run_{arch}.gguf", arch, c, np.float16)
        run_file(wide, arch, c, np.float32)
        ids = np.random.default_rng(7).integers(0, N_VOCAB_RUN, N_RUN).astype(np.int32)
        m = llama_cpp.Llama(str(wide), n_ctx=256, verbose=False, logits_all=True, type_k=0, type_v=0, flash_attn=False)
        m.eval(ids.tolist())
        np.save(out / f"run_{arch}.ids.npy", ids)
        np.save(out / f"run_{arch}.logits.npy", m.scores[N_RUN - N_LAST:N_RUN].astype(np.float32))
    wide.unlink()


def split(out):
    path = out / "split.gguf"
    w = gguf.GGUFWriter(path, "qwen2", split_max_tensors=2)
    w.add_string("general.name", "in three parts")
    for i in range(5):
        w.add_tensor(f"t{i}", f32(4) + 10 * i)
    finish(w)


def safetensors(path):
    b = path.read_bytes()
    n = struct.unpack("<Q", b[:8])[0]
    head = json.loads(b[8:8 + n])
    for name, e in head.items():
        if name != "__metadata__":
            i, k = e["data_offsets"]
            yield name, e["dtype"], e["shape"], np.frombuffer(b[8 + n + i:8 + n + k], dtype=np.uint8)


def widen(raw, dtype):
    if dtype == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return raw.view(np.float16 if dtype == "F16" else np.float32).astype(np.float32)


def add(w, name, raw, dtype, shape):
    """Matrices as they are, vectors in F32, as the converters do."""
    if len(shape) == 1:
        w.add_tensor(name, widen(raw, dtype))
    else:
        w.add_tensor(name, raw.reshape(*shape[:-1], -1), raw_dtype=T[dtype])


def add_vision(w, table, name, dtype, shape, raw):
    stem, tail = name.rsplit(".", 1)
    if stem.endswith("patch_embed.proj"):
        whole = raw.reshape(*shape, -1)
        for t, suffix in enumerate(("", ".1")):
            part = np.ascontiguousarray(whole[:, :, t])
            add(w, table.get_name(stem) + ".weight" + suffix, part.reshape(-1), dtype, list(part.shape[:-1]))
    elif stem.endswith("attn.qkv"):
        for part, letter in zip(np.split(raw, 3), "qkv"):
            add(w, f"{table.get_name(stem[:-3] + letter)}.{tail}", part, dtype, [shape[0] // 3] + shape[1:])
    else:
        add(w, f"{table.get_name(stem)}.{tail}", raw, dtype, shape)


def language(out, case, c, tensors):
    w = writer(out / f"{case}.gguf", "qwen2vl")
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c["num_key_value_heads"])
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_rope_freq_base(c["rope_theta"])
    w.add_rope_dimension_sections(c["rope_scaling"]["mrope_section"] + [0])
    marks = {c["vision_start_token_id"]: "<|vision_start|>", c["vision_end_token_id"]: "<|vision_end|>",
             c["image_token_id"]: "<|image_pad|>", c["video_token_id"]: "<|video_pad|>"}
    w.add_tokenizer_model("gpt2")
    w.add_token_list([marks.get(i, f"t{i}") for i in range(c["vocab_size"])])
    w.add_eos_token_id(c["eos_token_id"])
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2VL, c["num_hidden_layers"])
    for name, dtype, shape, raw in tensors:
        if not name.startswith("visual."):
            add(w, table.get_name(name, (".weight", ".bias")), raw, dtype, shape)
    finish(w)


def mmproj(out, case, c, tensors):
    v, two = c["vision_config"], c["model_type"] == "qwen2_vl"
    w = writer(out / f"{case}.mmproj.gguf", "clip")
    hidden = v["embed_dim"] if two else v["hidden_size"]
    w.add_clip_has_vision_encoder(True)
    w.add_clip_projector_type("qwen2vl_merger" if two else "qwen2.5vl_merger")
    w.add_vision_projection_dim(c["hidden_size"])
    w.add_vision_embedding_length(hidden)
    w.add_vision_feed_forward_length(int(hidden * v["mlp_ratio"]) if two else v["intermediate_size"])
    w.add_vision_block_count(v["depth"])
    w.add_vision_head_count(v["num_heads"])
    w.add_vision_patch_size(v["patch_size"])
    w.add_vision_attention_layernorm_eps(1e-6)
    w.add_vision_image_mean([0.48145466, 0.4578275, 0.40821073])
    w.add_vision_image_std([0.26862954, 0.26130258, 0.27577711])
    if not two:
        w.add_vision_use_silu(True)
        w.add_vision_n_wa_pattern(v["fullatt_block_indexes"][0] + 1)
        w.add_uint32("clip.vision.window_size", v["window_size"])
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, max(v["depth"], 3))  # mm.2 counts as a block
    for name, dtype, shape, raw in tensors:
        if name.startswith("visual."):
            add_vision(w, table, name, dtype, shape, raw)
    finish(w)


def cases(out):
    for case in ("q25_text", "q2_full"):
        c = json.loads((GOLDEN / case / "config.json").read_text())
        tensors = list(safetensors(GOLDEN / case / "model.safetensors"))
        if case == "q25_text":
            language(out, case, c, tensors)
        mmproj(out, case, c, tensors)


if __name__ == "__main__":
    to = pathlib.Path(sys.argv[1])
    to.mkdir(parents=True, exist_ok=True)
    for make in (kinds, types, names, families, vl, split, cases, run):
        make(to)
