# Installs the public headers, the library that programs are linked with, shared and static, the `leeway`
# command, and files by which CMake (find_package(leeway)) and pkg-config find them. Nothing that is
# installed needs GoogleTest, Google Benchmark, CLI11, spdlog, FlatBuffers or flatc; ZeroMQ is loaded at
# run time, where LEEWAY_VAN asks for it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# _leeway_closure(PARTS NEEDS TARGET …): the static libraries of this project that the targets consist of,
# and the libraries of others that these need.
function(_leeway_closure parts_out needs_out)
  set(open ${ARGN})
  set(seen "")
  set(parts "")
  set(others "")
  while(open)
    list(POP_FRONT open target)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" target "${target}")
    if(target IN_LIST seen OR target MATCHES "^\\$<")
      continue()
    endif()
    list(APPEND seen ${target})
    if(NOT target MATCHES "^leeway_")
      list(APPEND others ${target})
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND parts ${target})
    endif()
    get_target_property(needs ${target} INTERFACE_LINK_LIBRARIES)
    if(needs)
      list(APPEND open ${needs})
    endif()
  endwhile()
  set(${parts_out} ${parts} PARENT_SCOPE)
  set(${needs_out} ${others} PARENT_SCOPE)
endfunction()

add_library(leeway::server ALIAS leeway_ps)
_leeway_closure(leeway_parts leeway_needs leeway_worker leeway_worker_c leeway_ps leeway_ps_c)

# _leeway_archive(NAME TARGET …): NAME.a, of these static libraries, and the target NAME_archive.
function(_leeway_archive name)
  set(archive "${CMAKE_BINARY_DIR}/${name}.a")
  set(script "CREATE ${name}.a\n")
  foreach(part ${ARGN})
    string(APPEND script "ADDLIB $<TARGET_FILE:${part}>\n")
  endforeach()
  file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/${name}.mri" CONTENT "${script}SAVE\nEND\n")
  add_custom_command(OUTPUT "${archive}"
    COMMAND "${CMAKE_AR}" -M < "${CMAKE_BINARY_DIR}/${name}.mri"
    DEPENDS ${ARGN} "${CMAKE_BINARY_DIR}/${name}.mri"
    WORKING_DIRECTORY "${CMAKE_BINARY_DIR}" VERBATIM)
  add_custom_target(${name}_archive DEPENDS "${archive}")
endfunction()

# For programs that are to need no library of Leeway at run time. The second one is what ps-lite's
# interface needs beside the first.
set(archive "${CMAKE_BINARY_DIR}/libleeway.a")
_leeway_archive(libleeway ${leeway_parts})
_leeway_closure(pslite_parts pslite_needs leeway_pslite)
list(REMOVE_ITEM pslite_parts ${leeway_parts})
set(pslite_archive "${CMAKE_BINARY_DIR}/libleeway_pslite.a")
_leeway_archive(libleeway_pslite ${pslite_parts})

# The same as a shared library, all of whose symbols are hidden but those that a map names.
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/leeway_library.cc" CONTENT "")
function(_leeway_shared target name)  # ARCHIVE …: beside libleeway.a
  set(symbols "${PROJECT_SOURCE_DIR}/cmake/${name}.map")
  add_library(${target} SHARED "${CMAKE_BINARY_DIR}/leeway_library.cc")
  add_dependencies(${target} libleeway_archive)
  set(archives "${archive}")
  foreach(more ${ARGN})
    string(APPEND archives ",${more}")
  endforeach()
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} EXPORT_NAME ${name} LINK_DEPENDS "${symbols};${archive};${ARGN}")
  target_link_libraries(${target} PRIVATE "-Wl,--whole-archive,${archives},--no-whole-archive" ${leeway_needs})
  target_link_options(${target} PRIVATE "LINKER:--version-script=${symbols}")
  if(LEEWAY_SANITIZE)  # what is installed has no sanitizers; their functions are the program's
    set_target_properties(${target} libleeway_archive libleeway_pslite_archive PROPERTIES
      EXCLUDE_FROM_ALL TRUE)
  else()
    target_link_options(${target} PRIVATE "LINKER:--no-undefined")
  endif()
endfunction()
_leeway_shared(leeway_library leeway)
target_link_libraries(leeway_library PUBLIC leeway_api)
set_target_properties(leeway_library PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
# For C and other languages. Its number is LEEWAY_C_VERSION: programs run with later versions of Leeway.
_leeway_shared(leeway_c_library leeway_c)
set_target_properties(leeway_c_library PROPERTIES VERSION 1.${PROJECT_VERSION} SOVERSION 1)

# For programs written for ps-lite, whose headers are in a folder of their own.
_leeway_shared(leeway_pslite_library leeway_pslite "${pslite_archive}")
add_dependencies(leeway_pslite_library libleeway_pslite_archive)
target_link_libraries(leeway_pslite_library PRIVATE ${pslite_needs})
set(pslite_headers "${CMAKE_INSTALL_INCLUDEDIR}/leeway-pslite")
target_include_directories(leeway_pslite_library INTERFACE "$<INSTALL_INTERFACE:${pslite_headers}>")
set_target_properties(leeway_pslite_library PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# A target of everything that is installed; `./dev install` builds it.
add_custom_target(leeway_installed)
add_dependencies(leeway_installed leeway leeway-lab leeway_library leeway_c_library leeway_pslite_library)

# Components: library (what programs need to run), development (what they are compiled with) and tools.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/leeway")
set_target_properties(leeway_api PROPERTIES EXPORT_NAME api)
install(TARGETS leeway_library leeway_c_library leeway_pslite_library leeway_api EXPORT leeway
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT development
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${archive}" "${pslite_archive}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(TARGETS leeway leeway-lab RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
install(DIRECTORY compat/ps compat/dmlc DESTINATION "${pslite_headers}" COMPONENT development
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY include/leeway DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
  FILES_MATCHING PATTERN "*.h")
install(EXPORT leeway NAMESPACE leeway:: FILE leewayTargets.cmake DESTINATION "${package_dir}"
  COMPONENT development)

configure_package_config_file(cmake/leewayConfig.cmake.in "${CMAKE_BINARY_DIR}/leewayConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/leewayConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/leewayConfig.cmake" "${CMAKE_BINARY_DIR}/leewayConfigVersion.cmake"
  DESTINATION "${package_dir}" COMPONENT development)

# The installed tree may be moved, or installed elsewhere than it was configured for.
file(RELATIVE_PATH LEEWAY_PC_TO_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
foreach(kind worker server c pslite)
  configure_file(cmake/leeway-${kind}.pc.in leeway-${kind}.pc @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/leeway-${kind}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
    COMPONENT development)
endforeach()
