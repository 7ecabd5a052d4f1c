galley_module(layout LAYER 3
    SOURCES layout/page.c layout/pdf.c layout/pdf_proto.c
            layout/ocr.c layout/ocr_look.c layout/ocr_reader.c layout/ocr_turn.c layout/ocr_words.c
            layout/raster.c layout/raster_pictures.c layout/raster_pix.c layout/raster_rules.c
            layout/layout.c layout/flow.c layout/word.c layout/strip.c layout/line.c
            layout/history.c layout/chrome.c layout/figure.c layout/order.c layout/block.c
            layout/heading.c layout/list.c layout/table.c layout/table_ruled.c
            layout/table_stream.c layout/join.c layout/inline.c layout/draft.c layout/region.c
            layout/text_score.c layout/turn.c
    DEPS base
    LIBS PkgConfig::tesseract PkgConfig::lept ${CMAKE_DL_LIBS})

# The only program that is linked with poppler and cairo.  -rdynamic: it observes the drawing by
# defining a few functions of cairo and libc itself (layout/galley_pdf/observe.c, files.c).
pkg_check_modules(fontconfig REQUIRED IMPORTED_TARGET fontconfig)
pkg_check_modules(gio REQUIRED IMPORTED_TARGET gio-2.0)
add_executable(galley-pdf
    layout/galley_pdf/main.c layout/galley_pdf/files.c layout/galley_pdf/sandbox.c
    layout/galley_pdf/observe.c layout/galley_pdf/draw.c layout/galley_pdf/text.c
    layout/galley_pdf/sheet.c layout/pdf_proto.c layout/page.c)
target_link_libraries(galley-pdf PRIVATE base PkgConfig::poppler PkgConfig::cairo
    PkgConfig::gio PkgConfig::fontconfig PkgConfig::seccomp m ${CMAKE_DL_LIBS})
set_property(TARGET galley-pdf PROPERTY ENABLE_EXPORTS ON)
install(TARGETS galley-pdf DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/galley)
