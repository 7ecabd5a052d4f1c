# galley_test(NAME SOURCES ... DEPS ... [LABELS ...]): one binary per module, run from the source tree.
function(galley_test name)
    cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;DEPS;ARGS" ${ARGN})
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE ${T_DEPS})
    add_test(NAME ${name} COMMAND ${name} ${T_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(T_TIMEOUT AND GALLEY_SANITIZE)
        math(EXPR T_TIMEOUT "3 * ${T_TIMEOUT}")
    endif()
    if(T_TIMEOUT)
        set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT})
    endif()
endfunction()

# galley_fuzz(NAME SOURCE ... DEPS ...): a fuzzer; without libFuzzer it is built with
# tests/fuzz/replay.c and replays tests/fuzz/corpus/NAME as a plain test.
function(galley_fuzz name)
    cmake_parse_arguments(F "" "" "SOURCES;DEPS" ${ARGN})
    if(GALLEY_FUZZ)
        add_executable(${name} ${F_SOURCES})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
        add_executable(${name} ${F_SOURCES} tests/fuzz/replay.c)
        add_test(NAME ${name} COMMAND ${name} tests/fuzz/corpus/${name}
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    endif()
    target_link_libraries(${name} PRIVATE ${F_DEPS})
endfunction()

foreach(part base kernels format vision layout model spec engine document cli quality damaged lint
        fuzz bench)
    if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/${part}/module.cmake)
        include(tests/${part}/module.cmake)
    endif()
endforeach()
