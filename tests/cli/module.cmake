# The program from outside: a shell script per subject (tests/cli/cli.sh runs them).
if(TARGET galley)
    foreach(case cli_help usage output content channels stops refusals sameness)
        add_test(NAME cli_${case}
                 COMMAND bash tests/cli/cli.sh tests/cli/${case}.sh $<TARGET_FILE:galley>
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(cli_${case} PROPERTIES TIMEOUT 600)
    endforeach()
endif()
