# One library target a folder, and an include path per target that holds only the headers of
# that folder: `#include "van/van.h"` compiles only in a target that depends on leeway::van.
# So the build enforces which folder may include which (docs/architecture.md).

set(LEEWAY_STAGE "${CMAKE_BINARY_DIR}/stage")

set(LEEWAY_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
add_library(leeway_flags INTERFACE)
target_compile_options(leeway_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-unused-parameter)
if(LEEWAY_SANITIZE)
  target_compile_options(leeway_flags INTERFACE -fsanitize=${LEEWAY_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(leeway_flags INTERFACE -fsanitize=${LEEWAY_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With sanitizers g++ 12 warns that the unused half of an inlined vector is read.
    target_compile_options(leeway_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(LEEWAY_SANITIZE MATCHES "undefined")
    # AddressSanitizer finds these errors, too; to check for them at each access is a fifth of the build.
    target_compile_options(leeway_flags INTERFACE
      -fno-sanitize=null,object-size,vptr -fno-sanitize-recover=undefined)
  endif()
endif()
option(LEEWAY_WERROR "Treat warnings as errors" ON)
if(LEEWAY_WERROR)
  target_compile_options(leeway_flags INTERFACE -Werror)
endif()

# With precompiled headers, and at -O1, g++ 12 warns wrongly that std::string goes out of bounds. In the
# plain build of the libraries the warnings are right and stay on. The last option of each compiler is
# for ccache.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(LEEWAY_PRECOMPILED_OPTIONS
      -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -fpch-preprocess)
else()
  set(LEEWAY_PRECOMPILED_OPTIONS "SHELL:-Xclang -fno-pch-timestamp" -fpch-instantiate-templates)
endif()
# Code that need not be fast: to optimise it further takes a third of the time of its compilation. So all
# programs but those that measure, tests and their support, and the libraries of commands (COLD below).
set(LEEWAY_COLD_OPTIONS $<$<CONFIG:Release>:-O1> ${LEEWAY_PRECOMPILED_OPTIONS})
# With sanitizers, which add a check to every step of an expectation, to optimise tests takes longer than
# everything else in the build.
set(LEEWAY_TEST_OPTIONS ${LEEWAY_COLD_OPTIONS})
if(LEEWAY_SANITIZE)
  list(APPEND LEEWAY_TEST_OPTIONS -O0)
endif()

# Headers that nearly every file includes, parsed once: most of the time to compile a library. Only
# headers of other projects: the include paths still enforce which folder may include which. Off by
# default, so that a plain build finds missing includes; ./dev turns it on.
option(LEEWAY_PRECOMPILE "Precompile the headers of the standard library and of Abseil for libraries" OFF)
set(LEEWAY_COMMON_HEADERS
    <algorithm> <cstdint> <cstring> <deque> <filesystem> <functional> <map> <memory> <mutex> <optional> <set>
    <span> <string> <utility> <variant> <vector>
    <absl/algorithm/container.h> <absl/container/flat_hash_map.h> <absl/container/inlined_vector.h>
    <absl/functional/any_invocable.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/string_view.h> <absl/time/time.h> <nlohmann/json.hpp>)

# _leeway_precompiled(TARGET KIND OPTIONS … HEADERS …): TARGET shares the precompiled headers of its KIND.
function(_leeway_precompiled target kind)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS;DEPENDS" ${ARGN})
  set(shared leeway_${kind}_headers)
  if(NOT TARGET ${shared})
    file(WRITE "${CMAKE_BINARY_DIR}/${kind}_headers.cc" "")
    add_library(${shared} OBJECT "${CMAKE_BINARY_DIR}/${kind}_headers.cc")
    target_link_libraries(${shared} PRIVATE leeway_flags ${ARG_DEPENDS})
    target_compile_options(${shared} PRIVATE ${ARG_OPTIONS})
    target_precompile_headers(${shared} PRIVATE ${LEEWAY_COMMON_HEADERS} ${ARG_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${shared})
endfunction()

# Files of a target parse and instantiate much the same: two dozen of them compiled as one take less
# than half the time. For builds from scratch: after a change, all files of its batch are compiled
# again. Therefore all names of a target are distinct, also those that no header has.
option(LEEWAY_UNITY "Compile several files of a target at once" OFF)

# _leeway_unity(TARGET SOURCE …): makes batches of about the same size. CMake compiles a file that has
# options of its own alone.
function(_leeway_unity target)
  set(batch_max 24)  # saves most of the time, and leaves batches for the other cores
  list(LENGTH ARGN files)
  if(LEEWAY_UNITY AND files GREATER 1)
    math(EXPR batches "(${files} + ${batch_max} - 1) / ${batch_max}")
    math(EXPR batch "(${files} + ${batches} - 1) / ${batches}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# _leeway_stage(NAME): an include path that holds the headers of the current folder and of those folders
# below it that have no target of their own.
function(_leeway_stage name)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  set(stage "${LEEWAY_STAGE}/${name}")
  file(REMOVE_RECURSE "${stage}")  # so that a removed header is no longer found
  file(MAKE_DIRECTORY "${stage}/${folder}")
  file(GLOB entries CONFIGURE_DEPENDS LIST_DIRECTORIES true "${CMAKE_CURRENT_SOURCE_DIR}/*")
  foreach(entry ${entries})
    get_filename_component(base "${entry}" NAME)
    set(has_target FALSE)
    if(EXISTS "${entry}/CMakeLists.txt")
      file(STRINGS "${entry}/CMakeLists.txt" libraries REGEX "^leeway_library")
      list(LENGTH libraries has_target)
    endif()
    if((IS_DIRECTORY "${entry}" AND NOT has_target) OR base MATCHES "\\.h$")
      file(CREATE_LINK "${entry}" "${stage}/${folder}/${base}" SYMBOLIC)
    endif()
  endforeach()
endfunction()

# leeway_library(NAME [SOURCES a.cc b.cc] DEPENDS x y [NO_UNITY] [COLD]): target leeway_NAME for the current
# folder, alias leeway::NAME. DEPENDS may name other leeway folders (bare) or imported targets. The
# headers are included by the folder's path from the top: "van/van.h", "ps/store/shard_store.h".
# NO_UNITY, here and below: its files are always compiled one by one. COLD: it need not be fast, as what
# ends in `_testing`.
function(leeway_library name)
  cmake_parse_arguments(ARG "NO_UNITY;COLD" "" "SOURCES;DEPENDS" ${ARGN})
  _leeway_stage(${name})
  set(stage "${LEEWAY_STAGE}/${name}")
  if(NOT ARG_SOURCES)
    add_library(leeway_${name} INTERFACE)
    add_library(leeway::${name} ALIAS leeway_${name})
    target_include_directories(leeway_${name} INTERFACE "$<BUILD_INTERFACE:${stage}>")
    _leeway_link(leeway_${name} INTERFACE ${ARG_DEPENDS})
    return()
  endif()
  add_library(leeway_${name} STATIC ${ARG_SOURCES})
  add_library(leeway::${name} ALIAS leeway_${name})
  target_include_directories(leeway_${name} PUBLIC "$<BUILD_INTERFACE:${stage}>")
  target_link_libraries(leeway_${name} PRIVATE $<BUILD_INTERFACE:leeway_flags>)
  target_compile_features(leeway_${name} PUBLIC cxx_std_20)
  set(kind library)
  set(options ${LEEWAY_PRECOMPILED_OPTIONS})
  if(ARG_COLD OR name MATCHES "_testing$")
    set(kind cold_library)
    set(options ${LEEWAY_COLD_OPTIONS})
  endif()
  if(LEEWAY_PRECOMPILE)
    target_compile_options(leeway_${name} PRIVATE ${options})
    _leeway_precompiled(leeway_${name} ${kind} OPTIONS ${options} DEPENDS absl::statusor)
  endif()
  if(NOT ARG_NO_UNITY)
    _leeway_unity(leeway_${name} ${ARG_SOURCES})
  endif()
  _leeway_link(leeway_${name} PUBLIC ${ARG_DEPENDS})
endfunction()

# leeway_rooms(NAME x y …): one name for several folders that are mostly used together.
function(leeway_rooms name)
  add_library(leeway_${name} INTERFACE)
  add_library(leeway::${name} ALIAS leeway_${name})
  _leeway_link(leeway_${name} INTERFACE ${ARGN})
endfunction()

# leeway_executable(NAME SOURCES … DEPENDS … [UNTESTED] [FAST] [NO_UNITY]). UNTESTED: no test runs it, so
# that the builds for tests alone leave it out. FAST: it measures, and is optimised as libraries are.
function(leeway_executable name)
  cmake_parse_arguments(ARG "UNTESTED;FAST;NO_UNITY" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE leeway_flags)
  if(LEEWAY_PRECOMPILE AND NOT ARG_FAST)
    set(options ${LEEWAY_COLD_OPTIONS})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      list(APPEND options -Wno-maybe-uninitialized)
    endif()
    target_compile_options(${name} PRIVATE ${options})
    _leeway_precompiled(${name} program
      OPTIONS -fPIE ${options} HEADERS <CLI/CLI.hpp> DEPENDS absl::statusor)
  endif()
  if(ARG_UNTESTED AND LEEWAY_UNITY)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  if(NOT ARG_NO_UNITY)
    _leeway_unity(${name} ${ARG_SOURCES})
  endif()
  _leeway_link(${name} PRIVATE ${ARG_DEPENDS})
endfunction()

# leeway_test_conditions(TEST [TIMEOUT s]): the conditions of every test. With sanitizers a test may take
# five times as long.
function(leeway_test_conditions test)
  cmake_parse_arguments(ARG "" "TIMEOUT" "" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(LEEWAY_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  # The longest tests begin first, also if no earlier run tells which these are.
  set_tests_properties(${test} PROPERTIES
    TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT} ENVIRONMENT "${LEEWAY_TEST_ENVIRONMENT}")
endfunction()

# leeway_test(NAME SOURCES … DEPENDS … [TIMEOUT s] [LABELS …] [ARGS …] [ONE_THREAD] [NO_UNITY]): one
# GoogleTest program, one ctest entry. ONE_THREAD: nothing in it runs on two threads, so that
# ThreadSanitizer has nothing to find; builds with that leave it out.
function(leeway_test name)
  cmake_parse_arguments(ARG "ONE_THREAD;NO_UNITY" "TIMEOUT" "SOURCES;DEPENDS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE leeway_flags GTest::gmock_main)
  target_compile_options(${name} PRIVATE ${LEEWAY_TEST_OPTIONS})
  if(NOT ARG_NO_UNITY)
    _leeway_unity(${name} ${ARG_SOURCES})
  endif()
  _leeway_precompiled(${name} test
    OPTIONS -fPIE ${LEEWAY_TEST_OPTIONS} HEADERS <gmock/gmock.h> <gtest/gtest.h> DEPENDS GTest::gmock_main)
  _leeway_link(${name} PRIVATE ${ARG_DEPENDS})
  if(ARG_ONE_THREAD AND LEEWAY_SANITIZE MATCHES "thread")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  leeway_test_conditions(${name} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
endfunction()

function(_leeway_link target scope)
  foreach(dep ${ARGN})
    if(TARGET leeway_${dep})
      target_link_libraries(${target} ${scope} leeway_${dep})
    elseif(dep STREQUAL "nlohmann_json::nlohmann_json")  # headers only: not needed to link
      target_link_libraries(${target} ${scope} $<BUILD_INTERFACE:${dep}>)
    elseif(dep MATCHES "^[a-z_]+$" AND NOT TARGET ${dep} AND NOT dep STREQUAL "${CMAKE_DL_LIBS}")
      message(FATAL_ERROR "${target} depends on ${dep}, which no folder before it defines")
    else()
      target_link_libraries(${target} ${scope} ${dep})
    endif()
  endforeach()
endfunction()

set(LEEWAY_TEST_ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=1:abort_on_error=0"
    "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp:halt_on_error=0:second_deadlock_stack=1")
