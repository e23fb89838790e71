# Installs the public headers, the static libraries that programs are linked with, the `leeway`
# command, and files by which CMake (find_package(leeway)) and pkg-config find them. Nothing that is installed needs GoogleTest, Google Benchmark, CLI11 or flatc.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/leeway")
# The libraries that users link with, and those that these need, in the order in which static libraries
# are linked: each before those that it needs.
set(leeway_public_libraries worker server)
set(leeway_worker_libraries
    worker_core worker_control worker_requests worker_links worker_operations worker_slicing worker_encoding)
set(leeway_server_libraries
    ps_data ps_data_state ps_replication ps_shard ps_shard_state ps_table ps_replication_log
    ps_checkpoint ps_consistency
    ps_store_factory ps_store_dense ps_store_sparse ps_store ps_store_memory ps_updaters)
set(leeway_shared_libraries
    node checkpoint van_mixed van_rdma van_rdma_verbs van_shm van_shm_memory van_tcp van_zmq
    van_session van_address van compress compress_codecs compress_sparse compress_common compress_kernels
    proto_encoding proto_tables proto_messages runtime_config runtime_loop runtime_files runtime_memory
    runtime_log runtime_base)
set(leeway_inner_libraries
    ${leeway_worker_libraries} ${leeway_server_libraries} ${leeway_shared_libraries} proto runtime)

add_library(leeway::server ALIAS leeway_ps)
set_target_properties(leeway_ps PROPERTIES EXPORT_NAME server OUTPUT_NAME leeway_server)
set(targets leeway_api leeway_worker leeway_ps)
set_target_properties(leeway_api PROPERTIES EXPORT_NAME api)
set_target_properties(leeway_worker PROPERTIES EXPORT_NAME worker)
foreach(library ${leeway_inner_libraries})
  list(APPEND targets leeway_${library})
  # A target of the package that users do not name.
  set_target_properties(leeway_${library} PROPERTIES EXPORT_NAME inner_${library})
endforeach()

# A target of everything that is installed; `./dev install` builds it.
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

foreach(kind worker server shared)
  string(TOUPPER ${kind} KIND)
  set(LEEWAY_PC_${KIND} "")
  foreach(library ${leeway_${kind}_libraries})
    string(APPEND LEEWAY_PC_${KIND} " -lleeway_${library}")
  endforeach()
endforeach()
# The installed tree may be moved, or installed elsewhere than it was configured for.
file(RELATIVE_PATH LEEWAY_PC_TO_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
foreach(kind worker server)
  configure_file(cmake/leeway-${kind}.pc.in leeway-${kind}.pc @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/leeway-${kind}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
