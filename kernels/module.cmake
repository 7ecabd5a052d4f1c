set(kernels_sources kernels/cpu.c kernels/cpu_attn.c kernels/cpu_embed.c kernels/cpu_gemm.c
    kernels/cpu_linear.c
    kernels/cpu_qgemm.c kernels/qgemm_pack.c kernels/cpu_kv.c
    kernels/cpu_ops.c kernels/cpu_paged.c kernels/cpu_tile.c kernels/kv_type.c kernels/scratch.c
    kernels/ref/act.c kernels/ref/attn.c kernels/ref/gemm.c kernels/ref/kv_store.c
    kernels/ref/norm.c
    kernels/ref/qact.c kernels/ref/qgemm.c
    kernels/ref/quant.c kernels/ref/quant_decode32.c kernels/ref/quant_decode_k.c
    kernels/ref/quant_encode.c kernels/ref/quant_fit.c
    kernels/ref/ref_math.c kernels/ref/rope.c kernels/ref/top1.c kernels/ref/widen.c)

# The search for scales is loops over lanes: -O3 makes vectors of them.
set_source_files_properties(kernels/ref/quant_encode.c kernels/ref/quant_fit.c PROPERTIES
    COMPILE_OPTIONS "-O3")

# Each variant gets its instruction set here, file by file: nothing else may contain it, or the
# binary would not start on an older CPU.  -O3 unrolls the register tiles.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(kernels_avx2 kernels/x86/act_avx2.c kernels/x86/attn_avx2.c kernels/x86/gemm_avx2.c
        kernels/x86/kv_avx2.c kernels/x86/qact_avx2.c kernels/x86/qgemm_avx2.c
        kernels/x86/norm_avx2.c kernels/x86/rope_avx2.c kernels/x86/top1_avx2.c
        kernels/x86/widen_avx2.c)
    set(kernels_avx512 kernels/x86/act_avx512.c kernels/x86/attn_avx512.c
        kernels/x86/gemm_avx512.c kernels/x86/kv_avx512.c kernels/x86/qact_avx512.c
        kernels/x86/qgemm_avx512.c kernels/x86/norm_avx512.c kernels/x86/rope_avx512.c
        kernels/x86/top1_avx512.c kernels/x86/widen_avx512.c)
    set_source_files_properties(${kernels_avx2} PROPERTIES
        COMPILE_OPTIONS "-O3;-mavx2;-mfma;-mf16c")
    set_source_files_properties(${kernels_avx512} PROPERTIES
        COMPILE_OPTIONS "-O3;-mavx2;-mfma;-mf16c;-mavx512f;-mavx512vl;-mavx512bw;-mavx512dq")
    # Unrolled tiles take minutes to compile under a sanitizer.  Their bounds are checked by guard
    # words, and gemm.c of ref/, which is sanitized, reads and writes the same places.
    set_property(SOURCE kernels/x86/qgemm_avx512.c APPEND PROPERTY
        COMPILE_OPTIONS "-mavx512vnni") # only called where cpu.c has seen it
    if(GALLEY_SANITIZE)
        set_property(SOURCE kernels/x86/gemm_avx2.c kernels/x86/gemm_avx512.c
            kernels/x86/qgemm_avx2.c kernels/x86/qgemm_avx512.c APPEND PROPERTY
            COMPILE_OPTIONS "-fno-sanitize=all")
    endif()
    list(APPEND kernels_sources ${kernels_avx2} ${kernels_avx512})
endif()

galley_module(kernels LAYER 1 SOURCES ${kernels_sources} DEPS base)
