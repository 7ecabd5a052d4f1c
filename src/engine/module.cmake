galley_module(engine LAYER 5
    SOURCES src/engine/emit.c src/engine/encode.c src/engine/engine.c src/engine/guard.c
            src/engine/inbox.c src/engine/open.c src/engine/pass.c src/engine/planner.c
            src/engine/prompt.c src/engine/request.c src/engine/roofline.c src/engine/sched.c
            src/engine/seq.c src/engine/step.c src/engine/transcript.c src/engine/verify.c
    DEPS base kernels format model vision spec)
