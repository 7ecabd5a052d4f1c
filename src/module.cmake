galley_module(galley_core LAYER 7 SOURCES src/galley.c DEPS base engine document)

# The installed library: everything below galley.h in one shared object.
add_library(libgalley SHARED src/galley.c)
set_target_properties(libgalley PROPERTIES OUTPUT_NAME galley VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR})
target_link_libraries(libgalley PRIVATE base engine document)
target_link_options(libgalley PRIVATE -Wl,--exclude-libs,ALL)
install(TARGETS libgalley LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES src/galley.h src/galley_status.h src/galley_types.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/galley)
install(DIRECTORY models/galley-tiny DESTINATION ${CMAKE_INSTALL_DATADIR}/galley)
