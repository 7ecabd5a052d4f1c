# The folder of damaged inputs, each against the program itself.
if(TARGET galley)
    set(limit 5)
    if(GALLEY_SANITIZE)
        set(limit 60) # the limit is about the program, not about its instrumented twin
    endif()
    add_test(NAME damaged
             COMMAND ${Python3_EXECUTABLE} tests/damaged/run_damaged.py $<TARGET_FILE:galley>
                     ${PROJECT_BINARY_DIR}/damaged --limit ${limit}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(damaged PROPERTIES TIMEOUT 1200 RUN_SERIAL TRUE)
endif()
