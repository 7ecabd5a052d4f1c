galley_module(spec LAYER 4 SOURCES spec/given.c DEPS base)
