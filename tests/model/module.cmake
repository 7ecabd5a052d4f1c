galley_test(test_kv SOURCES tests/model/test_kv.c DEPS model)
galley_test(test_golden SOURCES tests/model/test_golden.c DEPS vision model TIMEOUT 900)
galley_test(test_rows SOURCES tests/model/test_rows.c DEPS vision model TIMEOUT 900)
galley_test(test_sample SOURCES tests/model/test_sample.c DEPS model)
