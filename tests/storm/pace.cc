#include "tests/storm/pace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway::storm {

absl::StatusOr<Pace> Pace::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof(std::uint64_t)) == 0) {
    memory = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (memory == MAP_FAILED) {
    return absl::UnavailableError(absl::StrCat("cannot use ", path, ": ", std::strerror(error)));
  }
  return Pace(static_cast<std::uint64_t*>(memory));
}

Pace::~Pace() {
  if (microseconds_ != nullptr) munmap(microseconds_, sizeof(*microseconds_));
}

Pace::Pace(Pace&& other) noexcept : microseconds_(std::exchange(other.microseconds_, nullptr)) {}

void Pace::Set(absl::Duration a_step) {
  std::atomic_ref(*microseconds_)
      .store(static_cast<std::uint64_t>(absl::ToInt64Microseconds(a_step)));
}

absl::Duration Pace::Get() const {
  return absl::Microseconds(std::atomic_ref(*microseconds_).load());
}

}  // namespace leeway::storm
