# The program from outside: a shell script per subject (tests/cli/cli.sh runs them).
set(cli_cases cli_help usage output content channels stops refusals sameness one_by_one inspect_gguf
    quantize bench commit samples)
if(NOT GALLEY_SANITIZE)
    list(APPEND cli_cases install) # foreign programs cannot load an instrumented library
endif()
if(TARGET galley)
    foreach(case ${cli_cases})
        string(REGEX REPLACE "^cli_" "" name ${case})
        add_test(NAME cli_${name}
                 COMMAND bash tests/cli/cli.sh tests/cli/${case}.sh $<TARGET_FILE:galley> ${PROJECT_BINARY_DIR}
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(cli_${name} PROPERTIES TIMEOUT 600)
    endforeach()
endif()
