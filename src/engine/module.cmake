galley_module(engine LAYER 5
    SOURCES src/engine/engine.c src/engine/guard.c src/engine/planner.c
            src/engine/roofline.c src/engine/seq.c src/engine/step.c
            src/engine/verify.c
    DEPS base kernels format model vision spec)
