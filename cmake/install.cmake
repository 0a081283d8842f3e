# What `cmake --install` lays down: headers, the CMake package, the pkg-config file, and the libraries
# of tenon::compiled and tenon::zoo unless TENON_INSTALL_COMPILED is off. All of it may be moved to another place,
# and all but those libraries is independent of the architecture.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/tenon)
set(pkgconfig_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)

install(TARGETS tenon EXPORT tenonTargets FILE_SET HEADERS)
install(EXPORT tenonTargets NAMESPACE tenon:: DESTINATION ${package_dir})
if(TENON_INSTALL_COMPILED)
  install(TARGETS tenon_compiled tenon_zoo EXPORT tenonCompiledTargets)
  install(EXPORT tenonCompiledTargets NAMESPACE tenon:: DESTINATION ${package_dir})
endif()

set(tenon_compiled_needs_text FALSE)
if(TARGET tenon::text)
  set(tenon_compiled_needs_text TRUE)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tenonConfig.cmake.in tenonConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tenonConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tenonConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/text.cmake
        DESTINATION ${package_dir})

# The .pc file finds its prefix from its own place.
file(RELATIVE_PATH pc_up /prefix/${pkgconfig_dir} /prefix)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tenon.pc.in tenon.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tenon.pc DESTINATION ${pkgconfig_dir})
