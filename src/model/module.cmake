galley_module(model LAYER 3
    SOURCES src/model/backbone.c src/model/desc.c src/model/family_qwen.c src/model/kv.c
            src/model/model.c
    DEPS base kernels format)
