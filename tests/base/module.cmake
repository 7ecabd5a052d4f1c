foreach(name arena cgroup text half pool memory json clock rng)
    galley_test(test_${name} SOURCES tests/base/test_${name}.c DEPS base)
endforeach()
