add_executable(galley
    src/cli/main.c src/cli/cli_quantize.c src/cli/convert.c src/cli/doctor.c src/cli/figures.c src/cli/help.c
    src/cli/input.c src/cli/inspect.c src/cli/inspect_gguf.c src/cli/inspect_model.c src/cli/options.c src/cli/outfile.c
    src/cli/progress.c)
target_link_libraries(galley PRIVATE base format galley_core)
add_dependencies(galley galley-pdf) # conversions of PDFs start it
install(TARGETS galley RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES src/cli/galley.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
