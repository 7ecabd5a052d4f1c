set(galley_sources src/galley.c src/generate.c src/planning.c)
galley_module(galley_core LAYER 7 SOURCES ${galley_sources} DEPS base engine document)

# The installed library: everything below galley.h in one shared object.
add_library(libgalley SHARED ${galley_sources})
set_target_properties(libgalley PROPERTIES OUTPUT_NAME galley VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR} C_VISIBILITY_PRESET hidden)
target_link_libraries(libgalley PRIVATE base engine document)
target_link_options(libgalley PRIVATE -Wl,--exclude-libs,ALL)
install(TARGETS libgalley LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES src/galley.h src/galley_status.h src/galley_types.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/galley)
foreach(header galley galley_status galley_types) # <galley/galley.h> works before installing, too
    configure_file(src/${header}.h ${PROJECT_BINARY_DIR}/include/galley/${header}.h COPYONLY)
endforeach()
target_include_directories(libgalley INTERFACE ${PROJECT_BINARY_DIR}/include)
file(RELATIVE_PATH GALLEY_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(src/galley.pc.in ${PROJECT_BINARY_DIR}/galley.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/galley.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY models/galley-tiny DESTINATION ${CMAKE_INSTALL_DATADIR}/galley)
