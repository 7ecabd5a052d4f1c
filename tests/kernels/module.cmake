foreach(part attn gemm rows)
    galley_test(check_${part} SOURCES tests/kernels/check_${part}.c DEPS kernels TIMEOUT 300)
endforeach()
