# Quality of the whole: metrics against known values, then every sample against its true Markdown.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME quality_metrics COMMAND ${Python3_EXECUTABLE} tests/quality/test_metrics.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
if(TARGET galley)
    add_test(NAME quality COMMAND ${Python3_EXECUTABLE} tests/quality/quality.py $<TARGET_FILE:galley>
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    add_test(NAME quality_model_alone
             COMMAND ${Python3_EXECUTABLE} tests/quality/quality.py $<TARGET_FILE:galley> --draft none
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(quality quality_model_alone PROPERTIES TIMEOUT 1500)
endif()
