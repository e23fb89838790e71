#include "van/shm/shm_segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/status_macros.h"

namespace leeway::van {
namespace {

#ifndef MFD_NOEXEC_SEAL
constexpr unsigned kNoExec = 0x0008u;
#else
constexpr unsigned kNoExec = MFD_NOEXEC_SEAL;
#endif

// Neither its owner nor anybody else can shorten it (which would kill whoever reads it) or map it
// for writing again.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

absl::Status ShmError(const char* what) {
  const int error = errno;
  return absl::UnavailableError(
      absl::StrCat("no shared memory: ", what, ": ", std::strerror(error)));
}

absl::StatusOr<UniqueFd> NewMemory(std::size_t bytes) {
  // Beyond this limit the kernel does not refuse, it kills.
  rlimit file_size{};
  if (::getrlimit(RLIMIT_FSIZE, &file_size) == 0 && file_size.rlim_cur < bytes) {
    return absl::UnavailableError(
        "no shared memory: it would exceed the limit of file sizes; "
        "raise it (ulimit -f)");
  }
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = ::memfd_create("leeway", kFlags | kNoExec);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create("leeway", kFlags);  // an older kernel
  if (fd < 0) return ShmError("memfd_create");
  UniqueFd memory(fd);
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return ShmError("ftruncate");
  return memory;
}

absl::StatusOr<ShmMapping> MapAll(int fd, std::size_t bytes, int protection) {
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return ShmError("mmap");
  return ShmMapping(data, bytes);
}

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

ShmMapping::~ShmMapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

absl::StatusOr<std::shared_ptr<ShmOwnSegment>> ShmOwnSegment::New(const ShmSizes& sizes) {
  LEEWAY_ASSIGN_OR_RETURN(UniqueFd fd, NewMemory(sizes.Total()));
  LEEWAY_ASSIGN_OR_RETURN(ShmMapping mapping,
                          MapAll(fd.get(), sizes.Total(), PROT_READ | PROT_WRITE));
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return ShmError("F_ADD_SEALS");
  return std::shared_ptr<ShmOwnSegment>(
      new ShmOwnSegment(sizes, std::move(fd), std::move(mapping)));
}

absl::StatusOr<std::shared_ptr<ShmPeerSegment>> ShmPeerSegment::Map(UniqueFd fd,
                                                                    const ShmSizes& sizes) {
  if (!sizes.Valid()) return absl::InvalidArgumentError("it offers a segment of senseless size");
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("it offers a segment that it could take away again");
  }
  struct stat info {};
  struct statfs system {};
  // Huge pages can run out at the moment they are read.
  if (::fstatfs(fd.get(), &system) != 0 || system.f_type != TMPFS_MAGIC ||
      ::fstat(fd.get(), &info) != 0 || info.st_size < static_cast<off_t>(sizes.Total())) {
    return absl::InvalidArgumentError("it offers a segment that is not what it says");
  }
  LEEWAY_ASSIGN_OR_RETURN(ShmMapping mapping, MapAll(fd.get(), sizes.Total(), PROT_READ));
  return std::shared_ptr<ShmPeerSegment>(new ShmPeerSegment(sizes, std::move(mapping)));
}

absl::Status ShmViable() {
  ShmSizes small;
  small.ring_bytes = kShmRingBytesMin;
  small.arena_units = 1;
  return ShmOwnSegment::New(small).status();
}

}  // namespace leeway::van
