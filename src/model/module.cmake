galley_module(model LAYER 3
    SOURCES src/model/backbone.c src/model/desc.c src/model/family_gemma.c src/model/kv.c
            src/model/model.c src/model/model_hash.c src/model/prefix.c src/model/sample.c
    DEPS base kernels format)
# Loops over the vocabulary, written to become vectors; neither option changes a result.
set_source_files_properties(src/model/sample.c PROPERTIES COMPILE_OPTIONS "-O3;-fno-trapping-math")
