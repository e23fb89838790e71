# Debian packages of what LeewayInstall.cmake installs: each component is one. `./dev packages` makes them,
# by cpack. Without Debian's tools there are none.
find_program(LEEWAY_SHLIBDEPS dpkg-shlibdeps)  # finds the packages of the libraries that programs need
find_program(LEEWAY_FILE file)                 # cpack finds programs with it
if(NOT LEEWAY_SHLIBDEPS OR NOT LEEWAY_FILE OR LEEWAY_SANITIZE)
  return()
endif()

set(LEEWAY_REVISION 1 CACHE STRING "Number of the packages of one version: a higher one is an upgrade")

# A version that is not released yet comes before the release, and after versions with fewer commits.
set(version ${PROJECT_VERSION})
file(STRINGS CHANGELOG.md unreleased REGEX "^## ${PROJECT_VERSION}, not released yet")
execute_process(COMMAND git log -1 --abbrev=12 "--format=%h;%aD" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git rev-list --count HEAD WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  OUTPUT_VARIABLE commits OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(commit)
  list(GET commit 0 hash)
  list(GET commit 1 LEEWAY_DEBIAN_DATE)
  set(LEEWAY_DEBIAN_SOURCE "commit ${hash}")
else()
  file(TIMESTAMP CHANGELOG.md LEEWAY_DEBIAN_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
  set(LEEWAY_DEBIAN_SOURCE "sources without a commit")
endif()
if(unreleased AND commit)
  string(APPEND version "~git${commits}.${hash}")
elseif(unreleased)
  string(APPEND version "~unreleased")
endif()
# Packages for a later Debian are upgrades, too.
cmake_host_system_information(RESULT system QUERY DISTRIB_ID)
cmake_host_system_information(RESULT system_version QUERY DISTRIB_VERSION_ID)
string(REGEX REPLACE "^debian$" "deb" system "${system}")
set(revision "${LEEWAY_REVISION}~${system}${system_version}")
set(LEEWAY_DEBIAN_VERSION "${version}-${revision}")

set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES TRUE)
set(CPACK_PACKAGE_VENDOR Leeway)
set(CPACK_PACKAGE_CONTACT "The authors of Leeway <leeway@packages.invalid>")
if(DEFINED ENV{DEBEMAIL})  # of the person who builds the packages, as Debian's own tools take it
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SOURCE leeway)
set(CPACK_DEBIAN_PACKAGE_VERSION "${version}")
set(CPACK_DEBIAN_PACKAGE_RELEASE "${revision}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}")
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)  # on the same version

# _leeway_package(COMPONENT NAME SECTION MULTIARCH SUMMARY TEXT [FIELD VALUE] …): FIELD as in cpack's variables.
set(CPACK_COMPONENTS_ALL "")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # the first line of each package's own description
set(documents "${CMAKE_BINARY_DIR}/debian")
set(about "
Leeway trains one model on many workers, which push gradients to and pull
parameters from servers that hold it in shards. Each worker may be exactly as
stale as is allowed: not at all (BSP), bounded (SSP) or without bound (ASP).
.
")
macro(_leeway_package component name section multiarch summary text)
  string(TOUPPER ${component} upper)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}${about}${text}")
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  # cpack before 3.31 has no variable for it.
  set(CPACK_DEBIAN_${upper}_PACKAGE_PRIORITY "optional\nMulti-Arch: ${multiarch}")
  install(FILES "${PROJECT_SOURCE_DIR}/deploy/debian/copyright" "${documents}/changelog.gz"
    "${documents}/changelog.Debian.gz" DESTINATION share/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
  set(fields ${ARGN})
  while(fields)
    list(POP_FRONT fields field value)
    set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${value}")
  endwhile()
endmacro()

set(interfaces ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(loaded "libzmq5, libibverbs1, librdmacm1, ibverbs-providers")  # at run time, where they are asked for
_leeway_package(library libleeway libs same "parameter server: shared libraries"
"This package has the libraries that programs are linked with: libleeway for
programs in C++, libleeway_c for those in C and other languages, and
libleeway_pslite for those that were written for ps-lite."
  PROVIDES "libleeway${interfaces} (= ${LEEWAY_DEBIAN_VERSION}), libleeway-c1 (= ${LEEWAY_DEBIAN_VERSION}), libleeway-pslite${interfaces} (= ${LEEWAY_DEBIAN_VERSION})"
  SUGGESTS "${loaded}")
# Scripts that do not exist are named lest cpack writes some that call ldconfig, as the trigger does. A package
# with scripts is not gone when it is removed, before it is purged.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
  "${documents}/shlibs" "${documents}/triggers" "${documents}/no/postinst" "${documents}/no/postrm")
_leeway_package(development libleeway-dev libdevel same "parameter server: files for development"
"This package has what programs in C++ and C are compiled with: headers, a
static library, and files by which CMake and pkg-config find them."
  DEPENDS "libabsl-dev, libisal-dev, libxxhash-dev, libzstd-dev, zlib1g-dev" RECOMMENDS "pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS library)
_leeway_package(tools leeway-tools science foreign "parameter server: the leeway command"
"This package has the command that runs schedulers and servers, starts whole
clusters on one machine, shows and changes running ones, and saves and restores
checkpoints; and the staleness lab, which runs experiments."
  SUGGESTS "${loaded}, dataset-fashion-mnist, wordnet-base, python3-matplotlib, iproute2")
install(DIRECTORY examples/hello examples/outside DESTINATION share/doc/libleeway-dev/examples
  COMPONENT development EXCLUDE_FROM_ALL)
install(FILES deploy/ssh/launch.sh deploy/env/leeway.env DESTINATION share/doc/leeway-tools/examples
  COMPONENT tools EXCLUDE_FROM_ALL)
install(DIRECTORY docs DESTINATION share/doc/leeway-tools COMPONENT tools EXCLUDE_FROM_ALL)
install(FILES "${documents}/leeway.1.gz" "${documents}/leeway-lab.1.gz" DESTINATION share/man/man1
  COMPONENT tools EXCLUDE_FROM_ALL)

add_custom_target(leeway_packaged)  # all that the packages are made of
add_dependencies(leeway_packaged leeway_installed)
if(TARGET leeway_python)
  add_dependencies(leeway_packaged leeway_python)
  _leeway_package(python3 python3-leeway python no "parameter server: Python package"
"This package has the module leeway, by which programs in Python train tables of
NumPy arrays and torch tensors."
    DEPENDS "python3 (>= 3.11), python3-cffi-backend, python3-numpy"
    SUGGESTS "python3-torch, python3-cloudpickle")
  set(CPACK_COMPONENT_PYTHON3_DEPENDS library tools)
  set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/deploy/debian/postinst" "${PROJECT_SOURCE_DIR}/deploy/debian/prerm")
  set(module lib/python3/dist-packages/leeway)
  install(DIRECTORY python/leeway DESTINATION lib/python3/dist-packages COMPONENT python3 EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN py.typed PATTERN __pycache__ EXCLUDE)
  install(FILES "$<TARGET_FILE:leeway_python>" DESTINATION ${module} COMPONENT python3 EXCLUDE_FROM_ALL)
  install(DIRECTORY examples/python/ DESTINATION share/doc/python3-leeway/examples COMPONENT python3
    EXCLUDE_FROM_ALL)
  # It uses the library of libleeway, not that of the build folder.
  install(CODE "set(module \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${module}/$<TARGET_FILE_NAME:leeway_python>\")
    file(RPATH_REMOVE FILE \"\${module}\")
    execute_process(COMMAND \"${CMAKE_STRIP}\" \"\${module}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT python3 EXCLUDE_FROM_ALL)
endif()

# Other programs' packages depend on the names of interfaces, which a later libleeway may no longer provide.
file(WRITE "${documents}/shlibs" "libleeway ${interfaces} libleeway${interfaces} (>= ${PROJECT_VERSION}~)
libleeway_c 1 libleeway-c1 (>= ${PROJECT_VERSION}~)
libleeway_pslite ${interfaces} libleeway-pslite${interfaces} (>= ${PROJECT_VERSION}~)
")
file(WRITE "${documents}/triggers" "activate-noawait ldconfig\n")
file(WRITE "${documents}/changelog.Debian" "leeway (${LEEWAY_DEBIAN_VERSION}) unstable; urgency=medium

  * Built from ${LEEWAY_DEBIAN_SOURCE}; changelog.gz has the changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${LEEWAY_DEBIAN_DATE}
")
configure_file(CHANGELOG.md "${documents}/changelog" COPYONLY)
configure_file(deploy/debian/leeway.1 "${documents}/leeway.1" COPYONLY)
file(WRITE "${documents}/leeway-lab.1" ".so man1/leeway.1\n")
execute_process(COMMAND gzip -9nfk changelog changelog.Debian leeway.1 leeway-lab.1
  WORKING_DIRECTORY "${documents}" COMMAND_ERROR_IS_FATAL ANY)

include(CPack)
add_subdirectory(tests/packages)
