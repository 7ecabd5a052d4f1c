foreach(part attn gemm paged qgemm rows)
    galley_test(check_${part} SOURCES tests/kernels/check_${part}.c DEPS kernels TIMEOUT 300)
endforeach()
galley_test(check_quant SOURCES tests/kernels/check_quant.c DEPS kernels)

# The benchmark alone links oneDNN, as the ceiling to measure against.
find_package(OpenMP COMPONENTS C)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_LIBRARY AND OpenMP_C_FOUND AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_executable(bench_kernels tests/kernels/bench_kernels.c tests/kernels/bench_attn.c
                   tests/kernels/bench_qgemm.c tests/kernels/bench_roof.c)
    target_link_libraries(bench_kernels PRIVATE kernels ${DNNL_LIBRARY} OpenMP::OpenMP_C)
    set_source_files_properties(tests/kernels/bench_roof.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx2")
endif()

# Sanitized binaries do not run under the emulator: their shadow memory has no room there.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT GALLEY_SANITIZE)
    foreach(part attn gemm paged qgemm quant rows)
        add_test(NAME old_cpu_${part}
                 COMMAND tests/kernels/old_cpu.sh $<TARGET_FILE:check_${part}>
                 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(old_cpu_${part} PROPERTIES TIMEOUT 600)
    endforeach()
endif()
