galley_test(test_given SOURCES tests/spec/test_given.c DEPS spec)
