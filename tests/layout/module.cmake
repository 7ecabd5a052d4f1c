# Tests that open PDFs need the helper beside them, in the build tree's bin/.
galley_test(test_pdf SOURCES tests/layout/test_pdf.c tests/layout/pdf_write.c DEPS layout)
add_dependencies(test_pdf galley-pdf)
