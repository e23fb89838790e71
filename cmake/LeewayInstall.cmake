# What `cmake --install` puts in place: the public headers, the static libraries that programs are
# linked with, the `leeway` command, and files by which CMake (find_package(leeway)) and pkg-config
# find them. Nothing that is installed needs GoogleTest, Google Benchmark, CLI11 or flatc.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/leeway")
# What users link with; the others are what these are made of.
set(leeway_public_libraries worker server)
set(leeway_inner_libraries
    node checkpoint van compress compress_kernels proto runtime ps_checkpoint ps_store ps_consistency
    ps_replication ps_updaters ps_kernels)

add_library(leeway::server ALIAS leeway_ps)
set_target_properties(leeway_ps PROPERTIES EXPORT_NAME server OUTPUT_NAME leeway_server)
set(targets leeway_api leeway_worker leeway_ps)
set_target_properties(leeway_api PROPERTIES EXPORT_NAME api)
set_target_properties(leeway_worker PROPERTIES EXPORT_NAME worker)
foreach(library ${leeway_inner_libraries})
  list(APPEND targets leeway_${library})
  # Of the package, but nobody's to name.
  set_target_properties(leeway_${library} PROPERTIES EXPORT_NAME inner_${library})
endforeach()

# A target for all that is installed: what `./dev install` builds.
add_custom_target(leeway_installed DEPENDS leeway)
add_dependencies(leeway_installed leeway_worker leeway_ps)

install(TARGETS ${targets} EXPORT leeway
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS leeway RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY include/leeway DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT leeway NAMESPACE leeway:: FILE leewayTargets.cmake DESTINATION "${package_dir}")

configure_package_config_file(cmake/leewayConfig.cmake.in "${CMAKE_BINARY_DIR}/leewayConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/leewayConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/leewayConfig.cmake" "${CMAKE_BINARY_DIR}/leewayConfigVersion.cmake"
  DESTINATION "${package_dir}")

# A static library is linked before what it needs, so the order is from top to bottom.
set(LEEWAY_PC_INNER "")
foreach(library node checkpoint van compress compress_kernels proto runtime)
  string(APPEND LEEWAY_PC_INNER " -lleeway_${library}")
endforeach()
set(LEEWAY_PC_SERVER "")
foreach(library ps_checkpoint ps_store ps_consistency ps_replication ps_updaters ps_kernels)
  string(APPEND LEEWAY_PC_SERVER " -lleeway_${library}")
endforeach()
# The installed tree may be moved, and installed elsewhere than it was configured for.
file(RELATIVE_PATH LEEWAY_PC_TO_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
foreach(kind worker server)
  configure_file(cmake/leeway-${kind}.pc.in leeway-${kind}.pc @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/leeway-${kind}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
