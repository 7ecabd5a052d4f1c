set(format_tokenizer src/format/tokenizer.c src/format/tokenizer_bpe.c src/format/tokenizer_gguf.c
    src/format/tokenizer_nfc.c src/format/tokenizer_open.c src/format/tokenizer_pieces.c
    src/format/tokenizer_split.c src/format/tokenizer_stages.c src/format/tokenizer_table.c)

set(format_gguf src/format/gguf.c src/format/gguf_config.c src/format/gguf_names.c src/format/gguf_read.c
    src/format/gguf_rope.c src/format/gguf_vision.c src/format/weights_gguf.c)

set(format_quantize src/format/gguf_write.c src/format/imatrix.c src/format/quantize.c
    src/format/quantize_keys.c src/format/quantize_rules.c src/format/quantize_source.c
    src/format/quantize_vocab.c)

galley_module(format LAYER 2
    SOURCES src/format/bind.c src/format/card.c src/format/checkpoint.c src/format/chat.c
            src/format/exif.c src/format/hf_config.c src/format/hf_json.c
            src/format/hf_preprocess.c src/format/hf_text.c src/format/jpeg.c src/format/picture.c
            src/format/png.c src/format/safetensors.c src/format/tensor_hash.c src/format/versions.c
            src/format/weights.c ${format_gguf} ${format_quantize} ${format_tokenizer}
    DEPS base kernels
    LIBS PkgConfig::cjson PkgConfig::jpeg PkgConfig::png PkgConfig::pcre2 PkgConfig::utf8proc)
