# All dependencies are packages of the distribution; `./dev setup` installs them.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_path(FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(fmt REQUIRED)
find_path(SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)

find_package(PkgConfig REQUIRED)
pkg_check_modules(ZeroMQ REQUIRED IMPORTED_TARGET libzmq)
# Its flags are those of libraries that libzmq uses itself. CMake passes them on from the second
# configuration on only, so that it would compile everything that uses libzmq anew.
set_target_properties(PkgConfig::ZeroMQ PROPERTIES
  INTERFACE_COMPILE_OPTIONS "" INTERFACE_INCLUDE_DIRECTORIES "${ZeroMQ_INCLUDEDIR}")
pkg_check_modules(IsaL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(XxHash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(Zstd REQUIRED IMPORTED_TARGET libzstd)
find_path(CPPZMQ_INCLUDE zmq.hpp REQUIRED)
# Headers only: the libraries are loaded at run time, if they are installed.
find_path(IBVERBS_INCLUDE infiniband/verbs.h REQUIRED)
find_path(RDMACM_INCLUDE rdma/rdma_cma.h REQUIRED)
