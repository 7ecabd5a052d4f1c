galley_test(test_pages SOURCES tests/document/test_pages.c DEPS document)
galley_test(test_restyle SOURCES tests/document/test_restyle.c DEPS document)
galley_test(test_plan SOURCES tests/document/test_plan.c DEPS document)
galley_test(test_assemble SOURCES tests/document/test_assemble.c DEPS document)
galley_test(test_trust SOURCES tests/document/test_trust.c DEPS document)
galley_test(test_render SOURCES tests/document/test_render.c DEPS document)
# Whole conversions start the helper, which lies in the build tree's bin/.
galley_test(test_convert SOURCES tests/document/test_convert.c tests/layout/pdf_write.c
            DEPS galley_core TIMEOUT 600)
add_dependencies(test_convert galley-pdf)
