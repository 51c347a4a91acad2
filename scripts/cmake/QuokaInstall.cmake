include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(
  TARGETS quoka
  EXPORT quokaTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(
  EXPORT quokaTargets
  NAMESPACE quoka::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/quoka)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/quokaConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/quokaConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/quoka)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/quokaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/quokaConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/quokaConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/quoka)
