# Tests that open PDFs need the helper beside them, in the build tree's bin/.
galley_test(test_pdf SOURCES tests/layout/test_pdf.c tests/layout/pdf_write.c DEPS layout)
galley_test(test_pdf_proto SOURCES tests/layout/test_pdf_proto.c DEPS layout)
galley_test(test_pdf_child SOURCES tests/layout/test_pdf_child.c tests/layout/pdf_write.c DEPS layout)
galley_test(test_pdf_damaged
    SOURCES tests/layout/test_pdf_damaged.c tests/layout/pdf_write.c DEPS layout)
add_executable(fake-pdf tests/layout/fake_pdf.c)
target_link_libraries(fake-pdf PRIVATE layout)
add_dependencies(test_pdf galley-pdf)
add_dependencies(test_pdf_damaged galley-pdf)
add_dependencies(test_pdf_child galley-pdf fake-pdf)
galley_fuzz(fuzz_pdf_proto SOURCES tests/fuzz/fuzz_pdf_proto.c DEPS layout)

galley_test(test_order SOURCES tests/layout/test_order.c DEPS layout)
galley_test(test_draft SOURCES tests/layout/test_draft.c DEPS layout)
galley_test(test_table SOURCES tests/layout/test_table.c DEPS layout)
galley_test(test_layout_hostile SOURCES tests/layout/test_layout_hostile.c DEPS layout)
galley_fuzz(fuzz_layout SOURCES tests/fuzz/fuzz_layout.c DEPS layout)

# A look into the light parser, for people: no test.
add_executable(dump_layout tests/layout/dump_layout.c)
target_link_libraries(dump_layout PRIVATE layout format)
add_dependencies(dump_layout galley-pdf)

# Page images drawn by make_scans.py.
galley_test(test_raster SOURCES tests/layout/test_raster.c DEPS layout PkgConfig::lept TIMEOUT 120)
galley_test(test_ocr SOURCES tests/layout/test_ocr.c DEPS layout PkgConfig::lept TIMEOUT 300)
