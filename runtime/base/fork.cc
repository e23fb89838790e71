#include "runtime/base/fork.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>

namespace leeway::runtime {
namespace {

constexpr std::size_t kWordBits = 64;
constexpr std::size_t kDescriptorsMax = 65536;

std::atomic<std::uint64_t> forks = 0;
// A bit for each descriptor that children close.
std::array<std::atomic<std::uint64_t>, kDescriptorsMax / kWordBits> closed_in_children;
// Of each of these: the only file that they close under that number; 0: whatever file it is.
std::array<std::atomic<std::uint64_t>, kDescriptorsMax> file_closed;

// Names the file of a descriptor; 0: it is not open. Safe in a signal handler.
std::uint64_t FileOf(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return 0;
  return (file.st_dev << 40 ^ file.st_ino) | std::uint64_t{1} << 63;
}

bool IsInRange(int fd) { return fd >= 0 && static_cast<std::size_t>(fd) < kDescriptorsMax; }

// The first descriptor is closed before /dev/null is opened: there may be no other left.
void Replace(int fd, int* nothing) {
  if (*nothing < 0) {
    ::close(fd);
    *nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  }
  if (*nothing == fd) {
    *nothing = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  } else if (*nothing < 0 || ::dup3(*nothing, fd, O_CLOEXEC) < 0) {
    ::close(fd);
  }
}

// Runs in the child, which has one thread; does only what is safe in a signal handler.
void OnChild() {
  forks.fetch_add(1, std::memory_order_relaxed);
  int nothing = -1;  // /dev/null
  for (std::size_t word = 0; word < closed_in_children.size(); ++word) {
    std::uint64_t bits = closed_in_children[word].exchange(0, std::memory_order_relaxed);
    for (; bits != 0; bits &= bits - 1) {
      const int fd = static_cast<int>(word * kWordBits) + std::countr_zero(bits);
      const std::uint64_t file = file_closed[fd].load(std::memory_order_relaxed);
      if (file == 0 || file == FileOf(fd)) Replace(fd, &nothing);
    }
  }
  if (nothing >= 0) ::close(nothing);
}

void WatchForks() {
  // Fails only without memory; then children are not noticed.
  static const int watched = ::pthread_atfork(nullptr, nullptr, OnChild);
  static_cast<void>(watched);
}

}  // namespace

std::uint64_t ForkCount() {
  WatchForks();
  return forks.load(std::memory_order_relaxed);
}

void SetClosedInChildren(int fd, bool closed) {
  if (!IsInRange(fd)) return;
  WatchForks();
  file_closed[fd].store(0, std::memory_order_relaxed);
  const auto place = static_cast<std::size_t>(fd);
  const std::uint64_t bit = std::uint64_t{1} << (place % kWordBits);
  std::atomic<std::uint64_t>& word = closed_in_children[place / kWordBits];
  if (closed) {
    word.fetch_or(bit, std::memory_order_relaxed);
  } else {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

ClosedInChildren::ClosedInChildren(int fd) : fd_(fd), file_(IsInRange(fd) ? FileOf(fd) : 0) {
  if (file_ == 0) return;
  SetClosedInChildren(fd_, true);
  file_closed[fd_].store(file_, std::memory_order_relaxed);
}

ClosedInChildren::~ClosedInChildren() {
  // The number may have been marked again since, for another file.
  if (file_ == 0 || file_closed[fd_].load(std::memory_order_relaxed) != file_) return;
  SetClosedInChildren(fd_, false);
}

}  // namespace leeway::runtime
