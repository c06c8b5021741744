# Install tree and the package configuration behind find_package(dpwa).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The adapters are a set of targets of their own: they alone need LibTorch.
get_property(dpwa_layers GLOBAL PROPERTY DPWA_LAYERS)
set(dpwa_installed interpolation ${dpwa_layers} core)
set(dpwa_header_folders interpolation dpwa)
foreach(part IN ITEMS interpolation ${dpwa_layers} core)
  set(dpwa_export_${part} dpwaTargets)
endforeach()
set(dpwa_export_adapters dpwaAdaptersTargets)
set(dpwa_export_collective_engine dpwaAdaptersTargets)
set(dpwa_export_inference dpwaAdaptersTargets)
if(DPWA_TORCH)
  list(APPEND dpwa_installed adapters inference)
  if(TARGET dpwa_collective_engine)
    list(APPEND dpwa_installed collective_engine)
  endif()
  list(APPEND dpwa_header_folders adapters)
endif()

foreach(part IN LISTS dpwa_installed)
  set_target_properties(dpwa_${part} PROPERTIES EXPORT_NAME ${part})
  install(TARGETS dpwa_${part} EXPORT ${dpwa_export_${part}} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
foreach(folder IN LISTS dpwa_header_folders)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dpwa FILES_MATCHING PATTERN "*.h")
endforeach()

# The programs; those that use LibTorch find it where it was when they were linked. Its folder is named:
# INSTALL_RPATH_USE_LINK_PATH leaves out what lies inside the repository, where scripts/setup.sh puts it.
foreach(program dpwa_cli dpwa_train dpwa_svi dpwa_bench dpwa_bench_step dpwa_bench_collective)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
if(DPWA_TORCH)
  get_filename_component(dpwa_torch_libraries "${TORCH_LIBRARY}" DIRECTORY)
  foreach(program dpwa_train dpwa_svi dpwa_bench_step dpwa_bench_collective)
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES INSTALL_RPATH "${dpwa_torch_libraries}")
    endif()
  endforeach()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dpwa)
install(EXPORT dpwaTargets NAMESPACE dpwa:: DESTINATION ${package_dir})
if(DPWA_TORCH)
  install(EXPORT dpwaAdaptersTargets NAMESPACE dpwa:: DESTINATION ${package_dir})
endif()
# The layers are libraries of dpwa::core, and no components of their own; dpwa::inference comes with the adapters.
set(dpwa_components ${dpwa_installed})
list(REMOVE_ITEM dpwa_components ${dpwa_layers} inference)
configure_package_config_file(cmake/dpwaConfig.cmake.in dpwaConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(dpwaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dpwaConfig.cmake ${PROJECT_BINARY_DIR}/dpwaConfigVersion.cmake
              cmake/FindIsal.cmake DESTINATION ${package_dir})

# Documents, samples and scripts, in the folders that they have in the repository: they name one another.
set(share ${CMAKE_INSTALL_DATADIR}/dpwa)
install(DIRECTORY docs samples DESTINATION ${share})
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${share})
install(PROGRAMS scripts/prepare_data.sh scripts/prepare_data.py scripts/prepare_svi_data.py scripts/run.sh
                 scripts/stop.sh
        DESTINATION ${share}/scripts)
install(FILES scripts/requirements-svi.txt scripts/supervise.py DESTINATION ${share}/scripts)
install(FILES scripts/lib/common.sh scripts/lib/download.py scripts/lib/image_files.py scripts/lib/interrupts.py
              scripts/lib/messages.py scripts/lib/output.py scripts/lib/processes.py scripts/lib/supervisor.py
              scripts/lib/wheels.py
        DESTINATION ${share}/scripts/lib)
file(RELATIVE_PATH dpwa_share_to_bin "${CMAKE_INSTALL_FULL_DATADIR}/dpwa" "${CMAKE_INSTALL_FULL_BINDIR}")
if(TARGET dpwa_bench)
  install(PROGRAMS scripts/dpwa_bench.py DESTINATION ${share}/scripts)
  file(GLOB dpwa_bench_scripts scripts/lib/bench_*.py)
  install(FILES ${dpwa_bench_scripts} scripts/lib/ports.py DESTINATION ${share}/scripts/lib)
  file(RELATIVE_PATH dpwa_bin_to_share "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_DATADIR}/dpwa")
  file(CREATE_LINK "${dpwa_bin_to_share}/scripts/dpwa_bench.py" "${PROJECT_BINARY_DIR}/installed/dpwa-bench" SYMBOLIC)
  install(FILES "${PROJECT_BINARY_DIR}/installed/dpwa-bench" DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
configure_file(cmake/installed.sh.in installed.sh @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/installed.sh DESTINATION ${share}/scripts/lib)
