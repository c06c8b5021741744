# Install tree and the package configuration behind find_package(dpwa).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(dpwa_installed interpolation core)
set(dpwa_header_folders interpolation dpwa)
if(DPWA_TORCH)
  list(APPEND dpwa_installed adapters)
  list(APPEND dpwa_header_folders adapters)
endif()

foreach(part IN LISTS dpwa_installed)
  set_target_properties(dpwa_${part} PROPERTIES EXPORT_NAME ${part})
  install(TARGETS dpwa_${part} EXPORT dpwaTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
foreach(folder IN LISTS dpwa_header_folders)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dpwa FILES_MATCHING PATTERN "*.h")
endforeach()
install(TARGETS dpwa_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dpwa)
install(EXPORT dpwaTargets NAMESPACE dpwa:: DESTINATION ${package_dir})
configure_package_config_file(cmake/dpwaConfig.cmake.in dpwaConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(dpwaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dpwaConfig.cmake ${PROJECT_BINARY_DIR}/dpwaConfigVersion.cmake
              cmake/FindIsal.cmake DESTINATION ${package_dir})
