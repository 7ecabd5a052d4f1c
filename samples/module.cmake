# Small programs against galley.h and the shared library, as anyone would write them.
foreach(name to_markdown regions batch talk complete)
    add_executable(sample-${name} samples/${name}.c)
    target_link_libraries(sample-${name} PRIVATE libgalley)
    add_dependencies(sample-${name} galley-pdf)
endforeach()
