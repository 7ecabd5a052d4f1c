foreach(name card checkpoint gguf gguf_config hf_config jpeg picture png weights)
    galley_test(test_${name} SOURCES tests/format/test_${name}.c DEPS format)
endforeach()

foreach(name gguf hf_config jpeg png safetensors)
    galley_fuzz(fuzz_${name} SOURCES tests/fuzz/fuzz_${name}.c DEPS format)
endforeach()

# The tokenizer: golden ids of Hugging Face tokenizers; tok_dump serves tools/reference/tokenizer.py.
galley_test(test_tokenizer SOURCES tests/format/test_tokenizer.c DEPS format TIMEOUT 120)
galley_test(test_tokenizer_gguf SOURCES tests/format/test_tokenizer_gguf.c DEPS format TIMEOUT 120)
galley_fuzz(fuzz_tokenizer SOURCES tests/fuzz/fuzz_tokenizer.c DEPS format)
add_executable(tok_dump tests/format/tok_dump.c)
target_link_libraries(tok_dump PRIVATE format)
galley_test(test_chat SOURCES tests/format/test_chat.c DEPS format)
add_executable(chat_dump tests/format/chat_dump.c)
target_link_libraries(chat_dump PRIVATE format)
galley_test(test_hf_text SOURCES tests/format/test_hf_text.c DEPS format)
# From GGUF files to the bits of the models made of them.
galley_test(test_gguf_model SOURCES tests/format/test_gguf_model.c DEPS format vision model)
# Writing: files read back, importance matrices, checkpoints anew.
foreach(name gguf_write imatrix quantize quantize_vocab)
    galley_test(test_${name} SOURCES tests/format/test_${name}.c DEPS format)
endforeach()
galley_fuzz(fuzz_imatrix SOURCES tests/fuzz/fuzz_imatrix.c DEPS format)
