#include "runtime/loop/wake_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/log/log.h"

namespace leeway::runtime {

WakeSignal::WakeSignal() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) {
    LogError("cannot create an event descriptor (", std::strerror(errno),
             "): this process will be slow; raise its limit of open files (ulimit -n)");
  }
}

WakeSignal::~WakeSignal() {
  if (fd_ >= 0) ::close(fd_);
}

void WakeSignal::Set() {
  if (fd_ < 0 || set_.exchange(true)) return;
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from its maximum, and a write of eight bytes is not
  // interrupted.
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof(one));
}

void WakeSignal::Clear() {
  if (fd_ < 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_, &count, sizeof(count));
  // After the read: a Set in between counts as seen, correctly, because the caller of Set made its
  // work visible before. In the other order the descriptor could stay silent for good.
  set_.store(false);
}

}  // namespace leeway::runtime
