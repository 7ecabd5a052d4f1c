# The house rules that a machine can check.
add_test(NAME lint COMMAND ${Python3_EXECUTABLE} tests/lint/lint.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(lint PROPERTIES TIMEOUT 300)
add_test(NAME lint_rules COMMAND ${Python3_EXECUTABLE} tests/lint/test_lint.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
