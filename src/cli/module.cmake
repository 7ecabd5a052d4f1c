add_executable(galley
    src/cli/main.c src/cli/bench.c src/cli/bench_print.c src/cli/cli_quantize.c src/cli/convert.c src/cli/doctor.c
    src/cli/figures.c src/cli/help.c src/cli/input.c src/cli/inspect.c src/cli/inspect_gguf.c src/cli/inspect_model.c
    src/cli/inspect_plan.c src/cli/options.c src/cli/outfile.c src/cli/plot.c src/cli/progress.c)
target_link_libraries(galley PRIVATE base format galley_core)
# Which state of the source measured: in the files galley bench writes.
execute_process(COMMAND git rev-parse --short HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                OUTPUT_VARIABLE galley_commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set_source_files_properties(src/cli/bench_print.c PROPERTIES
    COMPILE_DEFINITIONS "GALLEY_COMMIT=\"${galley_commit}\"")
add_dependencies(galley galley-pdf) # conversions of PDFs start it
install(TARGETS galley RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES src/cli/galley.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
