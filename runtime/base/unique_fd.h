// UniqueFd owns a file descriptor and closes it when it is destroyed.
#ifndef LEEWAY_RUNTIME_BASE_UNIQUE_FD_H_
#define LEEWAY_RUNTIME_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace leeway::runtime {

// Movable. Empty (false, -1) after a default construction or a move from it.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_UNIQUE_FD_H_
