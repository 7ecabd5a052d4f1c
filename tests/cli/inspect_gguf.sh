# GGUF files: language models, projectors, foreign architectures, damaged ones; and folders of them.
files=$root/tests/format/fixtures/gguf
cp "$files/vl.gguf" model.gguf
expect 0 inspect model.gguf
silent
cat out
expect 0 inspect model.gguf --json
json out '[d["model_type"], d["text"]["layers"], d["vision"], d["gguf"]["version"],
           d["gguf"]["keys"]["tokenizer.ggml.tokens"], d["gguf"]["keys"]["qwen2vl.rope.dimension_sections"],
           [(t["name"], t["dtype"], t["bytes"], t["shape"]) for t in d["tensors"]]]'
cp "$files/q25_text.mmproj.gguf" mmproj.gguf
expect 0 inspect model.gguf
prints 'vision    hidden 16, blocks 1'
expect 0 inspect . --json
json out '[d["vision"], len([t for t in d["tensors"] if t["name"].startswith("visual.")])]'
expect 0 inspect mmproj.gguf
prints 'runs      no: mmproj.gguf: general.architecture is clip, a projector'
prints 'clip.projector_type                          qwen2.5vl_merger'
expect 0 inspect "$files/kinds.gguf" --json
json out '[d["gguf"]["keys"]["many.bool"], d["gguf"]["keys"]["one.f64"], "runs_not" in d]'
# a projector of another model beside it: what does not fit is said
cp "$files/q2_full.mmproj.gguf" mmproj.gguf
expect 0 inspect model.gguf
prints "embeddings of 48 values (mm.2.weight), the language model's embedding_length is 32"
head -c 500 "$files/vl.gguf" >short.gguf
expect 3 inspect short.gguf
says 'it is damaged or cut short'
expect 2 inspect --regions x.png model.gguf
# no model at all under a model's name
: >empty.gguf
mkfifo pipe.gguf
for name in missing empty pipe; do
    expect 3 inspect $name.gguf
    says "$name.gguf: "
done
