galley_test(test_verify SOURCES tests/engine/test_verify.c DEPS engine)
galley_test(test_engine SOURCES tests/engine/test_engine.c DEPS engine TIMEOUT 600)
