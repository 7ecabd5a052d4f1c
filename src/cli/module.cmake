add_executable(galley
    src/cli/main.c src/cli/bench.c src/cli/bench_print.c src/cli/cli_quantize.c src/cli/convert.c src/cli/doctor.c
    src/cli/figures.c src/cli/help.c src/cli/input.c src/cli/inspect.c src/cli/inspect_gguf.c src/cli/inspect_model.c
    src/cli/inspect_plan.c src/cli/options.c src/cli/outfile.c src/cli/plot.c src/cli/progress.c
    ${PROJECT_BINARY_DIR}/commit.c)
target_link_libraries(galley PRIVATE base format galley_core)
# Which state of the source measured: in the files galley bench writes.
add_custom_target(galley-commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${PROJECT_BINARY_DIR}/commit.c
            -P ${PROJECT_SOURCE_DIR}/src/cli/commit.cmake
    BYPRODUCTS ${PROJECT_BINARY_DIR}/commit.c COMMENT "" VERBATIM)
add_dependencies(galley galley-commit galley-pdf) # conversions of PDFs start the latter
install(TARGETS galley RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES src/cli/galley.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
