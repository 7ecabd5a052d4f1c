galley_test(test_prep SOURCES tests/vision/test_prep.c DEPS vision model)
galley_test(test_vit SOURCES tests/vision/test_vit.c DEPS vision model TIMEOUT 900)
galley_test(test_vit_job SOURCES tests/vision/test_vit_job.c DEPS vision model TIMEOUT 300)
galley_test(test_vcache SOURCES tests/vision/test_vcache.c DEPS vision TIMEOUT 120)
