#include "runtime/memory/sealed_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"

namespace leeway::runtime {
namespace {

#ifndef MFD_NOEXEC_SEAL
constexpr unsigned kNoExec = 0x0008u;
#else
constexpr unsigned kNoExec = MFD_NOEXEC_SEAL;
#endif

// After this neither the owner nor any other process can shorten the memory (which would kill its
// readers) or map it for writing again.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

absl::Status Unavailable(const char* what) {
  const int error = errno;
  if (IsOutOfDescriptors(error)) return Prefixed("no shared memory", OutOfDescriptors(error));
  return absl::UnavailableError(
      absl::StrCat("no shared memory: ", what, ": ", std::strerror(error)));
}

absl::StatusOr<UniqueFd> NewMemory(std::size_t bytes) {
  // Beyond this limit the kernel kills the process instead of returning an error.
  rlimit file_size{};
  if (::getrlimit(RLIMIT_FSIZE, &file_size) == 0 && file_size.rlim_cur < bytes) {
    return absl::UnavailableError(
        "no shared memory: it would exceed the limit of file sizes; "
        "raise it (ulimit -f)");
  }
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = ::memfd_create("leeway", kFlags | kNoExec);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create("leeway", kFlags);  // an older kernel
  if (fd < 0) return Unavailable("memfd_create");
  UniqueFd memory(fd);
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return Unavailable("ftruncate");
  return memory;
}

absl::StatusOr<MemoryMapping> MapAll(int fd, std::size_t bytes, int protection) {
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return Unavailable("mmap");
  return MemoryMapping(data, bytes);
}

}  // namespace

MemoryMapping::~MemoryMapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

absl::StatusOr<MemoryMapping> MemoryMapping::Private(std::size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", size, " bytes of memory"));
  }
  return MemoryMapping(data, size);
}

absl::StatusOr<SealedMemory> SealedMemory::New(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) {
    return absl::UnavailableError("no shared memory: the size is more than a file can have");
  }
  SealedMemory memory;
  LEEWAY_ASSIGN_OR_RETURN(memory.fd, NewMemory(bytes));
  LEEWAY_ASSIGN_OR_RETURN(memory.mapping, MapAll(memory.fd.get(), bytes, PROT_READ | PROT_WRITE));
  if (::fcntl(memory.fd.get(), F_ADD_SEALS, kSeals) != 0) return Unavailable("F_ADD_SEALS");
  return memory;
}

absl::StatusOr<std::size_t> SealedSize(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError(
        "it offers a segment that it could shrink (it is not sealed)");
  }
  struct stat info {};
  struct statfs system {};
  // Memory of huge pages can run out when it is read, so only tmpfs is accepted.
  if (::fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC || ::fstat(fd, &info) != 0) {
    return absl::InvalidArgumentError("it offers a segment that is not memory of tmpfs");
  }
  return static_cast<std::size_t>(info.st_size);
}

absl::StatusOr<MemoryMapping> MapToRead(int fd, std::size_t bytes) {
  return MapAll(fd, bytes, PROT_READ);
}

}  // namespace leeway::runtime
