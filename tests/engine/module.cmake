galley_test(test_verify SOURCES tests/engine/test_verify.c DEPS engine)
galley_test(test_engine SOURCES tests/engine/test_engine.c DEPS engine TIMEOUT 600)
galley_test(test_invariance SOURCES tests/engine/test_invariance.c DEPS engine TIMEOUT 600)
galley_test(test_serving SOURCES tests/engine/test_serving.c DEPS engine TIMEOUT 600)
