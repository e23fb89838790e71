// UniqueFd owns a file descriptor and closes it when it is destroyed.
#ifndef LEEWAY_RUNTIME_BASE_UNIQUE_FD_H_
#define LEEWAY_RUNTIME_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

#include "runtime/base/fork.h"

namespace leeway::runtime {

// Movable. Empty (false, -1) after a default construction or a move from it.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  // Children that fork() makes close it at once.
  static UniqueFd ClosedInChildren(int fd) {
    UniqueFd result(fd);
    result.closed_in_children_ = true;
    SetClosedInChildren(fd, true);
    return result;
  }
  UniqueFd(UniqueFd&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), closed_in_children_(other.closed_in_children_) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(closed_in_children_, other.closed_in_children_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ < 0) return;
    if (closed_in_children_) SetClosedInChildren(fd_, false);
    ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
  bool closed_in_children_ = false;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_UNIQUE_FD_H_
