galley_test(test_planner SOURCES tests/engine/test_planner.c DEPS engine)
galley_test(test_exact SOURCES tests/engine/test_exact.c DEPS engine)
galley_test(test_verify SOURCES tests/engine/test_verify.c DEPS engine)
galley_test(test_engine SOURCES tests/engine/test_engine.c DEPS engine TIMEOUT 600)
galley_test(test_invariance SOURCES tests/engine/test_invariance.c DEPS engine TIMEOUT 600)
galley_test(test_serving SOURCES tests/engine/test_serving.c DEPS engine TIMEOUT 600)
galley_test(test_output SOURCES tests/engine/test_output.c DEPS engine TIMEOUT 600)
galley_test(test_files_gone SOURCES tests/engine/test_files_gone.c DEPS engine)

# Thousands of requests; minutes, so by hand: build/bin/soak.  A short round of it is a test.
add_executable(soak tests/engine/soak.c)
target_link_libraries(soak PRIVATE galley_core)
add_test(NAME soak_short COMMAND soak 300 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
galley_test(test_hostile SOURCES tests/engine/test_hostile.c DEPS galley_core TIMEOUT 600)
