foreach(name text half pool memory json clock)
    galley_test(test_${name} SOURCES tests/base/test_${name}.c DEPS base)
endforeach()
