foreach(name card hf_config jpeg picture png weights)
    galley_test(test_${name} SOURCES tests/format/test_${name}.c DEPS format)
endforeach()
